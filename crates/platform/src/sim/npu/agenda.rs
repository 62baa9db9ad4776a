//! What happens when, in the order of time, and at one time in the order in which it was said.
//!
//! A run spends most of its time here, so entries are two words, and what happens at once does not pass the heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use nicforge_units::Time;

/// Something that happens to a thread, or an event, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It has what it waited for.
    Ready(u32),
    /// It has computed.
    Ran(u32),
    /// It has done its work.
    Finished(u32),
    /// An event of the caller's.
    Event(u32),
}

/// Bits of a number in an entry, and of the kind behind it.
const NUMBER_BITS: u32 = 22;
const KIND_BITS: u32 = 2;

impl What {
    fn word(self) -> u64 {
        let (kind, number) = match self {
            What::Ready(number) => (0, number),
            What::Ran(number) => (1, number),
            What::Finished(number) => (2, number),
            What::Event(number) => (3, number),
        };
        debug_assert!(number >> NUMBER_BITS == 0, "no more than four million threads or events at a time");
        kind << NUMBER_BITS | u64::from(number)
    }

    fn of(word: u64) -> What {
        let number = (word & ((1 << NUMBER_BITS) - 1)) as u32;
        match word >> NUMBER_BITS & ((1 << KIND_BITS) - 1) {
            0 => What::Ready(number),
            1 => What::Ran(number),
            2 => What::Finished(number),
            _ => What::Event(number),
        }
    }
}

/// A time in picoseconds; then what is the entry's place in the order, and behind that what happens.
type Entry = (u64, u64);

/// What is to happen.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Time,
    order: u64,
    later: BinaryHeap<Reverse<Entry>>,
    /// What happens at the present time and was said at it.
    at_once: VecDeque<u64>,
    events: Vec<Option<E>>,
    free: Vec<u32>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Agenda<E> {
        let (later, at_once) = (BinaryHeap::new(), VecDeque::new());
        Agenda { now: Time::ZERO, order: 0, later, at_once, events: Vec::new(), free: Vec::new() }
    }
}

impl<E> Agenda<E> {
    /// The time of what happened last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When something happens next.
    pub fn due(&self) -> Time {
        if self.at_once.is_empty() {
            self.later.peek().map_or(Time::NEVER, |Reverse((at, _))| Time::from_ps(*at))
        } else {
            self.now
        }
    }

    /// `what` happens at `at`, or now if that is past.
    pub fn push(&mut self, at: Time, what: What) {
        self.order += 1;
        let word = self.order << (NUMBER_BITS + KIND_BITS) | what.word();
        if at <= self.now {
            self.at_once.push_back(word);
        } else {
            self.later.push(Reverse((at.as_ps(), word)));
        }
    }

    /// The same of an event.
    pub fn push_event(&mut self, at: Time, event: E) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() as u32 - 1
        });
        self.events[number as usize] = Some(event);
        self.push(at, What::Event(number));
    }

    /// Takes event `number`, which has happened.
    pub fn take_event(&mut self, number: u32) -> Option<E> {
        let event = self.events.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(event)
    }

    /// Takes what happens next, if that is by `until`.
    pub fn pop(&mut self, until: Time) -> Option<What> {
        if self.due() > until {
            return None;
        }
        // What was said before the present time comes first.
        let first = self.later.peek().is_some_and(|Reverse((at, word))| {
            self.at_once.front().is_none_or(|once| *at <= self.now.as_ps() && word < once)
        });
        let word = if first {
            let Reverse((at, word)) = self.later.pop()?;
            self.now = self.now.max(Time::from_ps(at));
            word
        } else {
            self.at_once.pop_front()?
        };
        Some(What::of(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list that is sorted by time and by what was said first.
    #[test]
    fn everything_happens_once_by_time_and_then_by_turn() {
        let mut state = 3u64;
        let mut draw = |of: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % of
        };
        let (mut agenda, mut expected, mut said) = (Agenda::default(), Vec::new(), 0u32);
        for _ in 0..20_000 {
            if draw(2) == 0 {
                let at = agenda.now() + Time::from_ps(draw(4));
                let at = if draw(8) == 0 { Time::ZERO } else { at };
                expected.push((at.max(agenda.now()), said));
                if draw(3) == 0 {
                    agenda.push_event(at, said);
                } else {
                    agenda.push(at, What::Ran(said));
                }
                said += 1;
                continue;
            }
            let until = agenda.now() + Time::from_ps(draw(3));
            let next = expected.iter().copied().min().filter(|(at, _)| *at <= until);
            let had = match agenda.pop(until) {
                Some(What::Event(number)) => agenda.take_event(number),
                Some(What::Ran(number)) => Some(number),
                other => other.map(|_| u32::MAX),
            };
            assert_eq!(had, next.map(|(_, said)| said));
            if let Some(next) = next {
                assert_eq!(agenda.now(), next.0);
                expected.retain(|entry| *entry != next);
            }
        }
    }
}
