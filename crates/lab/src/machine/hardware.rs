//! The sections of a machine file with one place for its NICs, and the [`Hardware`] that they describe.

use nicforge_interfaces::DESCRIPTOR_READ_MAX;
use nicforge_options::{Allowed, ConfigError};
use nicforge_platform::sim::{CacheConfig, CoreConfig, DramConfig, Hardware, LinkConfig, NicConfig, OtherSocket};
use nicforge_units::{ByteRate, Bytes, CACHE_LINE_BYTES, Frequency, Time};
use serde::Deserialize;

use super::limits::{CACHE_KIB_MAX, CORES_MAX, cache_sizes_kib, check};
use super::npu::NpuFile;
use super::section::{BYTES, CYCLES, GBPS, KIB, NS, Named, Number, Section, Source, sections};

/// NICs of a machine.
pub(super) const NICS: Allowed = Allowed::Whole(1, 16);
/// Clock of the cores, in GHz.
pub(super) const GHZ: Allowed = Allowed::Number(0.1, 20.0);
/// Accesses that overlap.
pub(super) const OVERLAP: Allowed = Allowed::Number(1.0, 64.0);
/// Ways of a cache.
pub(super) const WAYS: Allowed = Allowed::Whole(1, 16);
/// How latency grows with load.
pub(super) const QUEUEING: Allowed = Allowed::Number(0.0, 100.0);
/// Read requests in flight.
pub(super) const TAGS: Allowed = Allowed::Whole(1, 4096);

const L1_KIB: Allowed = Allowed::Whole(0, 64);
const PAUSE_US: Allowed = Allowed::Number(0.0, 1000.0);
const PAUSE_EVERY_MS: Allowed = Allowed::Number(0.0, 1e6);
const CACHE_KIB: Allowed = Allowed::Whole(1, CACHE_KIB_MAX);
const RING_ENTRIES: Allowed = Allowed::Whole(1, 65536);
/// Sizes that the three bits of PCI Express's Device Control register can say.
const TLP_BYTES: Allowed = Allowed::PowerOfTwo(128, 4096);

