//! What is sent when: retransmissions, probes, new data by window, Nagle and bursts, then pure acknowledgments.
//!
//! [`Connection::transmit`] is called until it returns nothing after every event. An event that may release data leaves
//! a [`Push`] behind, so that reading, for example, does not release what the application holds back.

use nicforge_units::Time;

use super::emit::Emission;
use super::sent::Sent;
use super::{CaState, Connection, State, TimerKind};
use crate::fast::FlowFlags;
use crate::seq::{Seq, Span};

/// How much may be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// By the socket's options.
    Usual,
    /// Full segments only: the application announced more.
    Corked,
    /// Small segments too.
    Everything,
}

/// A segment that a timer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// New data or the last segment again (RFC 8985).
    Tail,
    /// A window that may have opened (RFC 9293 section 3.8.6.1).
    Window,
    /// A peer that may have gone.
    Alive,
}

/// A burst that leaves segment by segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub next: Seq,
    pub end: Seq,
    pub mss: u32,
    pub fin: bool,
    pub push: bool,
    pub again: bool,
}

impl Connection {
    pub(crate) fn push(&mut self, push: Push) {
        self.tx.pending = Some(push);
    }

    /// The next segment to send, if there is one. Spurious calls are harmless.
    pub fn transmit(&mut self, now: Time) -> Option<Emission> {
        if let Some(reset) = self.reset.take() {
            return Some(self.emit_reset(reset, now));
        }
        if self.state == State::Closed {
            return None;
        }
        if let Some(emission) = self.next_of_burst(now) {
            return Some(emission);
        }
        if !self.state.is_synchronized() {
            return self.transmit_handshake(now);
        }
        if self.tx.retransmit {
            if self.retransmit_lost(now) {
                return self.next_of_burst(now);
            }
            self.tx.retransmit = false;
        }
        if let Some(probe) = self.tx.probe.take()
            && let Some(emission) = self.send_probe(probe, now)
        {
            return Some(emission);
        }
        if let Some(push) = self.tx.pending {
            self.tx.paced_waits = !self.may_pace(now);
            if !self.tx.paced_waits {
                if self.send_new(push, now) {
                    return self.next_of_burst(now);
                }
                self.tx.pending = None;
                self.after_push(now);
            }
        }
        if self.ack.now > 0 {
            self.ack.now -= 1;
            return Some(self.emit_ack(now));
        }
        None
    }

    /// Whether output follows a rate: by the options, or because congestion control states one.
    fn paces(&self) -> bool {
        self.config.pacing || self.control.rate().is_some()
    }

    /// Whether pacing lets a burst leave now.
    fn may_pace(&self, now: Time) -> bool {
        !self.paces() || self.tx.paced_until <= now
    }

    pub(crate) fn next_of_burst(&mut self, now: Time) -> Option<Emission> {
        let burst = self.tx.burst?;
        let left = burst.end - burst.next;
        let data = left - u32::from(burst.fin);
        let len = data.min(burst.mss);
        let last = len == data;
        let emission = self.emit_data(&burst, len, last, now);
        self.tx.burst = (!last).then_some(Burst { next: burst.next + len, ..burst });
        Some(emission)
    }

    /// Free bytes of the peer's window.
    pub(crate) fn window_left(&self) -> u32 {
        (self.una() + self.flow.protocol.remote_win).since(self.next())
    }

    pub(crate) fn fin_waits(&self) -> bool {
        self.flow.has(FlowFlags::CLOSING) && !self.flow.has(FlowFlags::FIN_SENT)
    }

    /// Begins a burst of new data where windows, Nagle and the burst rules allow. Returns whether it did.
    fn send_new(&mut self, push: Push, now: Time) -> bool {
        let unsent = self.flow.protocol.tx_avail;
        let fin = self.fin_waits();
        if unsent == 0 && !fin {
            return false;
        }
        let in_flight = self.in_flight();
        let quota = self.window.size.saturating_sub(in_flight).min((self.window.size / 2).max(1));
        let mss = self.payload_most();
        if quota == 0 || !self.first_fits(unsent, mss, fin) {
            return false;
        }
        let most = self.burst_segments();
        let bytes = if unsent <= mss {
            if !fin && !self.passes_nagle(unsent < mss, push) {
                return false;
            }
            unsent
        } else {
            if self.defers_burst(unsent, mss, most, fin, now) {
                return false;
            }
            self.split_point(unsent, mss, quota.min(most), push)
        };
        self.begin_new(bytes, mss, now);
        true
    }

