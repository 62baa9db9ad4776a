//! What an acknowledgment says: window, data that arrived, round-trip time, and the alarms that it raises.

use nicforge_units::Time;

use super::rtt::micros;
use super::sent::Sent;
use super::{CaState, Connection, Timers};
use crate::congestion::{Ack, Trouble};
use crate::fast::FlowFlags;
use crate::segment::{Flags, Header};
use crate::seq::Seq;

/// Whether the rest of the segment is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    Drop,
}

/// What one acknowledgment did so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    /// It moved the left edge.
    pub advanced: bool,
    /// The segment carries data or a FIN: it is no duplicate (RFC 5681 section 2).
    pub with_data: bool,
    /// It changed the window.
    pub window_update: bool,
    /// It echoes a congestion mark.
    pub marked: bool,
    /// Data, or a SYN, was acknowledged.
    pub acked_data: bool,
    pub acked_syn: bool,
    /// Some of that had been sent more than once.
    pub acked_retransmitted: bool,
    /// Data below the recovery point that was sent once arrived.
    pub original_arrived: bool,
    /// SACK blocks cover new data.
    pub sacked_data: bool,
    /// A duplicate is reported.
    pub dsack: bool,
    /// The duplicate is that of a tail loss probe.
    pub dsack_of_probe: bool,
    /// Retransmissions were found lost.
    pub lost_retransmission: bool,
    /// The retransmission timer starts anew.
    pub set_timer: bool,
    pub prior_una: Seq,
    pub prior_in_flight: u32,
    pub prior_delivered: u32,
    pub prior_lost: u32,
    /// Segments acknowledged cumulatively.
    pub acked: u32,
    pub acked_bytes: u32,
    pub duplicates: u32,
    pub rtt_us: Option<u32>,
    pub sack_rtt_us: Option<u32>,
    /// Lowest original that this acknowledges after later ones were reported.
    pub reordered: Option<Seq>,
    /// Lowest original that SACK reports after later ones.
    pub sack_reordered: Option<Seq>,
    /// Highest number that SACK had covered before.
    pub prior_sack_high: Option<Seq>,
    pub first_sent_at: Option<Time>,
    pub last_sent_at: Option<Time>,
}

impl Round {
    fn is_duplicate(&self) -> bool {
        !(self.advanced || self.with_data || self.window_update || self.acked_data || self.acked_syn || self.dsack)
    }

    fn is_dubious(&self, ca: CaState) -> bool {
        let usual = self.with_data || self.window_update || self.acked_data || self.acked_syn;
        !usual || self.sacked_data || self.marked || self.dsack || ca != CaState::Open
    }
}

impl Connection {
    /// Processes the acknowledgment of a valid segment.
    pub(crate) fn process_ack(&mut self, header: &Header, now: Time) -> Verdict {
        let ack = header.ack;
        let una = self.una();
        let mut round = Round {
            prior_una: una,
            prior_in_flight: self.tx.sent.in_flight(),
            prior_delivered: self.counters.delivered,
            prior_lost: self.tx.sent.lost_out,
            prior_sack_high: self.rec.sack_high,
            with_data: header.seq_len() > 0,
            marked: self.agreed.ecn && header.flags.has(Flags::ECE) && !header.flags.has(Flags::SYN),
            ..Round::default()
        };
        if ack.before(una) {
            return self.process_old_ack(header, &mut round, now);
        }
        if ack.after(self.tx.highest) {
            // RFC 5961 section 5: acknowledges what was never sent.
            self.counters.bad_acks += 1;
            self.challenge(now);
            return Verdict::Drop;
        }
        self.note_clock(header, now);
        round.advanced = ack.after(una);
        if round.advanced {
            self.tx.retransmits = 0;
        }
        self.update_window(header, &mut round);
        self.process_sack(header, &mut round, now);
        self.tx.probes_out = 0;
        if self.tx.sent.is_empty() && !round.advanced {
            self.after_ack_without_data(&mut round, now);
            return Verdict::Go;
        }
        if self.goes_back_n() {
            self.go_back_n_ack(ack, &mut round, now);
        } else {
            self.acknowledge(ack, &mut round, header, now);
            self.after_ack(&mut round, header, now);
        }
        Verdict::Go
    }

    fn process_old_ack(&mut self, header: &Header, round: &mut Round, now: Time) -> Verdict {
        // RFC 5961 section 5: older than the largest window can be no delayed segment.
        if header.ack.before(round.prior_una - self.tx.window_most.max(1)) {
            self.counters.bad_acks += 1;
            self.challenge(now);
            return Verdict::Drop;
        }
        if !header.options.sack.is_empty() && self.agreed.sack {
            self.process_sack(header, round, now);
            self.alert(round, now);
            self.recover(round);
        }
        Verdict::Go
    }

    /// Whether a segment with `seq` that offers `window` is new enough to replace the window `present` (RFC 9293 section
    /// 3.10.7.4).
    pub(crate) fn sets_window(&self, advances: bool, seq: Seq, window: u32, present: u32) -> bool {
        let same = seq == self.tx.wl1 && (window > present || window == 0);
        advances || seq.after(self.tx.wl1) || same
    }

