//! The driver's side of a transmit ring.

use nicforge_platform::{Addr, AddressSpace, Cpu, Part, Register};

use super::layout::{TxDescriptor, TxRing};
use crate::{DriverCosts, Packet, PoolCache};

/// The ring has no room for this packet; the caller decides its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFull;

/// One core's transmit queue.
#[derive(Debug)]
pub struct TransmitDriver {
    ring: TxRing,
    doorbell: Register,
    /// The buffer of each entry, to be given back when the NIC is done with it.
    buffers: Addr,
    /// Next entry to write, next to reclaim, and what the NIC was last told.
    next: u64,
    reclaimed: u64,
    rung: u64,
    costs: DriverCosts,
    /// Entries in use, summed over all packets, and packets: for the mean.
    used_sum: u64,
    samples: u64,
}

impl TransmitDriver {
    /// The driver of `ring`, whose doorbell is `doorbell`.
    pub fn new(
        space: &mut AddressSpace,
        ring: TxRing,
        doorbell: Register,
        costs: DriverCosts,
    ) -> TransmitDriver {
        TransmitDriver {
            ring,
            doorbell,
            buffers: space.data(ring.entries * 8, 64),
            next: ring.first,
            reclaimed: ring.first,
            rung: ring.first,
            costs,
            used_sum: 0,
            samples: 0,
        }
    }

    /// Puts a packet into the ring. `report` asks the NIC to tell when it is done with it; the
    /// last packet of a burst does, and so does the one that fills the ring: the rest of its
    /// burst finds no room, and without a report there would never be any.
    #[inline]
    pub fn push<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &Packet,
        report: bool,
    ) -> Result<(), TxFull> {
        let used = self.next - self.reclaimed;
        self.used_sum += used;
        self.samples += 1;
        if used == self.ring.entries {
            return Err(TxFull);
        }
        let part = cpu.enter(Part::Driver);
        cpu.work(self.costs.tx_packet);
        let descriptor = TxDescriptor {
            head: packet.head,
            rest: packet.rest,
            stamp: packet.stamp,
            report: report || used + 1 == self.ring.entries,
            offload: packet.offload,
        };
        cpu.store(self.ring.descriptor(self.next), descriptor.encode());
        cpu.store(self.buffer_slot(self.next), packet.mbuf.0);
        self.next += 1;
        cpu.enter(part);
        Ok(())
    }

    /// Tells the NIC what was pushed since the last call.
    pub fn ring_doorbell<C: Cpu>(&mut self, cpu: &mut C) {
        if self.rung != self.next {
            self.rung = self.next;
            cpu.mmio_write(self.doorbell, self.next);
        }
    }

    /// Gives back the buffers of descriptors that the NIC is done with.
    pub fn reclaim<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        let part = cpu.enter(Part::Driver);
        let done = cpu.acquire(self.ring.done);
        // A device that counts what was never sent is broken; do not free what is in use.
        let done = done.min(self.next).max(self.reclaimed);
        while self.reclaimed < done {
            let mbuf: u64 = cpu.load(self.buffer_slot(self.reclaimed));
            pool.give(cpu, Addr(mbuf));
            self.reclaimed += 1;
        }
        cpu.enter(part);
    }

    /// Packets pushed so far.
    pub fn pushed(&self) -> u64 {
        self.next - self.ring.first
    }

    /// Entries that hold a buffer.
    pub fn in_use(&self) -> u64 {
        self.next - self.reclaimed
    }

    /// Sum of entries in use over all pushes, number of pushes, and entries there are.
    pub fn occupancy(&self) -> (u64, u64, u64) {
        (self.used_sum, self.samples, self.ring.entries)
    }

    fn buffer_slot(&self, position: u64) -> Addr {
        self.buffers + (position & (self.ring.entries - 1)) * 8
    }
}
