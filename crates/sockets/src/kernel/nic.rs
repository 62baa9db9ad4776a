//! The NIC under the kernel's TCP, and its driver: frames from a TAP device to the wire and back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nicforge_l5p::context::{FlowKey, Start};
use nicforge_l5p::engine::EngineConfig;
use nicforge_l5p::port::{Offload, Port as Engine, TcpHeader};
use nicforge_l5p::protocol::ProtocolId;
use nicforge_l5p::registry;
use nicforge_platform::live::ports::{PacketPort, Port, TapPort};
use nicforge_platform::live::{Clock, LiveError};
use nicforge_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with};

use super::flow::Flow;
use super::message::{MESSAGE_MOST, Message, answer};
use super::place;
use crate::control;
use crate::service::{ServiceError, open_door};
use crate::tls::CryptoInfo;
use crate::transport::loss::Loss;
use crate::transport::secure::worked;

/// Contexts that fit into the NIC's memory: 4 MiB of 208 bytes.
const CONTEXTS_MAX: usize = (4 << 20) / 208;
/// Frames taken from one side before the other has its turn.
const BUDGET: usize = 64;
/// Connections that were seen to begin here, the newest: only these may be offloaded.
const SEEN_MOST: usize = 1 << 16;
/// Longest sleep, so that an interrupt is seen.
const LONGEST_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The NIC cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum KernelNicError {
    /// The socket where programs come in.
    #[error(transparent)]
    Door(#[from] ServiceError),
    /// A port.
    #[error(transparent)]
    Port(#[from] LiveError),
    /// Waiting for frames.
    #[error("waiting for frames: {0}")]
    Wait(Errno),
}

/// What was counted beside the engine's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelNicCounters {
    /// Connections whose keys the NIC got.
    pub offloaded: u64,
    /// Connections that it refused.
    pub refused: u64,
    /// Records that programs wrote.
    pub records: u64,
    /// Frames that the kernel's TCP sent.
    pub frames_out: u64,
    /// Frames for it.
    pub frames_in: u64,
    /// Frames that a port refused.
    pub port_errors: u64,
    /// Messages of programs that were none.
    pub unreadable: u64,
    /// Time of this thread in the NIC's engine.
    pub engine: Time,
}

/// Connections that began on this NIC.
#[derive(Default)]
struct Seen {
    flows: BTreeSet<FlowKey>,
    order: VecDeque<FlowKey>,
}

/// The NIC.
pub struct KernelNic {
    host: Box<dyn Port>,
    wire: Box<dyn Port>,
    loss: Loss,
    engine: Engine,
    tls: ProtocolId,
    door: OwnedFd,
    path: PathBuf,
    /// Programs that have said nothing yet.
    callers: Vec<OwnedFd>,
    flows: BTreeMap<FlowKey, Flow>,
    seen: Seen,
    clock: Clock,
    counters: KernelNicCounters,
}

impl Seen {
    fn add(&mut self, flow: FlowKey) {
        if self.flows.insert(flow) {
            self.order.push_back(flow);
        }
        if self.order.len() > SEEN_MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.flows.remove(&oldest);
        }
    }
}

impl KernelNic {
    /// A NIC between the TAP device `tap`, which it makes and where the kernel's TCP is, and the interface `wire`, which
    /// loses frames as `loss` says. Programs come in at `path`.
    ///
    /// # Errors
    ///
    /// [`KernelNicError`].
    pub fn open(tap: &str, wire: &str, loss: Loss, path: &Path) -> Result<KernelNic, KernelNicError> {
        let wire = PacketPort::open_beside_stack(wire)?;
        let mut host = TapPort::open(tap)?;
        if let Some(mac) = wire.hardware_address() {
            host = host.with_hardware_address(beside(mac))?;
        }
        Ok(KernelNic {
            host: Box::new(host),
            wire: Box::new(wire),
            loss,
            engine: Engine::new(EngineConfig::default(), CONTEXTS_MAX),
            tls: registry::find("tls").expect("the registry lists its own protocols"),
            door: open_door(path)?,
            path: path.to_path_buf(),
            callers: Vec::new(),
            flows: BTreeMap::new(),
            seen: Seen::default(),
            clock: Clock::start(),
            counters: KernelNicCounters::default(),
        })
    }