    /// Segments in flight as the window counts them; without per-segment recovery, bytes decide.
    fn in_flight(&self) -> u32 {
        if self.goes_back_n() {
            return self.flow.protocol.tx_sent.div_ceil(self.payload_most().max(1));
        }
        self.tx.sent.in_flight()
    }

    pub(crate) fn first_fits(&self, unsent: u32, mss: u32, fin: bool) -> bool {
        let first = if unsent > mss { mss } else { unsent + u32::from(fin) };
        first <= self.window_left()
    }

    /// Nagle's rule in Minshall's form (RFC 9293 section 3.7.4): one small segment in flight at most.
    fn passes_nagle(&self, partial: bool, push: Push) -> bool {
        if push == Push::Everything || self.tx.urgent.is_some() || !partial {
            return true;
        }
        !self.nagle_holds(push)
    }

    fn nagle_holds(&self, push: Push) -> bool {
        if push == Push::Everything {
            return false;
        }
        let corked = push == Push::Corked || self.tuning.cork;
        let small_out = self.tx.small_end.after(self.una()) && !self.tx.small_end.after(self.next());
        corked || (!self.tuning.no_delay && self.tx.sent.packets_out > 0 && small_out)
    }

    fn split_point(&self, unsent: u32, mss: u32, segments: u32, push: Push) -> u32 {
        let most = mss.saturating_mul(segments);
        let needed = unsent.min(self.window_left());
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if partial != 0 && self.nagle_holds(push) && needed > partial { needed - partial } else { needed }
    }

    /// A burst smaller than the window allows waits for the next acknowledgment, when that is near.
    fn defers_burst(&mut self, unsent: u32, mss: u32, most: u32, fin: bool, now: Time) -> bool {
        if self.rec.ca >= CaState::Recovery || self.goes_back_n() {
            return false;
        }
        let Some(head) = self.tx.sent.head() else { return false };
        if now.saturating_sub(self.tx.last_sent_at) > Time::from_ms(1) {
            return false;
        }
        let window = self.window_left();
        let congestion = self.window.size.saturating_sub(self.tx.sent.in_flight()).saturating_mul(mss);
        let limit = window.min(congestion);
        if limit >= most.saturating_mul(mss) {
            return false;
        }
        let whole = self.flow.protocol.remote_win.min(self.window.size.saturating_mul(mss));
        if limit >= whole.checked_div(self.config.burst_divisor).unwrap_or(3 * mss) {
            return false;
        }
        let waited = now.saturating_sub(head.sent_at);
        if waited < Time::from_us(u64::from(self.rtt.smoothed_us() / 2)) {
            return false;
        }
        if congestion < window && congestion <= unsent {
            self.rec.window_limited = true;
            return true;
        }
        !fin
    }

    pub(crate) fn begin_new(&mut self, bytes: u32, mss: u32, now: Time) {
        let drained = bytes == self.flow.protocol.tx_avail;
        let fin = drained && self.fin_waits();
        let segments = bytes.div_ceil(mss).max(1);
        let start = self.next();
        self.flow.tx_take(bytes);
        if fin {
            self.flow.set(FlowFlags::FIN_SENT, true);
            self.flow.protocol.seq = self.flow.protocol.seq.wrapping_add(1);
            self.flow.protocol.tx_sent += 1;
        }
        let end = self.next();
        self.tx.highest = self.tx.highest.max(end);
        let push = bytes > 0 && drained && self.tx.push;
        if bytes < mss && bytes > 0 {
            self.tx.small_end = end;
        }
        let idle = self.tx.sent.is_empty();
        self.tx.sent.push(Sent {
            span: Span::new(start, end),
            segments,
            mss,
            sent_at: now,
            delivered: self.counters.delivered,
            fin,
            push,
            limited: drained,
            ..Sent::default()
        });
        self.counters.bytes_sent += u64::from(bytes);
        // A burst of several segments ends in PSH, so that receivers that coalesce pass it on.
        self.tx.burst = Some(Burst { next: start, end, mss, fin, push: push || segments > 1, again: false });
        self.note_sent(segments, bytes, now);
        if idle || matches!(self.timers.main, Some((TimerKind::Probe, _)) | None) {
            self.rearm_retransmit(now);
        }
        if self.is_reducing() {
            self.rec.prr_out += segments;
        }
        if self.rec.probe_high.is_none() {
            self.schedule_probe(now);
        }
    }

