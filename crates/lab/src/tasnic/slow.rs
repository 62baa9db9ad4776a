//! The slow path: a program on a host core. Connections open here, by the same stack as everywhere, and are then handed
//! to the NIC; the control loop sets rates and finds timeouts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;

use nicforge_nic::DropCounters;
use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Part, Register};
use nicforge_tcp::conn::{State, Tuning};
use nicforge_tcp::fast::FlowFlags;
use nicforge_tcp::rate::{RateControl, TURN_FLOWS};
use nicforge_tcp::segment::{Ecn, Flags, Header};
use nicforge_tcp::stack::{ConnectionId, Event, FourTuple, ListenerId, Outgoing, Stack};
use nicforge_units::{Cycles, Time};
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, Ipv4View};

use super::closing::Numbers;
use super::contexts::SLOW_DOORBELL;
use super::device::SharedNic;
use super::flow::NicFlow;
use super::records;
use super::slow_queues::Command;
use super::stages::key_of;
use crate::tas::app::FlowName;
use crate::tas::frame::{Parsed, parse_bytes, write_ethernet, write_headers};
use crate::tas::opening::{Opening, Remote};
use crate::tas::records::RecordPlan;
use crate::tas::rings::{Rings, SharedFlow};
use crate::world::device::Device;
use crate::world::program::{Here, Next, Notice, Program};

/// A segment with one of these is not the fast path's.
const RARE: Flags = Flags(Flags::SYN.0 | Flags::RST.0 | Flags::URG.0);
/// Instructions for a frame: look-up, state machine, an answer.
const FRAME_CYCLES: Cycles = Cycles(2000);
/// Frames of a round at most. What they are answered with leaves after them, and the stack keeps no more than 256 such
/// answers: without this bound most SYNs of a burst were never answered.
const ROUND_FRAMES: usize = 128;
/// Instructions for a flow's turn in the control loop, with two reads of the NIC's memory.
const TURN_CYCLES: Cycles = Cycles(400);

/// The parts of a slow path.
pub struct SlowPlan {
    /// Its host's address.
    pub address: Ipv4Addr,
    /// Applications' contexts, which connections get in turn.
    pub contexts: usize,
    /// Of sockets.
    pub tuning: Tuning,
    /// Handshakes at a time that it begins.
    pub opening: usize,
    /// How long the NIC answers for a connection that both ends have closed.
    pub linger: Time,
    /// What records of its connections are like, if there are any.
    pub records: Option<RecordPlan>,
}

/// The slow path of a host.
pub struct SlowPath {
    pub(super) plan: SlowPlan,
    pub(super) nic: SharedNic,
    pub(super) stack: Stack<Rings>,
    listener: Option<ListenerId>,
    opening: Opening,
    pub(super) control: RateControl,
    /// Connections that the NIC has, by their place in its look-up table.
    pub(super) installed: BTreeMap<u64, u32>,
    pub(super) numbers: Numbers,
    next_context: usize,
    identification: u16,
    /// Frames that are nobody's.
    pub drops: DropCounters,
}

impl SlowPath {
    /// Over `nic`, with a stack that opens connections.
    pub fn new(plan: SlowPlan, nic: SharedNic, stack: Stack<Rings>, control: RateControl) -> SlowPath {
        SlowPath {
            opening: Opening::new(plan.opening),
            plan,
            nic,
            stack,
            listener: None,
            control,
            installed: BTreeMap::new(),
            numbers: Numbers::default(),
            next_context: 0,
            identification: 0,
            drops: DropCounters::default(),
        }
    }

    /// Takes connections to `port`.
    pub fn listen(&mut self, port: u16, backlog: usize) {
        self.listener = self.stack.listen(None, port, backlog, self.plan.tuning.clone(), false).ok();
    }

    /// Opens a connection from `port` to `remote`, when it is its turn.
    pub fn connect(&mut self, port: u16, remote: Remote, now: Time) {
        self.opening.add(port, remote);
        self.opening.go_on(&mut self.stack, self.plan.address, &self.plan.tuning, now);
        self.numbers.opened(port, remote);
    }

    /// Connections that the NIC has.
    pub fn open(&self) -> usize {
        self.installed.len()
    }

