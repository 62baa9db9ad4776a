//! The common case of a connection: the fast path changes the flow, the slow path's books follow.
//!
//! A segment that the fast path takes has exactly the effect that the general path would have; a test runs both.

use nicforge_units::Time;

use super::ack::Round;
use super::output::Push;
use super::{CaState, Connection, Placement, State};
use crate::fast::{Outcome, Summary, receive};
use crate::segment::{Ecn, Flags, Header};
use crate::seq::Seq;

impl Connection {
    /// Whether nothing is going on that only the general path knows.
    fn is_predictable(&self, header: &Header) -> bool {
        self.config.fast_path
            && self.state == State::Established
            && self.rec.ca == CaState::Open
            && !self.goes_back_n()
            && self.rec.probe_high.is_none()
            && self.rx.intervals.is_empty()
            && !header.flags.any(Flags(Flags::ECE.0 | Flags::CWR.0))
            && header.payload_len <= self.window_offered()
            && self.rx.fin_at.is_none()
            && !self.rx.shut
            && self.tx.probes_out == 0
            && self.tx.sent.sacked_out + self.tx.sent.lost_out == 0
    }

    /// Lets the fast path try. The outer answer is whether it took the segment.
    pub(crate) fn on_segment_predicted(&mut self, header: &Header, ecn: Ecn, now: Time) -> Option<Option<Placement>> {
        let marks = ecn == Ecn::Marked || self.rx.last_marked || self.rx.echo_mark;
        if !self.is_predictable(header) || (self.agreed.ecn && marks) {
            return None;
        }
        let clock = self.flow.protocol.next_ts;
        let una = self.una();
        let window = self.flow.protocol.remote_win;
        let Outcome::Done(done) = receive(&mut self.flow, &Summary::new(header, ecn)) else { return None };
        self.rx.last_segment_at = now;
        if header.seq.after(self.rx.last_ack_sent) {
            // RFC 7323 section 4.3: the clock of a segment whose predecessor is not acknowledged yet is not echoed.
            self.flow.protocol.next_ts = clock;
        } else if self.agreed.timestamps {
            self.rx.ts_recent_at = now;
        }
        let offered = self.flow.protocol.remote_win;
        if self.sets_window(done.tx_bump > 0, header.seq, offered, window) {
            self.tx.wl1 = header.seq;
        } else {
            self.flow.protocol.remote_win = window;
        }
        self.tx.window_most = self.tx.window_most.max(self.flow.protocol.remote_win);
        let mut round = Round {
            prior_una: una,
            prior_delivered: self.counters.delivered,
            prior_in_flight: self.tx.sent.in_flight(),
            prior_sack_high: self.rec.sack_high,
            with_data: header.seq_len() > 0,
            window_update: window != self.flow.protocol.remote_win,
            advanced: done.tx_bump > 0,
            ..Round::default()
        };
        if done.tx_bump > 0 {
            self.tx.retransmits = 0;
            self.after_acknowledged();
            self.acknowledge_records(Seq(header.ack.0), &mut round, header, now);
            self.after_ack(&mut round, header, now);
        } else if self.tx.sent.is_empty() {
            self.after_probe_ack(now);
        } else {
            self.after_ack(&mut round, header, now);
        }
        if done.rx_bump > 0 {
            self.counters.data_segments_in += 1;
            self.counters.bytes_received += u64::from(done.rx_bump);
            self.note_data(done.rx_bump, header.flags.has(Flags::PSH), now);
        }
        self.push(Push::Usual);
        self.consider_ack(now);
        Some(done.store)
    }
}
