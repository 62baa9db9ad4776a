//! Who holds which lock when.
//!
//! Cores run loosely in time: one may have held a lock and given it back later than another that is simulated
//! after it comes for it. So a lock is not a moment until which it is taken, but spans of time, and a core waits
//! for the end of a span only if it comes within it. If its own span reaches into one that was simulated before, whoever
//! had that one should have waited, and it waits in that one's place.
//!
//! What it finds under the lock is of whoever held it last in the order of the simulation, though. What it tells a device
//! while it holds the lock therefore arrives behind what that one told: a doorbell of several cores never goes back. Where
//! what it finds is as far in time as that one was, such as a device that answers or a kernel's connection with its clock,
//! it has to wait for everybody who was simulated before.

use nicforge_units::Time;

use crate::Addr;

/// Spans of a lock that are remembered: cores are a step apart at most, in which each holds a lock about once, so
/// this is enough for 16 of them. Where more share a lock, some of them do not wait.
const SPANS: usize = 16;

/// The locks of a host.
#[derive(Default)]
pub struct Locks {
    locks: Vec<Lock>,
}

struct Lock {
    at: Addr,
    /// Taken from, and until.
    spans: [[Time; 2]; SPANS],
    /// Where the next span goes, in place of the oldest.
    next: usize,
    /// When the last register write of who held it arrives.
    told: Time,
}

impl Locks {
    /// A core comes for the lock at `at`; returns when it has it.
    pub fn take(&mut self, at: Addr, now: Time) -> Time {
        let lock = self.lock(at);
        let mut free = now;
        while let Some(until) = lock.held_until(free) {
            free = until;
        }
        lock.spans[lock.next] = [free, free];
        free
    }

    /// The same, after everybody who had it before in the order of the simulation.
    pub fn take_in_order(&mut self, at: Addr, now: Time) -> Time {
        let ends = self.lock(at).spans.iter().map(|&[_, until]| until);
        let last = ends.max().unwrap_or_default();
        self.take(at, now.max(last))
    }

    /// The core that took it last gives it back; returns when it goes on.
    pub fn give_back(&mut self, at: Addr, now: Time) -> Time {
        let lock = self.lock(at);
        let [taken, _] = lock.spans[lock.next];
        let begins = lock.spans.iter().map(|&[from, _]| from);
        let reaches_into = begins.filter(|from| (taken + Time::from_ps(1)..now).contains(from));
        let longest = reaches_into.map(|from| now - from).max();
        lock.spans[lock.next][1] = now;
        lock.next = (lock.next + 1) % SPANS;
        now + longest.unwrap_or(Time::ZERO)
    }

    /// Who holds the lock at `at` writes a register, which would arrive at `arrives`; returns when it does.
    pub fn tell(&mut self, at: Addr, arrives: Time) -> Time {
        let lock = self.lock(at);
        lock.told = arrives.max(lock.told + Time::from_ps(1));
        lock.told
    }

    fn lock(&mut self, at: Addr) -> &mut Lock {
        let number = self.locks.iter().position(|lock| lock.at == at);
        let number = number.unwrap_or_else(|| {
            self.locks.push(Lock { at, spans: [[Time::ZERO; 2]; SPANS], next: 0, told: Time::ZERO });
            self.locks.len() - 1
        });
        &mut self.locks[number]
    }
}

impl Lock {
    /// The end of the span that `time` lies in.
    fn held_until(&self, time: Time) -> Option<Time> {
        let mut spans = self.spans.iter();
        let span = spans.find(|[from, until]| (*from..*until).contains(&time));
        span.map(|&[_, until]| until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Addr = Addr(64);

    fn ns(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    fn hold(locks: &mut Locks, from: u64, lasts: u64) -> Time {
        let taken = locks.take(AT, ns(from));
        locks.give_back(AT, taken + ns(lasts));
        taken
    }

    #[test]
    fn a_contender_waits_until_the_holder_releases() {
        let mut locks = Locks::default();
        assert_eq!(hold(&mut locks, 10, 5), ns(10));
        assert_eq!(hold(&mut locks, 12, 5), ns(15));
        // Behind both of those that wait one behind the other.
        assert_eq!(hold(&mut locks, 13, 5), ns(20));
        assert_eq!(hold(&mut locks, 25, 1), ns(25));
        assert_eq!(locks.take(Addr(128), ns(12)), ns(12), "another lock");
    }

    #[test]
    fn a_late_simulated_holder_waits_for_earlier_contenders() {
        let mut locks = Locks::default();
        hold(&mut locks, 100, 20);
        let taken = locks.take(AT, ns(90));
        assert_eq!(taken, ns(90));
        // The other one would have had it from 103 on instead of 100.
        assert_eq!(locks.give_back(AT, ns(103)), ns(106));
        locks.take(AT, ns(80));
        assert_eq!(locks.give_back(AT, ns(90)), ns(90));
    }

    #[test]
    fn register_writes_arrive_in_the_order_in_which_cores_held_the_lock() {
        let mut locks = Locks::default();
        hold(&mut locks, 100, 5);
        assert_eq!(locks.tell(AT, ns(400)), ns(400));
        hold(&mut locks, 50, 5);
        assert_eq!(locks.tell(AT, ns(350)), ns(400) + Time::from_ps(1));
        hold(&mut locks, 200, 5);
        assert_eq!(locks.tell(AT, ns(500)), ns(500));
    }

    #[test]
    fn in_order_everybody_waits_for_those_before() {
        let mut locks = Locks::default();
        hold(&mut locks, 100, 5);
        assert_eq!(locks.take_in_order(AT, ns(50)), ns(105));
        locks.give_back(AT, ns(110));
        assert_eq!(locks.take_in_order(AT, ns(200)), ns(200));
    }

    #[test]
    fn an_acquisition_before_the_hold_does_not_wait() {
        let mut locks = Locks::default();
        assert_eq!(hold(&mut locks, 10, 5), ns(10));
        assert_eq!(hold(&mut locks, 100, 5), ns(100));
        assert_eq!(hold(&mut locks, 50, 5), ns(50), "simulated later, but earlier");
        assert_eq!(hold(&mut locks, 11, 5), ns(15), "the first span is not forgotten");
        assert_eq!(hold(&mut locks, 52, 5), ns(55));
        assert_eq!(hold(&mut locks, 102, 5), ns(105));
    }
}
