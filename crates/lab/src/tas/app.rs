//! RPCs over context queues: a client that keeps requests in flight, and a server that answers each. Messages may be
//! longer than the rings.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Part};
use nicforge_tcp::queue::{FromApplication, ToApplication};
use nicforge_units::{Cycles, Time};

use super::drive::Reads;
use super::flow::RpcFlow;
use super::message::{Message, STAMP_BYTES};
use super::pages::SharedPages;
use super::queue::{Receiver, Sender};
use super::rings::Mapped;
use super::source::Source;

/// Entries that one step takes.
const BURST: usize = 16;
/// A message moves in pieces of this part of its ring at least, unless less is left of it.
const PIECE_OF_RING: u32 = 4;
/// Latencies up to a second are told apart by three digits.
const LATENCY_MOST_NS: u64 = 1_000_000_000;

/// The word for a connection in entries: its flow-group, its number there, and which connection of this number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowName(pub u64);

impl FlowName {
    /// Flow `flow` of group `group`.
    pub fn new(group: usize, flow: usize) -> FlowName {
        FlowName((group as u64) << 32 | flow as u64)
    }

    /// The same number's connection after so many others.
    pub fn after(self, others: u16) -> FlowName {
        FlowName(self.0 | u64::from(others) << 48)
    }

    /// Its flow-group.
    pub fn group(self) -> usize {
        usize::from((self.0 >> 32) as u16)
    }

    /// Its number in the group.
    pub fn flow(self) -> usize {
        self.0 as u32 as usize
    }
}

/// What an application does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Asks.
    Client,
    /// Answers.
    Server,
}

/// What RPCs are like, and what they cost.
#[derive(Clone, Copy, Debug)]
pub struct RpcPlan {
    /// Bytes of a request.
    pub request: u32,
    /// Bytes of its answer.
    pub answer: u32,
    /// Requests of a connection that wait for their answers.
    pub in_flight: u32,
    /// Requests of a connection, after which it closes; 0: it stays open.
    pub requests: u64,
    /// The server's work for each.
    pub work: Cycles,
    /// The library's instructions for a call.
    pub call: Cycles,
    /// The library's instructions for an entry.
    pub entry: Cycles,
    /// Where messages that it sends come from.
    pub source: Source,
    /// The client's work for each answer.
    pub client_work: Cycles,
    /// The server's work for each read from its target.
    pub storage_work: Cycles,
}

/// What clients saw.
#[derive(Debug)]
pub struct RpcResults {
    /// Answers so far.
    pub answered: u64,
    /// Answers that are not what was asked: a defect.
    pub wrong: u64,
    /// Answers of each connection, since [`restart`](Self::restart).
    pub by_flow: BTreeMap<FlowName, u64>,
    /// From request to answer, in nanoseconds, since [`restart`](Self::restart).
    pub latency_ns: Histogram<u64>,
}

impl RpcResults {
    fn new() -> RpcResults {
        // The arguments are within the range that the histogram documents.
        let latency_ns = Histogram::new_with_bounds(1, LATENCY_MOST_NS, 3)
            .expect("bounds and digits are constants that the histogram accepts");
        RpcResults { answered: 0, wrong: 0, by_flow: BTreeMap::new(), latency_ns }
    }

    /// A window begins.
    pub fn restart(&mut self) {
        self.latency_ns.reset();
        self.by_flow.values_mut().for_each(|count| *count = 0);
    }
}

/// The application on one core.
pub struct RpcApp {
    role: Role,
    pub(super) plan: RpcPlan,
    /// By flow-group: entries from the service, and to it.
    inbound: Vec<Receiver<ToApplication>>,
    outbound: Vec<Sender<FromApplication>>,
    pub(super) flows: BTreeMap<FlowName, RpcFlow>,
    /// Connections about which the service has to be told.
    pub(super) untold: Vec<FlowName>,
    /// Where received payload lies, if connections share its memory.
    pub pages: Option<SharedPages>,
    /// What the client saw.
    pub results: RpcResults,
    /// Entries that are none, or name no connection.
    pub bad_entries: u64,
    /// A server's drive or target, where answers come from one.
    pub(super) reads: Option<Reads>,
}

