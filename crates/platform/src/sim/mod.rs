//! The sim ground: deterministic virtual time over a model of cores, caches, DRAM and PCIe.
//!
//! ```text
//!   SimCpu (core.rs) ─┐                    ┌─ SimDma (dma.rs) over two link directions (link.rs)
//!                     ├─ Host (host.rs) ───┤
//!   paged.rs: memory in small pages, TLBs;  nicmem.rs: memory of a NIC, reached without the bus by the NIC and over it by cores
//!   hierarchy.rs: cache.rs (L2s), llc.rs, lines.rs (who has which), dram.rs;  memory.rs: bytes
//!   hierarchy/run.rs: a core's accesses to lines one behind the other, hierarchy/shared.rs: LLC and DRAM
//!   locks.rs: who holds a lock when;  npu/: the processor of a NIC
//!   ahead.rs: what the simulation itself will look at soon;  schedule.rs: who is next
//! ```
//!
//! Loosely timed: each call carries its own time cursor, so an agent may run a packet ahead
//! of the others; resources that agents share (DRAM) therefore keep their bandwidth in a
//! calendar instead of a queue.

pub(crate) mod ahead;
mod cache;
mod config;
mod core;
mod counters;
mod devices;
mod dma;
mod dram;
mod hierarchy;
mod host;
mod lent;
mod lines;
mod link;
mod llc;
mod locks;
mod memory;
mod nicmem;
pub mod npu;
mod paged;
mod schedule;
mod zero_lines;

pub use cache::WAYS_MAX;
pub use config::{CacheConfig, CoreConfig, DramConfig, Hardware, LinkConfig, NicConfig, OtherSocket};
pub use core::{CoreCycles, DeviceReader, SimCore, SimCpu};
pub use counters::MemoryCounters;
pub use devices::{Devices, MmioWrite};
pub use dma::{DmaCounters, DmaPort, SimDma};
pub use hierarchy::{Hierarchy, Served};
pub use host::Host;
pub use lent::{Agent, Lent, Turn};
pub use memory::SimMemory;
pub use schedule::Schedule;

/// A machine of round numbers, for tests of whatever runs on this ground.
pub fn test_hardware() -> Hardware {
    use nicforge_units::{BitRate, ByteRate, Bytes, Cycles, Frequency, Time};
    Hardware {
        cores: 2,
        core: CoreConfig {
            frequency: Frequency::from_ghz(2.0),
            mlp_independent: 4.0,
            mlp_streaming: 8.0,
            l2_streamer_lines: 0,
            l1: Bytes(0),
            l2_pair_line: false,
            tlb_pages: 0,
            pause: Time::ZERO,
            pause_every: Time::ZERO,
            atomic: Cycles(20),
            empty_poll: Cycles(50),
            rx_packet: Cycles(50),
            tx_packet: Cycles(50),
            burst: Cycles(100),
            pool: Cycles(10),
            write_combining_buffers: 4,
            copy_line: Cycles(3),
        },
        l2: CacheConfig { size: Bytes(1 << 20), ways: 16, hit: Time::from_ns(7) },
        llc: CacheConfig { size: Bytes(22 << 20), ways: 11, hit: Time::from_ns(20) },
        other_l2: Time::from_ns(45),
        io_ways: 2,
        llc_one_young_in: 0,
        dram: DramConfig {
            channels: 4,
            peak: ByteRate::from_gb_per_second(64.0),
            idle_latency: Time::from_ns(80),
            queueing: 5.0,
        },
        other_socket: OtherSocket { cores: 2, latency: Time::from_ns(70) },
        nics: 1,
        pcie: LinkConfig {
            rate: BitRate::from_gbps(125.0),
            max_payload: Bytes(256),
            max_read_request: Bytes(512),
            tlp_overhead: Bytes(24),
            dllp: Bytes(0),
            tags: 64,
            read_round_trip: Time::from_ns(900),
            write_latency: Time::from_ns(300),
            posted_slack: Time::from_ns(500),
            mmio_write: Time::from_ns(300),
            mmio_read: Time::from_ns(900),
        },
        nic: NicConfig {
            port: BitRate::from_gbps(100.0),
            wire_overhead: Bytes(24),
            rx_fifo: Bytes(256 << 10),
            tx_buffer: Bytes(16 << 10),
            tx_resume_room: Bytes(4 << 10),
            tx_deschedule_reads: 1.0,
            rx_pipeline: Time::from_ns(100),
            tx_pipeline: Time::from_ns(100),
            descriptor_read: Bytes(512),
            nicmem: Bytes(1 << 20),
            burst_entries: 1024,
            ring_entries_min: 64,
            nicmem_access: Time::from_ns(20),
        },
    }
}
