//! The end of a connection: FIN both ways, TIME-WAIT (RFC 1337, RFC 6191), aborts.

use nicforge_units::Time;

use super::emit::Reset;
use super::output::Push;
use super::{Connection, ConnectionError, State};
use crate::fast::FlowFlags;
use crate::segment::{Flags, Header};

/// Whether the connection ended in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Now,
    Not,
}

impl Connection {
    /// The application sends no more (`shutdown(SHUT_WR)`).
    pub fn shut_write(&mut self, now: Time) {
        let next = match self.state {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            State::SynSent => {
                self.end(None);
                return;
            }
            _ => return,
        };
        if self.flow.has(FlowFlags::CLOSING) {
            return;
        }
        self.flow.set(FlowFlags::CLOSING, true);
        if self.state == State::SynReceived {
            // The FIN waits for the handshake.
            return;
        }
        self.state = next;
        self.tx.push = true;
        self.push(Push::Everything);
        let _ = now;
    }

    /// The application takes no more data (`shutdown(SHUT_RD)`).
    pub fn shut_read(&mut self) {
        self.rx.shut = true;
    }

    /// The application closes its last handle. Unread data resets the connection (RFC 9293 section 3.6.1).
    pub fn close(&mut self, now: Time) {
        let unread = self.flow.rx_waiting() > 0;
        self.orphan = true;
        self.rx.shut = true;
        match self.state {
            State::Closed => {}
            State::SynSent => self.end(None),
            _ if unread => self.abort(),
            _ => {
                self.shut_write(now);
                if self.state == State::FinWait2 {
                    self.timers.life = Some(now + self.tuning.fin_wait.min(self.config.fin_wait));
                }
            }
        }
    }

    /// Resets the connection.
    pub fn abort(&mut self) {
        let synchronized = self.state.is_synchronized() && self.state != State::TimeWait;
        if synchronized || self.state == State::SynReceived {
            self.reset = Some(Reset { seq: self.next(), ack: Some(self.expected()) });
        }
        self.end(None);
    }

    /// Ends without a word; an RST that is due still goes out.
    pub(crate) fn end(&mut self, error: Option<ConnectionError>) {
        self.state = State::Closed;
        self.error = self.error.or(error);
        self.timers = super::Timers::default();
        self.tx.sent.clear();
        self.tx.burst = None;
        self.tx.pending = None;
        self.tx.paced_waits = false;
        self.flow.set(FlowFlags::FAST, false);
    }

    /// An RST as a closed port would answer `header`.
    pub(crate) fn answer_with_reset(&mut self, header: &Header) {
        if header.flags.has(Flags::RST) {
            return;
        }
        self.reset = Some(if header.flags.has(Flags::ACK) {
            Reset { seq: header.ack, ack: None }
        } else {
            Reset { seq: crate::seq::Seq(0), ack: Some(header.end()) }
        });
    }

    /// Goes on where our FIN has been acknowledged.
    pub(crate) fn after_fin_acked(&mut self, now: Time) -> Gone {
        if !self.is_fin_acked() {
            return Gone::Not;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.orphan {
                    self.timers.life = Some(now + self.tuning.fin_wait.min(self.config.fin_wait));
                }
            }
            State::Closing => self.enter_time_wait_now(now),
            State::LastAck => {
                self.end(None);
                return Gone::Now;
            }
            _ => {}
        }
        Gone::Not
    }

    /// Marks the state; the timer starts with [`Connection::start_time_wait`].
    pub(crate) fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        self.timers.main = None;
        self.tx.pending = None;
        self.flow.set(FlowFlags::FAST, false);
    }

    fn enter_time_wait_now(&mut self, now: Time) {
        self.enter_time_wait();
        self.start_time_wait(now);
    }

    pub(crate) fn start_time_wait(&mut self, now: Time) {
        self.timers.life = Some(now + self.config.time_wait);
    }

    /// A segment in TIME-WAIT: acknowledged again; RST is ignored (RFC 1337 section 5, fix F1).
    pub(crate) fn on_segment_time_wait(&mut self, header: &Header, now: Time) {
        if header.flags.has(Flags::RST) {
            return;
        }
        let in_order = header.seq == self.expected() && header.seq_len() == 0;
        if in_order && header.flags.has(Flags::ACK) {
            return;
        }
        if header.flags.has(Flags::ACK) {
            self.start_time_wait(now);
        }
        self.ack_now();
    }

    /// Whether a SYN may replace the connection in TIME-WAIT: a later number or a later clock (RFC 6191).
    pub fn may_be_reopened_by(&self, header: &Header) -> bool {
        let plain = header.flags.has(Flags::SYN) && !header.flags.any(Flags(Flags::RST.0 | Flags::ACK.0));
        if self.state != State::TimeWait || !plain {
            return false;
        }
        let later_clock = header.options.timestamps.filter(|_| self.rx.has_ts && self.agreed.timestamps);
        match later_clock {
            Some(clock) => (clock.value.wrapping_sub(self.flow.protocol.next_ts) as i32) > 0,
            None => header.seq.after(self.expected()),
        }
    }

    /// An ICMP error about a segment of ours (RFC 5927: only inside the window, and hard errors are soft once open).
    pub fn on_icmp_error(&mut self, seq: crate::seq::Seq, error: ConnectionError) {
        if !seq.between(self.una(), self.tx.highest) {
            return;
        }
        if self.state.is_synchronized() {
            self.soft_error = Some(error);
        } else {
            self.end(Some(error));
        }
    }
}
