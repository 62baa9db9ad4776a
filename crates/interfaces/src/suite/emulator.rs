//! The core that plays the NIC, where an interface wants one.

use super::frames::{number_of, stamp};
use super::{Bench, Ground};
use crate::emulated::{self, Lost, Step};

impl<G: Ground> Bench<G> {
    /// The emulating core, if there is one, does all that there is to do. Returns how many
    /// register writes it refused.
    pub fn emulate(&mut self) -> u64 {
        let mut refused = 0;
        while !self.emulator_rests
            && let Some(step) = self.emulate_once()
        {
            refused += step.refused.len() as u64;
            if step.moved() == 0 {
                break;
            }
        }
        refused
    }

    /// The emulating core, if there is one, makes one step.
    pub fn emulate_once(&mut self) -> Option<Step> {
        let half = emulated::played::<G::On>(&mut *self.nic)?;
        let step = self.ground.play(|way| half.emulate(way, usize::MAX));
        self.lost.extend(&step.lost);
        self.core_rang();
        Some(step)
    }

    /// The emulating core fills the physical rings itself, from core 0's level of the pool.
    pub fn fill_physical(&mut self) {
        if let Some(half) = emulated::played::<G::On>(&mut *self.nic) {
            self.ground.play(|way| half.fill(way, &mut self.caches[0]));
        }
        self.core_rang();
    }

    /// The emulating core's register writes reach the device.
    fn core_rang(&mut self) {
        for (index, value) in self.ground.register_writes() {
            let mut device = self.ground.device();
            let half = emulated::played::<G::On>(&mut *self.nic);
            let known = half.is_some_and(|half| half.rung_by_core(&mut *device, index, value));
            assert!(known, "register {index} refuses {value}");
            self.rung.push((index, value));
        }
    }

    /// Frames that the device delivered are not coming.
    pub fn settle(&mut self) {
        for lost in std::mem::take(&mut self.lost) {
            self.lose(&lost);
        }
    }

    fn lose(&mut self, lost: &Lost) {
        self.drops.count(lost.cause.0);
        let name = self.interface;
        let of_flow = self.waiting.get_mut(&lost.rss_hash);
        let frames = of_flow.unwrap_or_else(|| panic!("{name}: lost what nobody sent"));
        let is_it = |frame: &Vec<u8>| stamp(number_of(frame)) == lost.stamp;
        let index = frames.iter().position(is_it);
        frames.remove(index.unwrap_or_else(|| panic!("{name}: lost what nobody sent")));
    }
}
