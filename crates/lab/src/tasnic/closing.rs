//! Connections that close: the NIC exchanges FINs, the slow path sees that both ends are done, lets the NIC answer for
//! the connection a while, takes it away and uses its number and rings again. A client opens another instead.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use nicforge_tcp::fast::FlowFlags;
use nicforge_tcp::segment::{Flags, Header};
use nicforge_tcp::stack::ConnectionId;
use nicforge_units::Time;

use super::slow::SlowPath;
use super::slow_queues::Command;
use super::stages::key_of;
use crate::tas::rings::Rings;

/// Between two looks whether the NIC has let go of a connection.
const LOOK_EVERY: Time = Time::from_us(20);

/// A connection that the NIC has, by its number.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    /// The stack's connection, which only keeps its ports now.
    id: ConnectionId,
    /// Both ends have closed.
    is_closed: bool,
    /// The NIC was told to take it away.
    is_leaving: bool,
}

/// The numbers of connections on the NIC, and those that are about to become free.
#[derive(Debug, Default)]
pub struct Numbers {
    used: BTreeMap<u32, Numbered>,
    free: Vec<u32>,
    /// Connections that each number has had.
    had: Vec<u16>,
    /// Closed on both ends, and when the NIC forgets them.
    lingering: VecDeque<(Time, u32)>,
    /// Taken away, and when to look whether the NIC has let go.
    leaving: VecDeque<(Time, u32)>,
    /// Of connections that open here: the last port, the first, and the other end.
    ports: Option<(u16, u16, (Ipv4Addr, u16))>,
}

impl Numbers {
    /// A number for the stack's connection `id`, and how many had it before.
    pub fn take(&mut self, id: ConnectionId) -> (u32, u16) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.had.push(0);
            self.had.len() as u32 - 1
        });
        let had = &mut self.had[number as usize];
        let others = std::mem::replace(had, had.wrapping_add(1));
        self.used.insert(number, Numbered { id, is_closed: false, is_leaving: false });
        (number, others)
    }

    /// A connection opens here, from `port`.
    pub fn opened(&mut self, port: u16, remote: (Ipv4Addr, u16)) {
        let first = self.ports.map_or(port, |(_, first, _)| first);
        self.ports = Some((port, first, remote));
    }

    /// Both ends of connection `number` have closed: it goes at `at`.
    pub fn linger(&mut self, number: u32, at: Time) {
        if let Some(numbered) = self.used.get_mut(&number)
            && !std::mem::replace(&mut numbered.is_closed, true)
        {
            self.lingering.push_back((at, number));
        }
    }

    /// Whether the NIC was told to take connection `number` away.
    pub fn is_leaving(&self, number: u32) -> bool {
        self.used.get(&number).is_some_and(|numbered| numbered.is_leaving)
    }

    /// When something is to be done.
    pub fn due(&self) -> Time {
        let first = |queue: &VecDeque<(Time, u32)>| queue.front().map_or(Time::NEVER, |(at, _)| *at);
        first(&self.lingering).min(first(&self.leaving))
    }

    /// The next port of a connection that opens here.
    fn next_port(&mut self) -> Option<(u16, (Ipv4Addr, u16))> {
        let (last, first, remote) = self.ports?;
        let port = last.checked_add(1).unwrap_or(first);
        self.ports = Some((port, first, remote));
        Some((port, remote))
    }
}

fn take_due(queue: &mut VecDeque<(Time, u32)>, now: Time) -> Option<u32> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, number)| number)
}

impl SlowPath {
    /// Takes closed connections away, and opens others.
    pub(super) fn close(&mut self, now: Time, commands: &mut Vec<Command>) {
        while let Some(number) = take_due(&mut self.numbers.lingering, now) {
            if let Some(numbered) = self.numbers.used.get_mut(&number) {
                numbered.is_leaving = true;
                self.control.end(number);
                commands.push(Command::Remove(number));
                self.numbers.leaving.push_back((now + LOOK_EVERY, number));
            }
        }
        while let Some(number) = take_due(&mut self.numbers.leaving, now) {
            let is_free = self.nic.borrow().is_free(number);
            if is_free {
                self.free(number, now);
            } else {
                self.numbers.leaving.push_back((now + LOOK_EVERY, number));
            }
        }
    }

    fn free(&mut self, number: u32, now: Time) {
        let Some(numbered) = self.numbers.used.remove(&number) else { return };
        self.numbers.free.push(number);
        if let Some(tuple) = self.stack.tuple(numbered.id) {
            self.installed.remove(&key_of(&tuple));
        }
        let rings = self.stack.rings(numbered.id).map(|(receive, transmit)| [*receive, *transmit]);
        self.stack.hand_over(numbered.id);
        if let (Some(pages), Some([receive, _])) = (&self.nic.borrow().pages, rings) {
            let all = receive.pieces(0, receive.len);
            all.into_iter().for_each(|piece| pages.borrow_mut().free(piece));
        }
        let Rings { free } = self.stack.buffers_mut();
        free.extend(rings.into_iter().flatten());
        if let Some((port, remote)) = self.numbers.next_port() {
            self.connect(port, remote, now);
        }
    }

    /// A peer that has forgotten the connection answers our FIN with a reset: then it is closed. Returns whether that is
    /// so.
    pub(super) fn reset_while_closing(&mut self, number: u32, header: &Header, now: Time) -> bool {
        let nic = self.nic.borrow();
        let is_closing = nic.flows.get(number as usize).is_some_and(|flow| {
            let ours = flow.state.has(FlowFlags::CLOSING | FlowFlags::PEER_CLOSED);
            ours && !flow.is_gone && header.seq.0 == flow.state.protocol.ack
        });
        drop(nic);
        let is_reset = is_closing && header.flags.has(Flags::RST);
        if is_reset {
            self.numbers.linger(number, now);
        }
        is_reset
    }
}
