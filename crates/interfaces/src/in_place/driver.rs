//! The driver's half.

use nicforge_nic::{Completion, DriverCosts, DriverHalf, Packet, PoolCache};
use nicforge_platform::{Addr, AddressSpace, Cpu, Hint, Part, Register};

use super::layout::{DONE, Descriptor, ENTRY_BYTES, decode};
use crate::priv_ring::layout::Ring;

/// One core's receive queue.
#[derive(Debug)]
pub struct Driver {
    ring: Ring<Descriptor>,
    doorbell: Register,
    /// The buffer in each entry, 8 bytes each: the NIC writes over the address.
    buffers: Addr,
    /// Descriptors written so far; entries taken back.
    tail: u64,
    consumed: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of `ring`.
    pub fn new(space: &mut AddressSpace, ring: Ring<Descriptor>, doorbell: Register, costs: DriverCosts) -> Driver {
        Driver {
            ring,
            doorbell,
            buffers: space.data(ring.entries * 8, 64),
            tail: ring.first,
            consumed: ring.first,
            taken: 0,
            costs,
        }
    }

    /// Puts an empty buffer into the entry at the tail.
    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr, room: u32) {
        let index = self.ring.index(self.tail);
        let descriptor = Descriptor { mbuf, room: room.into(), reserved: 0, done: 0 };
        cpu.store(self.ring.descriptor(index), descriptor);
        cpu.store(self.buffers + index * 8, mbuf.0);
        self.tail += 1;
    }

    /// The oldest entry, if the NIC has written it.
    fn peek<C: Cpu>(&mut self, cpu: &mut C) -> Option<Completion> {
        let entry = self.ring.descriptor(self.ring.index(self.consumed));
        if cpu.acquire(entry + DONE) == 0 {
            return None;
        }
        // Frames come in bursts: the next entry is fetched while this one is dealt with.
        let next = self.ring.index(self.consumed + 1);
        cpu.hint(Hint::Fetch { at: self.ring.descriptor(next), len: 8 });
        Some(decode(cpu.load(entry)))
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        for _ in 0..self.ring.entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            self.post(cpu, mbuf, pool.pool().room());
        }
        cpu.mmio_write(self.doorbell, self.tail);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        let before = self.tail;
        // Of the entries up to the ring's end, for real caches.
        let index = self.ring.index(self.consumed);
        let count = (self.ring.entries - index).min(max as u64);
        let first = self.ring.descriptor(index);
        let until = first + count * ENTRY_BYTES;
        cpu.hint(Hint::Words { from: first + DONE, until, stride: ENTRY_BYTES, bit: 1 });
        for _ in 0..max {
            let Some(completion) = self.peek(cpu) else {
                break;
            };
            // Without a buffer to put in its place the frame stays in the ring.
            let Some(fresh) = pool.take(cpu) else { break };
            cpu.work(self.costs.rx_packet);
            let slot = self.buffers + self.ring.index(self.consumed) * 8;
            let received = Addr(cpu.load::<u64>(slot));
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
