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
    /// Buffers put in when the queue came up. From then on each one taken out goes against one put
    /// in.
    held: u64,
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
            held: 0,
            costs,
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
        for _ in 0..self.supply.ring.entries {
            let Some(mbuf) = pool.take(cpu) else { break };
            post(cpu, &mut self.supply, self.buffers, mbuf);
            self.held += 1;
        }
        self.supply.ring_doorbell(cpu);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        let (supply, buffers) = (&mut self.supply, self.buffers);
        self.taken +=
            exchange(cpu, pool, &mut self.completions, packets, max, &self.costs, |cpu, completion, fresh| {
                let received = completion.buffer(cpu, buffers + u64::from(completion.entry) * 8);
                post(cpu, supply, buffers, fresh);
                received
            });
        self.supply.ring_doorbell(cpu);
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        self.held as i64
    }
}
