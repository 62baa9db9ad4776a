//! What happened that people want to know, as far back as is kept: neighbours and workers decide how much
//! happens, so all of it is not.

use std::collections::VecDeque;
use std::sync::Arc;

/// How many are kept.
const KEPT: usize = 256;

/// The last things that happened.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// How many happened before those.
    forgotten: u64,
    kept: VecDeque<Arc<str>>,
}

impl Events {
    /// The next.
    pub(super) fn push(&mut self, event: String) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(event.into());
    }

    /// How many happened so far.
    pub fn count(&self) -> u64 {
        self.forgotten + self.kept.len() as u64
    }

    /// Those that are kept, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.kept.iter().map(|event| &**event)
    }

    /// Those behind the first `seen`, oldest first, and how many of them are no longer kept.
    pub fn after(&self, seen: u64) -> (u64, impl Iterator<Item = &str>) {
        let known = seen.saturating_sub(self.forgotten) as usize;
        (self.forgotten.saturating_sub(seen), self.iter().skip(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_the_others_counted() {
        let mut events = Events::default();
        (0..KEPT + 10).for_each(|number| events.push(number.to_string()));
        assert_eq!(events.count(), KEPT as u64 + 10);
        assert_eq!(events.iter().next(), Some("10"));
        let (missed, new) = events.after(4);
        assert_eq!((missed, new.count()), (6, KEPT));
        let (missed, mut new) = events.after(KEPT as u64 + 9);
        assert_eq!((missed, new.next(), new.next()), (0, Some("265"), None));
    }
}
