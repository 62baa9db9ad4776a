//! Context recovery on receive (figure 3.6 of the paper): searching, tracking, and the answer of software.

use super::receive::Received;
use super::{Engine, is_sound, protocol_of};
use crate::context::{Context, HEADER_BYTES_MAX, Mode};
use crate::protocol::{Direction, Header, Protocol, parse_header};
use crate::sequence::Seq;

impl Engine {
    /// Software's answer to a resync request: `l5o_resync_rx_resp`, with the number of the message at `seq`, or `None`
    /// when no message begins there. Linux: `tls_dev_resync`, ULP DDP `resync`.
    ///
    /// A late answer is as good as a prompt one while headers are still tracked from the same guess.
    pub fn resync_response(&mut self, context: &mut Context, seq: Seq, number: Option<u64>) {
        let counters = self.counters_of(context);
        let is_open = context.mode() == Mode::Tracking && context.resync == seq;
        if !is_open || !is_sound(context, Direction::Receive) {
            counters.rx_resync_res_skip += 1;
            return;
        }
        let Some(number) = number else {
            counters.rx_resync_res_retry += 1;
            begin_search(context);
            return;
        };
        counters.rx_resync_res_ok += 1;
        let header_bytes = protocol_of(context).map_or(0, |protocol| protocol.properties().header_bytes);
        context.number = number.wrapping_add(u64::from(context.tracked));
        if context.offset as usize >= header_bytes {
            context.tcpsn = context.tcpsn.plus((context.length - context.offset) as usize);
            context.offset = 0;
        }
        context.set_mode(Mode::Offloading);
        context.flags.set_unproven(self.config.proves_resync);
    }

    /// Loses track without a packet to search: the layer below has a gap.
    pub(crate) fn lose_place(&mut self, context: &mut Context) {
        if context.mode() != Mode::Searching {
            self.counters_of(context).rx_searches += 1;
        }
        begin_search(context);
    }

    /// Loses track (transition a), and searches the packet that showed it.
    pub(super) fn lose(&mut self, context: &mut Context, seq: Seq, payload: &[u8]) -> Option<Seq> {
        begin_search(context);
        self.counters_of(context).rx_searches += 1;
        self.search(context, seq, payload)
    }

    pub(super) fn search_packet(&mut self, context: &mut Context, seq: Seq, payload: &[u8]) -> Received {
        let resync = self.search(context, seq, payload);
        Received { resync, ..Received::not_offloaded(context) }
    }

    pub(super) fn track_packet(&mut self, context: &mut Context, seq: Seq, payload: &[u8]) -> Received {
        let resync = self.follow(context, seq, payload);
        Received { resync, ..Received::not_offloaded(context) }
    }

    fn follow(&mut self, context: &mut Context, seq: Seq, payload: &[u8]) -> Option<Seq> {
        let end = seq.plus(payload.len());
        if !context.tcpsn.is_before(end) {
            self.counters_of(context).rx_past += 1;
            return None;
        }
        let from = if seq.is_before(context.tcpsn) { context.tcpsn.since(seq) as usize } else { 0 };
        if !skip_gap(context, seq.plus(from)) {
            self.counters_of(context).rx_resync_req_skip += 1;
            return self.lose(context, seq, payload);
        }
        let wrong = track(context, &payload[from..]).err()?;
        // Transition d1: this is no header, so perhaps none was.
        self.counters_of(context).rx_resync_req_skip += 1;
        let from = from + wrong;
        self.lose(context, seq.plus(from), &payload[from..])
    }

