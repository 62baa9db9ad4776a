//! Autonomous offloads as a stage: the engine of `nicforge_l5p` on a NIC's path, with contexts in the NIC's memory.
//!
//! | direction | what the stage does |
//! | --- | --- |
//! | egress | executes [`Command`]s, which go no further, and processes packets that [`mark`] names a context for |
//! | ingress | finds the flow's context, processes the payload, and says so in the completion's flags and mark |
//!
//! Contexts lie in a table in host memory, 208 bytes each; those in use are in the NIC's memory, and a miss is a DMA
//! read that the frame waits for. The NIC makes TCP checksums right again, so that stacks which verify them do.
//!
//! | register | access | what |
//! | ---: | --- | --- |
//! | 0 | write | context that the next answer is about |
//! | 1 | write | sequence number that the NIC asked about |
//! | 2 | write | "yes, message n begins there": `l5o_resync_rx_resp` |
//! | 3 | write | "no" |
//! | 4, 5 | write | first address and bytes of the host memory that dumps may read and placement may write |

mod command;
mod kind;
mod stacks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use command::{Command, mark, marked};
pub use kind::{L5pKind, L5pOptions};

use nicforge_l5p::context::{CONTEXT_BYTES, Context, ContextId, FlowKey};
use nicforge_l5p::engine::{Descriptor, Engine, EngineConfig, Executed, InnerReport, Outcome, Received};
use nicforge_l5p::host::{HostFault, HostMemory};
use nicforge_l5p::port::Segment;
use nicforge_l5p::protocol::{Direction, ProtocolId};
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_nic::stage::{Contexts, FlowState, Frame, Services, Stage, Verdict};
use nicforge_nic::{DropCause, RxFlags};
use nicforge_platform::{Addr, Dma};
use nicforge_units::{Bytes, Time};
use stacks::Stacks;

/// Every byte of the packet was processed and every check passed: Linux's `decrypted`, `crc_ok`.
pub const PROCESSED: RxFlags = RxFlags(1 << 8);
/// A check failed; the packet is as it came.
pub const FAILED: RxFlags = RxFlags(1 << 9);
/// All payload that has a destination buffer was written there.
pub const PLACED: RxFlags = RxFlags(1 << 10);
/// The mark's lower half is a place that software shall confirm.
pub const ASKS: RxFlags = RxFlags(1 << 11);
/// The packet met a context, which the mark's upper half names.
pub const MET: RxFlags = RxFlags(1 << 12);
/// What [`PROCESSED`] says, of the protocol within TLS.
pub const INNER_PROCESSED: RxFlags = RxFlags(1 << 13);
/// What [`PLACED`] says, of the protocol within TLS.
pub const INNER_PLACED: RxFlags = RxFlags(1 << 14);
/// What [`ASKS`] says, of the protocol within TLS, whose question no other accompanies.
pub const INNER_ASKS: RxFlags = RxFlags(1 << 15);

/// A packet that the NIC cannot process: software's bytes are not fit for the wire.
const REFUSED: DropCause = DropCause("l5p_refused");

/// What the completion of a received packet says of it.
pub fn report(flags: RxFlags, mark: u64) -> Received {
    let mut received = Received::without_context();
    if !flags.contains(MET) {
        return received;
    }
    received.context = ContextId((mark >> 32) as u32);
    received.outcome = match (flags.contains(PROCESSED), flags.contains(FAILED)) {
        (true, _) => Outcome::Offloaded,
        (false, true) => Outcome::Failed,
        (false, false) => Outcome::NotOffloaded,
    };
    received.is_placed = flags.contains(PLACED);
    let asked = |flag| flags.contains(flag).then_some(Seq(mark as u32));
    received.resync = asked(ASKS);
    received.inner = InnerReport {
        is_processed: flags.contains(INNER_PROCESSED),
        is_placed: flags.contains(INNER_PLACED),
        resync: asked(INNER_ASKS),
    };
    received
}

fn completion(received: &Received) -> (RxFlags, u64) {
    let mut flags = MET;
    let mut add = |is_set: bool, flag: RxFlags| {
        if is_set {
            flags = flags.with(flag);
        }
    };
    add(received.outcome == Outcome::Offloaded, PROCESSED);
    add(received.outcome == Outcome::Failed, FAILED);
    add(received.is_placed, PLACED);
    let inner = received.inner;
    add(inner.is_processed, INNER_PROCESSED);
    add(inner.is_placed, INNER_PLACED);
    // A packet in which TLS asks holds no inner bytes.
    add(received.resync.is_some(), ASKS);
    add(received.resync.is_none() && inner.resync.is_some(), INNER_ASKS);
    let asked = received.resync.or(inner.resync).map_or(0, |tcpsn| tcpsn.0);
    (flags, u64::from(received.context.0) << 32 | u64::from(asked))
}

/// A context as it lies in the NIC's memory.
#[derive(Clone)]
struct Resident(Context);

impl Default for Resident {
    fn default() -> Resident {
        Resident(Context::from_bytes(&[0; CONTEXT_BYTES]))
    }
}