impl RpcApp {
    /// An application that talks to each flow-group of the service by two queues.
    pub fn new(
        role: Role,
        plan: RpcPlan,
        inbound: Vec<Receiver<ToApplication>>,
        outbound: Vec<Sender<FromApplication>>,
    ) -> RpcApp {
        RpcApp {
            role,
            plan,
            inbound,
            outbound,
            flows: BTreeMap::new(),
            untold: Vec::new(),
            pages: None,
            results: RpcResults::new(),
            bad_entries: 0,
            reads: None,
        }
    }

    /// The same, whose answers come from a drive or a target.
    pub fn reading(self, reads: Option<Reads>) -> RpcApp {
        RpcApp { reads, ..self }
    }

    /// When it has to look without an entry.
    pub fn due(&self) -> Time {
        self.reads.as_ref().map_or(Time::NEVER, Reads::due)
    }

    /// Whether its connections stay open.
    pub fn stays(&self) -> bool {
        self.plan.requests == 0
    }

    /// Whether the service has to be told of something that found no room.
    pub fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Takes entries, up to a burst of each queue, and does what follows; `map` shows a connection's rings. Returns
    /// whether there was anything to do.
    pub fn step(&mut self, cpu: &mut SimCpu, map: impl Fn(FlowName) -> Option<Mapped>) -> bool {
        let mut any = false;
        for group in 0..self.inbound.len() {
            for _ in 0..BURST {
                cpu.enter(Part::Driver);
                match self.inbound[group].pop(cpu) {
                    Ok(None) => break,
                    Ok(Some(entry)) => {
                        cpu.work(self.plan.entry);
                        self.take(cpu, &entry, &map);
                    }
                    Err(_) => self.bad_entries += 1,
                }
                any = true;
            }
            self.inbound[group].ring(cpu);
        }
        any |= self.take_reads(cpu);
        any |= self.ask_target(cpu);
        any | self.tell(cpu)
    }

    fn take(&mut self, cpu: &mut SimCpu, entry: &ToApplication, map: impl Fn(FlowName) -> Option<Mapped>) {
        let name = FlowName(entry.opaque);
        if !self.flows.contains_key(&name)
            && let Some(mapped) = map(name)
        {
            self.connected(name, mapped.is_storage);
            self.flows.insert(name, RpcFlow::new(mapped));
        }
        let Some(mut flow) = self.flows.remove(&name) else {
            self.bad_entries += 1;
            return;
        };
        flow.readable += entry.rx_bump;
        flow.free += entry.tx_bump;
        cpu.enter(Part::App);
        if flow.records.is_some() {
            self.read_records(cpu, name, &mut flow);
        } else {
            self.read(cpu, name, &mut flow);
        }
        self.ask(cpu, &mut flow);
        self.write(cpu, &mut flow);
        flow.peer_closed |= entry.peer_closed;
        flow.closes |= match self.role {
            Role::Client => self.plan.requests > 0 && flow.answered == self.plan.requests,
            Role::Server => !flow.is_storage && flow.peer_closed && flow.going.is_empty(),
        };
        if flow.has_news() && !self.untold.contains(&name) {
            self.untold.push(name);
        }
        if !flow.is_over() {
            self.flows.insert(name, flow);
        }
    }

    /// Bytes of messages that come by a connection, and of those that go.
    pub(super) fn sizes(&self, flow: &RpcFlow) -> (u32, u32) {
        match self.role {
            _ if flow.is_storage => (self.plan.answer, STAMP_BYTES),
            Role::Client => (self.plan.answer, self.plan.request),
            Role::Server => (self.plan.request, self.plan.answer),
        }
    }

    /// Reads what has come, message by message.
    fn read(&mut self, cpu: &mut SimCpu, name: FlowName, flow: &mut RpcFlow) {
        let (size, ring) = (self.sizes(flow).0, flow.rings.receive.len);
        loop {
            let left = size - flow.coming.done;
            if flow.readable < left.min(ring / PIECE_OF_RING) {
                return;
            }
            cpu.work(self.plan.call);
            let mut right = true;
            for piece in flow.next_read(flow.readable.min(left)).into_iter().filter(|piece| piece.len > 0) {
                let places = self.pages.as_ref().map_or_else(|| vec![piece], |pages| pages.borrow().read(piece));
                for place in places {
                    right &= flow.coming.read(cpu.bytes(place.at, place.len as usize));
                }
            }
            self.results.wrong += u64::from(!right);
            if flow.coming.done == size {
                let message = std::mem::take(&mut flow.coming);
                self.came(cpu, name, flow, &message);
            }
        }
    }

