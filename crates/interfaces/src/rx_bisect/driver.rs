//! The driver's half (paper, listing 1).

use nicforge_nic::{CompletionReader, DriverCosts, DriverHalf, Packet, PoolCache};
use nicforge_platform::{Cpu, Part, Register};

use super::layout::RETURNED;
use crate::priv_ring::layout::Ring;
use crate::priv_ring::supply::Supply;

/// An allocation ring that this core keeps filled.
#[derive(Clone, Debug)]
pub struct Ax {
    number: u16,
    supply: Supply,
    /// Descriptors of which the NIC said that they are used up.
    consumed: u64,
}

impl Ax {
    /// Ring `number`, empty.
    pub fn new(number: u16, ring: Ring, doorbell: Register) -> Ax {
        Ax { number, supply: Supply::new(ring, doorbell), consumed: ring.first }
    }

    /// Entries that the NIC may still have.
    #[inline]
    fn filled(&self) -> u64 {
        self.supply.tail() - self.consumed
    }
}

/// One core's receive queue: a Bx ring, and the Ax rings that are linked to it.
#[derive(Debug)]
pub struct Driver {
    ax: Vec<Ax>,
    completions: CompletionReader,
    doorbell: Register,
    /// Bx entries consumed so far, and what the NIC was told.
    position: u64,
    rung: u64,
    /// Buffers put into Ax rings, and handed out of Bx entries.
    posted: u64,
    handed_out: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of a Bx ring, that keeps `ax` filled; `doorbell` with the position that it
    /// counts from.
    pub fn new(
        ax: Vec<Ax>,
        completions: CompletionReader,
        doorbell: Register,
        first: u64,
        costs: DriverCosts,
    ) -> Driver {
        Driver { ax, completions, doorbell, position: first, rung: first, posted: 0, handed_out: 0, taken: 0, costs }
    }

    /// Fills what has no buffer, as far as the pool goes.
    fn fill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        for ax in &mut self.ax {
            while ax.filled() < ax.supply.ring.entries
                && let Some(mbuf) = pool.take(cpu)
            {
                ax.supply.post(cpu, mbuf);
                self.posted += 1;
            }
        }
    }

    /// Puts a buffer in the place of the one that ring `number` lost, if that is ours. Without one the place stays
    /// free until there is one: the buffer that the pool lacks may be behind this very entry.
    #[inline]
    fn replace<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache, number: u16) {
        let own = self.ax.iter_mut().find(|ax| ax.number == number);
        // A notice of what was never given comes from a NIC whose registers somebody else wrote.
        let Some(ax) = own.filter(|ax| ax.filled() > 0) else {
            return;
        };
        ax.consumed += 1;
        if let Some(mbuf) = pool.take(cpu) {
            ax.supply.post(cpu, mbuf);
            self.posted += 1;
        }
    }

    fn ring_doorbells<C: Cpu>(&mut self, cpu: &mut C) {
        for ax in &mut self.ax {
            ax.supply.ring_doorbell(cpu);
        }
        if self.rung != self.position {
            self.rung = self.position;
            cpu.mmio_write(self.doorbell, self.position);
        }
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.fill(cpu, pool);
        self.ring_doorbells(cpu);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        self.fill(cpu, pool);
        let before = self.position;
        // A copy that nobody else sees: what a core stores costs it more than what it keeps.
        let mut reader = self.completions;
        reader.look_ahead(cpu, max);
        let until = packets.len() + max;
        while packets.len() < until {
            let Some((entry, after)) = reader.peek(cpu) else {
                break;
            };
            // One entry more ahead than elsewhere: notices between packets are dealt with in no time.
            after.after().expect_buffers(cpu);
            self.replace(cpu, pool, entry.ring);
            reader = after;
            self.position += 1;
            cpu.work(self.costs.rx_packet);
            if entry.len > 0 {
                self.taken += 1;
                self.handed_out += 1;
                packets.push(entry.packet(cpu, entry.mbuf));
            } else if entry.flags.contains(RETURNED) {
                self.handed_out += 1;
                pool.give(cpu, entry.mbuf);
            }
        }
        self.completions = reader;
        if self.position != before {
            cpu.work(self.costs.burst);
        }
        self.ring_doorbells(cpu);
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        self.posted as i64 - self.handed_out as i64
    }
}