impl FlowState for Resident {
    const BYTES: usize = CONTEXT_BYTES;

    fn encode(&self, into: &mut [u8]) {
        into.copy_from_slice(&self.0.to_bytes());
    }

    fn decode(bytes: &[u8]) -> Resident {
        bytes.first_chunk().map_or_else(Resident::default, |bytes| Resident(Context::from_bytes(bytes)))
    }
}

/// Where contexts are, and how fast the engine is.
#[derive(Clone, Copy, Debug)]
pub struct L5pSpec {
    /// The table in host memory.
    pub table: Addr,
    /// Contexts in it.
    pub contexts: u32,
    /// The NIC's memory for contexts.
    pub memory: Bytes,
    /// Contexts that are fetched at a time.
    pub fetches: usize,
    /// What the engine adds to a packet's way.
    pub delay: Time,
    /// Variants of the engine.
    pub engine: EngineConfig,
}

/// What the stage counts beside the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L5pCounts {
    /// Commands executed.
    pub commands: u64,
    /// Commands that made no sense, or that the engine refused.
    pub commands_refused: u64,
    /// Packets that the engine refused; they are dropped.
    pub packets_refused: u64,
}

/// The stage.
pub struct L5p {
    spec: L5pSpec,
    engine: Engine,
    contexts: Contexts<Resident>,
    /// Receive contexts by flow.
    flows: BTreeMap<FlowKey, ContextId>,
    stacks: Stacks,
    window: (u64, u64),
    answer: (u32, u32),
    counts: L5pCounts,
}

/// Host memory as the engine reaches it.
struct Window<'a, D> {
    dma: &'a mut D,
    begin: u64,
    bytes: u64,
}

impl<D: Dma> Window<'_, D> {
    fn check(&self, address: u64, bytes: usize) -> Result<Addr, HostFault> {
        let within = address.checked_sub(self.begin).and_then(|at| at.checked_add(bytes as u64));
        within.filter(|end| *end <= self.bytes).map(|_| Addr(address)).ok_or(HostFault { address, bytes })
    }
}

impl<D: Dma> HostMemory for Window<'_, D> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), HostFault> {
        let from = self.check(address, into.len())?;
        self.dma.read(from, into);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), HostFault> {
        let to = self.check(address, bytes.len())?;
        self.dma.write(to, bytes);
        Ok(())
    }
}

impl L5p {
    /// A stage without contexts, whose table is zero.
    pub fn new(spec: L5pSpec) -> L5p {
        L5p {
            engine: Engine::new(spec.engine),
            contexts: Contexts::new(spec.memory, spec.fetches),
            flows: BTreeMap::new(),
            stacks: Stacks::default(),
            window: (0, 0),
            answer: (0, 0),
            counts: L5pCounts::default(),
            spec,
        }
    }

    /// What it counted.
    pub fn counts(&self) -> L5pCounts {
        self.counts
    }