    /// Works until `stop` is set.
    ///
    /// # Errors
    ///
    /// [`KernelNicError`].
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), KernelNicError> {
        while !stop.load(Ordering::Relaxed) {
            self.host.look()?;
            self.wire.look()?;
            self.wait()?;
            while self.turn()? > 0 && !stop.load(Ordering::Relaxed) {}
        }
        Ok(())
    }

    /// Moves what is there. Returns how many frames.
    fn turn(&mut self) -> Result<usize, KernelNicError> {
        let now = self.clock.now();
        let mut leaving = Vec::new();
        let out = self.host.receive(BUDGET, &mut |frame| leaving.push(frame.to_vec()))?;
        // A program says what a record is before it writes it. So the records of these frames are known once everything
        // was heard that programs have said by now.
        self.hear(now)?;
        for frame in &leaving {
            self.leave(frame, now);
        }
        let mut coming = Vec::new();
        let come = self.wire.receive(BUDGET, &mut |frame| coming.push(frame.to_vec()))?;
        for frame in &coming {
            self.come(frame, now);
        }
        for port in [&mut self.host, &mut self.wire] {
            self.counters.port_errors += u64::from(port.flush().is_err());
        }
        self.end_flows(now);
        Ok(out + come)
    }

    /// Sleeps until somebody has something.
    fn wait(&mut self) -> Result<(), KernelNicError> {
        let ports = [self.host.readable(), self.wire.readable()];
        let others = self.callers.iter().chain(self.flows.values().filter_map(|flow| flow.channel.as_ref()));
        let descriptors = ports.into_iter().flatten().chain([self.door.as_fd()]).chain(others.map(AsFd::as_fd));
        let mut polled: Vec<_> = descriptors.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&LONGEST_SLEEP)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(cause) => Err(KernelNicError::Wait(cause)),
        }
    }

    /// Takes everything that programs have said.
    fn hear(&mut self, now: Time) -> Result<(), KernelNicError> {
        while let Ok(caller) = accept_with(&self.door, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            self.callers.push(caller);
        }
        for caller in std::mem::take(&mut self.callers) {
            self.hear_caller(caller, now);
        }
        let channels: Vec<_> =
            self.flows.values().filter_map(|flow| Some((flow.outward, flow.channel.as_ref()?))).collect();
        let mut polled: Vec<_> = channels.iter().map(|(_, channel)| PollFd::new(*channel, PollFlags::IN)).collect();
        poll(&mut polled, Some(&Timespec::default())).map_err(KernelNicError::Wait)?;
        let spoke = channels.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        let spoke: Vec<FlowKey> = spoke.map(|((flow, _), _)| *flow).collect();
        for flow in spoke {
            self.hear_flow(&flow);
        }
        Ok(())
    }

    /// The first message of a program about a connection: its keys, with its descriptor.
    fn hear_caller(&mut self, caller: OwnedFd, now: Time) {
        let mut bytes = [0; 1 + crate::tls::CRYPTO_INFO_MOST];
        let received = match control::receive(caller.as_fd(), &mut bytes, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::AGAIN | Errno::INTR) => return self.callers.push(caller),
            Err(_) => return,
            Ok(received) => received,
        };
        let (Some(Message::Keys(info)), [connection]) =
            (Message::parse(&bytes[..received.len]), &received.descriptors[..])
        else {
            self.counters.unreadable += u64::from(received.len > 0);
            return;
        };
        let begun = self.begin(info, connection);
        let (result, begun) = match begun {
            Ok(begun) => (Ok(()), Some(begun)),
            Err(cause) => (Err(cause), None),
        };
        // A program that does not wait for the answer has ended.
        let _ = answer(caller.as_fd(), result);
        match begun {
            Some(Begun { outward, info, start }) => {
                self.counters.offloaded += 1;
                self.flows.insert(outward, Flow::new(outward, caller, &info.keys, start, now));
            }
            None => self.counters.refused += 1,
        }
    }

    /// Makes a context for a connection.
    fn begin(&mut self, info: &[u8], connection: &OwnedFd) -> Result<Begun, Errno> {
        let info = CryptoInfo::parse(info)?;
        let outward = place::outward(connection.as_fd())?;
        if self.flows.contains_key(&outward) {
            return Err(Errno::BUSY);
        }
        // What leaves by another device would leave unencrypted: the connection began here, and stays here.
        let name = self.host.link().map(|link| link.name().to_owned());
        let (true, Some(name)) = (self.seen.flows.contains(&outward), name) else { return Err(Errno::OPNOTSUPP) };
        place::bind_to_device(connection.as_fd(), &name)?;
        let start = Start { tcpsn: place::next_sequence(connection.as_fd())?, number: info.number };
        let offload = Offload { flow: outward, protocol: self.tls, start, state: info.keys.state() };
        self.engine.offload_transmit(&offload).map_err(|_| Errno::INVAL)?;
        Ok(Begun { outward, info, start })
    }

    /// What a program says of a connection that has a context.
    fn hear_flow(&mut self, at: &FlowKey) {
        let mut bytes = vec![0; MESSAGE_MOST];
        loop {
            let Some(flow) = self.flows.get_mut(at) else { return };
            let Some(channel) = &flow.channel else { return };
            let received = match control::receive(channel.as_fd(), &mut bytes, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(_) => 0,
                Ok(received) => received.len,
            };
            if received == 0 {
                flow.channel = None;
                return;
            }
            let heard = match Message::parse(&bytes[..received]) {
                Some(Message::Record { content, data }) => {
                    self.counters.records += 1;
                    flow.write(content, data).is_ok()
                }
                Some(Message::Keys(info)) => {
                    let info = CryptoInfo::parse(info);
                    let result = info.map(|info| {
                        let start = flow.rekey(&info.keys);
                        self.engine.rekey_transmit(at, start, info.keys.state());
                    });
                    flow.channel.as_ref().is_some_and(|channel| answer(channel.as_fd(), result).is_ok())
                }
                None => false,
            };
            self.counters.unreadable += u64::from(!heard);
        }
    }

    /// A frame of the kernel's on its way to the wire.
    fn leave(&mut self, frame: &[u8], now: Time) {
        self.counters.frames_out += 1;
        let KernelNic { wire, loss, engine, flows, counters, .. } = self;
        let mut to_wire = |frame: &[u8]| {
            if !loss.loses() {
                counters.port_errors += u64::from(wire.send(frame, now).is_err());
            }
        };
        let Some(header) = TcpHeader::find(frame) else { return to_wire(frame) };
        if header.begins {
            self.seen.add(header.flow);
            // The same addresses and ports again: another connection.
            if flows.remove(&header.flow).is_some() {
                engine.destroy_transmit(&header.flow);
            }
        }
        let Some(flow) = flows.get_mut(&header.flow) else { return to_wire(frame) };
        flow.leaves(header.seq.plus(header.len), now);
        if header.resets {
            flow.reset();
        }
        let Some(segment) = engine.leaving(frame) else { return to_wire(frame) };
        let before = worked();
        let (layer5, memory) = flow.parts();
        let mut left = Vec::with_capacity(1);
        engine.send(frame, &segment, layer5, memory, |frame| left.push(frame.to_vec()));
        let took = worked().saturating_sub(before);
        left.iter().for_each(|frame| to_wire(frame));
        self.counters.engine += took;
    }

    /// A frame of the wire on its way to the kernel.
    fn come(&mut self, frame: &[u8], now: Time) {
        if self.loss.loses() {
            return;
        }
        self.counters.frames_in += 1;
        // A reset is no end here: it may be forged, and without its context the kernel's records would leave unencrypted.
        if let Some(header) = TcpHeader::find(frame)
            && let Some(flow) = self.flows.get_mut(&header.flow.reverse())
            && let Some(number) = header.acknowledges
            && flow.acknowledge(number, now)
        {
            self.engine.acknowledge(&flow.outward, number);
        }
        self.counters.port_errors += u64::from(self.host.send(frame, now).is_err());
    }

    fn end_flows(&mut self, now: Time) {
        let engine = &mut self.engine;
        self.flows.retain(|at, flow| {
            let is_over = flow.is_over(now);
            if is_over {
                engine.destroy_transmit(at);
            }
            !is_over
        });
    }

    /// Counters by name.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let KernelNicCounters { offloaded, refused, records, frames_out, frames_in, port_errors, unreadable, engine } =
            self.counters;
        let port = self.engine.port_counters();
        let own = [
            ("connections_offloaded", offloaded),
            ("connections_refused", refused),
            ("connections_open", self.flows.len() as u64),
            ("records", records),
            ("frames_out", frames_out),
            ("frames_in", frames_in),
            ("frames_lost_by_intent", self.loss.lost),
            ("port_errors", port_errors),
            ("unreadable_messages", unreadable),
            ("tls_in_software_packets", port.in_software_packets),
            ("tls_no_room", port.no_room),
            ("tls_nic_cpu_us", engine.as_us() as u64),
        ];
        let own = own.into_iter().map(|(name, count)| (name.to_owned(), count));
        own.chain(self.engine.named_counters()).collect()
    }
}

impl Drop for KernelNic {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The TAP's address: not the wire's, or the kernel would take frames there, too; and the same each time, as peers remember it.
fn beside(wire: [u8; 6]) -> [u8; 6] {
    const LOCAL: u8 = 2;
    const OTHER: u8 = 4;
    let mut mac = wire;
    mac[0] = if wire[0] & LOCAL == 0 { wire[0] | LOCAL } else { wire[0] ^ OTHER };
    mac
}

/// A connection that has a context.
struct Begun {
    outward: FlowKey,
    info: CryptoInfo,
    start: Start,
}
