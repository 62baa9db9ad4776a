//! Hairpin offload (`accel_nfv`): the NIC itself matches, counts, rewrites and sends out the packets
//! of known flows; no core sees them. What runs on today's NICs beside software as nicmem has it:
//! their memory holds state of flows instead of packets.
//!
//! ```text
//!  parsed frame ─► flow known? ─ no ─► the interface, software
//!                   │ yes: count, rewrite
//!                   ▼
//!  wire ◄─ transmit engine ◄─ hairpin queue        contexts.rs ══ lines in and out ══ table.rs
//! ```
//!
//! Packets leave in the order in which they came. One that waits for its flow's context holds up
//! those behind it, but their contexts are fetched meanwhile, several at a time.

mod action;
mod contexts;
mod table;
#[cfg(test)]
mod tests;

use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rewrite::set_macs;
use nicforge_wire::{FrameSummary, parse_headers};

use crate::Arriving;
use contexts::Contexts;

pub use action::{Endpoint, FlowAction};
pub use contexts::ContextCounters;
pub use table::{FlowContext, FlowMatch, FlowTable, TableFull};

/// What a hairpin is told.
#[derive(Clone, Copy, Debug)]
pub struct HairpinSpec {
    /// The flows.
    pub table: FlowTable,
    /// Memory of the NIC for their contexts.
    pub memory: Bytes,
    /// Contexts that are fetched at a time, at most.
    pub fetches: usize,
    /// Frames that may wait for the wire.
    pub queue: usize,
    /// The addresses that frames get: source and destination.
    pub addresses: (MacAddress, MacAddress),
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hairpinned {
    /// Its flow is not known here, or it is not for the NIC to deal with: it goes to software.
    Unknown,
    /// There is no room in the queue: it is dropped, and does not count.
    Full,
    /// It goes out when its context is here.
    Out {
        /// The frame, rewritten.
        bytes: Vec<u8>,
        /// When it may go.
        ready: Time,
    },
}

/// The stage between parser and interface.
#[derive(Debug)]
pub struct Hairpin {
    spec: HairpinSpec,
    contexts: Contexts,
    /// When the frame before may go.
    last: Time,
}

impl Hairpin {
    /// A stage that knows no context yet.
    pub fn new(spec: HairpinSpec) -> Hairpin {
        Hairpin { contexts: Contexts::new(spec.memory, spec.fetches), spec, last: Time::ZERO }
    }

    /// What was counted so far.
    pub fn counters(&self) -> ContextCounters {
        self.contexts.counters
    }

    /// Looks for the flow of a frame, and if it is known counts and rewrites it. `waiting` frames
    /// are in the queue.
    pub fn handle<D: Dma>(&mut self, dma: &mut D, frame: &Arriving<'_>, waiting: u64) -> Hairpinned {
        let summary = parse_headers(&frame.bytes[..frame.head], frame.bytes.len());
        let known = summary.ok().and_then(|summary| {
            let flow = FlowMatch::of(&summary)?;
            Some((flow, summary))
        });
        let Some((flow, summary)) = known else {
            return Hairpinned::Unknown;
        };
        let mut ready = dma.now();
        for line in self.spec.table.lines(flow) {
            let now = dma.now();
            let (place, here) = self.contexts.get(dma, &self.spec.table, line);
            // Which line is next is known when the one before is here; the frames behind do not
            // wait for that.
            ready += here.saturating_sub(now);
            let context = self.contexts.context(place);
            if context.is_free() {
                break;
            }
            if context.is(flow) && context.action.leaves(frame, &summary) {
                break;
            }
            if context.is(flow) && waiting >= self.spec.queue as u64 {
                return Hairpinned::Full;
            }
            if context.is(flow) {
                self.contexts.count(place, frame.bytes.len() as u64);
                self.last = self.last.max(ready);
                return Hairpinned::Out {
                    bytes: self.rewritten(frame.bytes, &summary, context.action),
                    ready: self.last,
                };
            }
        }
        Hairpinned::Unknown
    }

    fn rewritten(&self, frame: &[u8], summary: &FrameSummary, action: FlowAction) -> Vec<u8> {
        let mut bytes = frame.to_vec();
        let (source, destination) = self.spec.addresses;
        set_macs(&mut bytes, source, destination);
        action.apply(&mut bytes, summary);
        bytes
    }

    /// Writes all counts to host memory.
    pub fn write_back<D: Dma>(&mut self, dma: &mut D) {
        self.contexts.write_back(dma, &self.spec.table);
    }
}
