//! What runs on top of the kernel: one process that makes system calls.

mod stream;

use nicforge_platform::Addr;
use nicforge_units::Cycles;

pub use stream::{Direction, Stream};

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
}

impl AnyProcess {
    /// The next call, after the last one ended.
    pub fn next(&mut self, last: Outcome) -> Call {
        match self {
            AnyProcess::Stream(process) => process.next(last),
        }
    }

    /// `bytes` of a connection's stream, from place `place` on, came to the process. Returns
    /// whether they are what the peer sent.
    pub fn is_right(&self, connection: usize, place: u64, bytes: &[u8]) -> bool {
        match self {
            AnyProcess::Stream(_) => pattern_matches(connection, place, bytes),
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

fn pattern_matches(_connection: usize, place: u64, bytes: &[u8]) -> bool {
    thread_local! {
        static PATTERN: Vec<u8> = pattern();
    }
    PATTERN.with(|pattern| {
        let mut at = (place % PATTERN_BYTES as u64) as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = rest.len().min(PATTERN_BYTES - at);
            if rest[..len] != pattern[at..at + len] {
                return false;
            }
            rest = &rest[len..];
            at = 0;
        }
        true
    })
}
