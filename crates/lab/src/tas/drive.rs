//! A drive behind a server, in it or in a target: an answer begins when its data has come.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use nicforge_units::{BitRate, Bytes, Time};

use super::app::FlowName;
use super::message::Message;

/// A drive that all of a server's cores read.
pub type SharedDrive = Rc<RefCell<Drive>>;

/// One read after the other at the drive's rate, each later by its latency.
#[derive(Debug)]
pub struct Drive {
    rate: BitRate,
    latency: Time,
    free_at: Time,
}

/// An answer whose data is on its way.
#[derive(Debug)]
pub struct Read {
    ready: Time,
    /// The connection that it leaves by.
    pub flow: FlowName,
    /// The answer.
    pub answer: Message,
}

/// Who is asked for data.
#[derive(Debug)]
enum Asked {
    Drive(SharedDrive),
    /// A target, which answers in order, by a connection of the application's own.
    Target {
        depth: usize,
        connection: Option<FlowName>,
        /// Reads that it has not been asked for.
        unasked: VecDeque<Read>,
        /// How many of those that it was asked for have come.
        come: usize,
    },
}

/// What one core has asked for.
#[derive(Debug)]
pub struct Reads {
    asked: Asked,
    waiting: VecDeque<Read>,
}

impl Drive {
    /// An idle drive.
    pub fn new(rate: BitRate, latency: Time) -> SharedDrive {
        Rc::new(RefCell::new(Drive { rate, latency, free_at: Time::ZERO }))
    }

    /// When a read of `len` bytes that is asked for at `now` is there.
    fn read(&mut self, len: u32, now: Time) -> Time {
        self.free_at = self.free_at.max(now) + self.rate.time_for(Bytes(len.into()));
        self.free_at + self.latency
    }
}

impl Reads {
    /// Nothing is asked of `drive` yet.
    pub fn of_drive(drive: SharedDrive) -> Reads {
        Reads { asked: Asked::Drive(drive), waiting: VecDeque::new() }
    }

    /// Nothing is asked of a target yet, which gets `depth` reads at a time.
    pub fn of_target(depth: u32) -> Reads {
        let (connection, unasked) = (None, VecDeque::new());
        let asked = Asked::Target { depth: depth as usize, connection, unasked, come: 0 };
        Reads { asked, waiting: VecDeque::new() }
    }

    /// Asks for an answer's `len` bytes; a target is asked when it is its turn.
    pub fn ask(&mut self, flow: FlowName, answer: Message, len: u32, now: Time) {
        match &mut self.asked {
            Asked::Drive(drive) => {
                let ready = drive.borrow_mut().read(len, now);
                self.waiting.push_back(Read { ready, flow, answer });
            }
            Asked::Target { unasked, .. } => unasked.push_back(Read { ready: Time::NEVER, flow, answer }),
        }
    }

    /// The connection to the target is open.
    pub fn connected(&mut self, flow: FlowName) {
        if let Asked::Target { connection, .. } = &mut self.asked {
            *connection = Some(flow);
        }
    }

    /// The connection by which the target is to be asked, if there is a read that it can take.
    pub fn to_ask(&self) -> Option<FlowName> {
        let Asked::Target { depth, connection, unasked, come } = &self.asked else { return None };
        connection.filter(|_| !unasked.is_empty() && self.waiting.len() - come < *depth)
    }

    /// The target is asked, by its request `number`.
    pub fn asks(&mut self, number: u64) {
        if let Asked::Target { unasked, .. } = &mut self.asked
            && let Some(mut read) = unasked.pop_front()
        {
            read.answer.file = number;
            self.waiting.push_back(read);
        }
    }

    /// The next read that the target was asked for has come.
    pub fn came(&mut self, now: Time) {
        if let Asked::Target { come, .. } = &mut self.asked
            && let Some(read) = self.waiting.get_mut(*come)
        {
            read.ready = now;
            *come += 1;
        }
    }

    /// The next answer that is there.
    pub fn next(&mut self, now: Time) -> Option<Read> {
        self.waiting.front().filter(|waiting| waiting.ready <= now)?;
        if let Asked::Target { come, .. } = &mut self.asked {
            *come -= 1;
        }
        self.waiting.pop_front()
    }

    /// When the next one is there.
    pub fn due(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |waiting| waiting.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_gets_as_many_reads_as_its_queue_holds() {
        let (mut reads, flow) = (Reads::of_target(2), FlowName::new(0, 7));
        (0..3).for_each(|number| reads.ask(flow, Message::new(0, number), 4096, Time::ZERO));
        assert_eq!(reads.to_ask(), None, "it is not connected");
        reads.connected(FlowName::new(0, 0));
        for number in [40, 41] {
            assert_eq!(reads.to_ask(), Some(FlowName::new(0, 0)));
            reads.asks(number);
        }
        assert_eq!((reads.to_ask(), reads.due()), (None, Time::NEVER));
        assert!(reads.next(Time::from_us(1)).is_none());
        reads.came(Time::from_us(2));
        assert!(reads.to_ask().is_some(), "one has come");
        let read = reads.next(Time::from_us(2)).unwrap();
        assert_eq!((read.flow, read.answer.number, read.answer.file), (flow, 0, 40));
        reads.asks(42);
        assert!(reads.next(Time::from_us(3)).is_none() && reads.to_ask().is_none());
    }
}
