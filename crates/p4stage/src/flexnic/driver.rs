//! The driver's half.

use nicforge_interfaces::priv_ring::Ring;
use nicforge_nic::{DriverCosts, DriverHalf, Packet, PoolCache};
use nicforge_platform::{Addr, AddressSpace, Cpu, Hint, Part, Register};

use super::layout::{Entry, FULL, decode};

/// One core's queue.
#[derive(Debug)]
pub struct Driver {
    ring: Ring<Entry>,
    tail_register: Register,
    /// The buffer in each entry, 8 bytes each: the NIC writes over the address.
    buffers: Addr,
    /// Entries given to the NIC, and entries taken back, so far.
    tail: u64,
    consumed: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of `ring`.
    pub fn new(space: &mut AddressSpace, ring: Ring<Entry>, tail_register: Register, costs: DriverCosts) -> Driver {
        let buffers = space.data(ring.entries * 8, 64);
        Driver { ring, tail_register, buffers, tail: ring.first, consumed: ring.first, taken: 0, costs }
    }

    /// Puts an empty buffer into the entry at the tail, which is free again.
    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr, room: u32) {
        let index = self.ring.index(self.tail);
        let entry = Entry { mbuf, room: room.into(), unused: [0; 5], full: 0 };
        cpu.store(self.ring.descriptor(index), entry);
        cpu.store(self.buffers + index * 8, mbuf.0);
        self.tail += 1;
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        for _ in 0..self.ring.entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            self.post(cpu, mbuf, pool.pool().room());
        }
        cpu.mmio_write(self.tail_register, self.tail);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        let before = self.tail;
        for _ in 0..max {
            let index = self.ring.index(self.consumed);
            let entry = self.ring.descriptor(index);
            if cpu.acquire(entry + FULL) == 0 {
                break;
            }
            // Frames come in bursts: the next entry is fetched while this one is dealt with.
            cpu.hint(Hint::Fetch { at: self.ring.descriptor(self.ring.index(self.consumed + 1)), len: 8 });
            // Without a buffer to put in its place the frame stays in the queue.
            let Some(fresh) = pool.take(cpu) else { break };
            cpu.work(self.costs.rx_packet);
            let completion = decode(cpu.load(entry));
            let received = Addr(cpu.load::<u64>(self.buffers + index * 8));
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
            cpu.mmio_write(self.tail_register, self.tail);
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
