//! Who is next: the earliest of all actors, ties to the lowest number.
//!
//! A tournament tree: changing one actor's time costs one comparison per level, reading the
//! winner nothing.

use nicforge_units::Time;

/// Bits of a key for the actor's number; the others hold the time, 5 hours of it.
const ACTOR_BITS: u32 = 10;
/// The latest step that there is room for.
const LAST: Time = Time::from_ps((1 << (u64::BITS - ACTOR_BITS)) - 1);
/// The control core's looks and those of a time line are up to a minute apart, the next one after a
/// run's end among them.
const _: () = assert!(LAST.as_ps() - Time::RUN_MAX.as_ps() > Time::from_ms(100_000).as_ps());
/// Nodes of a tree that has a leaf for each number.
const NODES: usize = 2 << ACTOR_BITS;
/// A key of an actor that waits.
const WAITS: u64 = u64::MAX;

/// The next step of every actor.
pub struct Schedule {
    /// Time and number of each actor in one word, so that ties go to the lowest number.
    /// `winners[1]` is the root; leaves begin at `leaves`.
    winners: Box<[u64; NODES]>,
    leaves: usize,
}

impl Schedule {
    /// `actors` actors that all wait.
    pub fn new(actors: usize) -> Schedule {
        assert!(actors < 1 << ACTOR_BITS, "at most {} actors", 1 << ACTOR_BITS);
        let leaves = actors.next_power_of_two().max(2);
        Schedule { winners: Box::new([WAITS; NODES]), leaves }
    }

    /// Sets the time of `actor`'s next step.
    #[inline]
    pub fn set(&mut self, actor: usize, time: Time) {
        debug_assert!(time == Time::NEVER || time <= LAST, "{time} is too late");
        let mut key = match time {
            Time::NEVER => WAITS,
            time => time.as_ps() << ACTOR_BITS | actor as u64,
        };
        let winners = &mut *self.winners;
        let mut node = (self.leaves + actor) % NODES;
        if winners[node] == key {
            return;
        }
        winners[node] = key;
        while node > 1 {
            key = key.min(winners[(node ^ 1) % NODES]);
            node = node / 2 % NODES;
            if winners[node] == key {
                break;
            }
            winners[node] = key;
        }
    }

    /// When `actor` is due.
    pub fn time_of(&self, actor: usize) -> Time {
        Schedule::time(self.winners[self.leaves + actor])
    }

    /// The earliest actor and its time; `Time::NEVER` when all wait.
    #[inline]
    pub fn earliest(&self) -> (usize, Time) {
        let key = self.winners[1];
        let actor = key & ((1 << ACTOR_BITS) - 1);
        (actor as usize, Schedule::time(key))
    }

    #[inline]
    fn time(key: u64) -> Time {
        match key {
            WAITS => Time::NEVER,
            key => Time::from_ps(key >> ACTOR_BITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_runs_and_ties_go_to_the_lowest_number() {
        let mut schedule = Schedule::new(5);
        assert_eq!(schedule.earliest().1, Time::NEVER);
        schedule.set(4, Time::from_ns(3));
        schedule.set(2, Time::from_ns(7));
        assert_eq!(schedule.earliest(), (4, Time::from_ns(3)));
        schedule.set(1, Time::from_ns(3));
        assert_eq!(schedule.earliest(), (1, Time::from_ns(3)));
        schedule.set(1, Time::NEVER);
        schedule.set(4, Time::from_ns(9));
        assert_eq!(schedule.earliest(), (2, Time::from_ns(7)));
        assert_eq!(schedule.time_of(4), Time::from_ns(9));
    }

    #[test]
    fn the_latest_step_is_kept_apart_from_waiting() {
        let last = (1 << ACTOR_BITS) - 2;
        let mut schedule = Schedule::new(last + 1);
        schedule.set(last, LAST);
        assert_eq!(schedule.earliest(), (last, LAST));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is too late")]
    fn no_step_is_later() {
        Schedule::new(1).set(0, LAST + Time::from_ps(1));
    }
}
