//! The service's part of records that the NIC works on: contexts, marks, recoveries, reports and answers.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use nicforge_l5p::context::{Context, FlowKey};
use nicforge_l5p::engine::Descriptor;
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_nic::{Packet, data_of, registers};
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Register};
use nicforge_stages::l5p::{Command, mark, report};
use nicforge_tcp::stack::ConnectionId;
use nicforge_units::Cycles;

use super::super::service::{STORAGE_PORT, Service};
use super::nvme::DIGESTS;
use super::options::LayerFive;
use super::{Beginning, RecordFlow, RecordPlan, SharedRecords};

/// The stage's registers: the host's NIC has no other stage.
const ANSWERS: u32 = registers::STAGES;

/// Records of a service's connections.
pub struct Records {
    plan: Option<RecordPlan>,
    /// Those of a connection to a target.
    storage: Option<RecordPlan>,
    flows: Vec<Option<SharedRecords>>,
    /// Commands that the NIC has not got.
    commands: Vec<Command>,
}

impl Records {
    /// For so many connections, and for one to a target; without a plan there are no records.
    pub fn new([plan, storage]: [Option<RecordPlan>; 2], connections: usize) -> Records {
        Records { plan, storage, flows: vec![None; connections], commands: Vec::new() }
    }

    /// What a core pays to tell the NIC of something.
    fn command_cost(&self) -> Cycles {
        self.plan.or(self.storage).map_or(Cycles(0), |plan| plan.costs.command)
    }

    /// Those of a connection.
    pub fn of(&self, flow: usize) -> Option<&SharedRecords> {
        self.flows.get(flow)?.as_ref()
    }

    /// Of every connection.
    pub fn all(&self) -> impl Iterator<Item = &SharedRecords> {
        self.flows.iter().flatten()
    }

    /// Whether the NIC works on them.
    pub fn is_offloaded(&self) -> bool {
        [self.plan, self.storage].into_iter().flatten().any(|plan| plan.on_wire().is_nic())
    }

    /// Whether the NIC has to be told of something.
    pub fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// A connection opened, whose streams begin there.
    fn begin(&mut self, flow: usize, outward: FlowKey, starts: [Seq; 2]) {
        let is_storage = outward.ports[1] == STORAGE_PORT;
        let Some(plan) = (if is_storage { self.storage } else { self.plan }) else { return };
        let records = plan.begin(flow, outward, starts);
        if plan.on_wire().is_nic() {
            self.create(&plan, &records.beginning);
        }
        self.flows[flow] = Some(Rc::new(RefCell::new(records)));
    }

    fn create(&mut self, plan: &RecordPlan, beginning: &Beginning) {
        let Some(protocol) = registry::find(plan.protocol()) else { return };
        let Beginning { outward, transmit, receive, transmit_context, receive_context, within } = *beginning;
        let is_stacked = plan.layer == LayerFive::NvmeTls && plan.by.is_nic();
        if let (Some(protocol), true) = (registry::find("nvme_tcp"), is_stacked) {
            let (flow, state) = (outward.reverse(), NvmeState::state(DIGESTS));
            let context = Context::new(within, flow, protocol, Direction::Receive, receive, state);
            self.commands.push(Command::Create(Box::new(context)));
        }
        let mut create = |id, flow: FlowKey, direction, start| {
            let context = Context::new(id, flow, protocol, direction, start, plan.state_of(&flow));
            self.commands.push(Command::Create(Box::new(context)));
        };
        create(transmit_context, outward, Direction::Transmit, transmit);
        create(receive_context, outward.reverse(), Direction::Receive, receive);
        if is_stacked {
            self.commands.push(Command::Stack(receive_context, within));
        }
    }
}

/// What a segment needs before it leaves.
pub enum Readiness {
    /// It leaves with this mark.
    Marked(u64),
    /// It does not leave: its record is gone, or the NIC could not be told.
    Lost,
}

impl Service {
    /// A connection that opened has records from here on.
    pub(in crate::tas) fn begin_records(&mut self, id: ConnectionId) {
        let (Some(connection), Some(tuple)) = (self.stack.connection(id), self.stack.tuple(id)) else { return };
        let local = SocketAddr::new(tuple.local, tuple.local_port);
        let remote = SocketAddr::new(tuple.remote, tuple.remote_port);
        // Bytes that have come wait in the ring.
        let receive = connection.expected().0.wrapping_sub(connection.readable());
        let starts = [Seq(connection.next().0), Seq(receive)];
        self.records.begin(id.number(), FlowKey::between(local, remote), starts);
    }

