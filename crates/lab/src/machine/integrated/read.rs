//! Which key of a machine file is which number: one line each.

use nicforge_interfaces::sinic::Options;
use nicforge_nic::DriverCosts;
use nicforge_platform::sim::Hierarchy;
use nicforge_units::{Cycles, Frequency};

use super::super::hardware::{bytes, cycles, gbps, kib, ns};
use super::super::reader::Reader;
use super::{ALL_LINES, Bridges, ClockedCache, Integrated, LinkNumbers, MemoryNumbers, NicNumbers, Placement, Wire};
use crate::systems::stack::KernelCosts;

/// Reads all numbers; problems stay in the reader.
pub(in super::super) fn read(from: &mut Reader<'_>) -> Integrated {
    let names = from.names("placements");
    if names.is_empty() {
        from.needs_one_of("placements", "the machine has no place for its NICs");
    }
    let core = |from: &mut Reader<'_>, key, doc| from.number("core", key, "", 1.0, 64.0, doc);
    let (least, most) = (0.1, 20.0);
    Integrated {
        cores: from.count("machine", "cores", "cores", 1, Hierarchy::CORES_MAX, "cores of a system"),
        nics: from.count("machine", "nics", "NICs", 1, 16, "NICs of a system, at most"),
        frequency: Frequency::from_ghz(from.number("core", "frequency_ghz", "GHz", least, most, "clock")),
        mlp_independent: core(from, "mlp_independent", "independent accesses that overlap"),
        mlp_streaming: core(from, "mlp_streaming", "accesses of a copy that overlap"),
        l1: cache(from, "l1"),
        l2: cache(from, "l2"),
        memory: memory(from),
        bridges: bridges(from),
        pcie: wire(from, "pcie"),
        hypertransport: wire(from, "hypertransport"),
        link: link(from),
        nic: nic(from),
        sinic: sinic(from),
        kernel: kernel(from),
        driver: driver(from),
        pool: cycles(from, "driver", "pool_cycles", "taking or giving a packet buffer"),
        controller_bridges: {
            let doc = "bridges to the interrupt controller";
            from.count("interrupts", "cpu_die_bridges", "bridges", 0, 4, doc) as u64
        },
        placements: names
            .into_iter()
            .map(|name| {
                let placement = placement(from, &format!("placements.{name}"));
                (name, placement)
            })
            .collect(),
    }
}

fn bridges(from: &mut Reader<'_>) -> Bridges {
    let s = "bridges";
    Bridges {
        cpu_die: ns(from, s, "cpu_die_ns", "between the die and the chips around it"),
        chipset: ns(from, s, "chipset_ns", "in the chip set"),
        io: ns(from, s, "io_ns", "to an I/O bus"),
    }
}

fn link(from: &mut Reader<'_>) -> LinkNumbers {
    let s = "link";
    let behind = "how far memory may fall behind posted writes";
    LinkNumbers {
        transaction: bytes(from, s, "transaction_bytes", "most payload of one transaction"),
        tags: from.count(s, "tags", "requests", 1, 4096, "read requests in flight"),
        posted_slack: ns(from, s, "posted_slack_ns", behind),
    }
}

fn driver(from: &mut Reader<'_>) -> DriverCosts {
    let s = "driver";
    let burst = "driver work for a poll that finds nothing more";
    DriverCosts {
        rx_packet: cycles(from, s, "rx_packet_cycles", "driver work for a received packet"),
        tx_packet: cycles(from, s, "tx_packet_cycles", "driver work for a transmitted packet"),
        burst: cycles(from, s, "burst_cycles", burst),
    }
}

fn cache(from: &mut Reader<'_>, s: &'static str) -> ClockedCache {
    ClockedCache {
        size: kib(from, s, "size_kib", "capacity"),
        ways: from.count(s, "ways", "ways", 1, 16, "ways"),
        hit: cycles(from, s, "hit_cycles", "latency of a hit"),
    }
}

fn memory(from: &mut Reader<'_>) -> MemoryNumbers {
    let s = "memory";
    MemoryNumbers {
        on_chip: ns(from, s, "on_chip_ns", "latency, controller on the die"),
        off_chip: ns(from, s, "off_chip_ns", "latency, controller off the die"),
        bytes_per_cycle: from.number(
            s,
            "bytes_per_cycle",
            "bytes",
            0.1,
            1024.0,
            "bus between second-level cache and controller, per cycle",
        ),
        cache_bytes_per_cycle: from.number(
            s,
            "cache_bytes_per_cycle",
            "bytes",
            0.1,
            1024.0,
            "bus between the caches, per cycle",
        ),
        queueing: from.number(s, "queueing", "services", 0.0, 100.0, "mean queue at half load"),
    }
}

