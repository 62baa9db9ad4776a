//! The driver's half: one core's part in a shared ring.

use std::collections::VecDeque;
use std::ops::Range;

use nicforge_nic::{CompletionReader, DriverCosts, DriverHalf, Packet, PoolCache, exchange};
use nicforge_platform::{Addr, Cpu, Part, Register};

use super::layout::{Order, Ring, SLOTS_MAX};
use super::repost::Repost;

/// One of the cores that share a ring. What they share lies in memory (layout.rs).
#[derive(Debug)]
pub struct Driver {
    ring: Ring,
    completions: CompletionReader,
    doorbell: Register,
    repost: Repost,
    /// Descriptors that this driver has yet to give their first buffers.
    bare: Range<u64>,
    /// Entries whose packets this driver handed out when the pool had no buffer to put in their place, in order.
    owed: VecDeque<u64>,
    /// Empty buffers for the descriptor whose packets are being taken out.
    refill: [Addr; SLOTS_MAX],
    /// Buffers put into bare descriptors. From then on each one taken out goes against one put
    /// in, so that the sum over all drivers is what the ring holds.
    held: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of core `rank` of the `cores` that share `ring`.
    pub fn new(
        ring: Ring,
        completions: CompletionReader,
        doorbell: Register,
        rank: u64,
        cores: u64,
        costs: DriverCosts,
    ) -> Driver {
        // The first descriptor of a list is the one that stands spare.
        let first = u64::from(ring.order == Order::List);
        let share = |rank| first + ring.capacity() * rank / cores;
        Driver {
            ring: ring.signed_by(rank),
            completions,
            doorbell,
            repost: Repost::new(ring.order),
            bare: share(rank)..share(rank + 1),
            owed: VecDeque::new(),
            refill: [Addr(0); SLOTS_MAX],
            held: 0,
            taken: 0,
            costs,
        }
    }

    /// Its completion ring, for lookahead.
    pub fn completions(&self) -> &CompletionReader {
        &self.completions
    }

    /// Fills what the ring still lacks since it started, and gives it to the NIC.
    pub fn fill_up<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.fill(cpu, pool);
        self.repost.publish(cpu, &self.ring, self.doorbell);
    }

    /// Fills this core's share of the ring as far as the pool has buffers.
    fn fill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        while !self.bare.is_empty() {
            let mut mbufs = [Addr(0); SLOTS_MAX];
            for slot in 0..self.ring.slots as usize {
                let Some(mbuf) = pool.take(cpu) else {
                    mbufs[..slot].iter().for_each(|&mbuf| pool.give(cpu, mbuf));
                    return;
                };
                mbufs[slot] = mbuf;
            }
            self.repost.add(cpu, &self.ring, self.bare.start, mbufs);
            self.held += self.ring.slots;
            self.bare.start += 1;
        }
        while let Some(&entry) = self.owed.front()
            && let Some(fresh) = pool.take(cpu)
        {
            self.owed.pop_front();
            refill(cpu, &self.ring, &mut self.refill, &mut self.repost, entry, fresh);
        }
    }
}

/// Puts `fresh` in the place of entry `entry`.
#[inline]
fn refill<C: Cpu>(
    cpu: &mut C,
    ring: &Ring,
    buffers: &mut [Addr; SLOTS_MAX],
    repost: &mut Repost,
    entry: u64,
    fresh: Addr,
) {
    let (number, slot) = ring.place(entry);
    buffers[slot as usize] = fresh;
    // The NIC gets the descriptor back when all its buffers are new.
    if slot + 1 == ring.slots {
        repost.add(cpu, ring, number, *buffers);
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.fill_up(cpu, pool);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        self.fill(cpu, pool);
        let (ring, buffers, repost) = (&self.ring, &mut self.refill, &mut self.repost);
        let owed = &mut self.owed;
        self.taken +=
            exchange(cpu, pool, &mut self.completions, packets, max, &self.costs, |cpu, completion, fresh| {
                let entry = u64::from(completion.entry);
                let received = completion.buffer(cpu, ring.buffer(entry));
                match fresh {
                    Some(fresh) if owed.is_empty() => refill(cpu, ring, buffers, repost, entry, fresh),
                    // Entries get their buffers in order.
                    Some(fresh) => {
                        owed.push_back(entry);
                        owed.pop_front().into_iter().for_each(|entry| refill(cpu, ring, buffers, repost, entry, fresh));
                    }
                    None => owed.push_back(entry),
                }
                received
            });
        self.repost.publish(cpu, &self.ring, self.doorbell);
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        self.held as i64 - self.owed.len() as i64
    }
}
