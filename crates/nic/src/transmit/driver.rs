//! The driver's side of a transmit ring.

use nicforge_platform::{Addr, AddressSpace, Cpu, Hint, Part, Register};

use super::layout::{INLINE_BYTES, TX_DESCRIPTOR_BYTES, TxDescriptor, TxRing};
use crate::packet::drop_reference;
use crate::{Allocation, DriverCosts, Key, NEXT_OFFSET, Packet, PoolCache, REFERENCES_OFFSET, Segment};

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
    /// Buffers in the ring: of a chained packet both.
    held: u64,
    /// The NIC's memory that packets may lie in.
    memories: Vec<Allocation>,
}

/// In the note of an entry's buffer: another one is chained to it.
const CHAINED: u64 = 1;
/// And: the packet refers to memory that others send from too.
const SHARES: u64 = 2;

impl TransmitDriver {
    /// The driver of `ring`, whose doorbell is `doorbell`.
    pub fn new(space: &mut AddressSpace, ring: TxRing, doorbell: Register, costs: DriverCosts) -> TransmitDriver {
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
            held: 0,
            memories: Vec::new(),
        }
    }

    /// Packets may lie in `memory` from now on: the driver looks up the key of every segment
    /// (nicmem, section 2.3).
    pub fn register_memory(&mut self, memory: Allocation) {
        self.memories.push(memory);
    }

    fn key_of(&self, segment: Segment) -> Key {
        let holds = |memory: &&Allocation| memory.holds(segment.at);
        let memory = self.memories.iter().find(holds);
        memory.map_or(Key::HOST, |memory| memory.key)
    }

    /// Puts a packet into the ring. `report` asks the NIC to tell when it is done with it; the
    /// last packet of a burst does, and so does the one that fills the ring: the rest of its
    /// burst finds no room, and without a report there would never be any.
    #[inline]
    pub fn push<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet, report: bool) -> Result<(), TxFull> {
        let used = self.next - self.reclaimed;
        self.used_sum += used;
        self.samples += 1;
        if used == self.ring.entries {
            return Err(TxFull);
        }
        let part = cpu.enter(Part::Driver);
        cpu.work(self.costs.tx_packet);
        let inline = self.ring.inlines && packet.head.len <= INLINE_BYTES;
        let descriptor = TxDescriptor {
            head: packet.head,
            rest: packet.rest,
            stamp: packet.stamp,
            report: report || used + 1 == self.ring.entries,
            offload: packet.offload,
            head_key: if inline { Key::HOST } else { self.key_of(packet.head) },
            rest_key: self.key_of(packet.rest),
            inline,
            mark: packet.mark,
        };
        let at = self.ring.descriptor(self.next);
        if inline {
            let mut line = [0u64; (INLINE_BYTES / 8) as usize];
            let len = packet.head.len as usize;
            let bytes = cpu.bytes(packet.head.at, len);
            bytemuck::bytes_of_mut(&mut line)[..len].copy_from_slice(bytes);
            cpu.store(at + TX_DESCRIPTOR_BYTES, line);
        }
        cpu.store(at, descriptor.encode());
        let chained = packet.tail != Addr(0);
        if chained {
            cpu.store(packet.mbuf + NEXT_OFFSET, packet.tail.0);
        }
        let shares = packet.references != Addr(0);
        if shares {
            cpu.store(packet.mbuf + REFERENCES_OFFSET, packet.references.0);
        }
        let note = packet.mbuf.0 | (u64::from(chained) * CHAINED) | (u64::from(shares) * SHARES);
        cpu.store(self.buffer_slot(self.next), note);
        self.held += packet.buffers();
        self.next += 1;
        cpu.enter(part);
        Ok(())
    }

    /// Tells the NIC what was pushed since the last call.
    pub fn ring_doorbell<C: Cpu>(&mut self, cpu: &mut C) {
        if self.rung != self.next {
            self.rung = self.next;
            // As mlx5_tx_dbrec does: the doorbell record is there before the register is written.
            cpu.hint(Hint::StoreFence);
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
            let note: u64 = cpu.load(self.buffer_slot(self.reclaimed));
            let mbuf = Addr(note & !(CHAINED | SHARES));
            if note & SHARES != 0 {
                let references: u64 = cpu.load(mbuf + REFERENCES_OFFSET);
                drop_reference(cpu, Addr(references));
            }
            if note & CHAINED != 0 {
                let tail: u64 = cpu.load(mbuf + NEXT_OFFSET);
                pool.give(cpu, Addr(tail));
                self.held -= 1;
            }
            pool.give(cpu, mbuf);
            self.held -= 1;
            self.reclaimed += 1;
        }
        cpu.enter(part);
    }

    /// Packets pushed so far.
    pub fn pushed(&self) -> u64 {
        self.next - self.ring.first
    }

    /// Buffers that its entries hold.
    pub fn buffers_held(&self) -> u64 {
        self.held
    }

    /// Entries that hold a packet.
    pub fn in_use(&self) -> u64 {
        self.next - self.reclaimed
    }

    /// Packets that find room.
    pub fn room(&self) -> u64 {
        self.ring.entries - self.in_use()
    }

    /// Sum of entries in use over all pushes, number of pushes, and entries there are.
    pub fn occupancy(&self) -> (u64, u64, u64) {
        (self.used_sum, self.samples, self.ring.entries)
    }

    fn buffer_slot(&self, position: u64) -> Addr {
        self.buffers + (position & (self.ring.entries - 1)) * 8
    }
}
