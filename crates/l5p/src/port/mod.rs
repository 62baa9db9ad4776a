//! The NIC and its driver between a TCP stack and a wire: frames in, frames out.
//!
//! ```text
//!  layer 5 ── stack ── frames ─► Port::send ── driver half: shadow, message map, descriptors ─► engine ─► wire
//!     ▲         ▲ reports of bytes in the ring                                                            │
//!     └─────────┴─────────────── Port::receive ◄── engine ◄───────────────────────────────────────────────┘
//! ```
//!
//! The stack is any that keeps what it sends until it is acknowledged, and tells where it put what it received. Contexts
//! are found by addresses and ports. Without a place on the NIC (no room, a device that restarted, an offload that was
//! destroyed with data in flight) software does the NIC's work for packets that leave, since what the stack holds is
//! not fit for the wire.

mod frame;
mod reports;
mod window;

use std::collections::BTreeMap;

use nicforge_units::Time;

pub use frame::{Segment, TcpHeader};
pub use reports::{Reports, Stretch};
pub use window::StreamMemory;

use crate::context::{Context, ContextId, FlowKey, Mode, Start, State};
use crate::counters::Counters;
use crate::driver::{Layer5, ResyncAnswer, TxDriver};
use crate::engine::{Create, Engine, EngineConfig, Executed, Received, UnknownProtocol};
use crate::host::HostMemory;
use crate::protocol::{Direction, ProtocolId};
use crate::registry;
use crate::sequence::Seq;

/// What software asks of the NIC for one direction of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Offload {
    /// The flow, from sender to receiver.
    pub flow: FlowKey,
    /// The layer-5 protocol.
    pub protocol: ProtocolId,
    /// Where the next message begins, and its number.
    pub start: Start,
    /// Keys and options.
    pub state: State,
}

/// What was counted beside the protocols' counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Contexts that found no room on the NIC.
    pub no_room: u64,
    /// Packets that software processed on their way out, because the NIC had no context for them.
    pub in_software_packets: u64,
    /// Payload bytes of these.
    pub in_software_bytes: u64,
    /// Frames with a wrong checksum, in which nothing was offloaded.
    pub damaged: u64,
    /// Times that offloading came back after it was lost.
    pub returns: u64,
    /// Sum of the times from loss to return.
    pub away: Time,
    /// The longest of them.
    pub away_most: Time,
}

struct Outward {
    context: Context,
    driver: TxDriver,
    is_on_nic: bool,
}

struct Inward {
    context: Context,
    lost_at: Option<Time>,
}

/// The NIC's engine with the contexts of its flows, and the driver half of each.
pub struct Port {
    nic: Engine,
    /// Does the NIC's work on a core, with the same code.
    software: Engine,
    outward: BTreeMap<FlowKey, Outward>,
    inward: BTreeMap<FlowKey, Inward>,
    contexts_max: usize,
    dump_bytes_max: u32,
    next_id: u32,
    /// What drivers of destroyed contexts counted.
    past: BTreeMap<ProtocolId, Counters>,
    counters: PortCounters,
}

impl Port {
    /// A NIC that has room for `contexts_max` contexts.
    pub fn new(config: EngineConfig, contexts_max: usize) -> Self {
        Self {
            nic: Engine::new(config),
            software: Engine::new(config),
            outward: BTreeMap::new(),
            inward: BTreeMap::new(),
            contexts_max,
            dump_bytes_max: config.dump_bytes_max as u32,
            next_id: 0,
            past: BTreeMap::new(),
            counters: PortCounters::default(),
        }
    }

    /// The number that the next context gets.
    pub fn next_id(&self) -> ContextId {
        ContextId(self.next_id)
    }

    /// Offloads packets of a flow that leave. Where the NIC has no room, software does its work from the same place on.
    ///
    /// # Errors
    ///
    /// [`UnknownProtocol`].
    pub fn offload_transmit(&mut self, offload: &Offload) -> Result<ContextId, UnknownProtocol> {
        self.destroy_transmit(&offload.flow);
        let is_on_nic = self.has_room();
        let id = self.take_id();
        let create = create(offload, id, Direction::Transmit);
        let engine = if is_on_nic { &mut self.nic } else { &mut self.software };
        let context = engine.create(create)?;
        let driver = TxDriver::new(offload.start, offload.state, self.dump_bytes_max);
        self.outward.insert(offload.flow, Outward { context, driver, is_on_nic });
        Ok(id)
    }