sections! {
    /// `[machine]`.
    MachineSection {
        @text title;
        cores: "cores", Allowed::Whole(1, CORES_MAX as u64), "cores";
        nics: "NICs", NICS, "NICs, each on a link of its own";
    }

    /// `[core]`.
    Core {
        frequency_ghz: "GHz", GHZ, "clock";
        mlp_independent: "", OVERLAP, "independent accesses that overlap";
        mlp_streaming: "", OVERLAP, "sequential accesses that overlap";
        l2_streamer_lines: "lines", Allowed::Whole(0, 64), "lines that the L2 streamer pulls in after a miss";
        l1_kib: "KiB", L1_KIB, "first-level data cache, of 8 ways; 0: hits within a burst alone";
        l2_pair_line: "lines", Allowed::Whole(0, 1), "1: a miss of the L2 also brings the other line of its 128 bytes";
        tlb_pages: "pages", Allowed::Whole(0, 1 << 16),
            "pages of 4 KiB that the second-level TLB of 12 ways knows; 0: no page walks";
        pause_us: "us", PAUSE_US, "how long the system takes a core away each time";
        pause_every_ms: "ms", PAUSE_EVERY_MS, "how often it does; 0: never";
        atomic_cycles: "cycles", CYCLES, "an atomic beyond its memory access";
        empty_poll_cycles: "cycles", CYCLES, "one empty poll of a receive ring";
        rx_packet_cycles: "cycles", CYCLES, "driver work for a received packet";
        tx_packet_cycles: "cycles", CYCLES, "driver work for a transmitted packet";
        burst_cycles: "cycles", CYCLES, "driver work for a burst, both ways together";
        pool_cycles: "cycles", CYCLES, "taking a buffer from the per-core cache, or giving it back";
        write_combining_buffers: "buffers", Allowed::Whole(1, 256),
            "lines of a device's memory that gather writes before they go over the link";
        copy_line_cycles: "cycles", CYCLES, "instructions of a copy loop for a line";
    }

    /// `[l2]`.
    Cache {
        size_kib: "KiB", CACHE_KIB, "capacity";
        ways: "ways", WAYS, "ways";
        hit_ns: "ns", NS, "load-to-use latency of a hit";
    }

    /// `[llc]`.
    LastCache {
        size_kib: "KiB", CACHE_KIB, "capacity";
        ways: "ways", WAYS, "ways";
        hit_ns: "ns", NS, "load-to-use latency of a hit";
        other_l2_ns: "ns", NS, "load-to-use latency of a line that the L2 of another core has";
        io_ways: "ways", Allowed::Whole(0, 16), "ways that DMA writes may allocate into";
        one_young_in: "lines", Allowed::Whole(0, 1 << 16),
            "ages of two bits: where more lines come than fit, one of so many is kept; 0: least recently used";
    }

    /// `[dram]`.
    Dram {
        channels: "channels", Allowed::Whole(1, 64), "channels";
        peak_gb_per_s: "GB/s", Allowed::Number(0.1, 10_000.0), "what all channels deliver for mixed reads and writes";
        idle_latency_ns: "ns", NS,
            "what a miss takes beyond the look-up in the LLC (`llc.hit_ns`), memory idle";
        queueing: "", QUEUEING, "mean queue at half load, in service times";
    }

    /// `[other_socket]`.
    OtherSocketSection {
        cores: "cores", Allowed::Whole(0, 256), "cores of another socket that use this one's memory";
        latency_ns: "ns", NS, "what the link between the sockets adds to a memory access";
    }

    /// `[pcie]`.
    Pcie {
        rate_gbps: "Gbit/s", GBPS, "usable rate per direction, TLP headers included";
        max_payload_bytes: "bytes", TLP_BYTES, "largest payload of a write or completion TLP";
        max_read_request_bytes: "bytes", TLP_BYTES, "largest read request";
        tlp_overhead_bytes: "bytes", BYTES, "header, CRC and framing of a TLP";
        dllp_bytes: "bytes", Allowed::Whole(0, 64), "acknowledgement and credit update for one received packet";
        tags: "requests", TAGS, "read requests in flight";
        read_round_trip_ns: "ns", NS, "a read's round trip, idle, without the memory access";
        write_latency_ns: "ns", NS, "a posted write's way to memory, idle";
        posted_slack_ns: "ns", NS, "how far memory may fall behind posted writes before the link stops";
        mmio_write_ns: "ns", NS, "a register write on its way to the device";
        mmio_read_ns: "ns", NS, "a register read, there and back";
    }

    /// `[nic]`.
    NicSection {
        port_gbps: "Gbit/s", GBPS, "rate of the port";
        wire_overhead_bytes: "bytes", BYTES, "preamble, delimiter, FCS and gap of a frame";
        rx_fifo_kib: "KiB", KIB, "MAC receive FIFO";
        tx_buffer_kib: "KiB", KIB, "internal buffer into which transmit payload is gathered";
        tx_resume_room_kib: "KiB", KIB, "room in it that other rings wait for after one filled it";
        tx_deschedule_reads: "reads", Allowed::Number(0.0, 100.0),
            "how long a ring is not served after it filled the internal buffer, in its read latencies";
        rx_pipeline_ns: "ns", NS, "latency of the receive pipeline";
        tx_pipeline_ns: "ns", NS, "latency of the transmit pipeline";
        descriptor_read_bytes: "bytes", Allowed::Whole(1, DESCRIPTOR_READ_MAX as u64), "descriptors fetched by one read";
        burst_entries: "entries", RING_ENTRIES,
            "a ring that absorbs bursts at the port's rate; smaller ones are warned of";
        ring_entries_min: "entries", RING_ENTRIES, "the smallest ring that such NICs have; smaller ones are warned of";
        nicmem_kib: "KiB", Allowed::Whole(0, 1 << 24), "memory of the NIC that software may use";
        nicmem_access_ns: "ns", NS, "the NIC's own access to that memory";
    }

    /// `[apps.…]`.
    AppSection {
        work_cycles: "cycles", Allowed::Whole(0, 10_000_000), "work per packet beyond the memory accesses";
    }
}

/// A machine file with one place for its NICs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainFile {
    pub(super) machine: MachineSection,
    pub(super) core: Core,
    pub(super) l2: Cache,
    pub(super) llc: LastCache,
    dram: Dram,
    other_socket: OtherSocketSection,
    pcie: Pcie,
    pub(super) nic: NicSection,
    pub(super) npu: Option<NpuFile>,
    #[serde(default)]
    pub(super) apps: Named<AppSection>,
}

impl PlainFile {
    /// Checks all numbers, keeps their rows, and makes the hardware of them.
    pub(super) fn read(&self, source: &mut Source<'_>) -> Result<Hardware, ConfigError> {
        self.machine.take("machine", source)?;
        self.core.take("core", source)?;
        self.l2.take("l2", source)?;
        self.llc.take("llc", source)?;
        self.dram.take("dram", source)?;
        self.other_socket.take("other_socket", source)?;
        self.pcie.take("pcie", source)?;
        self.nic.take("nic", source)?;
        let hardware = Hardware {
            cores: self.machine.cores.count(),
            core: self.core.config(),
            l2: cache(source, [&self.l2.size_kib, &self.l2.ways, &self.l2.hit_ns])?,
            llc: cache(source, [&self.llc.size_kib, &self.llc.ways, &self.llc.hit_ns])?,
            other_l2: self.llc.other_l2_ns.ns(),
            io_ways: self.llc.io_ways.count(),
            llc_one_young_in: self.llc.one_young_in.count() as u32,
            dram: self.dram.config(),
            other_socket: OtherSocket {
                cores: self.other_socket.cores.count(),
                latency: self.other_socket.latency_ns.ns(),
            },
            nics: self.machine.nics.count(),
            pcie: self.pcie.config(),
            nic: self.nic.config(),
        };
        check(source, self, &hardware)?;
        Ok(hardware)
    }
}