    /// The engine, for its counters.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Calls `work` with a context, which is fetched first where the NIC does not have it. `None` for a number that the
    /// table does not have.
    fn with_context<D: Dma, T>(
        &mut self,
        nic: &mut Services<'_, D>,
        id: ContextId,
        work: impl FnOnce(&mut Engine, &mut Context, &mut Window<'_, D>) -> T,
    ) -> Option<T> {
        if id.0 >= self.spec.contexts {
            return None;
        }
        let at = self.spec.table + u64::from(id.0) * CONTEXT_BYTES as u64;
        let (place, here) = self.contexts.get(nic.dma, id.0.into(), at);
        nic.wait_until(here);
        let mut window = Window { dma: nic.dma, begin: self.window.0, bytes: self.window.1 };
        Some(work(&mut self.engine, &mut self.contexts.state_mut(place).0, &mut window))
    }

    fn command<D: Dma>(&mut self, nic: &mut Services<'_, D>, command: Command) -> bool {
        let done =
            match command {
                Command::Create(created) => {
                    let (flow, direction) = (created.flow(), created.direction());
                    let id = created.id;
                    self.stacks.remove(id);
                    let done = self.with_context(nic, id, |engine, context, _| engine.adopt(context, &created));
                    if done == Some(true) && direction == Direction::Receive {
                        self.flows.insert(flow, id);
                    }
                    done
                }
                Command::Destroy(id) => {
                    self.stacks.remove(id);
                    let flow = self.with_context(nic, id, |engine, context, _| {
                        let flow = context.flow();
                        engine.destroy(context);
                        flow
                    });
                    if let Some(flow) = flow.filter(|flow| self.flows.get(flow) == Some(&id)) {
                        self.flows.remove(&flow);
                    }
                    flow.map(|_| true)
                }
                Command::Execute(id, descriptor) => self
                    .with_context(nic, id, |engine, context, host| engine.execute(context, host, descriptor).is_ok()),
                Command::Add(id, state_id, state) => self
                    .with_context(nic, id, |engine, context, _| engine.add_rr_state(context, state_id, state).is_ok()),
                Command::Delete(id, state) => {
                    self.with_context(nic, id, |engine, context, _| engine.del_rr_state(context, state))
                }
                Command::Stack(outer, inner) => self.stack(nic, outer, inner),
            };
        done == Some(true)
    }

    fn answer<D: Dma>(&mut self, nic: &mut Services<'_, D>, number: Option<u64>) -> bool {
        let (id, tcpsn) = (ContextId(self.answer.0), Seq(self.answer.1));
        let answered = match self.stacks.outer_of(id) {
            Some(outer) => self.with_stacked(nic, outer, |engine, stacked, _| {
                stacked.inner_resync_response(engine, tcpsn, number);
            }),
            None => self.with_context(nic, id, |engine, context, _| engine.resync_response(context, tcpsn, number)),
        };
        answered.is_some()
    }
}

impl<D: Dma> Stage<D> for L5p {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        if self.flows.is_empty() || frame.flags.is_checksum_bad() {
            return Verdict::Pass;
        }
        let Some(segment) = Segment::of(frame.bytes(), *frame.summary()) else { return Verdict::Pass };
        let Some(&id) = self.flows.get(&segment.flow) else { return Verdict::Pass };
        nic.delay(self.spec.delay);
        let mut bytes = frame.bytes().to_vec();
        let payload = &mut bytes[segment.payload.clone()];
        let received = if self.stacks.is_outer(id) {
            self.with_stacked(nic, id, |engine, stacked, host| stacked.receive(engine, host, segment.seq, payload))
        } else {
            self.with_context(nic, id, |engine, context, host| engine.receive(context, host, segment.seq, payload))
        };
        let Some(received) = received else { return Verdict::Pass };
        if received.outcome == Outcome::Offloaded {
            segment.close(&mut bytes);
            // Lengths are the same, so the parser finds what it found before.
            let _ = frame.edit(|old| *old = bytes);
        }
        let (flags, mark) = completion(&received);
        frame.flags = frame.flags.with(flags);
        frame.mark = mark;
        Verdict::Pass
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        if Command::is_in(frame.bytes()) {
            let is_done = Command::parse(frame.bytes()).is_some_and(|command| self.command(nic, command));
            self.counts.commands += u64::from(is_done);
            self.counts.commands_refused += u64::from(!is_done);
            return Verdict::Consume;
        }
        let Some(id) = marked(frame.mark) else { return Verdict::Pass };
        let Some(segment) = Segment::of(frame.bytes(), *frame.summary()) else { return Verdict::Pass };
        nic.delay(self.spec.delay);
        let payload = frame.bytes()[segment.payload.clone()].to_vec();
        let descriptor = Descriptor::Packet { seq: segment.seq, payload };
        let sent = self.with_context(nic, id, |engine, context, host| engine.execute(context, host, descriptor));
        let Some(Ok(Executed::Sent { payload, .. })) = sent else {
            self.counts.packets_refused += 1;
            return Verdict::Drop(REFUSED);
        };
        let _ = frame.edit(|bytes| {
            bytes[segment.payload.clone()].copy_from_slice(&payload);
            segment.close(bytes);
        });
        Verdict::Pass
    }

    fn registers(&self) -> u32 {
        6
    }

    fn write_register(&mut self, nic: &mut Services<'_, D>, index: u32, value: u64) -> bool {
        match index {
            0 => self.answer.0 = value as u32,
            1 => self.answer.1 = value as u32,
            2 => return self.answer(nic, Some(value)),
            3 => return self.answer(nic, None),
            4 => self.window.0 = value,
            5 => self.window.1 = value,
            _ => return false,
        }
        true
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut sum = nicforge_l5p::counters::Counters::default();
        let protocols = (0..registry::PROTOCOLS.len()).map(|place| ProtocolId(place as u8));
        protocols.for_each(|protocol| sum.add(&self.engine.counters(protocol)));
        vec![
            ("l5p_tx_packets", sum.tx_packets),
            ("l5p_tx_bytes", sum.tx_bytes),
            ("l5p_tx_refused", sum.tx_refused),
            ("l5p_rx_packets", sum.rx_packets),
            ("l5p_rx_bytes", sum.rx_bytes),
            ("l5p_rx_err", sum.rx_failed),
            ("l5p_rx_ooo", sum.rx_ooo),
            ("l5p_rx_resync_req_start", sum.rx_searches),
            ("l5p_rx_resync_req_pkt", sum.rx_resync_req_pkt),
            ("l5p_rx_resync_res_ok", sum.rx_resync_res_ok),
            ("l5p_rx_placed_bytes", sum.rx_placed_bytes),
            ("l5p_commands", self.counts.commands),
            ("l5p_commands_refused", self.counts.commands_refused),
            ("l5p_context_lookups", self.contexts.counters.lookups),
            ("l5p_context_misses", self.contexts.counters.misses),
            ("l5p_context_evictions", self.contexts.counters.evictions),
        ]
    }
}