    /// Offloads packets of a flow that come in. `None` where the NIC has no room: packets go up as they come.
    ///
    /// # Errors
    ///
    /// [`UnknownProtocol`].
    pub fn offload_receive(&mut self, offload: &Offload) -> Result<Option<ContextId>, UnknownProtocol> {
        self.destroy_receive(&offload.flow);
        if !self.has_room() {
            return Ok(None);
        }
        let id = self.take_id();
        let context = self.nic.create(create(offload, id, Direction::Receive))?;
        self.inward.insert(offload.flow, Inward { context, lost_at: None });
        Ok(Some(id))
    }

    /// New keys for messages from `start` on, which has not been sent yet.
    pub fn rekey_transmit(&mut self, flow: &FlowKey, start: Start, state: State) {
        if let Some(outward) = self.outward.get_mut(flow) {
            outward.driver.rekey(start, state);
        }
    }

    /// TCP's peer has everything before `tcpsn`.
    pub fn acknowledge(&mut self, flow: &FlowKey, tcpsn: Seq) {
        if let Some(outward) = self.outward.get_mut(flow) {
            outward.driver.acknowledge(tcpsn);
        }
    }

    /// The NIC gives the context of a flow that leaves up, keys included; software goes on with what is in flight.
    pub fn fall_back(&mut self, flow: &FlowKey) {
        if let Some(outward) = self.outward.get_mut(flow).filter(|outward| outward.is_on_nic) {
            let kept = outward.context;
            self.nic.destroy(&mut outward.context);
            outward.context = kept;
            outward.is_on_nic = false;
        }
    }

    /// Gives a flow that leaves a context on the NIC again, at the place where software is. Tells whether there is one.
    pub fn return_to_nic(&mut self, flow: &FlowKey) -> bool {
        if self.outward.get(flow).is_some_and(|outward| outward.is_on_nic) {
            return true;
        }
        if !self.has_room() {
            return false;
        }
        let Some(outward) = self.outward.get_mut(flow) else {
            return false;
        };
        let Context { id, state, .. } = outward.context;
        let start = Start { tcpsn: outward.context.tcpsn, number: outward.context.number };
        let (protocol, direction) = (outward.context.protocol(), Direction::Transmit);
        // The new context begins nowhere in particular: the driver's shadow makes the next packet a recovery.
        let create = Create { id, flow: *flow, protocol, direction, start, state };
        let Ok(context) = self.nic.create(create) else {
            return false;
        };
        self.software.destroy(&mut outward.context);
        outward.context = context;
        outward.driver.lose_context();
        outward.is_on_nic = true;
        true
    }

    /// The device restarts: every context is gone. Packets that leave are processed by software from now on, packets
    /// that come in go up as they come, until the host creates contexts again.
    pub fn restart(&mut self) {
        let flows: Vec<FlowKey> = self.outward.keys().copied().collect();
        flows.iter().for_each(|flow| self.fall_back(flow));
        let flows: Vec<FlowKey> = self.inward.keys().copied().collect();
        flows.iter().for_each(|flow| self.destroy_receive(flow));
        self.nic.drop_keys();
    }

    /// Ends the offload of packets that leave: everything that was sent is acknowledged, or the connection is over.
    pub fn destroy_transmit(&mut self, flow: &FlowKey) {
        if let Some(mut outward) = self.outward.remove(flow) {
            let protocol = outward.context.protocol();
            self.past.entry(protocol).or_default().add(&outward.driver.counters());
            let engine = if outward.is_on_nic { &mut self.nic } else { &mut self.software };
            engine.destroy(&mut outward.context);
        }
    }

    /// Ends the offload of packets that come in.
    pub fn destroy_receive(&mut self, flow: &FlowKey) {
        if let Some(mut inward) = self.inward.remove(flow) {
            self.nic.destroy(&mut inward.context);
        }
    }

    /// The segment in a frame that leaves, if its flow is offloaded. Other frames leave as they are.
    pub fn leaving(&self, frame: &[u8]) -> Option<Segment> {
        if self.outward.is_empty() {
            return None;
        }
        Segment::find(frame).filter(|segment| self.outward.contains_key(&segment.flow))
    }

    /// Processes a frame that leaves and hands what the wire gets to `wire`: one frame, two where it crosses a start of
    /// offload or a change of keys, none where its message is no longer kept.
    pub fn send(
        &mut self,
        frame: &[u8],
        segment: &Segment,
        layer5: &dyn Layer5,
        memory: &mut dyn HostMemory,
        mut wire: impl FnMut(&[u8]),
    ) {
        let Some(outward) = self.outward.get_mut(&segment.flow) else {
            return wire(frame);
        };
        let end = segment.seq.plus(segment.payload.len());
        for descriptor in outward.driver.send(layer5, segment.seq, &frame[segment.payload.clone()]) {
            let engine = if outward.is_on_nic { &mut self.nic } else { &mut self.software };
            // What the engine refuses does not leave; the engine counts it, and TCP tries again.
            if let Ok(Executed::Sent { seq, payload }) = engine.execute(&mut outward.context, memory, descriptor) {
                if !outward.is_on_nic {
                    self.counters.in_software_packets += 1;
                    self.counters.in_software_bytes += payload.len() as u64;
                }
                wire(&segment.part(frame, seq, &payload, seq.plus(payload.len()) == end));
            }
        }
    }