    fn update_window(&mut self, header: &Header, round: &mut Round) {
        let shift = if header.flags.has(Flags::SYN) { 0 } else { self.flow.remote_shift() };
        let window = u32::from(header.window) << shift;
        let advances = header.ack.after(self.una());
        if self.sets_window(advances, header.seq, window, self.flow.protocol.remote_win) {
            self.tx.wl1 = header.seq;
            if self.flow.protocol.remote_win != window {
                self.flow.protocol.remote_win = window;
                self.tx.window_most = self.tx.window_most.max(window);
                round.window_update = true;
            }
        }
    }

    /// Moves the left edge to `ack` and removes what it covers.
    fn acknowledge(&mut self, ack: Seq, round: &mut Round, header: &Header, now: Time) {
        let una = self.una();
        self.take_acknowledged(ack - una);
        self.acknowledge_records(ack, round, header, now);
    }

    /// Removes the records up to `ack`, which the flow already has.
    pub(crate) fn acknowledge_records(&mut self, ack: Seq, round: &mut Round, header: &Header, now: Time) {
        let una = round.prior_una;
        while let Some(head) = self.tx.sent.head().copied() {
            if !head.span.start.before(ack) {
                break;
            }
            let segments = if head.span.end.after(ack) {
                let segments = self.tx.sent.trim_head(ack);
                if segments == 0 {
                    break;
                }
                segments
            } else {
                self.tx.sent.pop();
                head.segments
            };
            self.note_acked(&head, segments, round, now);
            if head.span.end.after(ack) {
                break;
            }
        }
        let bytes = (ack - una).saturating_sub(u32::from(round.acked_syn));
        round.acked_bytes = bytes;
        self.counters.bytes_acked += u64::from(bytes);
        self.note_rtt(round, header, now);
        if round.acked_data || round.acked_syn {
            round.set_timer = true;
            self.note_reordering(round);
        }
    }

    fn note_acked(&mut self, head: &Sent, segments: u32, round: &mut Round, now: Time) {
        round.acked += segments;
        if head.syn {
            round.acked_syn = true;
        } else {
            round.acked_data = true;
        }
        if head.ever_retransmitted {
            round.acked_retransmitted = true;
        } else if !head.sacked {
            round.last_sent_at = Some(head.sent_at);
            round.first_sent_at.get_or_insert(head.sent_at);
            round.reordered.get_or_insert(head.span.start);
            round.original_arrived |= !head.span.end.after(self.rec.high);
        }
        if !head.sacked && self.agreed.sack {
            self.counters.delivered += segments;
            self.rack_advance(head, now);
        }
    }

    fn note_rtt(&mut self, round: &mut Round, header: &Header, now: Time) {
        let elapsed = |since: Option<Time>| since.map(|at| micros(now.saturating_sub(at)) as u32);
        let sequence = if round.acked_retransmitted { None } else { elapsed(round.first_sent_at) };
        let mut sample = sequence.or(round.sack_rtt_us);
        if sample.is_none()
            && round.acked_data
            && let Some(clock) = header.options.timestamps.filter(|clock| self.agreed.timestamps && clock.echo != 0)
        {
            // Clocks tell which copy was acknowledged (RFC 7323 section 4).
            let ms = self.clock(now).wrapping_sub(clock.echo);
            sample = (ms < 1 << 20).then(|| ms.max(1) * 1000);
        }
        if let Some(us) = sample {
            self.rtt.sample(us, self.una(), self.next(), now);
            self.flow.post.rtt_est = self.rtt.smoothed_us();
            self.tx.backoff = 0;
        } else if round.advanced {
            self.tx.backoff = 0;
        }
        round.rtt_us = if round.acked_retransmitted { round.sack_rtt_us } else { elapsed(round.last_sent_at) };
    }

    pub(crate) fn after_ack(&mut self, round: &mut Round, header: &Header, now: Time) {
        self.rack_update_window(round);
        let delivered_before = round.prior_delivered;
        if !self.agreed.sack {
            // Without SACK the number of delivered segments is known only from what is acknowledged.
            self.remove_emulated_sacks(round);
        }
        self.observe_congestion(round, now);
        if self.rec.probe_high.is_some() {
            self.process_probe_ack(header.ack, round, now);
        }
        if round.is_dubious(self.rec.ca) {
            round.duplicates = u32::from(round.is_duplicate());
            self.alert(round, now);
        }
        if round.set_timer {
            self.set_transmit_timer(now);
        }
        let delivered = self.counters.delivered.wrapping_sub(delivered_before);
        self.control_window(round, delivered, now);
        self.recover(round);
    }

    fn observe_congestion(&mut self, round: &Round, now: Time) {
        if round.acked == 0 && !round.sacked_data {
            return;
        }
        let ack = self.congestion_ack(round, round.acked.max(1), now);
        self.flow.post.cnt_ackb = self.flow.post.cnt_ackb.wrapping_add(ack.acked_bytes);
        if round.marked {
            self.flow.post.cnt_ecnb = self.flow.post.cnt_ecnb.wrapping_add(ack.acked_bytes);
        }
        self.control.observe(&mut self.window, &ack);
    }

