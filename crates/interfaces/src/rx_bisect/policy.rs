//! Which Ax ring lends a buffer when the core's own has none (paper, section 4.1: "according to
//! some policy").

nicforge_options::choice! {
    /// The policy.
    pub enum AxChoice {
        /// Any that has buffers, all equally likely.
        Random = "random",
        /// The next one that has buffers, in turn.
        RoundRobin = "round_robin",
        /// The one that has most; of several the first.
        Fullest = "fullest",
    }
}

/// What a policy remembers, for one Bx ring.
#[derive(Clone, Debug)]
pub struct Chooser {
    choice: AxChoice,
    /// State of the random choice.
    random: u64,
    /// Where the next turn begins.
    turn: usize,
    /// Room for the rings that have buffers.
    filled: Vec<u16>,
}

impl Chooser {
    /// A chooser whose random choice depends on `seed` alone.
    pub fn new(choice: AxChoice, seed: u64) -> Chooser {
        Chooser { choice, random: seed, turn: 0, filled: Vec::new() }
    }

    /// One of `rings` for which `available` tells more than 0 buffers.
    pub fn choose(&mut self, rings: &[u16], available: impl Fn(u16) -> u64) -> Option<u16> {
        let mut filled = rings.iter().copied().filter(|&ring| available(ring) > 0);
        match self.choice {
            AxChoice::Random => {
                let mut all = std::mem::take(&mut self.filled);
                all.clear();
                all.extend(filled);
                let count = all.len() as u64;
                let chosen = (count > 0).then(|| all[self.below(count) as usize]);
                self.filled = all;
                chosen
            }
            AxChoice::RoundRobin => {
                let (before, from) = rings.split_at(self.turn);
                let mut in_turn = (self.turn..).zip(from).chain((0..).zip(before));
                let (index, &ring) = in_turn.find(|&(_, &ring)| available(ring) > 0)?;
                self.turn = (index + 1) % rings.len();
                Some(ring)
            }
            AxChoice::Fullest => {
                let first = filled.next()?;
                let fuller = |best, ring| if available(ring) > available(best) { ring } else { best };
                Some(filled.fold(first, fuller))
            }
        }
    }

    /// A number below `bound`, all equally likely. Splitmix64 (Steele et al., OOPSLA 2014) stands
    /// for the shift register that a NIC has.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * u128::from(bound)) >> 64) as u64
    }
}
