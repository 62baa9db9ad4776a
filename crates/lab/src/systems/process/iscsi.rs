//! An initiator that keeps several reads outstanding, and the target that answers them from
//! nothing, as iSCSI does it over one connection (integrated_nic, section 4.2.3).

use nicforge_platform::Addr;
use nicforge_units::Cycles;

use super::{Call, Outcome};

/// Basic header segment of a PDU (RFC 3720, section 10.2.1): a request, and what leads an answer.
const HEADER_BYTES: u64 = 48;

/// Reads from the target: as soon as one is complete, the next is asked for.
#[derive(Debug)]
pub struct Initiator {
    /// Where requests lie; what is read goes behind them.
    memory: Addr,
    /// Bytes of one answer.
    answer: u64,
    outstanding: u64,
    asked: u64,
    /// Bytes of the last request that are not written yet.
    left: u64,
    answered: u64,
    /// Its work for a completed read.
    work: Cycles,
}

/// Memory in front of what is read.
const REQUEST_ROOM: u64 = 4096;

impl Initiator {
    /// `outstanding` reads of `bytes` each.
    pub fn new(memory: Addr, bytes: u64, outstanding: u64, work: Cycles) -> Initiator {
        Initiator { memory, answer: HEADER_BYTES + bytes, outstanding, asked: 0, left: 0, answered: 0, work }
    }

    /// Bytes of memory that it needs.
    pub fn memory_bytes(bytes: u64, outstanding: u64) -> u64 {
        REQUEST_ROOM + (HEADER_BYTES + bytes) * outstanding
    }

    /// The next call. It reads before a request is written whole if it must: with many requests and
    /// small buffers, target and initiator would wait for each other.
    pub fn next(&mut self, last: Outcome) -> Call {
        let reads = match last {
            Outcome::Received(_) => {
                self.answered += 1;
                return Call::Compute(self.work);
            }
            Outcome::Sent(bytes) => {
                self.left -= bytes;
                self.left > 0 || self.asked - self.answered >= self.outstanding
            }
            _ => false,
        };
        if reads {
            let place = self.answered % self.outstanding * self.answer;
            return Call::Receive {
                connection: 0,
                to: self.memory + REQUEST_ROOM + place,
                len: self.answer,
                all: true,
            };
        }
        if self.left == 0 {
            self.asked += 1;
            self.left = HEADER_BYTES;
        }
        Call::Send { connection: 0, from: self.memory, len: self.left, gives_way: true }
    }
}

/// Answers each request at once.
#[derive(Debug)]
pub struct Target {
    memory: Addr,
    answer: u64,
}

impl Target {
    /// Answers of `bytes` of data.
    pub fn new(memory: Addr, bytes: u64) -> Target {
        Target { memory, answer: HEADER_BYTES + bytes }
    }

    /// The next call.
    pub fn next(&mut self, last: Outcome) -> Call {
        match last {
            Outcome::Received(_) => Call::Send { connection: 0, from: self.memory, len: self.answer, gives_way: false },
            _ => Call::Receive { connection: 0, to: self.memory + self.answer, len: HEADER_BYTES, all: true },
        }
    }
}
