//! Consistent hashing: a table of servers that changes little when a server comes or goes (Eisenbud and others, Maglev,
//! NSDI 2016, section 3.4).
//!
//! Each server has an order of its own in which it wants slots. Servers take turns, as often as their weights say, and each
//! takes the first slot of its order that is free, until none is.

use nicforge_platform::{Addr, AddressSpace, Cpu};

use super::hash::{hash2, mix};

/// Slots: a prime, so that every stride visits all; some hundred for each of the usual numbers of servers.
const SLOTS: u32 = 65_537;

/// The table, two bytes for each slot.
#[derive(Clone, Debug)]
pub struct Maglev {
    slots: Addr,
}

/// The slots that a server wants, in its order.
struct Wanted {
    next: u32,
    stride: u32,
}

impl Wanted {
    fn of(server: u32) -> Wanted {
        let (start, stride) = (mix(u64::from(server)), hash2(u64::from(server), 1));
        Wanted { next: (start % u64::from(SLOTS)) as u32, stride: (stride % u64::from(SLOTS - 1)) as u32 + 1 }
    }

    fn step(&mut self) -> u32 {
        let slot = self.next;
        self.next = (self.next + self.stride) % SLOTS;
        slot
    }
}

impl Maglev {
    /// Takes address space.
    pub fn allocate(space: &mut AddressSpace) -> Maglev {
        Maglev { slots: space.data(u64::from(SLOTS) * 2, 64) }
    }

    /// Fills the table: server `n` has weight `weights[n]`; one of weight 0 gets nothing. There are at most 65536. Without
    /// any weight the table stays as it is.
    pub fn fill<C: Cpu>(&self, cpu: &mut C, weights: &[u32]) {
        let heaviest = u64::from(weights.iter().copied().max().unwrap_or(0));
        if heaviest == 0 {
            return;
        }
        let mut owners: Vec<Option<u16>> = vec![None; SLOTS as usize];
        let mut servers: Vec<(u16, u64, Wanted)> = (0..)
            .zip(weights)
            .map(|(number, &weight)| (number as u16, u64::from(weight), Wanted::of(number)))
            .collect();
        let mut turns = vec![0u64; servers.len()];
        let mut left = SLOTS;
        while left > 0 {
            for ((number, weight, wanted), turn) in servers.iter_mut().zip(&mut turns) {
                // A server of half the greatest weight has a turn in every second round.
                *turn += *weight;
                if *turn < heaviest || left == 0 {
                    continue;
                }
                *turn -= heaviest;
                let mut slot = wanted.step();
                while owners[slot as usize].is_some() {
                    slot = wanted.step();
                }
                owners[slot as usize] = Some(*number);
                left -= 1;
            }
        }
        for (slot, owner) in (0u64..).zip(owners) {
            cpu.store(self.slots + slot * 2, owner.unwrap_or(0));
        }
    }

    /// The server for a flow with this hash.
    pub fn find<C: Cpu>(&self, cpu: &mut C, hash: u64) -> u32 {
        let slot = hash % u64::from(SLOTS);
        u32::from(cpu.load::<u16>(self.slots + slot * 2))
    }
}

#[cfg(test)]
mod tests {
    use nicforge_platform::FlatCpu;

    use super::*;

    fn filled(weights: &[u32]) -> Vec<u32> {
        let mut space = AddressSpace::default();
        let table = Maglev::allocate(&mut space);
        let mut cpu = FlatCpu::new(space.end());
        table.fill(&mut cpu, weights);
        (0..u64::from(SLOTS)).map(|slot| table.find(&mut cpu, slot)).collect()
    }

    fn shares(slots: &[u32], servers: usize) -> Vec<usize> {
        (0..servers).map(|server| slots.iter().filter(|&&owner| owner as usize == server).count()).collect()
    }

    #[test]
    fn slots_are_shared_by_weight() {
        let even = shares(&filled(&[1; 32]), 32);
        assert!(even.iter().all(|&share| (2048..=2049).contains(&share)), "{even:?}");
        let weighted = shares(&filled(&[1, 3, 0, 4]), 4);
        assert_eq!(weighted[2], 0);
        for (share, weight) in weighted.into_iter().zip([1, 3, 0, 4]) {
            assert!(share.abs_diff(SLOTS as usize * weight / 8) <= 4, "{share} for weight {weight}");
        }
    }

    #[test]
    fn a_lost_server_moves_few_flows_of_the_others() {
        let (before, after) = (filled(&[1; 32]), filled(&[vec![1; 31], vec![0]].concat()));
        let moved = before.iter().zip(&after).filter(|(before, after)| **before != 31 && before != after).count();
        assert!(moved * 100 < before.len() * 3, "{moved} of {} slots moved", before.len());
        assert!(after.iter().all(|&owner| owner != 31));
    }
}
