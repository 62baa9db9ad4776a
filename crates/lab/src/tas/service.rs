//! A flow-group of the service: segments from the NIC to flows' rings and entries of context queues, and back.

use std::net::Ipv4Addr;

use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{DriverHalf, DropCounters, Packet, PoolCache};
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_tcp::Config;
use nicforge_tcp::conn::{State, Tuning};
use nicforge_tcp::queue::{FromApplication, ToApplication};
use nicforge_tcp::stack::{Address, ConnectionId, Event, HostConfig, ListenerId, Stack};
use nicforge_units::{Cycles, Time};

use super::frame::{Parsed, parse};
use super::opening::{Opening, Remote};
use super::queue::{Receiver, Sender};
use super::records::RecordPlan;
use super::records::offload::Records;
use super::rings::{Mapped, Ring, Rings, SharedFlow, copy_pieces, refer_pieces};
use super::run::{Run, RunCosts};

/// Entries of one look at a queue.
pub(super) const BURST: usize = 16;
/// Lines of a flow's state: `Flow` has 120 bytes.
const STATE_LINES: u64 = 2;
/// The network's prefix, in bits: both hosts are on it.
const PREFIX_BITS: u8 = 8;
/// When a service looks again whose segments found no room in the NIC's ring.
const RETRY: Time = Time::from_us(1);
/// Entries of the NIC's ring that a segment with a recovery takes: parameters, fence, a record read again.
const RECOVERY_ENTRIES: u64 = 32;
/// Where a target takes connections: NVMe/TCP's port.
pub(super) const STORAGE_PORT: u16 = 4420;
/// Bytes of IP packet that the link takes.
const MTU: u16 = 1500;

/// What the service's instructions cost.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Segments that come.
    pub coming: RunCosts,
    /// Segments that leave.
    pub going: RunCosts,
    /// An entry of a context queue.
    pub entry: Cycles,
}

/// What the service knows of a connection beside TCP.
#[derive(Debug)]
pub(super) struct FlowEntry {
    pub(super) connection: ConnectionId,
    pub(super) context: usize,
    pub(super) state: Addr,
    /// Received bytes that the application was told of and has not returned.
    pub(super) held: u32,
    /// Free bytes of the transmit ring that the application knows of.
    pub(super) free: u32,
    pub(super) closed_told: bool,
    pub(super) told: bool,
    pub(super) dirty: bool,
}

/// Both queues of one application core.
pub struct Context {
    /// Entries for the application.
    pub out: Sender<ToApplication>,
    /// Entries from it.
    pub back: Receiver<FromApplication>,
}

/// One end of a host's NIC: how frames come and go.
pub struct Wire {
    /// Receives.
    pub driver: Box<dyn DriverHalf<SimCpu>>,
    /// Transmits.
    pub transmit: TransmitDriver,
    /// Packet buffers.
    pub pool: PoolCache,
}

/// Counts of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounters {
    /// Segments received.
    pub segments_in: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Entries from applications that name what is not theirs or more than there is.
    pub bad_entries: u64,
}

/// The flows of one receive queue, with their part of the stack.
pub struct Service {
    pub(super) group: usize,
    pub(super) wire: Wire,
    pub(super) costs: Costs,
    address: Ipv4Addr,
    pub(super) stack: Stack<Rings>,
    tuning: Tuning,
    listener: Option<ListenerId>,
    opening: Opening,
    /// By number of the connection; `None` until it is open.
    pub(super) flows: Vec<Option<FlowEntry>>,
    pub(super) states: Vec<Addr>,
    pub(super) contexts: Vec<Context>,
    next_context: usize,
    /// Flows of which an application has to be told.
    pub(super) dirty: Vec<usize>,
    batch: Vec<Packet>,
    /// Packets of the batch that are handled.
    handled: usize,
    /// Frames that were dropped, by cause.
    pub drops: DropCounters,
    /// Counts.
    pub counters: ServiceCounters,
    pub(super) identification: u16,
    /// Frames of one poll, segments of one flush.
    pub(super) burst: usize,
    /// The NIC reads payload where the ring has it.
    pub(super) gathers: bool,
    pub(super) records: Records,
    /// Segments of one connection that came one after the other.
    coming: Run,
}