    fn note_sent(&mut self, segments: u32, bytes: u32, now: Time) {
        if now.saturating_sub(self.rx.last_data_at) < self.ack.delay {
            self.ack.interactive = true;
        }
        self.tx.last_sent_at = now;
        if self.paces() {
            self.pace(segments, bytes, now);
        }
    }

    /// The next burst waits until this one has left at the pacing rate. The first segments leave at once, and time in
    /// which nothing was sent counts for half a burst at most.
    fn pace(&mut self, segments: u32, bytes: u32, now: Time) {
        const UNPACED: u64 = 10;
        let before = self.tx.paced_until;
        self.tx.paced_until = before.max(now);
        if self.counters.data_segments_out + u64::from(segments) < UNPACED {
            return;
        }
        let wire = u64::from(bytes) + 32;
        let gap = wire.saturating_mul(1_000_000_000_000) / self.pacing_rate().max(1);
        let credit = self.tx.paced_until.saturating_sub(before).as_ps();
        self.tx.paced_until += Time::from_ps(gap - (gap / 2).min(credit));
    }

    fn after_push(&mut self, now: Time) {
        let limited = self.in_flight() >= self.window.size;
        self.validate_window(limited || (self.rec.window_limited && self.flow.protocol.tx_avail > 0));
        let waiting = self.flow.protocol.tx_avail > 0 || self.fin_waits();
        let idle = matches!(self.timers.main, None | Some((TimerKind::Retransmit, _)));
        if waiting && self.flow.protocol.tx_sent == 0 && idle {
            self.timers.main = Some((TimerKind::Persist, now + self.persist_after(0)));
        }
    }

    /// Begins to send again the oldest record that is lost and not on its way. Returns whether there is one.
    fn retransmit_lost(&mut self, now: Time) -> bool {
        if self.tx.sent.retrans_out >= self.tx.sent.lost_out {
            return false;
        }
        let room = self.window.size.saturating_sub(self.tx.sent.in_flight());
        if room == 0 {
            return false;
        }
        let waiting = |sent: &Sent| sent.lost && !sent.sacked && !sent.retransmitted;
        let Some(index) = self.tx.sent.iter().position(waiting) else { return false };
        self.begin_again(index, room.min(self.burst_segments()), now);
        if self.is_reducing() {
            let segments = self.tx.sent.get(index).map_or(1, |sent| sent.segments);
            self.rec.prr_out += segments;
        }
        if index == 0 && !matches!(self.timers.main, Some((TimerKind::Reordering, _))) {
            self.timers.main = Some((TimerKind::Retransmit, now + self.backed_off_rto()));
        }
        true
    }

    /// Sends up to `segments` of the record at `index` again.
    pub(crate) fn begin_again(&mut self, index: usize, segments: u32, now: Time) {
        let Some(sent) = self.tx.sent.get(index).copied() else { return };
        let mss = sent.mss.min(self.payload_most()).max(1);
        if sent.span.len() > mss.saturating_mul(segments) + u32::from(sent.fin) {
            self.tx.sent.split(index, sent.span.start + mss * segments);
        }
        self.tx.sent.change(index, |sent| {
            sent.mss = mss;
            let data = sent.span.len() - u32::from(sent.fin);
            sent.segments = data.div_ceil(mss).max(1);
            sent.retransmitted = true;
            sent.ever_retransmitted = true;
            sent.sent_at = now;
        });
        let Some(sent) = self.tx.sent.get(index).copied() else { return };
        if self.tx.retransmitted_at.is_none() {
            self.tx.retransmitted_at = Some(now);
            self.tx.retransmitted_ts = self.clock(now);
        }
        if self.rec.undo_retransmits < 0 {
            self.rec.undo_retransmits = 0;
        }
        self.rec.undo_retransmits += i64::from(sent.segments);
        self.counters.retransmitted += sent.segments;
        let bytes = sent.span.len() - u32::from(sent.fin);
        self.counters.bytes_retransmitted += u64::from(bytes);
        let push = sent.push || sent.segments > 1;
        self.tx.burst =
            Some(Burst { next: sent.span.start, end: sent.span.end, mss, fin: sent.fin, push, again: true });
        self.note_sent(sent.segments, bytes, now);
    }
}
