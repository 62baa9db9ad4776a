//! Receive: what a packet's place in the stream means for it and for the context (section 3.3.3 of the paper).

use super::walk::End;
use super::{Engine, is_sound, protocol_of};
use crate::context::{Context, ContextId, Mode};
use crate::host::HostMemory;
use crate::protocol::{Action, Direction};
use crate::sequence::Seq;

/// What became of a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every byte was processed and every check in the packet passed: Linux's `decrypted` and `crc_ok`.
    Offloaded,
    /// The packet is as it came; software does the work.
    NotOffloaded,
    /// A check failed. The packet is as it came, and software finds out the same.
    Failed,
}

/// What the NIC reports with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// What became of the payload.
    pub outcome: Outcome,
    /// The context that the packet met. After a change of keys it tells which of them the NIC had.
    pub context: ContextId,
    /// Whether all payload that has a destination buffer was written there.
    pub is_placed: bool,
    /// Bytes that were written to destination buffers.
    pub placed_bytes: u32,
    /// Bytes that have a destination buffer and were not written there.
    pub unplaced_bytes: u32,
    /// A header that software shall confirm: `l5o_resync_rx_req`.
    pub resync: Option<Seq>,
    /// What became of the protocol inside, where two are stacked.
    pub inner: InnerReport,
}

/// What the NIC reports of the protocol inside another, for all of its bytes in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InnerReport {
    /// Whether every byte was processed and every check passed.
    pub is_processed: bool,
    /// Whether all payload that has a destination buffer was written there.
    pub is_placed: bool,
    /// A header that software shall confirm, as the sequence number of its byte in the outer protocol.
    pub resync: Option<Seq>,
}

impl Received {
    /// The packet goes up as it came, and nothing is asked.
    pub fn not_offloaded(context: &Context) -> Self {
        Self { context: context.id, ..Self::without_context() }
    }

    /// The packet met no context.
    pub fn without_context() -> Self {
        Self {
            outcome: Outcome::NotOffloaded,
            context: ContextId::default(),
            is_placed: false,
            placed_bytes: 0,
            unplaced_bytes: 0,
            resync: None,
            inner: InnerReport::default(),
        }
    }

    /// Whether the stack may join this packet with the one behind it. Packets of different results stay apart, because
    /// software could not tell later which bytes were processed.
    pub fn may_join(&self, next: &Self) -> bool {
        let result = |report: &Self| {
            let inner = (report.inner.is_processed, report.inner.is_placed);
            (report.outcome, report.context, report.is_placed, inner)
        };
        result(self) == result(next)
    }
}

impl Engine {
    /// Processes a received packet's payload, in place when it is in sequence.
    pub fn receive(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        seq: Seq,
        payload: &mut [u8],
    ) -> Received {
        if payload.is_empty() {
            return Received::not_offloaded(context);
        }
        let received = match context.mode() {
            _ if !is_sound(context, Direction::Receive) => {
                Received { resync: self.lose(context, seq, payload), ..Received::not_offloaded(context) }
            }
            Mode::Offloading if seq == context.tcpsn && context.flags.is_unproven() => {
                let resync = self.absorb(context, host, seq, payload, 0);
                Received { resync, ..Received::not_offloaded(context) }
            }
            Mode::Offloading if seq == context.tcpsn => self.in_sequence(context, host, seq, payload),
            Mode::Offloading => self.out_of_sequence(context, host, seq, payload),
            Mode::Searching => self.search_packet(context, seq, payload),
            Mode::Tracking => self.track_packet(context, seq, payload),
        };
        let counters = self.counters_of(context);
        counters.rx_placed_bytes += u64::from(received.placed_bytes);
        counters.rx_resync_req_pkt += u64::from(received.resync.is_some());
        match received.outcome {
            Outcome::Offloaded => {
                counters.rx_packets += 1;
                counters.rx_bytes += payload.len() as u64;
            }
            Outcome::Failed => counters.rx_failed += 1,
            Outcome::NotOffloaded => {}
        }
        received
    }

