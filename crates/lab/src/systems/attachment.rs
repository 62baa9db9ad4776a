//! A placement turned into latencies and links: what lies between core, NIC and memory.

use nicforge_platform::sim::{CacheConfig, CoreConfig, DramConfig, Hardware, LinkConfig, NicConfig, OtherSocket};
use nicforge_units::{BitRate, ByteRate, Bytes, Cycles, Frequency, Time};

use crate::machine::{ALL_LINES, Integrated, Placement, per_cycle};

/// Address and command of a register access, and its data, as a bus transfers them.
const REGISTER_BYTES: u64 = 8;
/// One read request may ask for so much; it comes back in transactions.
const READ_REQUEST: Bytes = Bytes(4096);

/// A machine with its NIC in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// What the model runs on.
    pub hardware: Hardware,
    /// Lines of each DMA write that go to the cache.
    pub lines_to_cache: u64,
    /// What asking the interrupt controller takes.
    pub controller: Time,
    /// Memory and caches take no time: nobody looks at this system.
    pub perfect: bool,
}

impl Attachment {
    /// `machine` with its NIC at `placement`, cores at `clock`, a second-level cache of `cache`.
    pub fn new(machine: &Integrated, placement: &Placement, clock: Frequency, cache: Bytes) -> Attachment {
        let way = Way { machine, placement, clock };
        let to_cache = placement.lines_to_cache.min(ALL_LINES);
        let memory = if placement.off_chip_memory { machine.memory.off_chip } else { machine.memory.on_chip };
        let hardware = Hardware {
            cores: machine.cores,
            core: CoreConfig {
                frequency: clock,
                mlp_independent: machine.mlp_independent,
                mlp_streaming: machine.mlp_streaming,
                // No prefetcher is said, and the kernel's memory needs no page walk on Alpha.
                l2_streamer_lines: 0,
                // Its first level stands where other machines have the second.
                l1: Bytes(0),
                l2_pair_line: false,
                tlb_pages: 0,
                pause: Time::ZERO,
                pause_every: Time::ZERO,
                atomic: Cycles(0),
                // A core without work sleeps until the very moment that it is woken.
                empty_poll: Cycles(0),
                rx_packet: machine.driver.rx_packet,
                tx_packet: machine.driver.tx_packet,
                burst: machine.driver.burst,
                pool: machine.pool,
                // No device gives memory to software here.
                write_combining_buffers: 1,
                copy_line: Cycles(0),
            },
            l2: CacheConfig { size: machine.l1.size, ways: machine.l1.ways, hit: clock.time_for(machine.l1.hit) },
            llc: CacheConfig {
                size: cache,
                ways: machine.l2.ways,
                hit: clock.time_for(machine.l1.hit + machine.l2.hit),
            },
            io_ways: match to_cache {
                0 => 0,
                _ => machine.l2.ways,
            },
            // An estimate: a look-up and a snoop, each as long.
            other_l2: clock.time_for(machine.l1.hit + machine.l2.hit + machine.l1.hit + machine.l2.hit),
            llc_one_young_in: 0,
            dram: DramConfig {
                channels: 1,
                peak: per_cycle(machine.memory.bytes_per_cycle, clock),
                idle_latency: memory,
                queueing: machine.memory.queueing,
            },
            other_socket: OtherSocket { cores: 0, latency: Time::ZERO },
            nics: machine.nics,
            pcie: way.link(),
            nic: nic_config(machine),
        };
        Attachment { hardware, lines_to_cache: to_cache, controller: way.controller(), perfect: false }
    }

    /// A system with a perfect memory and no latencies, so that it is never the bottleneck: what
    /// loads the system that is looked at (integrated_nic, section 4.2).
    pub fn perfect(machine: &Integrated, placement: &Placement) -> Attachment {
        let mut attachment = Attachment::new(machine, placement, machine.frequency, machine.l2.size);
        let hardware = &mut attachment.hardware;
        let fast = ByteRate::from_gb_per_second(1e6);
        hardware.l2.hit = Time::ZERO;
        hardware.llc.hit = Time::ZERO;
        hardware.dram.idle_latency = Time::ZERO;
        hardware.dram.queueing = 0.0;
        hardware.dram.peak = fast;
        hardware.core.pool = Cycles(0);
        let link = &mut hardware.pcie;
        link.rate = BitRate::from_gbps(1e6);
        link.read_round_trip = Time::ZERO;
        link.write_latency = Time::ZERO;
        link.mmio_read = Time::ZERO;
        link.mmio_write = Time::ZERO;
        attachment.controller = Time::ZERO;
        attachment.perfect = true;
        attachment
    }
}

