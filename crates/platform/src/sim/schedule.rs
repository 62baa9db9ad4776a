//! Who is next: the earliest of all actors, ties to the lowest number.
//!
//! A tournament tree: changing one actor's time costs one comparison per level, reading the
//! winner nothing.

use nicforge_units::Time;

/// The next step of every actor.
pub struct Schedule {
    /// `winners[1]` is the root; leaves begin at `leaves`.
    winners: Vec<(Time, u32)>,
    leaves: usize,
}

impl Schedule {
    /// `actors` actors that all wait.
    pub fn new(actors: usize) -> Schedule {
        let leaves = actors.next_power_of_two().max(2);
        let mut winners = vec![(Time::NEVER, u32::MAX); 2 * leaves];
        for (number, leaf) in winners[leaves..].iter_mut().enumerate() {
            leaf.1 = number as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node].min(winners[2 * node + 1]);
        }
        Schedule { winners, leaves }
    }

    /// Sets the time of `actor`'s next step.
    #[inline]
    pub fn set(&mut self, actor: usize, time: Time) {
        let mut node = self.leaves + actor;
        self.winners[node].0 = time;
        while node > 1 {
            node /= 2;
            self.winners[node] = self.winners[2 * node].min(self.winners[2 * node + 1]);
        }
    }

    /// When `actor` is due.
    pub fn time_of(&self, actor: usize) -> Time {
        self.winners[self.leaves + actor].0
    }

    /// The earliest actor and its time; `Time::NEVER` when all wait.
    #[inline]
    pub fn earliest(&self) -> (usize, Time) {
        let (time, actor) = self.winners[1];
        (actor as usize, time)
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
}