    fn in_sequence(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        seq: Seq,
        payload: &mut [u8],
    ) -> Received {
        let mut before = *context;
        let walk = self.walk(context, host, payload, Action::Transform);
        if walk.end == End::Through {
            return Received {
                outcome: Outcome::Offloaded,
                is_placed: walk.placed_bytes > 0 && walk.unplaced_bytes == 0,
                placed_bytes: walk.placed_bytes,
                unplaced_bytes: walk.unplaced_bytes,
                ..Received::not_offloaded(context)
            };
        }
        self.walk(&mut before, host, &mut payload[..walk.processed], Action::Undo);
        let outcome = if walk.end == End::NotAHeader { Outcome::NotOffloaded } else { Outcome::Failed };
        let mut received = Received { outcome, ..Received::not_offloaded(context) };
        if walk.end != End::Failed {
            let from = walk.processed - self.suspect_bytes(context, walk.end, walk.processed);
            received.resync = self.lose(context, seq.plus(from), &payload[from..]);
        }
        // Placement is a bit of its own: bytes that a bad digest covers lie where they belong all the same.
        received.is_placed = walk.end == End::Failed && walk.placed_bytes > 0 && walk.unplaced_bytes == 0;
        received.placed_bytes = walk.placed_bytes;
        received
    }

    /// Bytes before the end of a broken walk among which a header may begin.
    fn suspect_bytes(&self, context: &Context, end: End, processed: usize) -> usize {
        let header_bytes = protocol_of(context).map_or(1, |protocol| protocol.properties().header_bytes);
        if end == End::NotAHeader { processed.min(header_bytes - 1) } else { 0 }
    }

    fn out_of_sequence(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        seq: Seq,
        payload: &mut [u8],
    ) -> Received {
        let end = seq.plus(payload.len());
        let mut received = Received::not_offloaded(context);
        if !context.tcpsn.is_before(end) {
            self.counters_of(context).rx_past += 1;
            return received;
        }
        self.counters_of(context).rx_ooo += 1;
        if seq.is_before(context.tcpsn) {
            let from = context.tcpsn.since(seq) as usize;
            received.resync = self.absorb(context, host, seq, payload, from);
            return received;
        }
        let Some(next) = next_message(context) else {
            received.resync = self.lose(context, seq, payload);
            return received;
        };
        if !next.is_before(end) {
            return self.ahead(context, host, seq, payload);
        }
        if next.is_before(seq) {
            received.resync = self.lose(context, seq, payload);
            return received;
        }
        // The packet holds the next message's header (figure 3.7 b): the context moves there, and the packet after
        // this one is in sequence.
        context.number = context.number.wrapping_add(u64::from(context.flags.is_numbered()));
        context.offset = 0;
        context.tcpsn = next;
        received.resync = self.absorb(context, host, seq, payload, next.since(seq) as usize);
        received
    }

    /// Brings the context past a packet from byte `from` on and leaves the packet as it is.
    fn absorb(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        seq: Seq,
        payload: &mut [u8],
        from: usize,
    ) -> Option<Seq> {
        let walk = self.walk(context, host, &mut payload[from..], Action::Absorb);
        if matches!(walk.end, End::Through | End::Failed) {
            return None;
        }
        let from = from + walk.processed - self.suspect_bytes(context, walk.end, walk.processed);
        self.lose(context, seq.plus(from), &payload[from..])
    }

    /// A packet within the current message, behind a gap: at most its payload is placed.
    fn ahead(&mut self, context: &mut Context, host: &mut dyn HostMemory, seq: Seq, payload: &mut [u8]) -> Received {
        let mut received = Received::not_offloaded(context);
        let Some(protocol) = protocol_of(context).filter(|_| self.config.places_ahead) else {
            return received;
        };
        let at = context.offset + seq.since(context.tcpsn) as u32;
        let mut work = self.work(context, host);
        received.is_placed = protocol.place_ahead(&mut work, at, payload);
        received.placed_bytes = work.placed_bytes;
        received
    }
}

/// Where the next message begins; `None` while the current one's length is not known.
fn next_message(context: &Context) -> Option<Seq> {
    let header_bytes = protocol_of(context)?.properties().header_bytes;
    let is_known = context.offset as usize >= header_bytes;
    is_known.then(|| context.tcpsn.plus((context.length - context.offset) as usize))
}
