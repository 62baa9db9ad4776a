//! The sections of a machine file with several places for its NICs, and the numbers that they are.

use nicforge_interfaces::sinic::Options;
use nicforge_nic::DriverCosts;
use nicforge_options::{Allowed, ConfigError, Place};
use nicforge_platform::sim::Hierarchy;
use nicforge_units::{Cycles, Frequency};
use serde::Deserialize;

use super::super::hardware::{AppSection, GHZ, NICS, OVERLAP, QUEUEING, TAGS, WAYS};
use super::super::section::{BYTES, CYCLES, GBPS, KIB, NS, Named, Section, Source, sections};
use super::{ALL_LINES, Bridges, ClockedCache, Integrated, LinkNumbers, MemoryNumbers, NicNumbers, Placement, Wire};
use crate::systems::stack::KernelCosts;

const BUS_BYTES: Allowed = Allowed::Number(0.1, 1024.0);
const BRIDGES: Allowed = Allowed::Whole(0, 4);
const YES_OR_NO: Allowed = Allowed::Whole(0, 1);
const PACKETS: Allowed = Allowed::Whole(1, 10_000);

sections! {
    /// `[machine]`.
    MachineSection {
        @text title;
        cores: "cores", Allowed::Whole(1, Hierarchy::CORES_MAX as u64), "cores of a system";
        nics: "NICs", NICS, "NICs of a system, at most";
    }

    /// `[core]`.
    Core {
        frequency_ghz: "GHz", GHZ, "clock";
        mlp_independent: "", OVERLAP, "independent accesses that overlap";
        mlp_streaming: "", OVERLAP, "accesses of a copy that overlap";
    }

    /// `[l1]` and `[l2]`.
    Cache {
        size_kib: "KiB", KIB, "capacity";
        ways: "ways", WAYS, "ways";
        hit_cycles: "cycles", CYCLES, "latency of a hit";
    }

    /// `[memory]`.
    Memory {
        on_chip_ns: "ns", NS, "latency, controller on the die";
        off_chip_ns: "ns", NS, "latency, controller off the die";
        bytes_per_cycle: "bytes", BUS_BYTES, "bus between second-level cache and controller, per cycle";
        cache_bytes_per_cycle: "bytes", BUS_BYTES, "bus between the caches, per cycle";
        queueing: "services", QUEUEING, "mean queue at half load";
    }

    /// `[bridges]`.
    BridgeSection {
        cpu_die_ns: "ns", NS, "between the die and the chips around it";
        chipset_ns: "ns", NS, "in the chip set";
        io_ns: "ns", NS, "to an I/O bus";
    }

    /// `[pcie]` and `[hypertransport]`.
    WireSection {
        rate_gbps: "Gbit/s", GBPS, "rate per direction";
        overhead_bytes: "bytes", BYTES, "header and framing of a transaction";
    }

    /// `[link]`.
    Link {
        transaction_bytes: "bytes", BYTES, "most payload of one transaction";
        tags: "requests", TAGS, "read requests in flight";
        posted_slack_ns: "ns", NS, "how far memory may fall behind posted writes";
    }

    /// `[nic]`.
    Nic {
        port_gbps: "Gbit/s", GBPS, "the port's rate";
        wire_overhead_bytes: "bytes", BYTES, "what a frame takes beside its bytes";
        rx_fifo_kib: "KiB", KIB, "receive FIFO";
        tx_fifo_kib: "KiB", KIB, "transmit FIFO";
        interrupt_delay_ns: "ns", NS, "from the first event to the interrupt";
        response_ns: "ns", NS, "a chip's answer to a register access";
        rx_entries: "descriptors", Allowed::Whole(8, 65536), "descriptors of the receive list";
        tx_entries: "descriptors", Allowed::Whole(8, 65536), "descriptors of the transmit list";
    }

    /// `[sinic]`: the configuration of a SINIC (appendix A.4).
    Sinic {
        vnics: "sets", Allowed::Whole(1, 256), "register sets of a V-SINIC";
        rx_max_copy_bytes: "bytes", BYTES, "most bytes of one receive copy";
        tx_max_copy_bytes: "bytes", BYTES, "most bytes of one transmit copy";
        rx_max_intr: "packets", PACKETS, "packets that the driver takes per interrupt";
        rx_fifo_threshold_kib: "KiB", KIB, "high watermark of the receive FIFO";
        tx_fifo_threshold_kib: "KiB", KIB, "low watermark of the transmit FIFO";
        header_copy_bytes: "bytes", BYTES, "first copy of a packet with zero copy";
        wait_timeout_ns: "ns", NS, "longest blocking of RxWait and TxWait";
    }

    /// `[kernel]`.
    Kernel {
        interrupt_cycles: "cycles", CYCLES, "taking an interrupt and returning";
        rx_data_cycles: "cycles", CYCLES, "IP and TCP of a received segment with payload";
        rx_ack_cycles: "cycles", CYCLES, "the same without payload";
        tx_data_cycles: "cycles", CYCLES, "TCP and IP of a sent segment with payload";
        tx_ack_cycles: "cycles", CYCLES, "the same without payload";
        forward_cycles: "cycles", CYCLES, "IP of a packet that is forwarded";
        system_call_cycles: "cycles", CYCLES, "a system call's way in and out";
        wake_cycles: "cycles", CYCLES, "sleep and wake-up of a process";
        copy_bytes_per_cycle: "bytes", Allowed::Number(0.1, 64.0), "bytes copied in a cycle within the cache";
        poll_round: "packets", PACKETS, "packets polled before a process has its turn";
    }

    /// `[driver]`.
    Driver {
        rx_packet_cycles: "cycles", CYCLES, "driver work for a received packet";
        tx_packet_cycles: "cycles", CYCLES, "driver work for a transmitted packet";
        burst_cycles: "cycles", CYCLES, "driver work for a poll that finds nothing more";
        pool_cycles: "cycles", CYCLES, "taking or giving a packet buffer";
    }

    /// `[interrupts]`.
    Interrupts {
        cpu_die_bridges: "bridges", BRIDGES, "bridges to the interrupt controller";
        controller_accesses: "accesses", Allowed::Whole(1, 64), "accesses to it for an interrupt";
    }

    /// `[placements.…]`.
    PlacementSection {
        cpu_die_bridges: "bridges", BRIDGES, "bridges off the die between core and NIC";
        chipset_bridges: "bridges", BRIDGES, "bridges in the chip set between core and NIC";
        io_bridges: "bridges", BRIDGES, "bridges to an I/O bus between core and NIC";
        pcie: "links", YES_OR_NO, "PCI Express links on the way";
        hypertransport: "links", YES_OR_NO, "HyperTransport links on the way";
        off_chip_memory: "", YES_OR_NO, "1: the memory controller is off the die";
        registers_at_cache: "", YES_OR_NO, "1: registers on the bus between the caches";
        data_at_cache: "", YES_OR_NO, "1: data by the bus between the caches";
        lines_to_cache: "lines", Allowed::Whole(0, ALL_LINES), "lines of each DMA write that go to the cache";
    }
}

