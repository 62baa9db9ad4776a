//! Stage `trace`: per connection, what was lost, came twice or was sent again, as far as frames show it.

use std::collections::BTreeMap;

use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Dma, Ground};
use nicforge_tcp::segment::{Flags, Header};
use nicforge_tcp::stack::FourTuple;
use nicforge_tcp::watch::frame::Seen;
use nicforge_units::Cycles;

use crate::{BuiltStage, StageError, StageKind, StagePlan};

/// Instructions for a frame: the connection's counters found, four comparisons.
const FRAME_CYCLES: Cycles = Cycles(110);

options! {
    /// NICs that trace connections.
    pub struct TraceOptions {
        /// Connections that are traced at most.
        trace_connections: usize = 16384, "connections", Allowed::Whole(1, 1 << 20);
    }
}

/// Stage `trace`.
#[derive(Clone, Copy, Debug)]
pub struct TraceKind;

impl StageKind for TraceKind {
    const NAME: &'static str = "trace";
    const ABOUT: &'static str = "counts losses, duplicates and retransmissions of each TCP connection";
    type Options = TraceOptions;

    fn build<G: Ground>(
        options: &TraceOptions,
        _plan: &StagePlan,
        _space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        Ok(BuiltStage::new(Trace { most: options.trace_connections, ..Trace::default() }))
    }
}

/// One connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Next number of each direction: to the host, to the wire.
    next: [Option<u32>; 2],
    acked: Option<u32>,
    /// Segments that came behind a gap: something was lost, or comes late.
    pub gaps: u64,
    /// Payload that came again.
    pub again: u64,
    /// Acknowledgments that repeat themselves.
    pub duplicate_acks: u64,
    /// Payload that left again.
    pub retransmitted: u64,
}

impl Traced {
    /// How far before (negative) or behind the next number a segment begins, which becomes the last one seen.
    fn ahead(&mut self, way: usize, header: &Header) -> i32 {
        let begins = header.seq.0;
        let next = self.next[way].unwrap_or(begins);
        let ends = begins.wrapping_add(header.seq_len());
        if ends.wrapping_sub(next) as i32 > 0 || self.next[way].is_none() {
            self.next[way] = Some(ends);
        }
        begins.wrapping_sub(next) as i32
    }

    fn came(&mut self, header: &Header) {
        let ahead = self.ahead(0, header);
        if header.seq_len() > 0 {
            self.gaps += u64::from(ahead > 0);
            self.again += u64::from(ahead < 0);
        } else if header.flags.has(Flags::ACK) {
            let out = self.next[1] != Some(header.ack.0);
            self.duplicate_acks += u64::from(out && self.acked == Some(header.ack.0));
        }
        self.acked = Some(header.ack.0);
    }

    fn goes(&mut self, header: &Header) {
        let ahead = self.ahead(1, header);
        self.retransmitted += u64::from(header.seq_len() > 0 && ahead < 0);
    }
}

/// Traces connections.
#[derive(Debug, Default)]
pub struct Trace {
    most: usize,
    flows: BTreeMap<FourTuple, Traced>,
    untraced: u64,
}

impl Trace {
    /// A connection, our end first.
    pub fn of(&self, tuple: &FourTuple) -> Option<&Traced> {
        self.flows.get(tuple)
    }

    fn look<D: Dma>(&mut self, nic: &mut Services<'_, D>, frame: &Frame<'_>, goes: bool) -> Verdict {
        nic.work(FRAME_CYCLES);
        let seen = Seen::parse(frame.bytes());
        let tuple = if goes { seen.outgoing() } else { seen.incoming() };
        let (Some(tuple), Some(header)) = (tuple, seen.tcp) else { return Verdict::Pass };
        if self.flows.len() >= self.most && !self.flows.contains_key(&tuple) {
            self.untraced += 1;
            return Verdict::Pass;
        }
        let flow = self.flows.entry(tuple).or_default();
        if header.flags.has(Flags::SYN) {
            // Another connection between these ports.
            flow.next[usize::from(goes)] = None;
        }
        if goes {
            flow.goes(&header)
        } else {
            flow.came(&header)
        }
        Verdict::Pass
    }
}

impl<D: Dma> Stage<D> for Trace {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.look(nic, frame, false)
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.look(nic, frame, true)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let sum = |get: fn(&Traced) -> u64| self.flows.values().map(get).sum();
        vec![
            ("trace_gaps", sum(|flow| flow.gaps)),
            ("trace_again", sum(|flow| flow.again)),
            ("trace_duplicate_acks", sum(|flow| flow.duplicate_acks)),
            ("trace_retransmitted", sum(|flow| flow.retransmitted)),
            ("trace_untraced", self.untraced),
        ]
    }
}

#[cfg(test)]
mod tests {
    use nicforge_tcp::seq::Seq;

    use super::*;

    fn segment(seq: u32, len: u32, ack: u32) -> Header {
        let (seq, ack) = (Seq(seq), Seq(ack));
        Header { seq, ack, flags: Flags::ACK, payload_len: len, ..Header::default() }
    }

    #[test]
    fn frames_whole_and_damaged_pass() {
        crate::suite::check::<TraceKind>();
    }

    #[test]
    fn losses_duplicates_and_retransmissions_are_told_apart() {
        let mut flow = Traced::default();
        [segment(u32::MAX - 99, 100, 1), segment(0, 100, 1), segment(200, 50, 1)].iter().for_each(|h| flow.came(h));
        assert_eq!((flow.gaps, flow.again), (1, 0));
        flow.came(&segment(100, 100, 1));
        assert_eq!((flow.gaps, flow.again), (1, 1), "the gap is filled late");
        [segment(1, 10, 0), segment(11, 10, 0), segment(1, 10, 0)].iter().for_each(|h| flow.goes(h));
        assert_eq!(flow.retransmitted, 1);
        [segment(250, 0, 11), segment(250, 0, 11), segment(250, 0, 21), segment(250, 0, 21)]
            .iter()
            .for_each(|h| flow.came(h));
        assert_eq!(flow.duplicate_acks, 1, "nothing is out at the end");
    }
}
