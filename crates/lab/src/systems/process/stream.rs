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
    buffer: Addr,
    /// Bytes of one call.
    len: u64,
    /// Its own work for each call.
    work: Cycles,
}

impl Stream {
    /// Over the connections of `share`, with calls of `len` bytes at `buffer`.
    pub fn new(direction: Direction, share: Share, buffer: Addr, len: u64, work: Cycles) -> Stream {
        Stream { direction, share, current: share.process, buffer, len, work }
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
        match self.direction {
            Direction::Out => Call::Send { connection, from: self.buffer, len, gives_way: false },
            Direction::In => Call::Receive { connection, to: self.buffer, len, all: false },
        }
    }
}
