//! Drops, each under its named cause.

use crate::DropCause;

/// How many frames were dropped under which cause, in the order of first use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropCounters {
    causes: Vec<(&'static str, u64)>,
}

impl DropCounters {
    /// Counts one drop.
    #[inline]
    pub fn count(&mut self, cause: &'static str) {
        self.add(cause, 1);
    }

    /// Counts `drops` drops.
    pub fn add(&mut self, cause: &'static str, drops: u64) {
        match self.causes.iter_mut().find(|(name, _)| *name == cause) {
            Some((_, count)) => *count += drops,
            None => self.causes.push((cause, drops)),
        }
    }

    /// All causes with their counts.
    pub fn causes(&self) -> &[(&'static str, u64)] {
        &self.causes
    }

    /// All drops.
    pub fn total(&self) -> u64 {
        self.causes.iter().map(|(_, count)| count).sum()
    }

    /// Those that load is to blame for ([`DropCause::is_of_load`]).
    pub fn of_load(&self) -> u64 {
        let causes = self.causes.iter();
        let of_load = causes.filter(|(cause, _)| DropCause(cause).is_of_load());
        of_load.map(|(_, count)| count).sum()
    }

    /// What was counted since `earlier`, causes without a drop left out.
    pub fn since(&self, earlier: &DropCounters) -> DropCounters {
        let before = |cause| {
            let found = earlier.causes.iter().find(|(name, _)| *name == cause);
            found.map_or(0, |&(_, count)| count)
        };
        DropCounters {
            causes: self
                .causes
                .iter()
                .map(|&(cause, count)| (cause, count - before(cause)))
                .filter(|&(_, count)| count > 0)
                .collect(),
        }
    }
}

impl<'a> FromIterator<&'a DropCounters> for DropCounters {
    /// What all of them counted, together.
    fn from_iter<I: IntoIterator<Item = &'a DropCounters>>(counters: I) -> DropCounters {
        let mut all = DropCounters::default();
        for &(cause, count) in counters.into_iter().flat_map(DropCounters::causes) {
            all.add(cause, count);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_cause_and_by_window() {
        let mut drops = DropCounters::default();
        drops.count("fifo_full");
        let before = drops.clone();
        drops.count("fifo_full");
        drops.count("no_descriptor");
        assert_eq!(drops.total(), 3);
        assert_eq!(drops.of_load(), 3);
        assert_eq!(drops.since(&before).causes(), [("fifo_full", 1), ("no_descriptor", 1)]);
        for of_the_frame in ["oversized_frame", "longer_than_fifo", "not_ip", "ttl_expired", "bad_descriptor"] {
            drops.count(of_the_frame);
        }
        assert_eq!((drops.total(), drops.of_load()), (8, 3));
    }
}