    /// Looks for a magic pattern (transition b). Tells the sequence number of the header if one stands to the
    /// packet's end.
    fn search(&mut self, context: &mut Context, seq: Seq, payload: &[u8]) -> Option<Seq> {
        let protocol = protocol_of(context)?;
        let header_bytes = protocol.properties().header_bytes;
        // Bytes from the packet before, if this one follows it: a pattern may be split between the two.
        let carried = if seq == context.tcpsn { context.offset as usize } else { 0 };
        let mut joint = [0; 2 * HEADER_BYTES_MAX];
        joint[..carried].copy_from_slice(&context.header[..carried]);
        let borrowed = payload.len().min(header_bytes);
        joint[carried..carried + borrowed].copy_from_slice(&payload[..borrowed]);
        let total = carried + payload.len();
        for place in 0..(total + 1).saturating_sub(header_bytes) {
            let bytes = if place < carried { &joint[place..carried + borrowed] } else { &payload[place - carried..] };
            let Some(header) = parse_header(protocol, &context.state, bytes) else {
                continue;
            };
            let is_split = place < carried;
            if !is_split && !protocol.is_plausible(&context.state, bytes) {
                continue;
            }
            let found = Seq(seq.0.wrapping_sub(carried as u32)).plus(place);
            guess(context, protocol, found, header, bytes);
            let after = place + header_bytes - carried;
            if track(context, &payload[after..]).is_ok() {
                return Some(found);
            }
            self.counters_of(context).rx_resync_req_skip += 1;
        }
        let kept = total.min(header_bytes - 1);
        let tail = |back: usize| {
            // `back` bytes before the packet's end: in the packet, or carried.
            if back <= payload.len() { payload[payload.len() - back] } else { joint[total - back] }
        };
        begin_search(context);
        (0..kept).for_each(|index| context.header[index] = tail(kept - index));
        context.offset = kept as u32;
        context.tcpsn = seq.plus(payload.len());
        None
    }
}

/// Forgets what was seen and what was asked.
fn begin_search(context: &mut Context) {
    context.set_mode(Mode::Searching);
    context.offset = 0;
    context.length = 0;
    context.tracked = 0;
    context.header = [0; HEADER_BYTES_MAX];
}

/// Assumes that a message begins at `found`.
fn guess(context: &mut Context, protocol: &dyn Protocol, found: Seq, header: Header, bytes: &[u8]) {
    let header_bytes = protocol.properties().header_bytes;
    context.set_mode(Mode::Tracking);
    context.resync = found;
    context.header[..header_bytes].copy_from_slice(&bytes[..header_bytes]);
    context.length = header.length;
    context.offset = header_bytes as u32;
    context.tcpsn = found.plus(header_bytes);
    context.tracked = u32::from(header.is_numbered);
    context.flags.set_numbered(header.is_numbered);
    end_message(context);
}

fn end_message(context: &mut Context) {
    if context.offset == context.length {
        context.offset = 0;
    }
}

/// Goes to `seq` when only bytes behind a known header are missing; tells whether it could.
fn skip_gap(context: &mut Context, seq: Seq) -> bool {
    let gap = seq.since(context.tcpsn) as u32;
    let header_bytes = protocol_of(context).map_or(0, |protocol| protocol.properties().header_bytes);
    let is_skippable = gap == 0 || (context.offset as usize >= header_bytes && gap <= context.length - context.offset);
    if is_skippable {
        context.offset += gap;
        context.tcpsn = seq;
        if gap > 0 {
            end_message(context);
        }
    }
    is_skippable
}

/// Follows lengths from header to header. Fails at a header that is none, with the place in the payload from which a
/// genuine one may begin.
fn track(context: &mut Context, payload: &[u8]) -> Result<(), usize> {
    let protocol = protocol_of(context).ok_or(0_usize)?;
    let header_bytes = protocol.properties().header_bytes;
    let mut place = 0;
    while place < payload.len() {
        let rest = &payload[place..];
        let at = context.offset as usize;
        let bytes = if at < header_bytes {
            let bytes = rest.len().min(header_bytes - at);
            context.header[at..at + bytes].copy_from_slice(&rest[..bytes]);
            bytes
        } else {
            rest.len().min(context.length as usize - at)
        };
        place += bytes;
        context.offset += bytes as u32;
        context.tcpsn = context.tcpsn.plus(bytes);
        if at < header_bytes && context.offset as usize == header_bytes {
            let Some(header) = parse_header(protocol, &context.state, &context.header[..header_bytes]) else {
                return Err(place - place.min(header_bytes - 1));
            };
            context.length = header.length;
            context.tracked = context.tracked.wrapping_add(u32::from(header.is_numbered));
            context.flags.set_numbered(header.is_numbered);
        }
        if context.offset as usize >= header_bytes {
            end_message(context);
        }
    }
    Ok(())
}
