//! The driver's half.

use nicforge_nic::{CompletionReader, DriverCosts, DriverHalf, Packet, PoolCache, exchange};
use nicforge_platform::{Addr, AddressSpace, Cpu, Part, Register};

use super::layout::Ring;
use super::supply::Supply;

/// One core's receive queue.
#[derive(Debug)]
pub struct Driver {
    supply: Supply,
    completions: CompletionReader,
    /// The buffer in each entry: software's own copy, 8 bytes each.
    buffers: Addr,
    /// Entries taken out that had a packet.
    taken: u64,
    /// Entries without a buffer, as the pool had none: all until the queue comes up.
    bare: u64,
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
            supply: Supply::new(ring, doorbell),
            completions,
            buffers: space.data(ring.entries * 8, 64),
            taken: 0,
            bare: ring.entries,
            costs,
        }
    }

    /// Fills what the ring lacks, and gives it to the NIC.
    pub fn fill_up<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.fill(cpu, pool);
        self.supply.ring_doorbell(cpu);
    }

    /// Fills entries without a buffer as far as the pool has some.
    fn fill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        while self.bare > 0
            && let Some(mbuf) = pool.take(cpu)
        {
            post(cpu, &mut self.supply, self.buffers, mbuf);
            self.bare -= 1;
        }
    }

    /// Its completion ring, for lookahead.
    pub fn completions(&self) -> &CompletionReader {
        &self.completions
    }
}

/// Puts an empty buffer at the tail, and notes which.
#[inline]
fn post<C: Cpu>(cpu: &mut C, supply: &mut Supply, buffers: Addr, mbuf: Addr) {
    let index = supply.post(cpu, mbuf);
    cpu.store(buffers + index * 8, mbuf.0);
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.fill_up(cpu, pool);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        self.fill(cpu, pool);
        let (supply, buffers, bare) = (&mut self.supply, self.buffers, &mut self.bare);
        self.taken +=
            exchange(cpu, pool, &mut self.completions, packets, max, &self.costs, |cpu, completion, fresh| {
                let received = completion.buffer(cpu, buffers + u64::from(completion.entry) * 8);
                match fresh {
                    Some(fresh) => post(cpu, supply, buffers, fresh),
                    None => *bare += 1,
                }
                received
            });
        self.supply.ring_doorbell(cpu);
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        (self.supply.ring.entries - self.bare) as i64
    }
}
