//! Which key of a machine file is which field of [`Hardware`]: one line each.

use nicforge_interfaces::DESCRIPTOR_READ_MAX;
use nicforge_platform::sim::{CacheConfig, CoreConfig, DramConfig, Hardware, LinkConfig, NicConfig, OtherSocket};
use nicforge_units::{BitRate, ByteRate, Bytes, CACHE_LINE_BYTES, Cycles, Frequency, Time};

use super::limits::{CACHE_KIB_MAX, CORES_MAX, cache_sizes_kib, check};
use super::reader::Reader;
use nicforge_options::powers_next_to;

/// Reads all hardware numbers. Problems stay in the reader; a field in trouble gets the
/// least value it may have.
pub(super) fn read(from: &mut Reader<'_>) -> Hardware {
    let hardware = Hardware {
        cores: from.count("machine", "cores", "cores", 1, CORES_MAX, "cores"),
        core: core(from),
        l2: cache(from, "l2"),
        llc: cache(from, "llc"),
        io_ways: from.count("llc", "io_ways", "ways", 0, 16, "ways that DMA writes may allocate into"),
        dram: dram(from),
        other_socket: OtherSocket {
            cores: from.count(
                "other_socket",
                "cores",
                "cores",
                0,
                256,
                "cores of another socket that use this one's memory",
            ),
            latency: ns(
                from,
                "other_socket",
                "latency_ns",
                "what the link between the sockets adds to a memory access",
            ),
        },
        nics: from.count("machine", "nics", "NICs", 1, 16, "NICs, each on a link of its own"),
        pcie: pcie(from),
        nic: nic(from),
    };
    check(from, &hardware);
    hardware
}

fn core(from: &mut Reader<'_>) -> CoreConfig {
    let s = "core";
    CoreConfig {
        frequency: Frequency::from_ghz(from.number(s, "frequency_ghz", "GHz", 0.1, 20.0, "clock")),
        mlp_independent: from.number(s, "mlp_independent", "", 1.0, 64.0, "independent accesses that overlap"),
        mlp_streaming: from.number(s, "mlp_streaming", "", 1.0, 64.0, "sequential accesses that overlap"),
        l2_streamer_lines: from.count(
            s,
            "l2_streamer_lines",
            "lines",
            0,
            64,
            "lines that the L2 streamer pulls in after a miss",
        ),
        atomic: cycles(from, s, "atomic_cycles", "an atomic beyond its memory access"),
        empty_poll: cycles(from, s, "empty_poll_cycles", "one empty poll of a receive ring"),
        rx_packet: cycles(from, s, "rx_packet_cycles", "driver work for a received packet"),
        tx_packet: cycles(from, s, "tx_packet_cycles", "driver work for a transmitted packet"),
        burst: cycles(from, s, "burst_cycles", "driver work for a burst, both ways together"),
        pool: cycles(from, s, "pool_cycles", "taking a buffer from the per-core cache, or giving it back"),
        write_combining_buffers: write_combining_buffers(from),
        copy_line: copy_line(from),
    }
}

fn copy_line(from: &mut Reader<'_>) -> Cycles {
    let doc = "instructions of a copy loop for a line";
    cycles(from, "core", "copy_line_cycles", doc)
}

fn write_combining_buffers(from: &mut Reader<'_>) -> usize {
    let doc = "lines of a device's memory that gather writes before they go over the link";
    from.count("core", "write_combining_buffers", "buffers", 1, 256, doc)
}

fn cache(from: &mut Reader<'_>, s: &'static str) -> CacheConfig {
    let kib = from.count(s, "size_kib", "KiB", 1, CACHE_KIB_MAX as usize, "capacity") as u64;
    let config = CacheConfig {
        size: Bytes(kib * 1024),
        ways: from.count(s, "ways", "ways", 1, 16, "ways"),
        hit: ns(from, s, "hit_ns", "load-to-use latency of a hit"),
    };
    let way_bytes = config.ways as u64 * CACHE_LINE_BYTES;
    let sets = config.size.0 / way_bytes;
    if config.size.0.is_multiple_of(way_bytes) && sets.is_power_of_two() {
        return config;
    }
    let wrong = format!("{kib} KiB in {} ways of 64-byte lines are not a power of two of sets", config.ways);
    let right = match cache_sizes_kib(kib, config.ways as u64) {
        [one, other] if other <= CACHE_KIB_MAX => format!("use {one} or {other} KiB"),
        [one, _] => format!("use {one} KiB"),
    };
    from.refuse(s, "size_kib", wrong, right);
    config
}

fn dram(from: &mut Reader<'_>) -> DramConfig {
    let s = "dram";
    DramConfig {
        channels: from.count(s, "channels", "channels", 1, 64, "channels"),
        peak: ByteRate::from_gb_per_second(from.number(
            s,
            "peak_gb_per_s",
            "GB/s",
            0.1,
            10_000.0,
            "what all channels deliver for mixed reads and writes",
        )),
        idle_latency: ns(
            from,
            s,
            "idle_latency_ns",
            "what a miss takes beyond the look-up in the LLC (`llc.hit_ns`), memory idle",
        ),
        queueing: from.number(s, "queueing", "", 0.0, 100.0, "mean queue at half load, in service times"),
    }
}

