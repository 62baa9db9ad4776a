//! A segment arrives: the checks of RFC 9293 section 3.10.7.4 with RFC 5961 and RFC 7323, then its parts in order.

use nicforge_units::Time;

use super::ack::Verdict;
use super::close::Gone;
use super::{Connection, ConnectionError, Placement, State};
use crate::segment::{Ecn, Flags, Header};
use crate::seq::Span;

/// A clock of the peer older than this says nothing (RFC 7323 section 5.5).
pub(crate) const CLOCK_OLD: Time = Time::from_ms(24 * 24 * 3600 * 1000);

impl Connection {
    /// Takes a segment that belongs to this connection. Its checksum is right. The caller copies the payload as the
    /// answer says, before it calls anything else.
    pub fn on_segment(&mut self, header: &Header, ecn: Ecn, now: Time) -> Option<Placement> {
        self.counters.segments_in += 1;
        if let Some(placement) = self.on_segment_predicted(header, ecn, now) {
            self.counters.predicted += 1;
            return placement;
        }
        match self.state {
            State::Closed => None,
            State::SynSent => self.on_segment_syn_sent(header, now),
            State::TimeWait => {
                self.on_segment_time_wait(header, now);
                None
            }
            _ => self.on_segment_synchronized(header, ecn, now),
        }
    }

    fn on_segment_synchronized(&mut self, header: &Header, ecn: Ecn, now: Time) -> Option<Placement> {
        self.rx.last_segment_at = now;
        if !header.flags.any(Flags(Flags::ACK.0 | Flags::RST.0 | Flags::SYN.0)) {
            return None;
        }
        if !self.is_valid(header, now) {
            return None;
        }
        if !header.flags.has(Flags::ACK) {
            return None;
        }
        if self.state == State::SynReceived && !self.complete_passive(header, now) {
            return None;
        }
        self.note_ecn(header, ecn);
        if let Verdict::Drop = self.process_ack(header, now) {
            return None;
        }
        if let Gone::Now = self.after_fin_acked(now) {
            return None;
        }
        self.note_urgent(header);
        let placement = self.take_data(header, now);
        if self.state == State::TimeWait {
            self.start_time_wait(now);
        }
        self.push(super::output::Push::Usual);
        self.consider_ack(now);
        placement
    }

    fn take_data(&mut self, header: &Header, now: Time) -> Option<Placement> {
        if !self.state.takes_data() {
            // Behind a FIN nothing counts; a FIN or data again wants its acknowledgment again.
            if header.seq_len() > 0 {
                self.note_duplicate(Span::new(header.seq, header.end()));
                self.enter_quick();
                self.ack.scheduled = true;
            }
            return None;
        }
        if self.rx.shut && self.orphan && header.payload_len > 0 {
            let data_end = header.seq + header.payload_len;
            if data_end.after(self.expected()) {
                // RFC 9293 section 3.6.1: data for an application that has gone resets the connection.
                self.answer_with_reset(header);
                self.end(Some(ConnectionError::Aborted));
                return None;
            }
        }
        self.receive_data(header, now)
    }

    /// Clock, sequence number, RST and SYN. What fails is answered as the RFCs say.
    fn is_valid(&mut self, header: &Header, now: Time) -> bool {
        let flags = header.flags;
        if self.is_old_by_clock(header, now) && !flags.has(Flags::RST) {
            self.counters.paws_drops += 1;
            self.answer_invalid(header, now);
            return false;
        }
        if !self.is_in_window(header) {
            if flags.has(Flags::RST) {
                return false;
            }
            self.counters.outside_window += 1;
            if flags.has(Flags::SYN) {
                self.challenge(now);
            } else {
                self.answer_invalid(header, now);
            }
            return false;
        }
        if flags.has(Flags::RST) {
            self.on_reset(header, now);
            return false;
        }
        let crossing = self.state == State::SynReceived && flags.has(Flags::ACK);
        if flags.has(Flags::SYN) && !crossing {
            // RFC 5961 section 4: never a reason to reset.
            self.challenge(now);
            return false;
        }
        true
    }

