//! Between NIC and slow path: frames for it, commands of it, and connections that come and go.

use std::collections::VecDeque;

use nicforge_platform::{Addr, Dma};
use nicforge_tcp::queue::ToApplication;
use nicforge_units::Time;

use super::flow::NicFlow;
use super::nic::{Job, Nic};
use super::queue_manager::Update;
use super::stages::key_of;
use super::transfer::Operation;
use super::work::{Kind, Work};

/// An entry of its queue, in bytes.
const ENTRY_BYTES: u64 = 64;
/// Entries of its queue.
const ENTRIES: u64 = 1024;
/// A message of the slow path to the NIC.
#[derive(Debug)]
pub enum Command {
    /// A frame leaves.
    Send(Vec<u8>),
    /// A frame is the fast path's by now.
    Receive(Vec<u8>),
    /// A connection is open, and has this number.
    Install(u32, Box<NicFlow>),
    /// A connection is closed: no frame finds it any more.
    Remove(u32),
    /// A connection's rate, in bytes per second; 0 is unlimited.
    Rate(u32, u32),
    /// A connection timed out.
    Retransmit(u32),
}

/// Both directions between NIC and slow path.
#[derive(Debug)]
pub struct SlowQueues {
    at: Addr,
    next: u64,
    /// Frames for the slow path, each with the time from which it is there.
    pub inbox: VecDeque<(Time, Vec<u8>)>,
    /// Commands that the doorbell announces.
    pub commands: VecDeque<Command>,
    /// From a write's way on the bus until memory has it.
    latency: Time,
}

impl SlowQueues {
    /// Bytes of the queue in host memory.
    pub const BYTES: u64 = ENTRIES * ENTRY_BYTES;

    /// A queue at `at`, which the slow path's core watches.
    pub fn new(at: Addr, latency: Time) -> SlowQueues {
        SlowQueues { at, next: 0, inbox: VecDeque::new(), commands: VecDeque::new(), latency }
    }

    /// Writes a frame for the slow path; returns whether there was room for it.
    pub fn give<D: Dma>(&mut self, dma: &mut D, frame: Vec<u8>) -> bool {
        if self.inbox.len() as u64 >= ENTRIES {
            return false;
        }
        let at = self.at + self.next % ENTRIES * ENTRY_BYTES;
        self.next += 1;
        let mut entry = [0u8; ENTRY_BYTES as usize];
        entry[56..].copy_from_slice(&self.next.to_le_bytes());
        dma.publish(at, &entry);
        self.inbox.push_back((dma.now() + self.latency, frame));
        true
    }
}

impl Nic {
    /// A frame is not the fast path's.
    pub(super) fn hand_to_slow_path(&mut self, frame: Vec<u8>) {
        let number = self.operations.put(Operation::Exception { frame });
        let script = self.scripts.context();
        self.npu.put(self.pools.slow, 0, Job::Exception(number), script);
    }

    /// The slow path's interface has a frame for the host.
    pub(super) fn pass_to_host(&mut self, number: u32) {
        self.request(number);
    }

    /// The slow path's doorbell rang.
    pub(super) fn take_commands(&mut self) {
        while let Some(command) = self.slow.commands.pop_front() {
            match command {
                Command::Send(frame) => self.send(frame, None),
                Command::Receive(frame) => {
                    self.counters.again += 1;
                    self.mac_takes_again(frame);
                }
                Command::Install(number, flow) => self.install(number, *flow),
                Command::Remove(flow) => self.remove(flow),
                Command::Rate(flow, rate) => self.queue.set_rate(flow, rate),
                Command::Retransmit(flow) => self.begin(Work { kind: Kind::Retx, flow, ..Work::default() }),
            }
        }
    }

    fn install(&mut self, number: u32, flow: NicFlow) {
        let (context, state) = (usize::from(flow.state.post.context), flow.state);
        self.table.insert(key_of(&flow.tuple), number);
        self.queue.add(number, flow.mss);
        self.queue.set_rate(number, state.post.rate);
        self.witness.begin(number, state.protocol.ack);
        self.counters.opened += 1;
        match self.flows.get_mut(number as usize) {
            Some(slot) => *slot = flow,
            None => self.flows.push(flow),
        }
        // An entry without bytes announces a connection.
        let news =
            ToApplication { opaque: state.post.opaque, rx_bump: state.rx_waiting(), tx_bump: 0, peer_closed: false };
        self.notify(context, &news);
        let update = Update { flow: number, sendable: state.sendable(), departed: 0, version: 1 };
        self.flows[number as usize].version = 1;
        if update.sendable > 0 {
            self.tell_queue(update);
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(flow) = self.flows.get_mut(number as usize) {
            flow.is_gone = true;
            self.table.remove(&key_of(&flow.tuple));
            self.counters.closed += 1;
        }
    }

    /// Whether nothing of a connection that was taken away is under way.
    pub fn is_free(&self, number: u32) -> bool {
        self.flows.get(number as usize).is_some_and(|flow| flow.is_gone && flow.held == 0)
    }

    /// The queue manager hears of a flow.
    pub(super) fn tell_queue(&mut self, update: Update) {
        self.hold(update.flow);
        let script = self.scripts.queue();
        self.npu.put(self.pools.queue, 0, Job::Update(update), script);
    }

    /// Something about a flow is under way: its number is not free before that has ended.
    pub(super) fn hold(&mut self, flow: u32) {
        if let Some(flow) = self.flows.get_mut(flow as usize) {
            flow.held += 1;
        }
    }

    /// It has ended.
    pub(super) fn release(&mut self, flow: u32) {
        if let Some(flow) = self.flows.get_mut(flow as usize) {
            flow.held -= 1;
        }
    }
}
