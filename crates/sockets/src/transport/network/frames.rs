//! Frames between port and stack, with TLS, faults and observers on their way.

use nicforge_tcp::stack::Stack;

use super::Network;
use crate::transport::pages::PagedBuffers;
use crate::transport::{Event, figures};
use crate::watch::frame::Seen;

/// Frames taken from the port before the stack's answers leave.
const BUDGET: usize = 64;
/// The longest segment that comes uncut from a sender on this machine.
const LONGEST: usize = 65_535;

impl Network {
    pub(super) fn receive_frames(&mut self) -> bool {
        self.took = 0;
        let expects_none = std::mem::take(&mut self.expects_none);
        // Who looks at single frames has them as on a wire.
        let whole = self.watch.is_empty() && self.secure.is_empty() && self.loss.is_none();
        let (stack, watch, secure, now) = (&mut self.stack, &mut self.watch, &mut self.secure, self.now);
        let mut receive = |stack: &mut Stack<PagedBuffers>, frame: &[u8]| {
            if secure.is_empty() { stack.receive(frame, now) } else { secure.come(frame, stack, now) }
        };
        let loss = &mut self.loss;
        let mut each = |frame: &[u8], is_copy: bool| {
            if loss.loses() {
                return;
            }
            if watch.is_empty() || is_copy {
                return receive(stack, frame);
            }
            let tuple = Seen::parse(frame).incoming();
            let before = figures::traced(stack, tuple, now);
            receive(stack, frame);
            watch.came(frame, now, &before, &figures::traced(stack, tuple, now));
        };
        let letters = self.mail.as_ref().map_or_else(Vec::new, |mail| mail.take());
        letters.iter().for_each(|letter| each(&letter.frame, letter.is_copy));
        if expects_none {
            return !letters.is_empty();
        }
        let received = match &mut self.mail {
            None if whole => {
                let (stack, now) = (&mut self.stack, self.now);
                self.port.receive_unfinished(BUDGET, LONGEST, &mut |frame, left| match left.l4_checksum {
                    true => stack.receive_begun(frame, now),
                    false => stack.receive(frame, now),
                })
            }
            None => self.port.receive(BUDGET, &mut |frame| each(frame, false)),
            Some(mail) => self.port.receive(BUDGET, &mut |frame| {
                if mail.keeps(frame) {
                    each(frame, false);
                }
            }),
        };
        self.port_errors += u64::from(received.is_err());
        self.took = received.unwrap_or(0);
        self.took > 0 || !letters.is_empty()
    }

    /// Records on their way, acknowledgments of them, connections that ended.
    pub(super) fn turn_secure(&mut self) {
        if self.secure.is_empty() {
            return;
        }
        let (ids, events) = (&self.ids, &mut self.events);
        self.secure.turn(&mut self.stack, self.now, |at| events.extend(ids.get(&at).map(|id| Event::Writable(*id))));
    }

    pub(super) fn send_frames(&mut self) {
        let mut any = false;
        while let Some(len) = self.stack.transmit(self.now, &mut self.frame) {
            any = true;
            if !self.watch.is_empty() {
                let tuple = Seen::parse(&self.frame[..len]).outgoing();
                self.watch.goes(&self.frame[..len], self.now, &figures::traced(&self.stack, tuple, self.now));
            }
            let (port, loss, errors, now) = (&mut self.port, &mut self.loss, &mut self.port_errors, self.now);
            self.secure.leave(&self.frame[..len], |frame| {
                *errors += u64::from(!loss.loses() && port.send(frame, now).is_err());
            });
        }
        if any && self.port.flush().is_err() {
            self.port_errors += 1;
        }
    }
}