/// A machine file with several places for its NICs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct IntegratedFile {
    pub(in super::super) machine: MachineSection,
    core: Core,
    l1: Cache,
    l2: Cache,
    memory: Memory,
    bridges: BridgeSection,
    pcie: WireSection,
    hypertransport: WireSection,
    link: Link,
    nic: Nic,
    sinic: Sinic,
    kernel: Kernel,
    driver: Driver,
    interrupts: Interrupts,
    #[serde(default)]
    placements: Named<PlacementSection>,
    #[serde(default)]
    pub(in super::super) apps: Named<AppSection>,
}

impl IntegratedFile {
    /// Checks all numbers, keeps their rows, and makes the machine of them, which stands in `file`.
    pub(in super::super) fn read(&self, source: &mut Source<'_>, file: &Place) -> Result<Integrated, ConfigError> {
        self.take(source)?;
        if self.placements.0.is_empty() {
            let right = "add [placements.NAME], as the shipped machines have them";
            return Err(ConfigError::new(file, "the machine has no place for its NICs", right));
        }
        Ok(Integrated {
            cores: self.machine.cores.count(),
            nics: self.machine.nics.count(),
            frequency: Frequency::from_ghz(self.core.frequency_ghz.get()),
            mlp_independent: self.core.mlp_independent.get(),
            mlp_streaming: self.core.mlp_streaming.get(),
            l1: self.l1.numbers(),
            l2: self.l2.numbers(),
            memory: MemoryNumbers {
                on_chip: self.memory.on_chip_ns.ns(),
                off_chip: self.memory.off_chip_ns.ns(),
                bytes_per_cycle: self.memory.bytes_per_cycle.get(),
                cache_bytes_per_cycle: self.memory.cache_bytes_per_cycle.get(),
                queueing: self.memory.queueing.get(),
            },
            bridges: Bridges {
                cpu_die: self.bridges.cpu_die_ns.ns(),
                chipset: self.bridges.chipset_ns.ns(),
                io: self.bridges.io_ns.ns(),
            },
            pcie: self.pcie.wire(),
            hypertransport: self.hypertransport.wire(),
            link: LinkNumbers {
                transaction: self.link.transaction_bytes.bytes(),
                tags: self.link.tags.count(),
                posted_slack: self.link.posted_slack_ns.ns(),
            },
            nic: self.nic.numbers(),
            sinic: self.sinic.options(),
            kernel: self.kernel.costs(),
            driver: DriverCosts {
                rx_packet: self.driver.rx_packet_cycles.cycles(),
                tx_packet: self.driver.tx_packet_cycles.cycles(),
                burst: self.driver.burst_cycles.cycles(),
            },
            pool: self.driver.pool_cycles.cycles(),
            controller_bridges: self.interrupts.cpu_die_bridges.count() as u64,
            placements: self.placements.0.iter().map(|(name, at)| (name.get_ref().clone(), at.placement())).collect(),
        })
    }

