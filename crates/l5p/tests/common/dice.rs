//! Seeded chance, and what it decides about a wire.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

pub struct Dice(Pcg64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit.max(1)
    }

    pub fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below((high - low + 1) as u64) as usize
    }

    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: u32,
    pub duplicate: u32,
    pub reorder: u32,
    pub spurious: u32,
    pub evict: u32,
    pub answer_delay: u64,
    /// Percent of answers that software gets wrong: it denies a genuine header.
    pub lies: u32,
    /// Whether it also gives wrong numbers.
    pub lies_numbers: bool,
    /// Whether it also confirms what is no header; the NIC then proves resynchronisation.
    pub confirms_false: bool,
    pub mss: usize,
}

/// No faults at all.
pub fn quiet(mss: usize) -> Faults {
    Faults {
        loss: 0,
        duplicate: 0,
        reorder: 0,
        spurious: 0,
        evict: 0,
        answer_delay: 0,
        lies: 0,
        lies_numbers: false,
        confirms_false: false,
        mss,
    }
}

/// Faults drawn from a seed.
pub fn drawn(dice: &mut Dice) -> Faults {
    let rates = [0, 0, 1, 3, 10, 30];
    let mut rate = || rates[dice.below(6) as usize];
    let (loss, duplicate, reorder, spurious) = (rate(), rate(), rate(), rate());
    Faults {
        loss,
        duplicate,
        reorder,
        spurious,
        evict: 40,
        answer_delay: [0, 3, 30, 300][dice.below(4) as usize],
        lies: 0,
        lies_numbers: false,
        confirms_false: false,
        mss: [1, 7, 100, 536, 1448, 9000][dice.below(6) as usize],
    }
}

/// Seeds of a swarm: few unless `NICFORGE_SOAK_ROUNDS` asks for more; `NICFORGE_SEED` replays one.
pub fn seeds(rounds: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value: String| value.parse::<u64>().ok());
    if let Some(seed) = number("NICFORGE_SEED") {
        return seed..seed + 1;
    }
    0..rounds * number("NICFORGE_SOAK_ROUNDS").unwrap_or(1)
}
