//! RX events: a segment of an open connection.

use super::retransmit::retransmit;
use super::{Flow, FlowFlags};
use crate::conn::Placement;
use crate::segment::{Ecn, Flags, Header};
use crate::seq::Seq;

/// What the protocol stage needs of a header: the pre-processing stage's digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Payload in bytes.
    pub len: u32,
    /// The sender's clock.
    pub clock: u32,
    /// Window, unscaled.
    pub window: u16,
    /// Flags.
    pub flags: Flags,
    /// The segment carries timestamps.
    pub has_clock: bool,
    /// The segment carries options that only the slow path reads.
    pub has_rare_options: bool,
    /// A router marked it.
    pub marked: bool,
}

impl Summary {
    /// Of a header and the ECN field of its packet.
    #[inline]
    pub fn new(header: &Header, ecn: Ecn) -> Summary {
        let clock = header.options.timestamps;
        Summary {
            seq: header.seq.0,
            ack: header.ack.0,
            len: header.payload_len,
            clock: clock.map_or(0, |clock| clock.value),
            window: header.window,
            flags: header.flags,
            has_clock: clock.is_some(),
            has_rare_options: !header.options.sack.is_empty(),
            marked: ecn == Ecn::Marked,
        }
    }
}

/// What a segment did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Where the payload goes; nothing for segments without new data.
    pub store: Option<Placement>,
    /// Bytes that the application may now read in addition.
    pub rx_bump: u32,
    /// Bytes of the transmit ring that are free now in addition.
    pub tx_bump: u32,
    /// The segment wants an acknowledgment.
    pub acknowledge: bool,
    /// The peer closed.
    pub fin: bool,
    /// The third duplicate acknowledgment made everything unacknowledged unsent again.
    pub went_back: bool,
    /// More may be sent than before.
    pub may_send: bool,
}

/// Why the slow path has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowReason {
    /// The connection is not open, or being repaired.
    NotFast,
    /// SYN, RST, URG or no ACK.
    Flags,
    /// Options or missing timestamps.
    Options,
    /// The clock went back (PAWS).
    OldClock,
    /// The acknowledgment number is old or in the future, or repeats itself.
    Acknowledgment,
    /// The data is not the next, or does not fit.
    Order,
    /// FIN.
    Fin,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The fast path took it.
    Done(Received),
    /// The flow is unchanged; the slow path has to take it.
    Slow(SlowReason),
}

const RARE: Flags = Flags(Flags::SYN.0 | Flags::RST.0 | Flags::URG.0);

/// Takes a segment whose checksum is right and whose connection was found.
#[inline]
pub fn receive(flow: &mut Flow, summary: &Summary) -> Outcome {
    if !flow.has(FlowFlags::FAST) {
        return Outcome::Slow(SlowReason::NotFast);
    }
    if summary.flags.any(RARE) || !summary.flags.has(Flags::ACK) {
        return Outcome::Slow(SlowReason::Flags);
    }
    if summary.has_rare_options || summary.has_clock != flow.has(FlowFlags::TIMESTAMPS) {
        return Outcome::Slow(SlowReason::Options);
    }
    if summary.has_clock && (summary.clock.wrapping_sub(flow.protocol.next_ts) as i32) < 0 {
        return Outcome::Slow(SlowReason::OldClock);
    }
    if flow.has(FlowFlags::GO_BACK_N) { receive_paper(flow, summary) } else { receive_predicted(flow, summary) }
}

/// The common case of a flow with full recovery: the next data, or an acknowledgment of something new.
#[inline]
fn receive_predicted(flow: &mut Flow, summary: &Summary) -> Outcome {
    if summary.flags.has(Flags::FIN) {
        return Outcome::Slow(SlowReason::Fin);
    }
    let acked = summary.ack.wrapping_sub(flow.unacknowledged().0);
    if acked > flow.protocol.tx_sent || (acked == 0 && summary.len == 0) {
        return Outcome::Slow(SlowReason::Acknowledgment);
    }
    if summary.seq != flow.protocol.ack || summary.len > flow.protocol.rx_avail || flow.protocol.ooo_len > 0 {
        return Outcome::Slow(SlowReason::Order);
    }
    let mut done = Received { acknowledge: summary.len > 0, ..Received::default() };
    take_acknowledgment(flow, summary, acked, &mut done);
    if summary.len > 0 {
        done.store = Some(Placement { at: flow.protocol.rx_pos, skip: 0, len: summary.len });
        done.rx_bump = summary.len;
        flow.rx_take(summary.len);
    }
    note_clock(flow, summary);
    Outcome::Done(done)
}

fn take_acknowledgment(flow: &mut Flow, summary: &Summary, acked: u32, done: &mut Received) {
    let window = u32::from(summary.window) << flow.remote_shift();
    done.may_send = acked > 0 || window > flow.protocol.remote_win;
    flow.protocol.remote_win = window;
    flow.protocol.tx_sent -= acked;
    done.tx_bump = acked;
    if acked > 0 {
        flow.protocol.dupack_cnt = 0;
    }
}

fn note_clock(flow: &mut Flow, summary: &Summary) {
    if summary.has_clock {
        flow.protocol.next_ts = summary.clock;
    }
}

