//! RPCs over context queues: a client that keeps requests in flight, and a server that sends back what it got.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use nicforge_nic::Segment;
use nicforge_platform::{Cpu, Part};
use nicforge_tcp::queue::{FromApplication, ToApplication};
use nicforge_units::Cycles;

use super::queue::{Receiver, Sender};
use super::rings::{Ring, SharedFlow};

/// Entries that one step takes.
const BURST: usize = 16;
/// What a request begins with: when it was sent, and its number.
const STAMP_BYTES: usize = 16;
/// Latencies up to a second are told apart by three digits.
const LATENCY_MOST_NS: u64 = 1_000_000_000;

/// The word for a connection in entries: its flow-group, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowName(pub u64);

impl FlowName {
    /// Flow `flow` of group `group`.
    pub fn new(group: usize, flow: usize) -> FlowName {
        FlowName((group as u64) << 32 | flow as u64)
    }

    /// Its flow-group.
    pub fn group(self) -> usize {
        (self.0 >> 32) as usize
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
    /// Bytes of a request, and of its answer.
    pub bytes: u32,
    /// Requests of a connection that wait for their answers.
    pub in_flight: u32,
    /// The server's work for each.
    pub work: Cycles,
    /// The library's instructions for a call.
    pub call: Cycles,
    /// The library's instructions for an entry.
    pub entry: Cycles,
}

/// What clients saw.
#[derive(Debug)]
pub struct RpcResults {
    /// Answers so far.
    pub answered: u64,
    /// Answers that are not what was asked: a defect.
    pub wrong: u64,
    /// From request to answer, in nanoseconds, since [`restart`](Self::restart).
    pub latency_ns: Histogram<u64>,
}

impl RpcResults {
    fn new() -> RpcResults {
        // The arguments are within the range that the histogram documents.
        let latency_ns = Histogram::new_with_bounds(1, LATENCY_MOST_NS, 3)
            .expect("bounds and digits are constants that the histogram accepts");
        RpcResults { answered: 0, wrong: 0, latency_ns }
    }

    /// A window begins.
    pub fn restart(&mut self) {
        self.latency_ns.reset();
    }
}

/// A connection as the application sees it.
#[derive(Debug)]
struct RpcFlow {
    rings: SharedFlow,
    read_at: u32,
    write_at: u32,
    readable: u32,
    free: u32,
    asked: u64,
    answered: u64,
    /// Bytes read and written that the service was not told of.
    read: u32,
    wrote: u32,
}

impl RpcFlow {
    fn new(rings: SharedFlow) -> RpcFlow {
        RpcFlow {
            rings,
            read_at: 0,
            write_at: 0,
            readable: 0,
            free: rings.transmit.len,
            asked: 0,
            answered: 0,
            read: 0,
            wrote: 0,
        }
    }

    fn next_read(&mut self, len: u32) -> [Segment; 2] {
        let pieces = self.rings.receive.pieces(self.read_at, len);
        self.read_at = after(self.rings.receive, self.read_at, len);
        self.readable -= len;
        self.read += len;
        pieces
    }