    /// A round: frames, timers, the control loop, what has to leave. Returns whether there was anything to do.
    fn round(&mut self, cpu: &mut SimCpu) -> bool {
        cpu.enter(Part::Stack);
        let mut commands = Vec::new();
        let mut any = false;
        for _ in 0..ROUND_FRAMES {
            let Some(frame) = self.next_frame(cpu.now()) else { break };
            any = true;
            cpu.work(FRAME_CYCLES);
            self.take(cpu, frame, &mut commands);
        }
        self.stack.on_timer(cpu.now());
        self.take_events(cpu.now(), &mut commands);
        self.control(cpu, &mut commands);
        self.close(cpu.now(), &mut commands);
        while let Some(outgoing) = self.stack.transmit_header(cpu.now()) {
            cpu.work(FRAME_CYCLES);
            commands.extend(self.frame_of(&outgoing).map(Command::Send));
        }
        any |= !commands.is_empty();
        if !commands.is_empty() {
            self.nic.borrow_mut().slow.commands.extend(commands);
            cpu.mmio_write(Register { device: 0, index: SLOW_DOORBELL }, 1);
        }
        any
    }

    fn next_frame(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut nic = self.nic.borrow_mut();
        let is_there = nic.slow.inbox.front().is_some_and(|(at, _)| *at <= now);
        if is_there { nic.slow.inbox.pop_front().map(|(_, frame)| frame) } else { None }
    }

    fn take(&mut self, cpu: &mut SimCpu, frame: Vec<u8>, commands: &mut Vec<Command>) {
        let Ok(Parsed { tuple, envelope, header, payload_at }) = parse_bytes(&frame) else {
            return self.drops.count("malformed");
        };
        if let Some(&number) = self.installed.get(&key_of(&tuple)) {
            let is_plain = !header.flags.any(RARE);
            if is_plain && !self.numbers.is_leaving(number) {
                // It came while the NIC did not have the connection yet.
                commands.push(Command::Receive(frame));
            } else if !self.reset_while_closing(number, &header, cpu.now()) {
                self.drops.count("of_open_connection");
            }
            return;
        }
        let arrival = self.stack.receive_header(&envelope, &header, cpu.now());
        if let Some(arrival) = arrival
            && let Some((ring, _)) = self.stack.rings(arrival.connection)
        {
            let placement = arrival.placement;
            let mut from = (payload_at + placement.skip) as usize;
            let pieces = ring.pieces(placement.at, placement.len).into_iter().filter(|piece| piece.len > 0);
            let pages = self.nic.borrow().pages.clone();
            let places = pieces.flat_map(|piece| match &pages {
                Some(pages) => pages.borrow_mut().write(piece).0,
                None => vec![piece],
            });
            for place in places {
                let len = place.len as usize;
                cpu.bytes_mut(place.at, len).copy_from_slice(&frame[from..from + len]);
                from += len;
            }
        }
        self.take_events(cpu.now(), commands);
    }

    fn take_events(&mut self, now: Time, commands: &mut Vec<Command>) {
        while let Some(event) = self.stack.next_event() {
            let id = match event {
                Event::Accepted(listener) => self.stack.accept(listener),
                Event::Changed(id) | Event::Arrived(id) => Some(id),
            };
            if let Some(id) = id {
                commands.extend(self.hand_over(id, now));
            }
        }
        self.opening.go_on(&mut self.stack, self.plan.address, &self.plan.tuning, now);
    }

    /// An open connection becomes the NIC's.
    fn hand_over(&mut self, id: ConnectionId, now: Time) -> Option<Command> {
        let tuple = self.stack.tuple(id)?;
        let (receive, transmit) = self.stack.rings(id)?;
        let rings = SharedFlow { receive: *receive, transmit: *transmit };
        let connection = self.stack.connection(id).filter(|connection| connection.state() == State::Established)?;
        let key = key_of(&tuple);
        if self.installed.contains_key(&key) {
            return None;
        }
        let mut state = connection.flow;
        // Recovery is the fast path's from now on.
        state.set(FlowFlags::GO_BACK_N, true);
        state.set(FlowFlags::FAST, true);
        (state.post.window, state.post.context) = (0, self.next_context as u16);
        self.next_context = (self.next_context + 1) % self.plan.contexts;
        let (number, others) = self.numbers.take(id);
        state.post.opaque = FlowName::new(0, number as usize).after(others).0;
        self.installed.insert(key, number);
        self.control.begin(number, &mut state, now);
        let options = if state.has(FlowFlags::TIMESTAMPS) { 12 } else { 0 };
        let groups = self.nic.borrow().groups.len();
        let mss = u32::from(connection.agreed().peer_mss).min(u32::from(connection.agreed().own_mss)) - options;
        let group = group_of(&tuple, groups);
        let records = self.plan.records.map(|plan| records::begin(plan, number as usize, &tuple, connection));
        let sealed_to = connection.next().0;
        let flow = NicFlow {
            mss,
            group,
            records,
            sealed_to,
            ..NicFlow::new(state, tuple, rings, (connection.clock(now), now))
        };
        Some(Command::Install(number, Box::new(flow)))
    }