    /// Processes a frame that comes in, in place. Tells what its flow and place are, and what the NIC reports; `None` for
    /// frames without an offloaded flow. `memory` is where answers are placed.
    pub fn receive(&mut self, frame: &mut [u8], memory: &mut dyn HostMemory, now: Time) -> Option<(Segment, Received)> {
        if self.inward.is_empty() {
            return None;
        }
        let segment = Segment::find(frame)?;
        let inward = self.inward.get_mut(&segment.flow)?;
        if !segment.is_intact(frame) {
            self.counters.damaged += 1;
            return None;
        }
        let payload = &mut frame[segment.payload.clone()];
        let received = self.nic.receive(&mut inward.context, memory, segment.seq, payload);
        segment.close(frame);
        if inward.context.mode() == Mode::Offloading {
            note_return(&mut self.counters, inward, now);
        } else {
            inward.lost_at.get_or_insert(now);
        }
        Some((segment, received))
    }

    /// Software's answer to a question of the NIC.
    pub fn answer(&mut self, flow: &FlowKey, answer: ResyncAnswer, now: Time) {
        if let Some(inward) = self.inward.get_mut(flow) {
            self.nic.resync_response(&mut inward.context, answer.tcpsn, answer.number);
            if inward.context.mode() == Mode::Offloading {
                note_return(&mut self.counters, inward, now);
            }
        }
    }

    /// The engine and the context of a flow that comes in, for request-response states.
    pub fn inward(&mut self, flow: &FlowKey) -> Option<(&mut Engine, &mut Context)> {
        let inward = self.inward.get_mut(flow)?;
        Some((&mut self.nic, &mut inward.context))
    }

    /// Writes all contexts to host memory and fetches them again, and forgets expanded keys: what a device that is
    /// short of memory may do between any two packets.
    pub fn evict(&mut self) {
        let contexts = self.outward.values_mut().map(|outward| &mut outward.context);
        for context in contexts.chain(self.inward.values_mut().map(|inward| &mut inward.context)) {
            *context = Context::from_bytes(&context.to_bytes());
        }
        self.nic.drop_keys();
    }

    /// What NIC and drivers counted for a protocol.
    pub fn counters(&self, protocol: ProtocolId) -> Counters {
        let mut sum = self.nic.counters(protocol);
        sum.add(self.past.get(&protocol).unwrap_or(&Counters::default()));
        let drivers = self.outward.values().filter(|outward| outward.context.protocol() == protocol);
        drivers.for_each(|outward| sum.add(&outward.driver.counters()));
        sum
    }

    /// Every counter of every protocol that counted something, with its name.
    pub fn named_counters(&self) -> Vec<(String, u64)> {
        let protocols = (0..registry::PROTOCOLS.len()).map(|place| ProtocolId(place as u8));
        protocols
            .filter_map(|id| {
                let counters = self.counters(id);
                (counters != Counters::default()).then(|| counters.named(registry::get(id).map_or("", |p| p.name())))
            })
            .flatten()
            .collect()
    }

    /// What was counted beside the protocols' counters.
    pub fn port_counters(&self) -> PortCounters {
        self.counters
    }

    fn has_room(&mut self) -> bool {
        let on_nic = self.outward.values().filter(|outward| outward.is_on_nic).count() + self.inward.len();
        let has_room = on_nic < self.contexts_max;
        self.counters.no_room += u64::from(!has_room);
        has_room
    }

    fn take_id(&mut self) -> ContextId {
        self.next_id += 1;
        ContextId(self.next_id - 1)
    }
}

fn create(offload: &Offload, id: ContextId, direction: Direction) -> Create {
    let Offload { flow, protocol, start, state } = *offload;
    Create { id, flow, protocol, direction, start, state }
}

fn note_return(counters: &mut PortCounters, inward: &mut Inward, now: Time) {
    if let Some(lost_at) = inward.lost_at.take() {
        let away = now.saturating_sub(lost_at);
        counters.returns += 1;
        counters.away += away;
        counters.away_most = counters.away_most.max(away);
    }
}