    /// Notes what the NIC reported of `bytes` from sequence number `seq` on, which the ring is about to have. Tells
    /// whether the NIC has put them where they belong.
    pub(in crate::tas) fn note_report(&mut self, flow: usize, seq: u32, bytes: u32, packet: &Packet) -> bool {
        let received = report(packet.flags, packet.mark);
        let note = |records: &SharedRecords| records.borrow_mut().note(Seq(seq), bytes as usize, &received);
        self.records.of(flow).is_some_and(note)
    }

    /// The peer has acknowledged: records may be forgotten.
    pub(in crate::tas) fn acknowledge_records(&mut self, id: ConnectionId) {
        if let (Some(records), Some(connection)) = (self.records.of(id.number()), self.stack.connection(id)) {
            records.borrow_mut().acknowledge(Seq(connection.una().0));
        }
    }

    /// Hands the NIC commands that wait for it.
    pub(in crate::tas) fn send_commands(&mut self, cpu: &mut SimCpu) -> usize {
        let waiting = std::mem::take(&mut self.records.commands);
        let mut sent = 0;
        for command in &waiting {
            if !self.send_command(cpu, command) {
                break;
            }
            sent += 1;
        }
        self.records.commands.extend(waiting.into_iter().skip(sent));
        sent
    }

    fn send_command(&mut self, cpu: &mut SimCpu, command: &Command) -> bool {
        let Some(frame) = command.to_frame() else { return true };
        let Some(mbuf) = self.wire.pool.take(cpu) else { return false };
        cpu.work(self.records.command_cost());
        cpu.bytes_mut(data_of(mbuf), frame.len()).copy_from_slice(&frame);
        let packet = Packet::in_buffer(mbuf, frame.len() as u32, cpu.now());
        let is_sent = self.wire.transmit.push(cpu, &packet, true).is_ok();
        if !is_sent {
            self.wire.pool.give(cpu, mbuf);
        }
        is_sent
    }

    /// Brings the NIC's context of a connection to the `bytes` at `seq`, which are about to leave.
    pub(in crate::tas) fn ready(&mut self, cpu: &mut SimCpu, flow: usize, seq: u32, bytes: u32) -> Readiness {
        let Some(records) = self.records.of(flow).cloned() else { return Readiness::Marked(0) };
        let mut records = records.borrow_mut();
        if bytes == 0 || !records.by().is_nic() {
            return Readiness::Marked(0);
        }
        let RecordFlow { driver, sent, beginning, .. } = &mut *records;
        // The driver looks at the length only: the segment's bytes lie in its buffer.
        let descriptors = driver.send(sent, Seq(seq), &vec![0; bytes as usize]);
        if descriptors.is_empty() {
            return Readiness::Lost;
        }
        let id = beginning.transmit_context;
        let special = descriptors.into_iter().filter(|descriptor| !matches!(descriptor, Descriptor::Packet { .. }));
        for descriptor in special {
            if !self.send_command(cpu, &Command::Execute(id, descriptor)) {
                driver.lose_context();
                return Readiness::Lost;
            }
        }
        Readiness::Marked(mark(id))
    }

    /// A segment that was ready did not reach the NIC, whose context is not where the driver believes.
    pub(in crate::tas) fn not_sent(&mut self, flow: usize) {
        if let Some(records) = self.records.of(flow) {
            records.borrow_mut().driver.lose_context();
        }
    }

    /// Answers the NIC's questions about a connection, as far as its records were read, and takes what it has to be told.
    pub(in crate::tas) fn answer(&mut self, cpu: &mut SimCpu, flow: usize) {
        let Some(records) = self.records.of(flow).cloned() else { return };
        let cost = self.records.command_cost();
        let mut records = records.borrow_mut();
        self.records.commands.append(&mut records.commands);
        for (context, answer) in records.take_answers() {
            cpu.work(cost);
            let mut write = |index, value| cpu.mmio_write(Register { device: 0, index: ANSWERS + index }, value);
            write(0, context.0.into());
            write(1, answer.tcpsn.0.into());
            match answer.number {
                Some(number) => write(2, number),
                None => write(3, 0),
            }
        }
    }
}
