//! Hairpin offload (`accel_nfv`): the NIC itself matches, counts, rewrites and sends out the packets
//! of known flows; no core sees them. What runs on today's NICs beside software as nicmem has it:
//! their memory holds state of flows instead of packets.
//!
//! ```text
//!  parsed frame ─► flow known? ─ no ─► the interface, software
//!                   │ yes: count, rewrite
//!                   ▼
//!  wire ◄─ transmit engine ◄─ hairpin queue        Contexts ══ rules, counters in and out ══ table.rs
//! ```
//!
//! Packets leave in the order in which they came. One that waits for its flow's rule or counter holds up
//! those behind it, but theirs are fetched meanwhile, several at a time.

mod action;
mod kind;
mod table;
#[cfg(test)]
mod tests;

use nicforge_nic::DropCause;
use nicforge_nic::stage::{ContextCounters, Contexts, FlowState, Frame, Services, Stage, Verdict};
use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};
use nicforge_wire::FrameSummary;
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rewrite::set_macs;

pub use action::{Endpoint, FlowAction};
pub use kind::{HairpinKind, HairpinOptions};
pub use table::{FlowCounter, FlowMatch, FlowRule, FlowTable, TableFull};

/// What a hairpin is told.
#[derive(Clone, Copy, Debug)]
pub struct HairpinSpec {
    /// The flows.
    pub table: FlowTable,
    /// Memory of the NIC for their rules and counters.
    pub memory: Bytes,
    /// Rules that are fetched at a time, at most, and counters.
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
    rules: Contexts<FlowRule>,
    counters: Contexts<FlowCounter>,
    /// When the frame before may go.
    last: Time,
}

impl Hairpin {
    /// A stage that knows no flow yet. Its memory has room for as many rules as counters.
    pub fn new(spec: HairpinSpec) -> Hairpin {
        let each = (FlowRule::BYTES + FlowCounter::BYTES) as u64;
        let flows = spec.memory.0 / each;
        let room = |bytes: usize| Bytes(flows * bytes as u64);
        let rules = Contexts::new(room(FlowRule::BYTES), spec.fetches);
        let counters = Contexts::new(room(FlowCounter::BYTES), spec.fetches);
        Hairpin { rules, counters, spec, last: Time::ZERO }
    }

    /// Look-ups, misses and evictions so far, of rules and counters together.
    pub fn contexts(&self) -> ContextCounters {
        let (rules, counters) = (self.rules.counters, self.counters.counters);
        ContextCounters {
            lookups: rules.lookups + counters.lookups,
            misses: rules.misses + counters.misses,
            evictions: rules.evictions + counters.evictions,
        }
    }

    /// The rule of `flow`, with its line, and how long the NIC waits for it.
    fn find<D: Dma>(&mut self, dma: &mut D, flow: FlowMatch) -> Option<Found> {
        let mut wait = Time::ZERO;
        for line in self.spec.table.lines(flow) {
            let now = dma.now();
            let (place, here) = self.rules.get(dma, line, self.spec.table.rule_at(line));
            // Which line is next is known when the one before is here; the frames behind do not
            // wait for that.
            wait += here.saturating_sub(now);
            let rule = *self.rules.state(place);
            if rule.is(flow) {
                return Some(Found { line, rule, wait });
            }
            if rule.is_free() {
                return None;
            }
        }
        None
    }

    /// Counts a frame of `length` bytes, and returns how long the NIC waits for the counter.
    fn count<D: Dma>(&mut self, dma: &mut D, line: u64, length: usize) -> Time {
        let now = dma.now();
        let (place, here) = self.counters.get(dma, line, self.spec.table.counter_at(line));
        let counter = self.counters.state_mut(place);
        counter.packets += 1;
        counter.bytes += length as u64;
        here.saturating_sub(now)
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
        self.counters.write_back(dma);
    }
}

/// A flow that the NIC knows.
struct Found {
    line: u64,
    rule: FlowRule,
    wait: Time,
}

/// There is no room in the hairpin queue.
const QUEUE_FULL: DropCause = DropCause("hairpin_queue_full");

impl<D: Dma> Stage<D> for Hairpin {
    /// Looks for the flow of a frame; if it is known, counts, rewrites and sends it.
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        let Some(flow) = FlowMatch::of(frame.summary()) else {
            return Verdict::Pass;
        };
        let now = nic.now();
        let Some(Found { line, rule, wait }) = self.find(nic.dma, flow) else {
            return Verdict::Pass;
        };
        if rule.action.leaves(frame) {
            return Verdict::Pass;
        }
        if nic.injector.waiting() >= self.spec.queue as u64 {
            return Verdict::Drop(QUEUE_FULL);
        }
        // Which counter it is stands in the rule.
        let wait = wait + self.count(nic.dma, line, frame.bytes().len());
        self.last = self.last.max(now + wait);
        let bytes = self.rewritten(frame.bytes(), frame.summary(), rule.action);
        nic.injector.send(bytes, frame.arrival, self.last);
        Verdict::Consume
    }

    fn sees_egress(&self) -> bool {
        false
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let ContextCounters { lookups, misses, evictions } = self.contexts();
        vec![("context_lookups", lookups), ("context_misses", misses), ("context_evictions", evictions)]
    }
}
