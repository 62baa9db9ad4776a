//! Connections that close without an owner.

use std::collections::VecDeque;

use nicforge_tcp::ring::Buffers;
use nicforge_tcp::stack::{ConnectionId, Stack};

/// Connections that close without an owner, TIME-WAIT included. Beyond it the oldest are reset, as Linux does beyond
/// `tcp_max_orphans` and `tcp_max_tw_buckets`.
pub const ORPHANS: usize = 65_536;

/// Released connections, of which there may be only so many.
#[derive(Debug)]
pub struct Orphans {
    /// Oldest first; some may have ended.
    queue: VecDeque<ConnectionId>,
    most: usize,
    /// How many were reset because there were too many.
    pub reset: u64,
}

impl Orphans {
    /// None, and a limit.
    pub fn at_most(most: usize) -> Orphans {
        Orphans { queue: VecDeque::new(), most, reset: 0 }
    }

    /// Notes one more; a sixteenth of too many goes at a time.
    pub fn note<B: Buffers>(&mut self, at: ConnectionId, stack: &mut Stack<B>) {
        self.queue.push_back(at);
        if self.queue.len() <= self.most {
            return;
        }
        self.queue.retain(|at| stack.connection(*at).is_some());
        let many = self.queue.len() > self.most;
        let few = self.most - self.most / 16;
        while many && self.queue.len() > few {
            if let Some(oldest) = self.queue.pop_front() {
                stack.abort(oldest);
                self.reset += 1;
            }
        }
    }
}
