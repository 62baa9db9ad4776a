//! What runs on top of the kernel: one process that makes system calls.

mod content;
mod iscsi;
mod stream;
mod web;

use nicforge_platform::Addr;
use nicforge_units::Cycles;

pub use content::Way;
pub use iscsi::{Initiator, Target};
pub use stream::{Direction, Stream};
pub use web::{Clients, Files, REQUEST_ROOM, Server};

/// Which of a system's connections are a process's: every n-th.
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
    /// Writes `len` bytes to a connection, whatever its stream has next, by the memory at `from`;
    /// waits until all are in the socket's buffer.
    Send {
        /// The connection's number.
        connection: usize,
        /// Where the bytes are.
        from: Addr,
        /// How many.
        len: u64,
        /// Whether it ends before that when there is no room for more, and something to read.
        gives_way: bool,
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
}
