//! Timers in device time.

use std::collections::BTreeMap;

use nicforge_units::Time;

/// A timer that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    at: Time,
    number: u64,
}

/// Timers, each with what it is for. Those of one instant expire in the order in which they were set.
#[derive(Clone, Debug)]
pub struct Timers<T> {
    set: BTreeMap<TimerId, T>,
    number: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers { set: BTreeMap::new(), number: 0 }
    }
}

impl<T> Timers<T> {
    /// Sets a timer that expires at `at`.
    pub fn set(&mut self, at: Time, what: T) -> TimerId {
        let timer = TimerId { at, number: self.number };
        self.number += 1;
        self.set.insert(timer, what);
        timer
    }

    /// Cancels a timer; returns what it was for, unless it has expired.
    pub fn cancel(&mut self, timer: TimerId) -> Option<T> {
        self.set.remove(&timer)
    }

    /// When the next one expires; `Time::NEVER` when none is set.
    pub fn due(&self) -> Time {
        self.set.keys().next().map_or(Time::NEVER, |timer| timer.at)
    }

    /// The next one that has expired by `now`.
    pub fn expired(&mut self, now: Time) -> Option<T> {
        (self.due() <= now).then(|| self.set.pop_first()).flatten().map(|(_, what)| what)
    }

    /// Timers that are set.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}