fn nic_config(machine: &Integrated) -> NicConfig {
    NicConfig {
        port: machine.nic.port,
        wire_overhead: machine.nic.wire_overhead,
        rx_fifo: machine.nic.rx_fifo,
        tx_buffer: machine.nic.tx_fifo,
        tx_resume_room: Bytes(0),
        tx_deschedule_reads: 0.0,
        rx_pipeline: Time::ZERO,
        tx_pipeline: Time::ZERO,
        descriptor_read: Bytes(nicforge_units::CACHE_LINE_BYTES),
        nicmem: Bytes(0),
        burst_entries: 1,
        ring_entries_min: 1,
        nicmem_access: Time::ZERO,
    }
}

/// The way between core and NIC.
struct Way<'a> {
    machine: &'a Integrated,
    placement: &'a Placement,
    clock: Frequency,
}

impl Way<'_> {
    /// One way through all bridges; `to_core` or only as far as memory.
    fn bridges(&self, to_core: bool) -> Time {
        let (bridges, placement) = (&self.machine.bridges, self.placement);
        let die = if to_core || !placement.off_chip_memory {
            bridges.cpu_die * placement.cpu_die_bridges
        } else {
            Time::ZERO
        };
        die + bridges.chipset * placement.chipset_bridges + bridges.io * placement.io_bridges
    }

    /// Wires off the die.
    fn wires(&self) -> impl Iterator<Item = &crate::machine::Wire> {
        let pcie = std::iter::repeat_n(&self.machine.pcie, self.placement.pcie as usize);
        let hypertransport = self.placement.hypertransport as usize;
        pcie.chain(std::iter::repeat_n(&self.machine.hypertransport, hypertransport))
    }

    /// A register access on the die: through the caches to a bus and over it.
    fn on_die(&self, at_cache: bool) -> Time {
        let machine = self.machine;
        let (caches, width) = if at_cache {
            (machine.l1.hit, machine.memory.cache_bytes_per_cycle)
        } else {
            (machine.l1.hit + machine.l2.hit, machine.memory.bytes_per_cycle)
        };
        // A request and what comes back: a command, and the command with data.
        let transfer = |bytes: u64| Cycles((bytes as f64 / width).ceil() as u64);
        let bus = transfer(REGISTER_BYTES) + transfer(2 * REGISTER_BYTES);
        self.clock.time_for(caches + bus)
    }

    /// A register read, there and back.
    fn register_read(&self) -> Time {
        let on_die = self.on_die(self.placement.registers_at_cache);
        let wires = self.wires().map(|wire| {
            let request = wire.rate.time_for(wire.overhead);
            request + wire.rate.time_for(wire.overhead + Bytes(REGISTER_BYTES))
        });
        let off_die = wires.fold(Time::ZERO, |sum, time| sum + time);
        on_die + self.bridges(true) * 2 + off_die + self.machine.nic.response
    }

    /// A read of the interrupt controller, which sits on a chip beside the processor's
    /// (section 3.3).
    fn controller(&self) -> Time {
        let bridges = self.machine.bridges.cpu_die * self.machine.controller_bridges;
        self.on_die(false) + bridges * 2 + self.machine.nic.response
    }

    /// The link that the NIC's DMA goes by.
    fn link(&self) -> LinkConfig {
        let width = if self.placement.data_at_cache {
            self.machine.memory.cache_bytes_per_cycle
        } else {
            self.machine.memory.bytes_per_cycle
        };
        let on_die = BitRate::from_gbps(per_cycle(width, self.clock).as_bytes_per_second() * 8e-9);
        let slowest = self.wires().min_by_key(|wire| wire.rate.as_bits_per_second());
        let one_way = self.bridges(false);
        let register_read = self.register_read();
        LinkConfig {
            rate: slowest.map_or(on_die, |wire| wire.rate.min(on_die)),
            max_payload: self.machine.link.transaction,
            max_read_request: READ_REQUEST,
            tlp_overhead: slowest.map_or(Bytes(REGISTER_BYTES), |wire| wire.overhead),
            dllp: Bytes(0),
            tags: self.machine.link.tags,
            read_round_trip: one_way * 2,
            write_latency: one_way,
            posted_slack: self.machine.link.posted_slack,
            mmio_write: Time::from_ps(register_read.as_ps() / 2),
            mmio_read: register_read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nicforge_platform::sim::{DmaPort, Lent, SimDma};
    use nicforge_platform::{AddressSpace, Dma};

    use super::super::system::machine_of;
    use super::*;
    use crate::machine::{Machine, parse_machine};

    fn machine() -> Machine {
        let text = include_str!("../../../../machines/m5-10gbe.toml");
        parse_machine(text, Path::new("machines/m5-10gbe.toml")).unwrap()
    }

    fn at(machine: &Machine, placement: &str, ghz: f64) -> Attachment {
        let machine = machine.integrated.as_ref().unwrap();
        let placement = machine.placement(placement).unwrap();
        Attachment::new(machine, placement, Frequency::from_ghz(ghz), machine.l2.size)
    }

    /// Table 5.1, the column of the paper's simulator, at the machine's clock: the table does not
    /// say at which of them it was measured, and where nothing but a chip's answer and some cycles
    /// is left, it matters.
    #[test]
    fn register_latencies_come_out_of_the_links_as_table_5_1_has_them() {
        let machine = machine();
        let table = [("STE", 773.0), ("HTE", 381.0), ("HTD", 190.0), ("OCM", 30.0)];
        for (placement, expected) in table {
            let read = at(&machine, placement, 4.0).hardware.pcie.mmio_read.as_ns();
            let error = read / expected - 1.0;
            assert!(error.abs() < 0.05, "{placement}: {read} ns, not {expected}");
        }
    }

    /// What is off the die hardly follows the clock of the cores.
    #[test]
    fn far_registers_are_as_far_at_every_clock() {
        let machine = machine();
        for (placement, expected) in [("STE", 773.0), ("HTE", 381.0), ("HTD", 190.0)] {
            for ghz in [2.0, 6.0, 8.0, 10.0] {
                let read = at(&machine, placement, ghz).hardware.pcie.mmio_read.as_ns();
                let error = read / expected - 1.0;
                assert!(error.abs() < 0.07, "{placement} at {ghz} GHz: {read} ns");
            }
        }
    }

    /// "OCC goes one step further ... reduces latency even further" (section 5.1).
    #[test]
    fn at_the_cache_a_register_is_nearer_than_at_the_memory_bus() {
        let machine = machine();
        let ns = |placement| at(&machine, placement, 4.0).hardware.pcie.mmio_read.as_ns();
        for placement in ["OCS", "OCSP", "OCC"] {
            assert!(ns(placement) < ns("OCM") - 5.0, "{placement}: {}", ns(placement));
        }
    }

    #[test]
    fn data_goes_where_the_placement_says() {
        let machine = machine();
        let lines = |placement| at(&machine, placement, 4.0).lines_to_cache;
        for placement in ["STE", "HTE", "HTD", "OCM", "OCS"] {
            assert_eq!(lines(placement), 0, "{placement}");
            assert_eq!(at(&machine, placement, 4.0).hardware.io_ways, 0);
        }
        assert_eq!(lines("OCSP"), 1);
        assert!(lines("OCC") > 1000);
    }

    /// `dma_no_allocate` (appendix A.4): a device's read that misses leaves nothing behind, so the next
    /// one misses, too. What its own writes left in the cache it finds there.
    #[test]
    fn reads_of_a_device_that_miss_go_to_memory_each_time() {
        const LINES: u64 = 16;
        let machine = machine();
        for (name, placement) in &machine.integrated.as_ref().unwrap().placements {
            let attachment = at(&machine, name, 4.0);
            let mut space = AddressSpace::default();
            let data = space.data(LINES * nicforge_units::CACHE_LINE_BYTES, 64);
            let mut host = Lent::new(machine_of(&attachment, &space));
            let mut port = Lent::new(DmaPort::new(&attachment.hardware.pcie, 0));
            let mut bytes = [0; (LINES * nicforge_units::CACHE_LINE_BYTES) as usize];
            for times in 1..=2 {
                SimDma::on(&mut host, &mut port, Time::from_us(times)).read(data, &mut bytes);
                assert_eq!(host.hierarchy.dram_lines(), times * LINES, "{name}");
            }
            let mut dma = SimDma::on(&mut host, &mut port, Time::from_us(3));
            dma.write(data, &bytes);
            dma.read(data, &mut bytes);
            drop(dma);
            let hits = host.hierarchy.counters().device_read_hits;
            assert_eq!(hits, placement.lines_to_cache.min(LINES), "{name}");
        }
    }
}