/// What a flow-group of a service is made from.
pub struct ServicePlan {
    /// Its number.
    pub group: usize,
    /// Its host's address.
    pub address: Ipv4Addr,
    /// TCP's options.
    pub config: Config,
    /// Bytes of each ring.
    pub ring: u32,
    /// Connections at most.
    pub connections: usize,
    /// Handshakes at a time that it begins.
    pub opening: usize,
    /// What instructions cost.
    pub costs: Costs,
    /// For initial sequence numbers.
    pub seed: u64,
    /// Frames of one poll, segments of one flush.
    pub burst: usize,
    /// Payload that a connection sends before others get their turn; 0 is a segment.
    pub turn_bytes: u32,
    /// The NIC reads payload where the ring has it.
    pub gathers: bool,
    /// Records over its connections.
    pub records: Option<RecordPlan>,
    /// Records over the connection to its target.
    pub storage: Option<RecordPlan>,
}

impl Service {
    /// A service over `wire` for the applications behind `contexts`.
    pub fn new(plan: &ServicePlan, wire: Wire, contexts: Vec<Context>, space: &mut AddressSpace) -> Service {
        let mut host = HostConfig::ip(vec![Address::new(plan.address, PREFIX_BITS)]);
        host.mtu = MTU;
        host.turn_bytes = plan.turn_bytes;
        let mut ring = || Ring { at: space.data(plan.ring.into(), 4096), len: plan.ring };
        let free = (0..2 * plan.connections).map(|_| ring()).collect();
        let states = (0..plan.connections).map(|_| space.data(STATE_LINES * 64, 64)).collect();
        let tuning = Tuning {
            no_delay: true,
            receive_buffer: plan.ring * 2,
            send_buffer: plan.ring,
            ..Tuning::new(&plan.config)
        };
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&plan.seed.to_le_bytes());
        Service {
            group: plan.group,
            wire,
            costs: plan.costs,
            address: plan.address,
            stack: Stack::new(host, plan.config.clone(), Rings { free }, seed),
            tuning,
            listener: None,
            opening: Opening::new(plan.opening),
            flows: (0..plan.connections).map(|_| None).collect(),
            states,
            // So that the first flows of all groups do not meet at one core.
            next_context: plan.group % contexts.len(),
            contexts,
            dirty: Vec::new(),
            batch: Vec::with_capacity(plan.burst),
            handled: 0,
            drops: DropCounters::default(),
            counters: ServiceCounters::default(),
            identification: 0,
            burst: plan.burst,
            gathers: plan.gathers,
            records: Records::new([plan.records, plan.storage], plan.connections),
            coming: Run::default(),
        }
    }

    /// Brings the NIC's queue up.
    pub fn start(&mut self, cpu: &mut SimCpu) {
        self.wire.driver.start(cpu, &mut self.wire.pool);
    }

    /// Takes connections to `port`.
    pub fn listen(&mut self, port: u16) {
        let backlog = self.flows.len();
        // The port is the only one in use.
        self.listener = self.stack.listen(None, port, backlog, self.tuning.clone(), false).ok();
    }

    /// Opens a connection from `port` to `remote`, when it is its turn.
    pub fn connect(&mut self, port: u16, remote: Remote, now: Time) {
        self.opening.add(port, remote);
        self.opening.go_on(&mut self.stack, self.address, &self.tuning, now);
    }

    /// Memory of the queue that application core `context` fills.
    #[cfg(test)]
    pub fn memory_of(&self, context: usize) -> (Addr, usize) {
        self.contexts[context].back.memory()
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.flows.iter().flatten().count()
    }

    /// The rings of connection `flow`, as an application maps them.
    pub fn shared(&self, flow: usize) -> Option<Mapped> {
        let entry = self.flows.get(flow)?.as_ref()?;
        let (receive, transmit) = self.stack.rings(entry.connection)?;
        let rings = SharedFlow { receive: *receive, transmit: *transmit };
        let is_storage = self.stack.tuple(entry.connection)?.remote_port == STORAGE_PORT;
        Some(Mapped { rings, records: self.records.of(flow).cloned(), is_storage })
    }

    /// Takes what the NIC has, up to a burst; returns how many packets [`segment`](Self::segment) is to be called for.
    pub fn poll(&mut self, cpu: &mut SimCpu) -> usize {
        self.batch.clear();
        self.handled = 0;
        self.coming = Run::default();
        cpu.enter(Part::Driver);
        self.wire.driver.rx_burst(cpu, &mut self.wire.pool, &mut self.batch, self.burst);
        if self.wire.transmit.in_use() > 0 {
            self.wire.transmit.reclaim(cpu, &mut self.wire.pool);
        }
        self.batch.len()
    }

    /// Packets of the last poll that are not handled yet.
    pub fn waiting(&self) -> usize {
        self.batch.len() - self.handled
    }

    /// Takes the next packet of those polled.
    pub fn segment(&mut self, cpu: &mut SimCpu) {
        let packet = self.batch[self.handled];
        self.handled += 1;
        cpu.enter(Part::Stack);
        if let Err(cause) = self.take(cpu, &packet) {
            self.drops.count(cause);
        }
        self.wire.pool.free(cpu, &packet);
    }

    fn take(&mut self, cpu: &mut SimCpu, packet: &Packet) -> Result<(), &'static str> {
        self.counters.segments_in += 1;
        if packet.flags.is_checksum_bad() {
            return Err("bad_checksum");
        }
        let Parsed { tuple, envelope, header, payload_at } = parse(cpu, packet)?;
        let known = self.stack.find(&tuple);
        cpu.work(self.coming.add(&self.costs.coming, known.map(|id| id.number()), header.payload_len));
        let now = cpu.now();
        if let Some(state) = known.and_then(|id| self.states.get(id.number())) {
            touch(cpu, *state);
        }
        let arrival = self.stack.receive_header(&envelope, &header, now);
        if let Some(arrival) = arrival {
            let placement = arrival.placement;
            let Some((receive, _)) = self.stack.rings(arrival.connection) else { return Err("no_ring") };
            let (to, first) = (receive.pieces(placement.at, placement.len), payload_at + placement.skip);
            let seq = header.seq.0.wrapping_add(placement.skip);
            let is_placed = self.note_report(arrival.connection.number(), seq, placement.len, packet);
            cpu.enter(Part::Copy);
            let from = packet.span(first, first + placement.len);
            if is_placed {
                refer_pieces(cpu, from, to);
            } else {
                copy_pieces(cpu, from, to);
            }
            cpu.enter(Part::Stack);
        }
        self.take_events(now);
        if let Some(id) = known {
            self.acknowledge_records(id);
            self.mark(id.number());
        }
        Ok(())
    }

    /// Connections that opened get a context, and others begin to open.
    pub(super) fn take_events(&mut self, now: Time) {
        while let Some(event) = self.stack.next_event() {
            let opened = match event {
                Event::Accepted(listener) => self.stack.accept(listener),
                Event::Changed(id) | Event::Arrived(id) => Some(id),
            };
            if let Some(id) = opened {
                self.adopt(id);
                self.mark(id.number());
            }
        }
        self.opening.go_on(&mut self.stack, self.address, &self.tuning, now);
    }

    fn adopt(&mut self, id: ConnectionId) {
        let open = self.stack.connection(id).is_some_and(|connection| connection.state() == State::Established);
        let (Some(slot), Some(&state)) = (self.flows.get_mut(id.number()), self.states.get(id.number())) else {
            return;
        };
        if slot.is_some() || !open {
            return;
        }
        let free = self.stack.connection(id).map_or(0, |connection| connection.writable());
        *slot = Some(FlowEntry {
            connection: id,
            context: self.next_context,
            state,
            held: 0,
            free,
            closed_told: false,
            told: false,
            dirty: false,
        });
        self.next_context = (self.next_context + 1) % self.contexts.len();
        self.begin_records(id);
    }

    fn mark(&mut self, flow: usize) {
        if let Some(Some(entry)) = self.flows.get_mut(flow)
            && !std::mem::replace(&mut entry.dirty, true)
        {
            self.dirty.push(flow);
        }
    }

    /// When the next timer fires; at once while there is work that found no room.
    pub fn due(&self, now: Time) -> Time {
        if self.stack.may_transmit() && !self.has_room() {
            return now + RETRY;
        }
        if self.stack.may_transmit() || !self.dirty.is_empty() || self.records.has_commands() {
            return now;
        }
        self.stack.poll_at().unwrap_or(Time::NEVER)
    }

    /// Whether the NIC's ring takes the next segment, whatever has to go before it.
    pub(super) fn has_room(&self) -> bool {
        let wanted = if self.records.is_offloaded() { RECOVERY_ENTRIES } else { 1 };
        self.wire.transmit.room() >= wanted
    }

    /// Packet buffers that it answers for.
    pub fn buffers(&self) -> i64 {
        let outside = self.wire.pool.len() as u64 + self.wire.transmit.buffers_held() + self.waiting() as u64;
        self.wire.driver.buffers_held() + outside as i64
    }

    /// Frames taken from the NIC so far.
    pub fn taken(&self) -> u64 {
        self.wire.driver.taken()
    }

    /// Frames given to the NIC so far.
    pub fn pushed(&self) -> u64 {
        self.wire.transmit.pushed()
    }
}

/// A segment reads and changes its flow's state.
pub(super) fn touch(cpu: &mut SimCpu, state: Addr) {
    for line in 0..STATE_LINES {
        let at = state + line * 64;
        let count: u64 = cpu.load(at);
        cpu.store(at, count.wrapping_add(1));
    }
}