fn pcie(from: &mut Reader<'_>) -> LinkConfig {
    let s = "pcie";
    LinkConfig {
        rate: gbps(from, s, "rate_gbps", "usable rate per direction, TLP headers included"),
        max_payload: tlp_bytes(from, "max_payload_bytes", "largest payload of a write or completion TLP"),
        max_read_request: tlp_bytes(from, "max_read_request_bytes", "largest read request"),
        tlp_overhead: bytes(from, s, "tlp_overhead_bytes", "header, CRC and framing of a TLP"),
        dllp: Bytes(from.count(
            s,
            "dllp_bytes",
            "bytes",
            0,
            64,
            "acknowledgement and credit update for one received packet",
        ) as u64),
        tags: from.count(s, "tags", "requests", 1, 4096, "read requests in flight"),
        read_round_trip: ns(from, s, "read_round_trip_ns", "a read's round trip, idle, without the memory access"),
        write_latency: ns(from, s, "write_latency_ns", "a posted write's way to memory, idle"),
        posted_slack: ns(
            from,
            s,
            "posted_slack_ns",
            "how far memory may fall behind posted writes before the link stops",
        ),
        mmio_write: ns(from, s, "mmio_write_ns", "a register write on its way to the device"),
        mmio_read: ns(from, s, "mmio_read_ns", "a register read, there and back"),
    }
}

/// Sizes that the three bits of PCI Express's Device Control register can say.
fn tlp_bytes(from: &mut Reader<'_>, key: &'static str, doc: &'static str) -> Bytes {
    let (least, most) = (128, 4096);
    let read = bytes(from, "pcie", key, doc);
    if !read.0.is_power_of_two() || !(least..=most).contains(&read.0) {
        let wrong = format!("`{key}` cannot be {}: PCI Express has powers of two from {least} to {most}", read.0);
        from.refuse("pcie", key, wrong, powers_next_to(read.0, least, most));
    }
    read
}

fn nic(from: &mut Reader<'_>) -> NicConfig {
    let s = "nic";
    NicConfig {
        port: gbps(from, s, "port_gbps", "rate of the port"),
        wire_overhead: bytes(from, s, "wire_overhead_bytes", "preamble, delimiter, FCS and gap of a frame"),
        rx_fifo: kib(from, s, "rx_fifo_kib", "MAC receive FIFO"),
        tx_buffer: kib(from, s, "tx_buffer_kib", "internal buffer into which transmit payload is gathered"),
        tx_resume_room: kib(from, s, "tx_resume_room_kib", "room in it that other rings wait for after one filled it"),
        tx_deschedule_reads: from.number(
            s,
            "tx_deschedule_reads",
            "reads",
            0.0,
            100.0,
            "how long a ring is not served after it filled the internal buffer, in its read latencies",
        ),
        rx_pipeline: ns(from, s, "rx_pipeline_ns", "latency of the receive pipeline"),
        tx_pipeline: ns(from, s, "tx_pipeline_ns", "latency of the transmit pipeline"),
        descriptor_read: Bytes(from.count(
            s,
            "descriptor_read_bytes",
            "bytes",
            1,
            DESCRIPTOR_READ_MAX,
            "descriptors fetched by one read",
        ) as u64),
        burst_entries: entries(
            from,
            "burst_entries",
            "a ring that absorbs bursts at the port's rate; smaller ones are warned of",
        ),
        ring_entries_min: entries(
            from,
            "ring_entries_min",
            "the smallest ring that such NICs have; smaller ones are warned of",
        ),
        nicmem: nicmem(from),
        nicmem_access: ns(from, s, "nicmem_access_ns", "the NIC's own access to that memory"),
    }
}

fn nicmem(from: &mut Reader<'_>) -> Bytes {
    let doc = "memory of the NIC that software may use";
    Bytes(from.count("nic", "nicmem_kib", "KiB", 0, 1 << 24, doc) as u64 * 1024)
}

fn entries(from: &mut Reader<'_>, key: &'static str, doc: &'static str) -> usize {
    from.count("nic", key, "entries", 1, 65536, doc)
}

pub(super) fn cycles(from: &mut Reader<'_>, s: &'static str, key: &'static str, doc: &'static str) -> Cycles {
    Cycles(from.count(s, key, "cycles", 0, 1_000_000, doc) as u64)
}

pub(super) fn ns(from: &mut Reader<'_>, s: &'static str, key: &'static str, doc: &'static str) -> Time {
    Time::from_seconds(from.number(s, key, "ns", 0.001, 1e9, doc) * 1e-9)
}

pub(super) fn gbps(from: &mut Reader<'_>, s: &'static str, key: &'static str, doc: &'static str) -> BitRate {
    BitRate::from_gbps(from.number(s, key, "Gbit/s", 0.001, 100_000.0, doc))
}

pub(super) fn bytes(from: &mut Reader<'_>, s: &'static str, key: &'static str, doc: &'static str) -> Bytes {
    Bytes(from.count(s, key, "bytes", 1, 1 << 20, doc) as u64)
}

pub(super) fn kib(from: &mut Reader<'_>, s: &'static str, key: &'static str, doc: &'static str) -> Bytes {
    Bytes(from.count(s, key, "KiB", 1, 1 << 30, doc) as u64 * 1024)
}
