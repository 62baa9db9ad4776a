//! The driver's half.

use nicforge_interfaces::priv_ring::{Ring, RxDescriptor};
use nicforge_nic::{DriverCosts, DriverHalf, Packet, PoolCache};
use nicforge_platform::{Addr, Cpu, Hint, Part, Register};

use super::layout::{Entry, FULL, decode};

/// One core's queue.
#[derive(Debug)]
pub struct Driver {
    entries: Ring<Entry>,
    buffers: Ring<RxDescriptor>,
    tail_register: Register,
    /// Entries given to the NIC, and entries taken back, so far.
    tail: u64,
    consumed: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of `entries`, with the empty buffers of `buffers`.
    pub fn new(
        entries: Ring<Entry>,
        buffers: Ring<RxDescriptor>,
        tail_register: Register,
        costs: DriverCosts,
    ) -> Driver {
        let first = entries.first;
        Driver { entries, buffers, tail_register, tail: first, consumed: first, taken: 0, costs }
    }

    /// Gives the NIC the entry at the tail, with an empty buffer.
    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        let index = self.buffers.post(cpu, self.tail, mbuf);
        cpu.store(self.entries.descriptor(index) + FULL, 0u64);
        self.tail += 1;
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        for _ in 0..self.entries.entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            self.post(cpu, mbuf);
        }
        cpu.mmio_write(self.tail_register, self.tail);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        let before = self.tail;
        for _ in 0..max {
            let index = self.entries.index(self.consumed);
            let entry = self.entries.descriptor(index);
            if cpu.acquire(entry + FULL) == 0 {
                break;
            }
            // Frames come in bursts: the next entry is fetched while this one is dealt with.
            cpu.hint(Hint::Fetch { at: self.entries.descriptor(self.entries.index(self.consumed + 1)), len: 8 });
            // Without a buffer to put in its place the frame stays in the queue.
            let Some(fresh) = pool.take(cpu) else { break };
            cpu.work(self.costs.rx_packet);
            let completion = decode(cpu.load(entry));
            let received = cpu.load::<RxDescriptor>(self.buffers.descriptor(index)).mbuf;
            self.consumed += 1;
            self.post(cpu, fresh);
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