    fn is_in_window(&self, header: &Header) -> bool {
        let right = self.expected() + self.window_offered();
        !header.end().before(self.rx.window_at.min(self.expected())) && !header.seq.after(right)
    }

    /// PAWS (RFC 7323 section 5): the clock goes back, and not because it is long ago.
    fn is_old_by_clock(&self, header: &Header, now: Time) -> bool {
        let Some(clock) = header.options.timestamps.filter(|_| self.agreed.timestamps && self.rx.has_ts) else {
            return false;
        };
        let back = self.flow.protocol.next_ts.wrapping_sub(clock.value) as i32;
        if back <= 0 || now.saturating_sub(self.rx.ts_recent_at) >= CLOCK_OLD {
            return false;
        }
        // A pure acknowledgment that a reordering overtook by less than a timeout is harmless.
        let pure = header.payload_len == 0 && !header.flags.any(Flags(Flags::SYN.0 | Flags::FIN.0));
        let current = header.seq == self.expected() && header.ack == self.una();
        let slack = (super::rtt::micros(self.rtt.rto()) / 1000) as i32;
        !(pure && current && back <= slack)
    }

    fn on_reset(&mut self, header: &Header, now: Time) {
        let after_sack = self.rx.intervals.end().is_some_and(|end| end == header.seq);
        // After the peer's FIN its RST may carry the number of the FIN.
        let at_fin = self.rx.fin_at == Some(header.seq) && !self.state.takes_data();
        if header.seq != self.expected() && !after_sack && !at_fin {
            self.challenge(now);
            return;
        }
        let error = match self.state {
            State::SynReceived => ConnectionError::Refused,
            State::CloseWait => ConnectionError::Pipe,
            _ => ConnectionError::Reset,
        };
        self.end(Some(error));
    }

    /// A challenge acknowledgment (RFC 5961), at a limited rate.
    pub(crate) fn challenge(&mut self, now: Time) {
        if self.may_answer_invalid(now) {
            self.counters.challenges += 1;
            self.ack_now();
        }
    }

    fn may_answer_invalid(&mut self, now: Time) -> bool {
        let interval = self.config.invalid_ack_interval;
        if self.rx.invalid_acked_at.is_some_and(|at| now.saturating_sub(at) < interval) {
            return false;
        }
        self.rx.invalid_acked_at = Some(now);
        true
    }

    /// An acknowledgment for what is old or outside the window.
    fn answer_invalid(&mut self, header: &Header, now: Time) {
        if header.payload_len == 0 && !self.may_answer_invalid(now) {
            return;
        }
        if header.seq_len() > 0 && header.seq.before(self.expected()) {
            self.enter_quick();
            let end = header.end().min(self.expected());
            self.note_duplicate(Span::new(header.seq, end));
        }
        self.ack_now();
    }

    /// Congestion marks of the network and the peer's answer to our echo (RFC 3168 section 6.1.3, RFC 8257).
    fn note_ecn(&mut self, header: &Header, ecn: Ecn) {
        if !self.agreed.ecn {
            return;
        }
        if header.flags.has(Flags::CWR) {
            self.rx.echo_mark = false;
            // RFC 5681: the peer halved its window and wants to see it acknowledged.
            if header.payload_len > 0 {
                self.ack.urgent = true;
            }
        }
        if header.payload_len == 0 {
            return;
        }
        let marked = ecn == Ecn::Marked;
        if self.control.wants_ecn() {
            if marked != self.rx.last_marked {
                // DCTCP: each acknowledgment covers segments of one kind only (RFC 8257 section 3.2).
                if self.ack.scheduled {
                    self.ack_now();
                }
                self.ack.urgent = true;
            }
            self.rx.last_marked = marked;
            self.rx.echo_mark = marked;
        } else if marked {
            self.rx.echo_mark = true;
            self.ack.urgent = true;
        }
        self.rx.marks_seen |= marked;
    }
}