    pub(crate) fn congestion_ack(&self, round: &Round, acked: u32, now: Time) -> Ack {
        Ack {
            now,
            acked,
            acked_bytes: round.acked_bytes,
            marked: round.marked,
            rtt_us: round.rtt_us.or(round.sack_rtt_us),
            smoothed_us: self.rtt.smoothed_us(),
            least_us: self.rtt.least_us(),
            in_flight: round.prior_in_flight,
            next: self.next(),
            una: self.una(),
            mss: self.payload_most(),
        }
    }

    fn after_ack_without_data(&mut self, round: &mut Round, now: Time) {
        if round.dsack {
            self.alert(round, now);
            self.recover(round);
        }
        self.after_probe_ack(now);
        if self.rec.probe_high.is_some() {
            self.process_probe_ack(self.una(), round, now);
        }
    }

    /// The flow's left edge moves by `bytes` sequence numbers.
    pub(crate) fn take_acknowledged(&mut self, bytes: u32) {
        self.flow.protocol.tx_sent -= bytes;
        self.after_acknowledged();
    }

    pub(crate) fn after_acknowledged(&mut self) {
        if self.tx.urgent.is_some_and(|end| !end.after(self.una())) {
            self.tx.urgent = None;
        }
    }

    /// The paper's sender: three duplicate acknowledgments go back to the left edge.
    fn go_back_n_ack(&mut self, ack: Seq, round: &mut Round, now: Time) {
        if round.advanced {
            let beyond = ack.since(self.next());
            if beyond > 0 {
                // Copies from before the way back were acknowledged.
                self.retake(beyond);
            }
            let una = self.una();
            self.flow.protocol.dupack_cnt = 0;
            self.take_acknowledged(ack - una);
            self.drop_acknowledged(ack, round, now);
            round.acked_bytes = ack - una;
            self.counters.bytes_acked += u64::from(ack - una);
            if let (Some(first), false) = (round.first_sent_at, round.acked_retransmitted) {
                let us = micros(now.saturating_sub(first)) as u32;
                self.rtt.sample(us, self.una(), self.next(), now);
                self.flow.post.rtt_est = self.rtt.smoothed_us();
                round.rtt_us = Some(us);
            }
            self.tx.backoff = 0;
            self.set_transmit_timer(now);
            self.observe_congestion(round, now);
            if round.marked {
                self.enter_reduction();
            } else if !round.acked_retransmitted {
                let ack = self.congestion_ack(round, round.acked, now);
                self.control.grow(&mut self.window, &ack);
            }
        } else if round.is_duplicate() && self.flow.protocol.tx_sent > 0 {
            self.flow.protocol.dupack_cnt = self.flow.protocol.dupack_cnt.saturating_add(1).min(15);
            if self.flow.protocol.dupack_cnt == 3 {
                self.counters.fast_recoveries += 1;
                self.flow.post.cnt_fretx = self.flow.post.cnt_fretx.saturating_add(1);
                self.window.threshold = self.control.threshold(&self.window, Trouble::Recovery);
                self.window.size = self.window.threshold;
                self.go_back(now);
            }
        }
        if self.flow.protocol.tx_sent == 0 {
            let Timers { main, .. } = &mut self.timers;
            *main = None;
        }
    }

    /// Takes `numbers` that had been sent before the way back as sent again.
    fn retake(&mut self, numbers: u32) {
        let bytes = numbers.min(self.flow.protocol.tx_avail);
        let start = self.next();
        self.flow.tx_take(bytes);
        if numbers > bytes && self.flow.has(FlowFlags::CLOSING) && !self.flow.has(FlowFlags::FIN_SENT) {
            self.flow.set(FlowFlags::FIN_SENT, true);
            self.flow.protocol.seq = self.flow.protocol.seq.wrapping_add(1);
            self.flow.protocol.tx_sent += 1;
        }
        let span = crate::seq::Span::new(start, self.next());
        self.tx.sent.push(Sent { span, segments: 1, mss: u32::MAX, ever_retransmitted: true, ..Sent::default() });
    }

    fn drop_acknowledged(&mut self, ack: Seq, round: &mut Round, now: Time) {
        while let Some(head) = self.tx.sent.head().copied().filter(|head| head.span.start.before(ack)) {
            let segments = if head.span.end.after(ack) {
                self.tx.sent.trim_head(ack)
            } else {
                self.tx.sent.pop();
                head.segments
            };
            self.note_acked(&head, segments.max(1), round, now);
            if head.span.end.after(ack) {
                break;
            }
        }
        self.counters.delivered += round.acked;
    }

    /// Whether a FIN of ours has been acknowledged.
    pub(crate) fn is_fin_acked(&self) -> bool {
        self.flow.has(FlowFlags::FIN_SENT) && self.flow.protocol.tx_sent == 0 && self.flow.protocol.tx_avail == 0
    }
}