    fn next_write(&mut self, len: u32) -> [Segment; 2] {
        let pieces = self.rings.transmit.pieces(self.write_at, len);
        self.write_at = after(self.rings.transmit, self.write_at, len);
        self.free -= len;
        self.wrote += len;
        pieces
    }
}

fn after(ring: Ring, place: u32, len: u32) -> u32 {
    (place + len) % ring.len
}

/// The application on one core.
pub struct RpcApp {
    role: Role,
    plan: RpcPlan,
    /// By flow-group: entries from the service, and to it.
    inbound: Vec<Receiver<ToApplication>>,
    outbound: Vec<Sender<FromApplication>>,
    flows: BTreeMap<FlowName, RpcFlow>,
    /// Connections about which the service has to be told.
    untold: Vec<FlowName>,
    /// What the client saw.
    pub results: RpcResults,
    scratch: Vec<u8>,
    /// Entries that are none, or name no connection.
    pub bad_entries: u64,
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
            results: RpcResults::new(),
            scratch: vec![0; plan.bytes as usize],
            bad_entries: 0,
        }
    }

    /// Whether the service has to be told of something that found no room.
    pub fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Takes entries, up to a burst of each queue, and does what follows; `map` shows a connection's rings. Returns
    /// whether there was anything to do.
    pub fn step<C: Cpu>(&mut self, cpu: &mut C, map: impl Fn(FlowName) -> Option<SharedFlow>) -> bool {
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
        }
        any | self.tell(cpu)
    }

    fn take<C: Cpu>(&mut self, cpu: &mut C, entry: &ToApplication, map: impl Fn(FlowName) -> Option<SharedFlow>) {
        let name = FlowName(entry.opaque);
        if !self.flows.contains_key(&name)
            && let Some(rings) = map(name)
        {
            self.flows.insert(name, RpcFlow::new(rings));
        }
        let Some(mut flow) = self.flows.remove(&name) else {
            self.bad_entries += 1;
            return;
        };
        flow.readable += entry.rx_bump;
        flow.free += entry.tx_bump;
        cpu.enter(Part::App);
        match self.role {
            Role::Client => self.ask(cpu, name.0, &mut flow),
            Role::Server => self.serve(cpu, &mut flow),
        }
        if flow.read + flow.wrote > 0 && !self.untold.contains(&name) {
            self.untold.push(name);
        }
        self.flows.insert(name, flow);
    }

    fn serve<C: Cpu>(&mut self, cpu: &mut C, flow: &mut RpcFlow) {
        let bytes = self.plan.bytes;
        while flow.readable >= bytes && flow.free >= bytes {
            cpu.work(self.plan.call);
            read(cpu, flow.next_read(bytes), &mut self.scratch);
            cpu.work(self.plan.work);
            cpu.work(self.plan.call);
            write(cpu, flow.next_write(bytes), &self.scratch);
        }
    }

    fn ask<C: Cpu>(&mut self, cpu: &mut C, number: u64, flow: &mut RpcFlow) {
        let bytes = self.plan.bytes;
        while flow.readable >= bytes {
            cpu.work(self.plan.call);
            read(cpu, flow.next_read(bytes), &mut self.scratch);
            let sent = stamp(&self.scratch, 0);
            let is_asked = flow.answered < flow.asked && stamp(&self.scratch, 8) == flow.answered;
            if !is_asked || !has_content(&self.scratch, number ^ flow.answered) {
                self.results.wrong += 1;
                continue;
            }
            flow.answered += 1;
            self.results.answered += 1;
            // Later than the bounds allow counts as the bound.
            let ns = cpu.now().as_ps().saturating_sub(sent) / 1000;
            self.results.latency_ns.saturating_record(ns);
        }
        while flow.asked - flow.answered < u64::from(self.plan.in_flight) && flow.free >= bytes {
            cpu.work(self.plan.call);
            self.scratch[..8].copy_from_slice(&cpu.now().as_ps().to_le_bytes());
            self.scratch[8..STAMP_BYTES].copy_from_slice(&flow.asked.to_le_bytes());
            fill(&mut self.scratch, number ^ flow.asked);
            write(cpu, flow.next_write(bytes), &self.scratch);
            flow.asked += 1;
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
                ..FromApplication::default()
            };
            if !outbound.push(cpu, &entry) {
                return true;
            }
            (flow.read, flow.wrote) = (0, 0);
            false
        });
        self.untold.len() < before
    }
}

fn read<C: Cpu>(cpu: &mut C, pieces: [Segment; 2], out: &mut [u8]) {
    let mut done = 0;
    for piece in pieces.into_iter().filter(|piece| piece.len > 0) {
        let len = piece.len as usize;
        out[done..done + len].copy_from_slice(cpu.bytes(piece.at, len));
        done += len;
    }
}

fn write<C: Cpu>(cpu: &mut C, pieces: [Segment; 2], bytes: &[u8]) {
    let mut done = 0;
    for piece in pieces.into_iter().filter(|piece| piece.len > 0) {
        let len = piece.len as usize;
        cpu.bytes_mut(piece.at, len).copy_from_slice(&bytes[done..done + len]);
        done += len;
    }
}

fn stamp(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn content(seed: u64) -> impl Iterator<Item = u8> {
    (0u64..).map(move |place| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(place * 131) >> 7) as u8)
}

fn fill(bytes: &mut [u8], seed: u64) {
    bytes[STAMP_BYTES..].iter_mut().zip(content(seed)).for_each(|(byte, value)| *byte = value);
}

fn has_content(bytes: &[u8], seed: u64) -> bool {
    bytes[STAMP_BYTES..].iter().zip(content(seed)).all(|(byte, value)| *byte == value)
}
