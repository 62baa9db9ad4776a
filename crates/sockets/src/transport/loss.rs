//! Frames that a network loses by intent, to see what loss costs.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Loses a share of all frames, in both directions.
#[derive(Debug)]
pub struct Loss {
    /// Of 2^32 frames so many are lost.
    share: u64,
    chance: Pcg64,
    /// Frames lost so far.
    pub lost: u64,
}

impl Loss {
    /// Loses this share, 0 to 1, of the frames; which ones follows from the seed.
    pub fn new(share: f64, seed: u64) -> Loss {
        let share = (share.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64;
        Loss { share, chance: Pcg64::seed_from_u64(seed), lost: 0 }
    }

    /// Whether it loses none.
    pub fn is_none(&self) -> bool {
        self.share == 0
    }

    /// Whether the next frame is lost.
    pub fn loses(&mut self) -> bool {
        let is_lost = self.share > 0 && u64::from(self.chance.next_u32()) < self.share;
        self.lost += u64::from(is_lost);
        is_lost
    }
}