    /// A message is there, whole.
    pub(super) fn came(&mut self, cpu: &mut SimCpu, name: FlowName, flow: &mut RpcFlow, message: &Message) {
        if flow.is_storage {
            return self.storage_came(cpu, flow, message);
        }
        if self.role == Role::Server {
            cpu.work(self.plan.work);
            let answer = Message::new(message.sent, message.number);
            match &mut self.reads {
                Some(reads) => reads.ask(name, answer, self.plan.answer, cpu.now()),
                None => flow.going.push_back(answer),
            }
            return;
        }
        if flow.answered == flow.asked || message.number != flow.answered {
            self.results.wrong += 1;
            return;
        }
        cpu.work(self.plan.client_work);
        flow.answered += 1;
        self.results.answered += 1;
        *self.results.by_flow.entry(name).or_default() += 1;
        // Later than the bounds allow counts as the bound.
        let ns = cpu.now().as_ps().saturating_sub(message.sent) / 1000;
        self.results.latency_ns.saturating_record(ns);
    }

    /// A client asks, as long as it may have more requests in flight.
    fn ask(&mut self, cpu: &mut SimCpu, flow: &mut RpcFlow) {
        let (most, all) = (u64::from(self.plan.in_flight), self.plan.requests);
        let may_ask = |flow: &RpcFlow| flow.asked - flow.answered < most && (all == 0 || flow.asked < all);
        // A request is stamped when it begins to leave.
        while self.role == Role::Client && may_ask(flow) && flow.free >= self.piece(flow, 0) {
            flow.going.push_back(Message::new(cpu.now().as_ps(), flow.asked));
            flow.asked += 1;
            self.write(cpu, flow);
        }
    }

    /// Bytes that have to be free before more of a message goes, of which so many have gone.
    pub(super) fn piece(&self, flow: &RpcFlow, done: u32) -> u32 {
        let left = self.sizes(flow).1 - done;
        match &flow.records {
            Some(records) => {
                let records = records.borrow();
                let content = records.content(left);
                content + records.overhead(content)
            }
            None => left.min(flow.rings.transmit.len / PIECE_OF_RING),
        }
    }

    /// Writes what has to go, as far as there is room.
    pub(super) fn write(&mut self, cpu: &mut SimCpu, flow: &mut RpcFlow) {
        let size = self.sizes(flow).1;
        while let Some(mut message) = flow.going.front().copied() {
            if flow.free < self.piece(flow, message.done) {
                return;
            }
            let left = size - message.done;
            // A call hands over a message, whatever its records are.
            if flow.records.is_none() || message.done == 0 {
                cpu.work(self.plan.call);
            }
            match flow.records.clone() {
                Some(records) => self.write_record(cpu, flow, &mut records.borrow_mut(), &mut message),
                None => {
                    let pieces = flow.next_write(flow.free.min(left));
                    self.plan.source.write(cpu, &mut message, pieces);
                }
            }
            if message.done < size {
                flow.going[0] = message;
            } else {
                flow.going.pop_front();
            }
        }
    }

    /// Tells the service what was read and written, as far as its queues have room.
    fn tell<C: Cpu>(&mut self, cpu: &mut C) -> bool {
        let before = self.untold.len();
        cpu.enter(Part::Driver);
        let (flows, outbound, work) = (&mut self.flows, &mut self.outbound, self.plan.entry);
        self.untold.retain(|name| {
            let (Some(flow), Some(outbound)) = (flows.get_mut(name), outbound.get_mut(name.group())) else {
                return false;
            };
            cpu.work(work);
            let entry = FromApplication {
                rx_bump: flow.read,
                tx_bump: flow.wrote,
                flow: name.flow() as u32,
                group: name.group() as u16,
                bump_seq: flow.entries,
                no_more_data: flow.closes,
            };
            if !outbound.push(cpu, &entry) {
                return true;
            }
            (flow.read, flow.wrote, flow.told) = (0, 0, flow.closes);
            flow.entries = flow.entries.wrapping_add(1);
            if flow.is_over() {
                flows.remove(name);
            }
            false
        });
        self.outbound.iter_mut().for_each(|outbound| outbound.ring(cpu));
        self.untold.len() < before
    }
}
