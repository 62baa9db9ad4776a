//! Options of what all NICs and drivers have.

use nicforge_options::{Allowed, options};
use nicforge_wire::rss::{RSS_KEY, RssKey};

use crate::{PoolOrder, room_for};

options! {
    /// How a NIC spreads frames over its queues.
    pub struct RssOptions {
        /// The key of the Toeplitz hash; the symmetric one brings both directions of a flow to one queue.
        rss_key: RssKey = RssKey::MICROSOFT, "", Allowed::Form(&RSS_KEY),
            source "Microsoft, Verifying the RSS hash calculation: the default of many drivers";
    }
}

options! {
    /// The levels of packet buffers.
    pub struct PoolOptions {
        /// Packet buffers that each core's level of the pool keeps; one and a half times as many
        /// make it give some to the shared level. All levels leave half of a small pool.
        pool_cache: usize = 256, "buffers", Allowed::Whole(0, 4096),
            source "DPDK user guide, testpmd: mbuf cache of 250, rounded";
        /// Which buffers the level of the pool that cores share gives out: those that it got first, or last.
        pool_order: PoolOrder = PoolOrder::Ring, "", PoolOrder::ALLOWED,
            source "DPDK programmer's guide, mempool handlers: ring is the default, stack another one";
        /// Bytes of frame that a packet buffer holds, rounded up to whole cache lines. Longer frames are
        /// dropped (`oversized_frame`).
        buffer_bytes: usize = 2048, "bytes", Allowed::Whole(2048, 65_600),
            source "DPDK: RTE_MBUF_DEFAULT_DATAROOM";
    }
}

options! {
    /// How many packet buffers there are.
    pub struct PoolSize {
        /// Packet buffers of the host's pool, a fixed number. When they run out, entries of rings stay empty and
        /// `rx_nombuf` counts.
        pool_buffers: Option<usize> = None, "buffers", Allowed::Whole(1, 1 << 26),
            default "for all rings and caches at once",
            source "DPDK, example l3fwd: entries of all receive and transmit rings, a burst and a cache for each core";
        /// The same as a multiple of the empty buffers that all receive rings hold when no packet waits.
        pool_per_entry: Option<f64> = None, "buffers", Allowed::Number(1.0, 1024.0), default "as `pool_buffers` says";
    }
}

impl PoolSize {
    /// Buffers of the pool where receive rings hold `empty` of them; `None` where nothing bounds them but what
    /// rings and caches hold.
    pub fn buffers(&self, empty: usize) -> Option<usize> {
        let multiple = || self.pool_per_entry.map(|each| (each * empty as f64).ceil() as usize);
        self.pool_buffers.or_else(multiple)
    }
}

impl PoolOptions {
    /// Bytes of frame that a packet buffer really holds: whole cache lines.
    pub fn buffer_room(&self) -> usize {
        room_for(self.buffer_bytes as u64) as usize
    }
}

options! {
    /// Transmit rings.
    pub struct TransmitOptions {
        /// Whether transmit descriptors hold headers; with `nm_nfv` they always do.
        tx_inline: bool = false, "", Allowed::Flag, source "nicmem paper, section 2.2.2";
        /// Transmit ring entries per queue.
        tx_entries: usize = 1024, "entries", Allowed::PowerOfTwo(8, 65536),
            source "nicmem paper, set-up: default ring size";
    }
}

options! {
    /// Memory of NICs.
    pub struct NicmemOptions {
        /// Memory that each NIC gives to software: for values of hot items and copies first, the rest for
        /// packets of interfaces that use it.
        nicmem_kib: u64 = 22_528, "KiB", Allowed::Whole(0, 4_194_304), default "the machine's";
    }
}
