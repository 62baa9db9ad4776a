//! Stack, NIC and wire, and the connections over them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use nicforge_l5p::context::FlowKey;
use nicforge_l5p::engine::{EngineConfig, Received};
use nicforge_l5p::nvme::connection::ConnectionCounters;
use nicforge_l5p::port::{Port, Segment};
use nicforge_l5p::protocol::ProtocolId;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_platform::live::ports::Port as Wire;
use nicforge_sockets::attach::Attached;
use nicforge_sockets::transport::loss::Loss;
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::stack::{ConnectionId, Stack};
use nicforge_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::flow::{Flow, Role};

/// Contexts that fit into the NIC's memory: 4 MiB of 208 bytes.
const CONTEXTS_MAX: usize = (4 << 20) / 208;
/// Frames taken from the wire before answers leave.
const BUDGET: usize = 64;
/// Longest frame: 64 KiB and a link header.
const FRAME_BYTES: usize = 65_600;

/// Longest sleep.
const LONGEST_SLEEP: Time = Time::from_ms(100);

/// Waiting for frames failed.
#[derive(Debug, thiserror::Error)]
#[error("waiting for frames: {0}")]
pub struct WaitError(Errno);

/// A host's TCP behind a NIC that offloads NVMe/TCP.
pub struct Link<R> {
    /// The stack.
    pub stack: Stack<HeapBuffers>,
    /// Its connections.
    pub flows: BTreeMap<ConnectionId, Flow<R>>,
    /// The NIC's engine and drivers.
    pub nic: Port,
    wire: Box<dyn Wire>,
    loss: Loss,
    nvme: ProtocolId,
    by_outward: BTreeMap<FlowKey, ConnectionId>,
    frame: Vec<u8>,
    /// What connections counted that have ended.
    past: ConnectionCounters,
    /// Frames that the wire refused.
    pub wire_errors: u64,
}

impl<R: Role> Link<R> {
    /// A stack behind the port of `attached`, which loses frames as `loss` says.
    pub fn new(attached: Attached, loss: Loss) -> Link<R> {
        let Attached { port, host, config, seed } = attached;
        Link {
            stack: Stack::new(host, config, HeapBuffers, seed),
            flows: BTreeMap::new(),
            nic: Port::new(EngineConfig::default(), CONTEXTS_MAX),
            wire: port,
            loss,
            nvme: registry::find("nvme_tcp").expect("the registry lists its own protocols"),
            by_outward: BTreeMap::new(),
            frame: vec![0; FRAME_BYTES],
            past: ConnectionCounters::default(),
            wire_errors: 0,
        }
    }

    /// Adds an open connection, whose layer 5 begins at these places.
    pub fn add(&mut self, at: ConnectionId, begin: impl FnOnce(Seq, Seq) -> (R, nicforge_l5p::port::StreamMemory)) {
        let (Some(connection), Some(tuple)) = (self.stack.connection(at), self.stack.tuple(at)) else { return };
        let local = SocketAddr::new(tuple.local, tuple.local_port);
        let remote = SocketAddr::new(tuple.remote, tuple.remote_port);
        let outward = FlowKey::between(local, remote);
        // Bytes that have come wait in the stack.
        let inward = Seq(connection.expected().0.wrapping_sub(connection.readable()));
        let (role, memory) = begin(Seq(connection.next().0), inward);
        self.by_outward.insert(outward, at);
        self.flows.insert(at, Flow::new(role, memory, at, outward, inward));
    }

    /// Receives, lets every connection work, sends. Returns whether frames came.
    pub fn turn(&mut self, now: Time) -> bool {
        let took = self.receive(now);
        if self.stack.poll_at().is_some_and(|due| due <= now) {
            self.stack.on_timer(now);
        }
        while self.stack.next_event().is_some() {}
        let (stack, nic, nvme) = (&mut self.stack, &mut self.nic, self.nvme);
        let ended = self.flows.values_mut().filter_map(|flow| (!flow.turn(stack, nic, nvme, now)).then_some(flow.at));
        for at in ended.collect::<Vec<_>>() {
            self.forget(at);
        }
        self.send(now);
        took
    }

