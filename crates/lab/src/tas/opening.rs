//! Connections that clients open: so many handshakes at a time, as a program does that counts its pending connects.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use nicforge_tcp::conn::{State, Tuning};
use nicforge_tcp::stack::{ConnectionId, Stack};
use nicforge_units::Time;

use super::rings::Rings;

/// An end that a connection goes to.
pub type Remote = (Ipv4Addr, u16);

/// Connections that are to be opened, and those whose handshake is under way.
#[derive(Debug)]
pub struct Opening {
    most: usize,
    waiting: VecDeque<(u16, Remote)>,
    under_way: Vec<ConnectionId>,
}

impl Opening {
    /// At most `most` handshakes at a time.
    pub fn new(most: usize) -> Opening {
        Opening { most, waiting: VecDeque::new(), under_way: Vec::new() }
    }

    /// A connection is to be opened from `port` to `remote`.
    pub fn add(&mut self, port: u16, remote: Remote) {
        self.waiting.push_back((port, remote));
    }

    /// Begins as many handshakes from `address` as have ended since the last call, by opening or by failing.
    pub fn go_on(&mut self, stack: &mut Stack<Rings>, address: Ipv4Addr, tuning: &Tuning, now: Time) {
        if self.waiting.is_empty() {
            return;
        }
        let opens = |id: &ConnectionId| {
            let state = stack.connection(*id).map(|connection| connection.state());
            matches!(state, Some(State::SynSent | State::SynReceived))
        };
        self.under_way.retain(opens);
        while self.under_way.len() < self.most
            && let Some((port, (to, to_port))) = self.waiting.pop_front()
        {
            // All hosts are neighbours, ports and rings are there for each.
            let id = stack.connect((Some(address.into()), port), (to.into(), to_port), tuning.clone(), now);
            self.under_way.extend(id);
        }
    }
}