    /// The control loop: rates from what the NIC counted, and timeouts.
    fn control(&mut self, cpu: &mut SimCpu, commands: &mut Vec<Command>) {
        for _ in 0..TURN_FLOWS {
            let now = cpu.now();
            let Some(number) = self.control.next(now) else { return };
            cpu.work(TURN_CYCLES);
            let mut nic = self.nic.borrow_mut();
            // A connection that is on its way to the NIC has counted nothing.
            let mut nobody = nicforge_tcp::fast::Flow::default();
            let state = nic.flows.get_mut(number as usize).map_or(&mut nobody, |flow| &mut flow.state);
            let before = state.post.rate;
            if self.control.update(number, state, now) {
                commands.push(Command::Retransmit(number));
            }
            if state.post.rate != before {
                commands.push(Command::Rate(number, state.post.rate));
            }
            if state.is_closed() {
                self.numbers.linger(number, now + self.plan.linger);
            }
        }
    }

    fn frame_of(&mut self, outgoing: &Outgoing) -> Option<Vec<u8>> {
        self.identification = self.identification.wrapping_add(1);
        match outgoing {
            Outgoing::Frame(packet) => {
                let mut frame = vec![0; ETHERNET_HEADER_LEN];
                frame.extend_from_slice(packet);
                let (source, destination) = Ipv4View::new(packet).map(|ip| (ip.source(), ip.destination())).ok()?;
                write_ethernet(&mut frame, source, destination);
                Some(frame)
            }
            Outgoing::Segment(departure) => {
                let tuple: FourTuple = self.stack.tuple(departure.connection)?;
                let (header, ecn): (&Header, Ecn) = (&departure.emission.header, departure.emission.ecn);
                let mut frame = vec![0; ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + header.emitted_len()];
                write_headers(&mut frame, &tuple, header, ecn, self.identification);
                Some(frame)
            }
        }
    }
}

/// The flow-group of a connection: CRC-32 of its addresses and ports.
fn group_of(tuple: &FourTuple, groups: usize) -> usize {
    let bytes = key_of(tuple).to_be_bytes();
    nicforge_apps::flexkvs::crc32(&bytes) as usize % groups.max(1)
}

/// A slow path that its core runs, and whose connections are counted at the end.
pub type SharedSlow = Rc<RefCell<SlowPath>>;

/// The slow path as a program of a core.
pub struct SlowProgram {
    slow: SharedSlow,
}

impl SlowProgram {
    /// A core that runs `slow`.
    pub fn new(slow: SharedSlow) -> SlowProgram {
        SlowProgram { slow }
    }
}

impl Program for SlowProgram {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.begin_round();
        let before = here.core.spent().clone();
        let mut slow = self.slow.borrow_mut();
        let any = slow.round(&mut here.cpu());
        if any {
            return Next::Again;
        }
        here.core.count_as_idle(&before);
        let now = here.core.now();
        let inbox = slow.nic.borrow().slow.inbox.front().map_or(Time::NEVER, |(at, _)| *at);
        let due = slow.stack.poll_at().unwrap_or(Time::NEVER).min(slow.control.due()).min(inbox);
        let due = due.min(slow.numbers.due());
        here.sleep(due.max(now + Time::from_ns(100)))
    }

    fn notice(&mut self, _devices: &mut [Box<dyn Device>], notice: Notice) -> Option<Time> {
        Some(notice.at.max(notice.now))
    }

    fn drops(&self) -> DropCounters {
        self.slow.borrow().drops.clone()
    }

    fn describe(&self) -> Option<String> {
        let slow = self.slow.borrow();
        Some(format!("slow path: {} connections on the NIC, next look {}", slow.open(), slow.control.due()))
    }
}