impl Core {
    fn config(&self) -> CoreConfig {
        CoreConfig {
            frequency: Frequency::from_ghz(self.frequency_ghz.get()),
            mlp_independent: self.mlp_independent.get(),
            mlp_streaming: self.mlp_streaming.get(),
            l2_streamer_lines: self.l2_streamer_lines.count(),
            l1: self.l1_kib.kib(),
            l2_pair_line: self.l2_pair_line.count() > 0,
            tlb_pages: self.tlb_pages.count(),
            pause: Time::from_ps((self.pause_us.get() * 1e6) as u64),
            pause_every: Time::from_ps((self.pause_every_ms.get() * 1e9) as u64),
            atomic: self.atomic_cycles.cycles(),
            empty_poll: self.empty_poll_cycles.cycles(),
            rx_packet: self.rx_packet_cycles.cycles(),
            tx_packet: self.tx_packet_cycles.cycles(),
            burst: self.burst_cycles.cycles(),
            pool: self.pool_cycles.cycles(),
            write_combining_buffers: self.write_combining_buffers.count(),
            copy_line: self.copy_line_cycles.cycles(),
        }
    }
}

/// A cache of this size, with so many ways, that is hit in this time.
fn cache(source: &Source<'_>, [size, ways, hit]: [&Number; 3]) -> Result<CacheConfig, ConfigError> {
    let config = CacheConfig { size: size.kib(), ways: ways.count(), hit: hit.ns() };
    let way_bytes = config.ways as u64 * CACHE_LINE_BYTES;
    let sets = config.size.0 / way_bytes;
    if config.size.0.is_multiple_of(way_bytes) && sets.is_power_of_two() {
        return Ok(config);
    }
    let kib = size.count() as u64;
    let wrong = format!("{kib} KiB in {} ways of 64-byte lines are not a power of two of sets", config.ways);
    let right = match cache_sizes_kib(kib, config.ways as u64) {
        [one, other] if other <= CACHE_KIB_MAX => format!("use {one} or {other} KiB"),
        [one, _] => format!("use {one} KiB"),
    };
    source.refuse(size, wrong, right)
}

impl Dram {
    fn config(&self) -> DramConfig {
        DramConfig {
            channels: self.channels.count(),
            peak: ByteRate::from_gb_per_second(self.peak_gb_per_s.get()),
            idle_latency: self.idle_latency_ns.ns(),
            queueing: self.queueing.get(),
        }
    }
}

impl Pcie {
    fn config(&self) -> LinkConfig {
        LinkConfig {
            rate: self.rate_gbps.gbps(),
            max_payload: self.max_payload_bytes.bytes(),
            max_read_request: self.max_read_request_bytes.bytes(),
            tlp_overhead: self.tlp_overhead_bytes.bytes(),
            dllp: self.dllp_bytes.bytes(),
            tags: self.tags.count(),
            read_round_trip: self.read_round_trip_ns.ns(),
            write_latency: self.write_latency_ns.ns(),
            posted_slack: self.posted_slack_ns.ns(),
            mmio_write: self.mmio_write_ns.ns(),
            mmio_read: self.mmio_read_ns.ns(),
        }
    }
}

impl NicSection {
    fn config(&self) -> NicConfig {
        NicConfig {
            port: self.port_gbps.gbps(),
            wire_overhead: self.wire_overhead_bytes.bytes(),
            rx_fifo: self.rx_fifo_kib.kib(),
            tx_buffer: self.tx_buffer_kib.kib(),
            tx_resume_room: self.tx_resume_room_kib.kib(),
            tx_deschedule_reads: self.tx_deschedule_reads.get(),
            rx_pipeline: self.rx_pipeline_ns.ns(),
            tx_pipeline: self.tx_pipeline_ns.ns(),
            descriptor_read: self.descriptor_read_bytes.bytes(),
            burst_entries: self.burst_entries.count(),
            ring_entries_min: self.ring_entries_min.count(),
            nicmem: Bytes(self.nicmem_kib.count() as u64 * 1024),
            nicmem_access: self.nicmem_access_ns.ns(),
        }
    }
}