    fn forget(&mut self, at: ConnectionId) {
        let Some(flow) = self.flows.remove(&at) else { return };
        self.nic.destroy_transmit(&flow.outward);
        self.nic.destroy_receive(&flow.outward.reverse());
        self.by_outward.remove(&flow.outward);
        add(&mut self.past, &flow.role.connection().counters);
    }

    fn receive(&mut self, now: Time) -> bool {
        let Link { stack, nic, loss, flows, by_outward, .. } = self;
        let outcome = self.wire.receive(BUDGET, &mut |frame| {
            if loss.loses() {
                return;
            }
            let segment = Segment::find(frame);
            let at = segment.as_ref().and_then(|segment| by_outward.get(&segment.flow.reverse()));
            let (Some(segment), Some(flow)) = (segment, at.and_then(|at| flows.get_mut(at))) else {
                return stack.receive(frame, now);
            };
            let mut changed = frame.to_vec();
            let met = nic.receive(&mut changed, &mut flow.memory, now);
            let received = met.map_or_else(Received::without_context, |(_, received)| received);
            stack.receive(&changed, now);
            if let Some(arrival) = stack.arrival() {
                let seq = segment.seq.plus(arrival.placement.skip as usize);
                flow.note(seq, arrival.placement.len as usize, &received);
            }
        });
        self.wire_errors += u64::from(outcome.is_err());
        outcome.is_ok_and(|frames| frames > 0)
    }

    fn send(&mut self, now: Time) {
        let mut any = false;
        while let Some(len) = self.stack.transmit(now, &mut self.frame) {
            any = true;
            let Link { wire, loss, wire_errors, .. } = self;
            let mut leave = |frame: &[u8]| *wire_errors += u64::from(!loss.loses() && wire.send(frame, now).is_err());
            let frame = &self.frame[..len];
            let Some(segment) = self.nic.leaving(frame) else {
                leave(frame);
                continue;
            };
            match self.by_outward.get(&segment.flow).and_then(|at| self.flows.get_mut(at)) {
                Some(flow) => self.nic.send(frame, &segment, flow.role.connection(), &mut flow.memory, leave),
                None => leave(frame),
            }
        }
        if any && self.wire.flush().is_err() {
            self.wire_errors += 1;
        }
    }

    /// Sleeps until a frame or a timer is due, or a moment, so that an interrupt is seen.
    ///
    /// # Errors
    ///
    /// [`WaitError`].
    pub fn sleep(&self, now: Time) -> Result<(), WaitError> {
        let due = self.stack.poll_at().map_or(LONGEST_SLEEP, |due| due.saturating_sub(now));
        let sleep = due.min(LONGEST_SLEEP);
        let Some(readable) = self.wire.readable() else { return Ok(()) };
        let time = Timespec { tv_sec: 0, tv_nsec: (sleep.as_ps() / 1000) as i64 };
        match poll(&mut [PollFd::new(&readable, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(cause) => Err(WaitError(cause)),
        }
    }

    /// What all connections and the NIC counted, by name.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let mut connections = self.past;
        self.flows.values().for_each(|flow| add(&mut connections, &flow.role.connection().counters));
        let own = [
            ("digests_offloaded", connections.digests_offloaded),
            ("digests_in_software", connections.digests_in_software),
            ("data_digest_errors", connections.data_digest_errors),
            ("copied_bytes", connections.copied_bytes),
            ("frames_lost_by_intent", self.loss.lost),
            ("wire_errors", self.wire_errors),
        ];
        let own = own.into_iter().map(|(name, count)| (name.to_owned(), count));
        own.chain(self.nic.named_counters()).collect()
    }
}

fn add(sum: &mut ConnectionCounters, more: &ConnectionCounters) {
    sum.digests_offloaded += more.digests_offloaded;
    sum.digests_in_software += more.digests_in_software;
    sum.data_digest_errors += more.data_digest_errors;
    sum.copied_bytes += more.copied_bytes;
}
