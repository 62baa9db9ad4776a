//! A closed loop: as many requests on their way as were asked for, each answered or given up.

use std::collections::{BTreeSet, VecDeque};

use nicforge_units::Time;

/// The requests of a ping-pong source. One sends at a time, so the time at which a request was sent
/// says which one it is.
#[derive(Clone, Debug)]
pub(super) struct ClosedLoop {
    /// How long a client waits for an answer.
    timeout: Time,
    /// When those on their way were sent.
    waiting: BTreeSet<Time>,
    /// From when on each of the others may be sent, rising.
    free: VecDeque<Time>,
    given_up: u64,
}

impl ClosedLoop {
    /// `in_flight` requests may be on their way; one is given up `timeout` after it was sent.
    pub(super) fn new(in_flight: u32, timeout: Time) -> ClosedLoop {
        ClosedLoop {
            timeout,
            waiting: BTreeSet::new(),
            free: (0..in_flight).map(|_| Time::ZERO).collect(),
            given_up: 0,
        }
    }

    /// From when on the next request may be sent: when one was answered, or is given up.
    pub(super) fn next_free(&self) -> Time {
        let answered = self.free.front().copied().unwrap_or(Time::NEVER);
        answered.min(self.next_given_up())
    }

    fn next_given_up(&self) -> Time {
        match self.waiting.first() {
            Some(&sent) => self.given_up_at(sent),
            None => Time::NEVER,
        }
    }

    fn given_up_at(&self, sent: Time) -> Time {
        Time::from_ps(sent.as_ps().saturating_add(self.timeout.as_ps()))
    }

    /// A request is sent at `now`, not before [`ClosedLoop::next_free`].
    pub(super) fn send(&mut self, now: Time) {
        let given_up = self.next_given_up();
        match self.free.front() {
            Some(&answered) if answered <= given_up => {
                self.free.pop_front();
            }
            _ => {
                self.waiting.pop_first();
                self.given_up += 1;
            }
        }
        self.waiting.insert(now);
    }

    /// The answer to the request that was sent at `sent` is there at `at`. Returns whether one was
    /// waited for; an answer to a request that was given up, or never sent, changes nothing.
    pub(super) fn answered(&mut self, sent: Time, at: Time) -> bool {
        if !self.waiting.remove(&sent) {
            return false;
        }
        let given_up = self.given_up_at(sent);
        self.given_up += u64::from(given_up < at);
        let at = at.min(given_up);
        let place = self.free.partition_point(|&time| time <= at);
        self.free.insert(place, at);
        true
    }

    /// Requests that were given up so far.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Time = Time::from_us(100);

    fn us(time: u64) -> Time {
        Time::from_us(time)
    }

    #[test]
    fn what_is_lost_is_replaced_after_the_time_out() {
        let mut requests = ClosedLoop::new(2, TIMEOUT);
        requests.send(us(1));
        requests.send(us(2));
        assert_eq!(requests.next_free(), us(101));
        assert!(requests.answered(us(2), us(9)));
        assert_eq!(requests.next_free(), us(9));
        requests.send(us(9));
        // The first is lost.
        assert_eq!((requests.next_free(), requests.given_up()), (us(101), 0));
        requests.send(us(101));
        assert_eq!((requests.next_free(), requests.given_up()), (us(109), 1));
    }

    #[test]
    fn a_late_answer_frees_no_second_place() {
        let mut requests = ClosedLoop::new(1, TIMEOUT);
        requests.send(us(0));
        requests.send(us(100));
        assert!(!requests.answered(us(0), us(120)));
        assert_eq!((requests.next_free(), requests.given_up()), (us(200), 1));
        // The answer of the second is known beforehand, and comes too late, too.
        assert!(requests.answered(us(100), us(230)));
        assert_eq!((requests.next_free(), requests.given_up()), (us(200), 2));
        assert!(!requests.answered(us(100), us(240)), "came twice");
    }

    #[test]
    fn a_place_is_free_when_its_own_answer_is_there() {
        let mut requests = ClosedLoop::new(3, TIMEOUT);
        [0, 1, 2].into_iter().for_each(|at| requests.send(us(at)));
        // Told in another order than that of the times.
        for (sent, at) in [(1, 30), (0, 20), (2, 25)] {
            assert!(requests.answered(us(sent), us(at)));
        }
        for at in [20, 25, 30] {
            assert_eq!(requests.next_free(), us(at));
            requests.send(us(at));
        }
        assert_eq!((requests.next_free(), requests.given_up()), (us(120), 0));
    }
}
