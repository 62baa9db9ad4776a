//! The driver's half of a ring whose entries the NIC fills in place.

use nicforge_nic::{Completion, DriverCosts, DriverHalf, Packet, PoolCache};
use nicforge_platform::{Addr, AddressSpace, Cpu, Hint, Part, Register};

use super::layout::{DONE, Descriptor, ENTRY_BYTES, decode};
use crate::priv_ring::layout::Ring;

/// A ring of entries that software gives with empty buffers, and the NIC fills. Positions count without end.
pub trait Entries: Send {
    /// How many there are, and where positions begin.
    fn extent(&self) -> (u64, u64);

    /// Gives the NIC the entry at `position`, with the empty buffer `mbuf` of `room` bytes.
    fn post<C: Cpu>(&mut self, cpu: &mut C, position: u64, mbuf: Addr, room: u32);

    /// The entry at `position`, if the NIC has filled it. The next one will be asked for soon.
    fn peek<C: Cpu>(&mut self, cpu: &mut C, position: u64) -> Option<Completion>;

    /// The buffer that the entry at `position` was given with.
    fn buffer<C: Cpu>(&mut self, cpu: &mut C, position: u64) -> Addr;

    /// Up to `max` entries from `position` on will be asked for now.
    fn expect<C: Cpu>(&self, _cpu: &mut C, _position: u64, _max: usize) {}
}

/// One core's receive queue.
#[derive(Debug)]
pub struct EntryDriver<E> {
    entries: E,
    doorbell: Register,
    /// Entries given to the NIC, and entries taken back, so far.
    tail: u64,
    consumed: u64,
    taken: u64,
    costs: DriverCosts,
}

impl<E: Entries> EntryDriver<E> {
    /// The driver of `entries`, whose tail register `doorbell` tells the NIC.
    pub fn of(entries: E, doorbell: Register, costs: DriverCosts) -> EntryDriver<E> {
        let (_, first) = entries.extent();
        EntryDriver { entries, doorbell, tail: first, consumed: first, taken: 0, costs }
    }

    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr, room: u32) {
        self.entries.post(cpu, self.tail, mbuf, room);
        self.tail += 1;
    }
}

impl<C: Cpu, E: Entries> DriverHalf<C> for EntryDriver<E> {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        let (entries, _) = self.entries.extent();
        for _ in 0..entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            self.post(cpu, mbuf, pool.pool().room());
        }
        cpu.mmio_write(self.doorbell, self.tail);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        let before = self.tail;
        self.entries.expect(cpu, self.consumed, max);
        for _ in 0..max {
            let Some(completion) = self.entries.peek(cpu, self.consumed) else {
                break;
            };
            // Without a buffer to put in its place the frame stays in the ring.
            let Some(fresh) = pool.take(cpu) else { break };
            cpu.work(self.costs.rx_packet);
            let received = self.entries.buffer(cpu, self.consumed);
            self.consumed += 1;
            self.post(cpu, fresh, pool.pool().room());
            if completion.len == 0 {
                pool.give(cpu, received);
            } else {
                self.taken += 1;
                packets.push(completion.packet(cpu, received));
            }
        }
        if self.tail != before {
            cpu.work(self.costs.burst);
            cpu.mmio_write(self.doorbell, self.tail);
        }
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        (self.tail - self.consumed) as i64
    }
}

/// Entries of this interface: the NIC writes a completion over the descriptor.
#[derive(Debug)]
pub struct InPlaceEntries {
    ring: Ring<Descriptor>,
    /// The buffer in each entry, 8 bytes each: the NIC writes over the address.
    buffers: Addr,
}

/// One core's receive queue of this interface.
pub type Driver = EntryDriver<InPlaceEntries>;

impl Driver {
    /// The driver of `ring`.
    pub fn new(space: &mut AddressSpace, ring: Ring<Descriptor>, doorbell: Register, costs: DriverCosts) -> Driver {
        let buffers = space.data(ring.entries * 8, 64);
        EntryDriver::of(InPlaceEntries { ring, buffers }, doorbell, costs)
    }
}

impl Entries for InPlaceEntries {
    fn extent(&self) -> (u64, u64) {
        (self.ring.entries, self.ring.first)
    }

    fn post<C: Cpu>(&mut self, cpu: &mut C, position: u64, mbuf: Addr, room: u32) {
        let index = self.ring.index(position);
        let descriptor = Descriptor { mbuf, room: room.into(), reserved: 0, done: 0 };
        cpu.store(self.ring.descriptor(index), descriptor);
        cpu.store(self.buffers + index * 8, mbuf.0);
    }

    fn peek<C: Cpu>(&mut self, cpu: &mut C, position: u64) -> Option<Completion> {
        let entry = self.ring.descriptor(self.ring.index(position));
        if cpu.acquire(entry + DONE) == 0 {
            return None;
        }
        // Frames come in bursts: the next entry is fetched while this one is dealt with.
        let next = self.ring.index(position + 1);
        cpu.hint(Hint::Fetch { at: self.ring.descriptor(next), len: 8 });
        Some(decode(cpu.load(entry)))
    }

    fn buffer<C: Cpu>(&mut self, cpu: &mut C, position: u64) -> Addr {
        Addr(cpu.load::<u64>(self.buffers + self.ring.index(position) * 8))
    }

    fn expect<C: Cpu>(&self, cpu: &mut C, position: u64, max: usize) {
        // Of the entries up to the ring's end, for real caches.
        let index = self.ring.index(position);
        let count = (self.ring.entries - index).min(max as u64);
        let first = self.ring.descriptor(index);
        let until = first + count * ENTRY_BYTES;
        cpu.hint(Hint::Words { from: first + DONE, until, stride: ENTRY_BYTES, bit: 1 });
    }
}