/// The paper's protocol stage (supplement, protocol rules).
fn receive_paper(flow: &mut Flow, summary: &Summary) -> Outcome {
    let mut done = Received::default();
    if !acknowledge_paper(flow, summary, &mut done) {
        return Outcome::Slow(SlowReason::Acknowledgment);
    }
    if summary.len > 0 || summary.flags.has(Flags::FIN) {
        done.acknowledge = true;
        flow.protocol.marks = u8::from(summary.marked);
        place_paper(flow, summary, &mut done);
    }
    note_clock(flow, summary);
    Outcome::Done(done)
}

/// Returns whether the acknowledgment number is possible.
fn acknowledge_paper(flow: &mut Flow, summary: &Summary, done: &mut Received) -> bool {
    let una = flow.unacknowledged();
    let ack = Seq(summary.ack);
    if ack.before(una) {
        return true; // Old: its data counts, its window does not.
    }
    let mut acked = ack - una;
    if acked > flow.protocol.tx_sent {
        // After a way back copies of what is unsent now may be acknowledged.
        let beyond = acked - flow.protocol.tx_sent;
        let fin = u32::from(flow.has(FlowFlags::CLOSING) && !flow.has(FlowFlags::FIN_SENT));
        if beyond > flow.protocol.tx_avail + fin {
            return false;
        }
        let bytes = beyond.min(flow.protocol.tx_avail);
        flow.tx_take(bytes);
        if beyond > bytes {
            super::transmit::take_fin(flow);
        }
    }
    let window = u32::from(summary.window) << flow.remote_shift();
    let repeats = acked == 0 && summary.len == 0 && window == flow.protocol.remote_win;
    if repeats && flow.protocol.tx_sent > 0 && !summary.flags.has(Flags::FIN) {
        flow.protocol.dupack_cnt = flow.protocol.dupack_cnt.saturating_add(1).min(15);
        if flow.protocol.dupack_cnt == 3 {
            retransmit(flow);
            flow.protocol.dupack_cnt = 4;
            flow.post.cnt_fretx = flow.post.cnt_fretx.saturating_add(1);
            flow.post.rate /= 2;
            done.went_back = true;
        }
    }
    if acked > 0 {
        // A FIN takes a number, no byte.
        let all = acked == flow.protocol.tx_sent && flow.has(FlowFlags::FIN_SENT);
        acked -= u32::from(all);
        flow.protocol.tx_sent -= u32::from(all);
        flow.post.cnt_ackb = flow.post.cnt_ackb.wrapping_add(acked);
        if summary.flags.has(Flags::ECE) {
            flow.post.cnt_ecnb = flow.post.cnt_ecnb.wrapping_add(acked);
        }
    }
    take_acknowledgment(flow, summary, acked, done);
    true
}

/// Places data: in order, next to the interval, or not at all.
fn place_paper(flow: &mut Flow, summary: &Summary, done: &mut Received) {
    let expected = Seq(flow.protocol.ack);
    let seq = Seq(summary.seq);
    let skip = expected.since(seq).min(summary.len);
    let start = seq + skip;
    let mut len = summary.len - skip;
    let room = flow.protocol.rx_avail.saturating_sub(start.since(expected));
    let whole = len <= room;
    len = len.min(room);
    let in_order = !start.after(expected);
    if in_order {
        if len > 0 {
            done.store = Some(Placement { at: flow.protocol.rx_pos, skip, len });
            flow.rx_take(len);
            done.rx_bump = len + join_interval(flow);
        }
        let fin = summary.flags.has(Flags::FIN) && whole && seq + summary.len == Seq(flow.protocol.ack);
        if fin && flow.protocol.ooo_len == 0 && !flow.has(FlowFlags::PEER_CLOSED) {
            flow.protocol.ack = flow.protocol.ack.wrapping_add(1);
            flow.set(FlowFlags::PEER_CLOSED, true);
            done.fin = true;
        }
        return;
    }
    if len == 0 || flow.has(FlowFlags::PEER_CLOSED) {
        return;
    }
    let (have, have_end) = (Seq(flow.protocol.ooo_start), Seq(flow.protocol.ooo_start) + flow.protocol.ooo_len);
    if flow.protocol.ooo_len == 0 {
        flow.protocol.ooo_start = start.0;
        flow.protocol.ooo_len = len;
    } else if start == have_end {
        flow.protocol.ooo_len += len;
    } else if start + len == have {
        flow.protocol.ooo_start = start.0;
        flow.protocol.ooo_len += len;
    } else {
        return;
    }
    done.store = Some(Placement { at: flow.rx_at(start - expected), skip, len });
}

/// In-order data may have reached the interval; returns the bytes that it adds.
fn join_interval(flow: &mut Flow) -> u32 {
    if flow.protocol.ooo_len == 0 {
        return 0;
    }
    let (start, end) = (Seq(flow.protocol.ooo_start), Seq(flow.protocol.ooo_start) + flow.protocol.ooo_len);
    let expected = Seq(flow.protocol.ack);
    if start.after(expected) {
        return 0;
    }
    let more = end.since(expected).min(flow.protocol.rx_avail);
    flow.rx_take(more);
    flow.protocol.ooo_len = 0;
    more
}
