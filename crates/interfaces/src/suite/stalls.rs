//! Cores that stop and go at random.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::{Bench, Ground};

/// The cores of a bench, of which each stalls now and then for up to so many frames.
pub struct Stalls {
    random: Pcg64,
    longest: u64,
    /// Until so many frames were sent each core stalls.
    until: Vec<u64>,
    taken: Vec<u64>,
    begun: u64,
}

impl Stalls {
    /// `queues` cores, none of which stalls yet. Which stalls when comes from `seed`.
    pub fn new(seed: u64, queues: usize, longest: usize) -> Stalls {
        Stalls {
            random: Pcg64::seed_from_u64(seed),
            longest: longest as u64,
            until: vec![0; queues],
            taken: vec![0; queues],
            begun: 0,
        }
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    /// Each core that does not stall begins to, takes some of what there is, or takes all of it. What
    /// the cores have in hand they free all the same, some of it later.
    pub fn polls<G: Ground>(&mut self, bench: &mut Bench<G>) {
        for core in 0..self.until.len() {
            if bench.sent < self.until[core] {
                continue;
            }
            match self.below(8) {
                0 => {
                    self.until[core] = bench.sent + 1 + self.random.next_u64() % self.longest;
                    self.begun += 1;
                }
                1..=3 => {
                    let max = 1 + self.below(32);
                    self.taken[core] += bench.poll(core, max) as u64;
                }
                _ => self.takes_all(bench, core),
            }
        }
        if self.below(2) == 0 {
            bench.release_all();
        }
    }

    fn takes_all<G: Ground>(&mut self, bench: &mut Bench<G>, core: usize) {
        loop {
            let max = 1 + self.below(32);
            match bench.poll(core, max) {
                0 => return,
                taken => self.taken[core] += taken as u64,
            }
            bench.release_all();
        }
    }

    /// Whether each core has taken `packets` packets, and some stalled meanwhile.
    pub fn saw(&self, packets: usize) -> bool {
        self.begun > 0 && self.taken.iter().all(|&taken| taken >= packets as u64)
    }
}
