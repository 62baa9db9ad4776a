//! The driver's half.

use nicforge_nic::{CompletionReader, DriverCosts, DriverHalf, Packet, PoolCache, mbuf_room};
use nicforge_platform::{Addr, AddressSpace, Cpu, Part, Register};

use super::layout::{Ring, RxDescriptor};

/// One core's receive queue.
#[derive(Debug)]
pub struct Driver {
    ring: Ring,
    completions: CompletionReader,
    doorbell: Register,
    /// The buffer in each entry: software's own copy, 8 bytes each.
    buffers: Addr,
    /// Descriptors written so far, and what the NIC was told.
    tail: u64,
    rung: u64,
    /// Entries consumed, and of those the ones with a packet.
    consumed: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of `ring`.
    pub fn new(
        space: &mut AddressSpace,
        ring: Ring,
        completions: CompletionReader,
        doorbell: Register,
        costs: DriverCosts,
    ) -> Driver {
        Driver {
            ring,
            completions,
            doorbell,
            buffers: space.data(ring.entries * 8, 64),
            tail: ring.first,
            rung: ring.first,
            consumed: ring.first,
            taken: 0,
            costs,
        }
    }

    /// Its completion ring, for whoever has to know what comes next.
    pub fn completions(&self) -> &CompletionReader {
        &self.completions
    }

    /// Puts an empty buffer into the entry at the tail.
    fn post<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        let index = self.ring.index(self.tail);
        let descriptor = RxDescriptor {
            mbuf,
            room: mbuf_room(),
            reserved: 0,
        };
        cpu.store(self.ring.descriptor(index), descriptor);
        cpu.store(self.buffers + index * 8, mbuf.0);
        self.tail += 1;
    }

    fn ring_doorbell<C: Cpu>(&mut self, cpu: &mut C) {
        if self.rung != self.tail {
            self.rung = self.tail;
            cpu.mmio_write(self.doorbell, self.tail);
        }
    }
}

impl DriverHalf for Driver {
    fn start<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        for _ in 0..self.ring.entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            self.post(cpu, mbuf);
        }
        self.ring_doorbell(cpu);
    }

    fn rx_burst<C: Cpu>(
        &mut self,
        cpu: &mut C,
        pool: &mut PoolCache,
        packets: &mut Vec<Packet>,
        max: usize,
    ) {
        let part = cpu.enter(Part::Driver);
        for _ in 0..max {
            let Some(completion) = self.completions.peek(cpu) else {
                break;
            };
            // Without a buffer to put in its place the frame stays in the ring, so that a ring
            // entry is never without a buffer.
            let Some(fresh) = pool.take(cpu) else { break };
            self.completions.advance();
            self.consumed += 1;
            cpu.work(self.costs.rx_packet);
            let slot = self.buffers + u64::from(completion.entry) * 8;
            let received = completion.buffer(cpu, slot);
            self.post(cpu, fresh);
            if completion.len == 0 {
                pool.give(cpu, received);
            } else {
                self.taken += 1;
                packets.push(completion.packet(cpu, received));
            }
        }
        if self.rung != self.tail {
            cpu.work(self.costs.burst);
        }
        self.ring_doorbell(cpu);
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        (self.tail - self.consumed) as i64
    }
}