fn wire(from: &mut Reader<'_>, s: &'static str) -> Wire {
    Wire {
        rate: gbps(from, s, "rate_gbps", "rate per direction"),
        overhead: bytes(from, s, "overhead_bytes", "header and framing of a transaction"),
    }
}

fn nic(from: &mut Reader<'_>) -> NicNumbers {
    let s = "nic";
    NicNumbers {
        port: gbps(from, s, "port_gbps", "the port's rate"),
        wire_overhead: bytes(from, s, "wire_overhead_bytes", "what a frame takes beside its bytes"),
        rx_fifo: kib(from, s, "rx_fifo_kib", "receive FIFO"),
        tx_fifo: kib(from, s, "tx_fifo_kib", "transmit FIFO"),
        interrupt_delay: ns(from, s, "interrupt_delay_ns", "from the first event to the interrupt"),
        response: ns(from, s, "response_ns", "a chip's answer to a register access"),
        entries: from.count(s, "entries", "descriptors", 8, 65536, "descriptors of each list"),
    }
}

/// The configuration of a SINIC (appendix A.4); the address is of this project's own numbering.
fn sinic(from: &mut Reader<'_>) -> Options {
    let s = "sinic";
    let packets = "packets that the driver takes per interrupt";
    let vnics = "register sets of a V-SINIC";
    Options {
        hardware_address: [2, 0, 10, 0, 0, 1],
        vnics: Some(from.count(s, "vnics", "sets", 1, 256, vnics)),
        rx_max_copy: bytes(from, s, "rx_max_copy_bytes", "most bytes of one receive copy"),
        tx_max_copy: bytes(from, s, "tx_max_copy_bytes", "most bytes of one transmit copy"),
        rx_max_intr: from.count(s, "rx_max_intr", "packets", 1, 10_000, packets) as u32,
        rx_fifo_mark: kib(from, s, "rx_fifo_threshold_kib", "high watermark of the receive FIFO"),
        tx_fifo_mark: kib(from, s, "tx_fifo_threshold_kib", "low watermark of the transmit FIFO"),
        header_copy: bytes(from, s, "header_copy_bytes", "first copy of a packet with zero copy"),
        wait_timeout: ns(from, s, "wait_timeout_ns", "longest blocking of RxWait and TxWait"),
        advice: 0,
        interrupt_mask: 0,
    }
}

fn kernel(from: &mut Reader<'_>) -> KernelCosts {
    let s = "kernel";
    KernelCosts {
        interrupt: cycles(from, s, "interrupt_cycles", "taking an interrupt and returning"),
        controller: Cycles(0),
        rx_data: cycles(from, s, "rx_data_cycles", "IP and TCP of a received segment with payload"),
        rx_ack: cycles(from, s, "rx_ack_cycles", "the same without payload"),
        tx_data: cycles(from, s, "tx_data_cycles", "TCP and IP of a sent segment with payload"),
        tx_ack: cycles(from, s, "tx_ack_cycles", "the same without payload"),
        forward: cycles(from, s, "forward_cycles", "IP of a packet that is forwarded"),
        system_call: cycles(from, s, "system_call_cycles", "a system call's way in and out"),
        wake: cycles(from, s, "wake_cycles", "sleeping and being woken"),
        copy_bytes_per_cycle: from.number(
            s,
            "copy_bytes_per_cycle",
            "bytes",
            0.1,
            64.0,
            "bytes copied in a cycle within the cache",
        ),
        poll_round: from.count(s, "poll_round", "packets", 1, 10_000, "packets polled before a process has its turn"),
    }
}

fn placement(from: &mut Reader<'_>, s: &str) -> Placement {
    let mut count = |key, unit, most, doc| from.count(s, key, unit, 0, most, doc) as u64;
    Placement {
        cpu_die_bridges: count("cpu_die_bridges", "bridges", 4, "bridges off the die between core and NIC"),
        chipset_bridges: count("chipset_bridges", "bridges", 4, "bridges in the chip set between core and NIC"),
        io_bridges: count("io_bridges", "bridges", 4, "bridges to an I/O bus between core and NIC"),
        pcie: count("pcie", "links", 1, "PCI Express links on the way"),
        hypertransport: count("hypertransport", "links", 1, "HyperTransport links on the way"),
        off_chip_memory: count("off_chip_memory", "", 1, "1: the memory controller is off the die") == 1,
        registers_at_cache: count("registers_at_cache", "", 1, "1: registers on the bus between the caches") == 1,
        data_at_cache: count("data_at_cache", "", 1, "1: data by the bus between the caches") == 1,
        lines_to_cache: count(
            "lines_to_cache",
            "lines",
            ALL_LINES as usize,
            "lines of each DMA write that go to the cache",
        ),
    }
}
