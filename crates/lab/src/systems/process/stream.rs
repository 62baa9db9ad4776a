//! Streams as fast as they go, over one or several connections in turn (netperf's TCP stream and
//! maerts; integrated_nic, section 4.2.1).

use nicforge_platform::Addr;
use nicforge_units::Cycles;

use super::{Call, Outcome, Share};

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This process writes.
    Out,
    /// This process reads.
    In,
}

/// One process that writes or reads in turn.
#[derive(Debug)]
pub struct Stream {
    direction: Direction,
    share: Share,
    current: usize,
    /// Buffers side by side, one for each call in turn, as netperf has them.
    buffers: Addr,
    count: u64,
    calls: u64,
    /// Bytes of one call.
    len: u64,
    /// Its own work for each call.
    work: Cycles,
}

impl Stream {
    /// Over the connections of `share`, with calls of `len` bytes at `buffers`, as many as netperf has for sockets of
    /// `socket` bytes.
    pub fn new(direction: Direction, share: Share, buffers: Addr, len: u64, socket: u64, work: Cycles) -> Stream {
        let count = Stream::memory_bytes(len, socket) / len;
        Stream { direction, share, current: share.process, buffers, count, calls: 0, len, work }
    }

    /// Bytes of the buffers: as many as fit what Linux says that a socket has, which is twice what was asked for, and one
    /// (netperf 2.4: `send_width`, `recv_width`). Linux takes at most a byte less than 256 KiB here, so none fits exactly.
    pub fn memory_bytes(len: u64, socket: u64) -> u64 {
        (2 * socket).div_ceil(len).max(2) * len
    }

    /// The next call.
    pub fn next(&mut self, last: Outcome) -> Call {
        match last {
            Outcome::Sent(_) | Outcome::Received(_) => {
                self.current = self.share.after(self.current);
                return Call::Compute(self.work);
            }
            _ => {}
        }
        let (connection, len) = (self.current, self.len);
        let buffer = self.buffers + self.calls % self.count * len;
        self.calls += 1;
        match self.direction {
            Direction::Out => Call::Send { connection, from: buffer, len, gives_way: false },
            Direction::In => Call::Receive { connection, to: buffer, len, all: false },
        }
    }
}