    fn take(&self, source: &mut Source<'_>) -> Result<(), ConfigError> {
        self.machine.take("machine", source)?;
        self.core.take("core", source)?;
        self.l1.take("l1", source)?;
        self.l2.take("l2", source)?;
        self.memory.take("memory", source)?;
        self.bridges.take("bridges", source)?;
        self.pcie.take("pcie", source)?;
        self.hypertransport.take("hypertransport", source)?;
        self.link.take("link", source)?;
        self.nic.take("nic", source)?;
        self.sinic.take("sinic", source)?;
        self.kernel.take("kernel", source)?;
        self.driver.take("driver", source)?;
        self.interrupts.take("interrupts", source)?;
        let mut placements = self.placements.0.iter();
        placements.try_for_each(|(name, placement)| placement.take(&format!("placements.{}", name.get_ref()), source))
    }
}

impl Cache {
    fn numbers(&self) -> ClockedCache {
        ClockedCache { size: self.size_kib.kib(), ways: self.ways.count(), hit: self.hit_cycles.cycles() }
    }
}

impl WireSection {
    fn wire(&self) -> Wire {
        Wire { rate: self.rate_gbps.gbps(), overhead: self.overhead_bytes.bytes() }
    }
}

impl Nic {
    fn numbers(&self) -> NicNumbers {
        NicNumbers {
            port: self.port_gbps.gbps(),
            wire_overhead: self.wire_overhead_bytes.bytes(),
            rx_fifo: self.rx_fifo_kib.kib(),
            tx_fifo: self.tx_fifo_kib.kib(),
            interrupt_delay: self.interrupt_delay_ns.ns(),
            response: self.response_ns.ns(),
            rx_entries: self.rx_entries.count(),
            tx_entries: self.tx_entries.count(),
        }
    }
}

impl Sinic {
    /// The address is of this project's own numbering.
    fn options(&self) -> Options {
        Options {
            hardware_address: [2, 0, 10, 0, 0, 1],
            vnics: Some(self.vnics.count()),
            rx_max_copy: self.rx_max_copy_bytes.bytes(),
            tx_max_copy: self.tx_max_copy_bytes.bytes(),
            rx_max_intr: self.rx_max_intr.count() as u32,
            rx_fifo_mark: self.rx_fifo_threshold_kib.kib(),
            tx_fifo_mark: self.tx_fifo_threshold_kib.kib(),
            header_copy: self.header_copy_bytes.bytes(),
            wait_timeout: self.wait_timeout_ns.ns(),
            advice: 0,
            interrupt_mask: 0,
        }
    }
}

impl Kernel {
    fn costs(&self) -> KernelCosts {
        KernelCosts {
            interrupt: self.interrupt_cycles.cycles(),
            controller: Cycles(0),
            controller_accesses: 0,
            rx_data: self.rx_data_cycles.cycles(),
            rx_ack: self.rx_ack_cycles.cycles(),
            tx_data: self.tx_data_cycles.cycles(),
            tx_ack: self.tx_ack_cycles.cycles(),
            forward: self.forward_cycles.cycles(),
            system_call: self.system_call_cycles.cycles(),
            wake: self.wake_cycles.cycles(),
            copy_bytes_per_cycle: self.copy_bytes_per_cycle.get(),
            poll_round: self.poll_round.count(),
        }
    }
}

impl PlacementSection {
    fn placement(&self) -> Placement {
        Placement {
            cpu_die_bridges: self.cpu_die_bridges.count() as u64,
            chipset_bridges: self.chipset_bridges.count() as u64,
            io_bridges: self.io_bridges.count() as u64,
            pcie: self.pcie.count() as u64,
            hypertransport: self.hypertransport.count() as u64,
            off_chip_memory: self.off_chip_memory.count() == 1,
            registers_at_cache: self.registers_at_cache.count() == 1,
            data_at_cache: self.data_at_cache.count() == 1,
            lines_to_cache: self.lines_to_cache.count() as u64,
        }
    }
}
