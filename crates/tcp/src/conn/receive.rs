//! Received data: in order, out of order, twice, beyond the window; FIN; and the window that we offer.

use nicforge_units::Time;

use super::intervals::{INTERVALS_MAX, Insert};
use super::{Connection, State};
use crate::config::Reassembly;
use crate::fast::FlowFlags;
use crate::segment::{Flags, Header};
use crate::seq::{Seq, Span};

/// Where the payload of a segment goes: `len` bytes from `skip` on to `at` of the receive ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Place in the receive ring.
    pub at: u32,
    /// Bytes of the payload that are left out at its beginning.
    pub skip: u32,
    /// Bytes to copy.
    pub len: u32,
}

impl Connection {
    /// Window that the peer believes in now, in bytes from the next expected byte on.
    pub(crate) fn window_offered(&self) -> u32 {
        (self.rx.window_at + self.rx.window).since(self.expected())
    }

    /// The most that may ever be offered.
    pub(crate) fn window_bound(&self) -> u32 {
        let size = self.flow.post.rx_size;
        if self.rx.window_clamp > 0 { size.min(self.rx.window_clamp) } else { size }
    }

    /// The window that may be offered now (RFC 9293 section 3.8.6.2.2): it never shrinks and grows in large steps.
    pub(crate) fn window_to_offer(&self) -> u32 {
        let shift = u32::from(self.flow.local_shift());
        let waiting = self.flow.rx_waiting();
        let free = self.window_bound().saturating_sub(waiting);
        let free = if shift > 0 { free >> shift << shift } else { free };
        let segment = self.ack.peer_segment.min(self.flow.post.rx_size / 2).max(1);
        let offered = self.window_offered();
        if free < segment && free < self.window_bound() / 4 {
            return if shift > 0 { offered >> shift << shift } else { offered };
        }
        if shift == 0 && free < offered + segment && free > offered && offered > 0 {
            return offered;
        }
        free.min(u32::from(u16::MAX) << shift)
    }

    /// Chooses the window field and remembers what was offered.
    pub(crate) fn offer_window(&mut self) -> u16 {
        let shift = u32::from(self.flow.local_shift());
        let offered = self.window_offered();
        let mut window = self.window_to_offer();
        if window < offered {
            // A window never shrinks. Rounding up keeps what was promised, where the ring has that much room; otherwise
            // the field says less, and the promise stays.
            let up = offered.next_multiple_of(1 << shift);
            window = if up <= self.flow.protocol.rx_avail { up } else { offered };
        }
        let window = window.min(u32::from(u16::MAX) << shift);
        self.rx.window = window;
        self.rx.window_at = self.expected();
        let field = window >> shift;
        self.flow.set(FlowFlags::WINDOW_CLOSED, field == 0);
        field as u16
    }

    /// Takes the data and FIN of a valid segment.
    pub(crate) fn receive_data(&mut self, header: &Header, now: Time) -> Option<Placement> {
        let (seq, fin) = (header.seq, header.flags.has(Flags::FIN));
        let end = header.end();
        if seq == end {
            return None;
        }
        self.counters.data_segments_in += u64::from(header.payload_len > 0);
        if !end.after(self.expected()) {
            self.note_duplicate(Span::new(seq, end));
            self.enter_quick();
            self.ack.scheduled = true;
            return None;
        }
        let offered = self.window_offered();
        let fin_alone = header.payload_len == 0 && seq == self.expected();
        if !seq.before(self.expected() + offered) && !fin_alone {
            // A zero window probe, or data beyond what was offered.
            self.counters.outside_window += 1;
            self.enter_quick();
            self.ack.scheduled = true;
            return None;
        }
        let placement = if seq.after(self.expected()) {
            self.receive_out_of_order(header, now)
        } else {
            self.receive_in_order(header, now)
        };
        if fin && placement.is_some_and(|placed| placed.skip + placed.len == header.payload_len) {
            self.rx.fin_at.get_or_insert(end - 1);
        }
        self.take_fin();
        placement.filter(|placement| placement.len > 0)
    }

    fn receive_in_order(&mut self, header: &Header, now: Time) -> Option<Placement> {
        let expected = self.expected();
        if header.seq.before(expected) {
            self.note_duplicate(Span::new(header.seq, expected));
        }
        let skip = expected - header.seq;
        let mut len = header.payload_len.saturating_sub(skip);
        let room = self.flow.protocol.rx_avail;
        if len > room {
            self.counters.outside_window += 1;
            len = room;
        }
        let placement = Placement { at: self.flow.protocol.rx_pos, skip, len };
        self.flow.rx_take(len);
        self.counters.bytes_received += u64::from(len);
        if len > 0 {
            self.note_data(len, header.flags.has(Flags::PSH), now);
        }
        self.fill_gap();
        Some(placement)
    }

