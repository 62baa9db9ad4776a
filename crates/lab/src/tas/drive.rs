//! A drive behind a server: an answer begins when its data has come from it.

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

/// What one core has asked for.
#[derive(Debug)]
pub struct Reads {
    drive: SharedDrive,
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
    /// Nothing is asked for yet.
    pub fn new(drive: SharedDrive) -> Reads {
        Reads { drive, waiting: VecDeque::new() }
    }

    /// Asks for an answer's `len` bytes.
    pub fn ask(&mut self, flow: FlowName, answer: Message, len: u32, now: Time) {
        let ready = self.drive.borrow_mut().read(len, now);
        self.waiting.push_back(Read { ready, flow, answer });
    }

    /// The next answer that is there.
    pub fn next(&mut self, now: Time) -> Option<Read> {
        self.waiting.front().filter(|waiting| waiting.ready <= now)?;
        self.waiting.pop_front()
    }

    /// When the next one is there.
    pub fn due(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |waiting| waiting.ready)
    }
}
