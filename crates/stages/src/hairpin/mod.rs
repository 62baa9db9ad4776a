//! Hairpin offload (`accel_nfv`): the NIC itself matches, counts, rewrites and sends out the packets
//! of known flows; no core sees them. What runs on today's NICs beside software as nicmem has it:
//! their memory holds state of flows instead of packets.
//!
//! ```text
//!  parsed frame ─► flow known? ─ no ─► the interface, software
//!                   │ yes: count, rewrite
//!                   ▼
//!  wire ◄─ transmit engine ◄─ hairpin queue        Contexts ══ lines in and out ══ table.rs
//! ```
//!
//! Packets leave in the order in which they came. One that waits for its flow's context holds up
//! those behind it, but their contexts are fetched meanwhile, several at a time.

mod action;
mod kind;
mod table;
#[cfg(test)]
mod tests;

use nicforge_nic::DropCause;
use nicforge_nic::stage::{ContextCounters, Contexts, Frame, Services, Stage, Verdict};
use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};
use nicforge_wire::FrameSummary;
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rewrite::set_macs;

pub use action::{Endpoint, FlowAction};
pub use kind::{HairpinKind, HairpinOptions};
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

/// The stage between parser and interface.
#[derive(Debug)]
pub struct Hairpin {
    spec: HairpinSpec,
    contexts: Contexts<FlowContext>,
    /// When the frame before may go.
    last: Time,
}

impl Hairpin {
    /// A stage that knows no context yet.
    pub fn new(spec: HairpinSpec) -> Hairpin {
        Hairpin { contexts: Contexts::new(spec.memory, spec.fetches), spec, last: Time::ZERO }
    }

    /// What was counted so far.
    pub fn contexts(&self) -> ContextCounters {
        self.contexts.counters
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
        self.contexts.write_back(dma);
    }
}

/// There is no room in the hairpin queue.
const QUEUE_FULL: DropCause = DropCause("hairpin_queue_full");

impl<D: Dma> Stage<D> for Hairpin {
    /// Looks for the flow of a frame; if it is known, counts, rewrites and sends it.
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let Some(flow) = FlowMatch::of(frame.summary()) else {
            return Verdict::Pass;
        };
        let mut ready = nic.now();
        for line in self.spec.table.lines(flow) {
            let now = nic.now();
            let (place, here) = self.contexts.get(nic.dma, line, self.spec.table.address(line));
            // Which line is next is known when the one before is here; the frames behind do not
            // wait for that.
            ready += here.saturating_sub(now);
            let context = *self.contexts.state(place);
            if context.is_free() {
                break;
            }
            if !context.is(flow) {
                continue;
            }
            if context.action.leaves(frame) {
                break;
            }
            if nic.injector.waiting() >= self.spec.queue as u64 {
                return Verdict::Drop(QUEUE_FULL);
            }
            let counted = self.contexts.state_mut(place);
            counted.packets += 1;
            counted.bytes += frame.bytes().len() as u64;
            self.last = self.last.max(ready);
            let bytes = self.rewritten(frame.bytes(), frame.summary(), context.action);
            nic.injector.send(bytes, frame.arrival, self.last);
            return Verdict::Consume;
        }
        Verdict::Pass
    }

    fn sees_egress(&self) -> bool {
        false
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let ContextCounters { lookups, misses, evictions } = self.contexts.counters;
        vec![("context_lookups", lookups), ("context_misses", misses), ("context_evictions", evictions)]
    }
}