    /// In-order data may have reached out-of-order data, which already lies in the ring.
    fn fill_gap(&mut self) {
        if self.rx.intervals.is_empty() {
            return;
        }
        let reached = self.rx.intervals.advance(self.expected());
        let more = reached.since(self.expected()).min(self.flow.protocol.rx_avail);
        self.flow.rx_take(more);
        self.counters.bytes_received += u64::from(more);
        if self.rx.intervals.is_empty() {
            // RFC 5681 section 4.2: acknowledge at once when a gap is filled.
            self.ack.urgent = true;
        }
    }

    fn receive_out_of_order(&mut self, header: &Header, now: Time) -> Option<Placement> {
        self.ack.scheduled = true;
        self.counters.out_of_order += 1;
        let offset = header.seq - self.expected();
        let room = self.flow.protocol.rx_avail.saturating_sub(offset);
        let len = header.payload_len.min(room);
        if len == 0 {
            // A FIN alone behind a gap is remembered by its sequence number.
            return (header.payload_len == 0).then_some(Placement::default());
        }
        let span = Span::new(header.seq, header.seq + len);
        match self.rx.intervals.insert(span, self.intervals_most(span)) {
            Insert::New { duplicate } => {
                if let Some(duplicate) = duplicate {
                    self.note_duplicate(duplicate);
                }
            }
            Insert::Duplicate(span) => {
                self.note_duplicate(span);
                return None;
            }
            Insert::Full => {
                self.counters.no_interval += 1;
                return None;
            }
        }
        self.rx.last_data_at = now;
        let whole = len == header.payload_len;
        let placement = Placement { at: self.flow.rx_at(offset), skip: 0, len };
        if !whole && header.flags.has(Flags::FIN) {
            self.counters.outside_window += 1;
        }
        Some(placement)
    }

    fn intervals_most(&self, span: Span) -> usize {
        match self.config.reassembly {
            Reassembly::Full => INTERVALS_MAX,
            // The paper's interval grows at its ends only.
            Reassembly::OneInterval => {
                let touches = |have: Span| span.end == have.start || span.start == have.end;
                let first = self.rx.intervals.first();
                if first.is_none_or(touches) { 1 } else { 0 }
            }
        }
    }

    pub(crate) fn note_duplicate(&mut self, span: Span) {
        if self.agreed.sack && self.config.dsack {
            self.rx.duplicate = Some(match self.rx.duplicate {
                Some(have) if have.end == span.start => Span::new(have.start, span.end),
                _ => span,
            });
        }
    }

    /// The peer's FIN counts once everything before it is there.
    pub(crate) fn take_fin(&mut self) {
        if self.rx.fin_at != Some(self.expected()) || self.flow.has(FlowFlags::PEER_CLOSED) {
            return;
        }
        self.flow.protocol.ack = self.flow.protocol.ack.wrapping_add(1);
        self.flow.set(FlowFlags::PEER_CLOSED, true);
        self.rx.intervals.clear();
        self.ack.scheduled = true;
        match self.state {
            State::SynReceived | State::Established => {
                self.state = State::CloseWait;
                self.ack.interactive = true;
            }
            State::FinWait1 => {
                self.state = State::Closing;
                self.ack.urgent = true;
            }
            State::FinWait2 => {
                self.ack.urgent = true;
                self.enter_time_wait();
            }
            _ => {}
        }
    }

    /// Notes the clock of a segment that an acknowledgment of ours could not have missed (RFC 7323 section 4.3).
    pub(crate) fn note_clock(&mut self, header: &Header, now: Time) {
        let Some(clock) = header.options.timestamps else { return };
        if header.seq.after(self.rx.last_ack_sent) {
            return;
        }
        let newer = clock.value.wrapping_sub(self.flow.protocol.next_ts) as i32 >= 0;
        if newer || !self.rx.has_ts || now.saturating_sub(self.rx.ts_recent_at) >= super::arrive::CLOCK_OLD {
            self.flow.protocol.next_ts = clock.value;
            self.rx.ts_recent_at = now;
            self.rx.has_ts = true;
        }
    }

    /// Urgent data (RFC 6093): only where it ends is remembered; the bytes stay in line.
    pub(crate) fn note_urgent(&mut self, header: &Header) {
        if header.flags.has(Flags::URG) {
            let end: Seq = header.seq + u32::from(header.urgent);
            if end.after(self.expected()) && self.rx.urgent.is_none_or(|known| end.after(known)) {
                self.rx.urgent = Some(end);
            }
        }
    }
}
