//! What runs on top of the kernel: one process that makes system calls.

mod iscsi;
mod stream;
mod web;

use std::sync::LazyLock;

use nicforge_platform::Addr;
use nicforge_units::Cycles;

pub use iscsi::{HEADER_BYTES, Initiator, Target};
pub use stream::{Direction, Stream};
pub use web::{Clients, Files, REQUEST_BYTES, Server};

/// Which of a system's connections are a process's: every so manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the process.
    pub process: usize,
    /// Processes.
    pub processes: usize,
    /// Connections of all of them.
    pub connections: usize,
}

impl Share {
    /// The process that connection `number` belongs to.
    pub fn of(number: usize, processes: usize) -> usize {
        number % processes
    }

    /// The connection of this process that follows `number`, the first one again after the last.
    fn after(&self, number: usize) -> usize {
        match number + self.processes {
            next if next < self.connections => next,
            _ => self.process,
        }
    }
}

/// A system call, or work between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Writes `len` bytes at `from` to a connection; waits until all are in the socket's buffer.
    Send {
        /// The connection's number.
        connection: usize,
        /// Where the bytes are.
        from: Addr,
        /// How many.
        len: u64,
    },
    /// Reads up to `len` bytes into `to`; waits for the first of them, or for `all`.
    Receive {
        /// The connection's number.
        connection: usize,
        /// Where the bytes go.
        to: Addr,
        /// How many, at most.
        len: u64,
        /// Whether it waits until there are so many.
        all: bool,
    },
    /// Waits until one of the connections has something to read.
    Select,
    /// Works for itself.
    Compute(Cycles),
    /// Has nothing more to do.
    Exit,
}

/// How the last call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was none: the process begins.
    Begun,
    /// So many bytes were written.
    Sent(u64),
    /// So many bytes were read.
    Received(u64),
    /// This connection has something to read.
    Readable(usize),
    /// The work is done.
    Computed,
}

/// Any process.
#[derive(Debug)]
pub enum AnyProcess {
    /// Sends or receives streams as fast as it can.
    Stream(Stream),
    /// Keeps reads of a target outstanding.
    Initiator(Initiator),
    /// Answers these.
    Target(Target),
    /// Serves files.
    Server(Box<Server>),
    /// Ask for these.
    Clients(Box<Clients>),
    /// There is none: the kernel forwards.
    None,
}

impl AnyProcess {
    /// The next call, after the last one ended.
    pub fn next(&mut self, last: Outcome) -> Call {
        match self {
            AnyProcess::Stream(process) => process.next(last),
            AnyProcess::Initiator(process) => process.next(last),
            AnyProcess::Target(process) => process.next(last),
            AnyProcess::Server(process) => process.next(last),
            AnyProcess::Clients(process) => process.next(last),
            AnyProcess::None => Call::Exit,
        }
    }

    /// Whether `bytes` of a connection's stream, from place `place` on, are what the peer sent.
    pub fn is_right(&self, place: u64, bytes: &[u8]) -> bool {
        match self {
            AnyProcess::Stream(process) => pattern_matches(process.message(), place, bytes),
            AnyProcess::Initiator(process) => pattern_matches(process.message(), place, bytes),
            AnyProcess::Target(_) => pattern_matches(HEADER_BYTES, place, bytes),
            AnyProcess::Clients(_) | AnyProcess::None => true,
            AnyProcess::Server(_) => pattern_matches(REQUEST_BYTES, place, bytes),
        }
    }
}

/// Bytes after which what a process sends repeats.
pub const PATTERN_BYTES: usize = 16384;

/// The byte at `place` of what processes send: a fixed disorder, in which a byte out of its place
/// is noticed.
pub fn pattern() -> Vec<u8> {
    let byte = |place: usize| {
        let mixed = (place as u32).wrapping_mul(0x9e37_79b9);
        (mixed >> 24) as u8 ^ (mixed >> 11) as u8
    };
    (0..PATTERN_BYTES).map(byte).collect()
}

/// Whether `bytes` stand at `place` of a stream of messages of `message` bytes, each of which is
/// the beginning of the pattern.
fn pattern_matches(message: u64, place: u64, bytes: &[u8]) -> bool {
    static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(pattern);
    let mut at = place % message;
    let mut rest = bytes;
    while !rest.is_empty() {
        let here = (at % PATTERN_BYTES as u64) as usize;
        let room = (PATTERN_BYTES - here).min((message - at) as usize);
        let len = rest.len().min(room);
        if rest[..len] != PATTERN[here..here + len] {
            return false;
        }
        rest = &rest[len..];
        at = (at + len as u64) % message;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_out_of_its_place_is_noticed() {
        let message = [&pattern()[..], &pattern()[..100]].concat();
        let stream = [&message[..], &message[..]].concat();
        let len = message.len() as u64;
        for place in [0, 77, 16_380, 16_480, 16_484, 20_000] {
            let bytes = &stream[place..place + 2000];
            assert!(pattern_matches(len, place as u64, bytes), "{place}");
            for shift in [1, 48, 1460] {
                assert!(
                    !pattern_matches(len, place as u64 + shift, bytes),
                    "{place} {shift}"
                );
            }
        }
    }
}
