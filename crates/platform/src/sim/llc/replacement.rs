//! Which line of a set makes room: the one of the highest age.
//!
//! Least recently used: its age is how many operations ago a line was used last.
//!
//! Ages of two bits, as Intel's last-level caches have them from Ivy Bridge on (uops.info, "Caches": measured replacement
//! policies; Jaleel et al., "High performance cache replacement using re-reference interval prediction", ISCA
//! 2010): a line comes with age 1, a use makes it younger, and where no line has age 3, all get older until one has. A walk over
//! more lines than fit would find none of them again. So a few sets insert most lines with age 3, those that go
//! next, which leaves the others alone; a few other sets never do. All sets do what loses less in these
//! two groups.

/// The age of lines that make room.
const OLDEST: u32 = 3;
/// The age with which a line comes.
const YOUNG: u32 = 1;
/// One set of so many leads each of the two groups.
const LEADER_SETS: usize = 64;
/// Which of them inserts all lines young, and which one few.
const KEEPS_NEW: usize = 0;
const KEEPS_OLD: usize = 33;
/// The selector counts up to that, ten bits as in the paper.
const SELECTOR_MAX: u16 = 1023;

/// The order in which lines leave.
pub(super) struct Replacement {
    /// A line's age is the distance of its stamp to this. Least recently used: counts operations, and may wrap.
    pub clock: u32,
    /// There is none where the least recently used line leaves.
    ages: Option<Ages>,
}

struct Ages {
    /// Where lines are kept from new ones, one of so many comes young.
    one_young_in: u32,
    /// Above its middle, sets that insert all lines young lose more.
    selector: u16,
    /// Numerical Recipes' generator: which lines come young must not follow the order of a frame's lines.
    state: u32,
}

impl Replacement {
    /// Ages of two bits, if `one_young_in` is not 0; else least recently used.
    pub fn new(one_young_in: u32) -> Replacement {
        let ages = (one_young_in > 0).then_some(Ages { one_young_in, selector: SELECTOR_MAX / 2, state: 1 });
        Replacement { clock: 0, ages }
    }

    /// An operation begins.
    #[inline(always)]
    pub fn tick(&mut self) {
        if self.ages.is_none() {
            self.clock = self.clock.wrapping_add(1);
        }
    }

    /// `set` lacks a line that was asked for.
    #[inline(always)]
    pub fn missed(&mut self, set: usize) {
        let Some(ages) = &mut self.ages else {
            return;
        };
        match set % LEADER_SETS {
            KEEPS_NEW => ages.selector = (ages.selector + 1).min(SELECTOR_MAX),
            KEEPS_OLD => ages.selector = ages.selector.saturating_sub(1),
            _ => {}
        }
    }

    /// The stamp of a line that comes into `set`.
    #[inline(always)]
    pub fn new_line(&mut self, set: usize) -> u32 {
        match &mut self.ages {
            None => self.clock,
            Some(ages) => self.clock.wrapping_sub(ages.of_new_line(set)),
        }
    }

    /// The stamp of a line that is used where it is, and had `stamp`.
    #[inline(always)]
    pub fn used(&self, stamp: u32) -> u32 {
        match &self.ages {
            None => self.clock,
            // 3 and 2 become 1, 1 and 0 become 0.
            Some(_) => self.clock.wrapping_sub(self.clock.wrapping_sub(stamp) >> 1),
        }
    }

    /// By how much lines get older among which `oldest` is the highest age, so that one of them may leave.
    #[inline(always)]
    pub fn ageing(&self, oldest: u32) -> u32 {
        match &self.ages {
            None => 0,
            Some(_) => OLDEST.saturating_sub(oldest),
        }
    }
}

impl Ages {
    #[inline(always)]
    fn of_new_line(&mut self, set: usize) -> u32 {
        let keeps_old = match set % LEADER_SETS {
            KEEPS_NEW => false,
            KEEPS_OLD => true,
            _ => self.selector > SELECTOR_MAX / 2,
        };
        if !keeps_old {
            return YOUNG;
        }
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if (self.state >> 16).is_multiple_of(self.one_young_in) { YOUNG } else { OLDEST }
    }
}
