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
#[derive(Clone, Copy)]
pub(super) enum Replacement {
    LeastRecent(LeastRecent),
    Ages(Ages),
}

/// One of the orders. What handles many lines at once is made for each of them.
pub(super) trait Order: Copy {
    /// An operation begins.
    fn tick(&mut self);

    /// `set` lacks a line that was asked for.
    fn missed(&mut self, set: usize);

    /// The age with which a line comes into `set`.
    fn new_line(&mut self, set: usize) -> u32;

    /// The age of a line that is used where it is, and had `age`.
    fn used(&self, age: u32) -> u32;

    /// By how much lines get older among which `oldest` is the highest age, so that one of them may leave.
    fn ageing(&self, oldest: u32) -> u32;

    /// The age of what has this stamp, and the stamp of what has this age.
    fn stamp(&self, age: u32) -> u32;
}

/// An age is how many operations ago a line was used last.
#[derive(Clone, Copy)]
pub(super) struct LeastRecent {
    /// Counts operations, and may wrap.
    clock: u32,
}

/// Ages of two bits.
#[derive(Clone, Copy)]
pub(super) struct Ages {
    /// Where lines are kept from new ones, one of so many comes young.
    one_young_in: Multiple,
    /// Above its middle, sets that insert all lines young lose more.
    selector: u16,
    /// Numerical Recipes' generator: which lines come young must not follow the order of a frame's lines.
    state: u32,
}

/// What a set does with new lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// What loses less.
    Follows,
    /// It leads those that insert all lines young.
    KeepsNew,
    /// It leads those that insert few.
    KeepsOld,
}

/// Whether numbers are multiples of one that is known before, without a division, which takes longer (Lemire, Kaser and
/// Kurz, "Faster remainder by direct computation", 2019).
#[derive(Clone, Copy)]
struct Multiple {
    /// How often the number is in the largest of 64 bits.
    share: u64,
}

impl Multiple {
    fn of(number: u32) -> Multiple {
        Multiple { share: u64::MAX / u64::from(number) }
    }

    #[inline(always)]
    fn is(&self, multiple: u32) -> bool {
        u64::from(multiple).wrapping_mul(self.share.wrapping_add(1)) <= self.share
    }
}

impl Group {
    #[inline(always)]
    fn of(set: usize) -> Group {
        match set % LEADER_SETS {
            KEEPS_NEW => Group::KeepsNew,
            KEEPS_OLD => Group::KeepsOld,
            _ => Group::Follows,
        }
    }
}

impl Replacement {
    /// Ages of two bits, if `one_young_in` is not 0; else least recently used.
    pub fn new(one_young_in: u32) -> Replacement {
        match one_young_in {
            0 => Replacement::LeastRecent(LeastRecent { clock: 0 }),
            _ => Replacement::Ages(Ages {
                one_young_in: Multiple::of(one_young_in),
                selector: SELECTOR_MAX / 2,
                state: 1,
            }),
        }
    }
}

impl Order for LeastRecent {
    #[inline(always)]
    fn tick(&mut self) {
        self.clock = self.clock.wrapping_add(1);
    }

    #[inline(always)]
    fn missed(&mut self, _set: usize) {}

    #[inline(always)]
    fn new_line(&mut self, _set: usize) -> u32 {
        0
    }

    #[inline(always)]
    fn used(&self, _age: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn ageing(&self, _oldest: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn stamp(&self, age: u32) -> u32 {
        self.clock.wrapping_sub(age)
    }
}

impl Order for Ages {
    #[inline(always)]
    fn tick(&mut self) {}

    #[inline(always)]
    fn missed(&mut self, set: usize) {
        match Group::of(set) {
            Group::Follows => {}
            Group::KeepsNew => self.selector = (self.selector + 1).min(SELECTOR_MAX),
            Group::KeepsOld => self.selector = self.selector.saturating_sub(1),
        }
    }

    #[inline(always)]
    fn new_line(&mut self, set: usize) -> u32 {
        let keeps_old = match Group::of(set) {
            Group::Follows => self.selector > SELECTOR_MAX / 2,
            Group::KeepsNew => false,
            Group::KeepsOld => true,
        };
        if !keeps_old {
            return YOUNG;
        }
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if self.one_young_in.is(self.state >> 16) { YOUNG } else { OLDEST }
    }

    #[inline(always)]
    fn used(&self, age: u32) -> u32 {
        // 3 and 2 become 1, 1 and 0 become 0.
        age >> 1
    }

    #[inline(always)]
    fn ageing(&self, oldest: u32) -> u32 {
        OLDEST.saturating_sub(oldest)
    }

    #[inline(always)]
    fn stamp(&self, age: u32) -> u32 {
        age.wrapping_neg()
    }
}

/// Either, for what handles one line at a time.
impl Order for Replacement {
    #[inline(always)]
    fn tick(&mut self) {
        if let Replacement::LeastRecent(order) = self {
            order.tick();
        }
    }

    #[inline(always)]
    fn missed(&mut self, set: usize) {
        if let Replacement::Ages(order) = self {
            order.missed(set);
        }
    }

    #[inline(always)]
    fn new_line(&mut self, set: usize) -> u32 {
        match self {
            Replacement::LeastRecent(order) => order.new_line(set),
            Replacement::Ages(order) => order.new_line(set),
        }
    }

    #[inline(always)]
    fn used(&self, age: u32) -> u32 {
        match self {
            Replacement::LeastRecent(order) => order.used(age),
            Replacement::Ages(order) => order.used(age),
        }
    }

    #[inline(always)]
    fn ageing(&self, oldest: u32) -> u32 {
        match self {
            Replacement::LeastRecent(order) => order.ageing(oldest),
            Replacement::Ages(order) => order.ageing(oldest),
        }
    }

    #[inline(always)]
    fn stamp(&self, age: u32) -> u32 {
        match self {
            Replacement::LeastRecent(order) => order.stamp(age),
            Replacement::Ages(order) => order.stamp(age),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Multiple;

    #[test]
    fn multiples_are_found_without_a_division() {
        for number in [1, 2, 3, 31, 32, 33, 65_535, 65_536, u32::MAX] {
            let multiple = Multiple::of(number);
            let others = (0..1000).chain([number - 1, number, u32::MAX - 1, u32::MAX]);
            assert!(others.into_iter().all(|other| multiple.is(other) == other.is_multiple_of(number)), "{number}");
        }
    }
}
