//! TLS on the connections of a network: records between what applications write and what the stack sends, and the NIC's
//! engine between the stack and the port.
//!
//! The service's thread does the NIC's work, too. What that costs is counted apart from what software does.

mod counters;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use nicforge_l5p::context::{ContextId, FlowKey, Start};
use nicforge_l5p::driver::Layer5;
use nicforge_l5p::engine::{EngineConfig, Received};
use nicforge_l5p::port::{Offload, Port, Reports, Segment, StreamMemory};
use nicforge_l5p::protocol::ProtocolId;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::{ReadError, ReaderCounters, RecordReader};
use nicforge_l5p::tls::record::{ContentType, HeaderError};
use nicforge_l5p::tls::sender::RecordSender;
use nicforge_tcp::conn::Connection;
use nicforge_tcp::stack::{ConnectionId, Stack};
use nicforge_units::Time;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::pages::PagedBuffers;
use crate::tls::{CryptoInfo, FAILED, PIECE_HEADER, PIECE_MOST, parse_piece_header, piece_header};

/// Contexts that fit into the NIC's memory: 4 MiB of 208 bytes.
const CONTEXTS_MAX: usize = (4 << 20) / 208;
/// Bytes of records that wait for the stack before the application's ring is left full.
const UNSENT_MOST: usize = 128 << 10;
/// Plaintext that waits for the application's ring.
const WAITING_MOST: usize = 128 << 10;

/// Which way a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What the application sends.
    Outward,
    /// What comes. Bytes that the application has not read are given back.
    Inward,
}

struct Out {
    sender: RecordSender,
    /// Bytes from before the keys, which pass as they are.
    raw_left: usize,
    /// A piece that came in part.
    partial: Vec<u8>,
    was_full: bool,
    /// A FIN follows what waits.
    finishes: bool,
    /// The owner has gone; the stack does not know yet.
    is_released: bool,
}

struct In {
    reader: RecordReader,
    reports: Reports,
    waiting: VecDeque<u8>,
    /// Something came that is no record. The application learns of it behind what came before; it may still send an alert.
    failed: bool,
}

struct Secured {
    outward: FlowKey,
    out: Option<Out>,
    inward: Option<In>,
}

/// What TLS did, for `nicforge ss`.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    records: ReaderCounters,
    /// Time in the NIC's engine.
    nic: Time,
    /// Time in record layers.
    software: Time,
}

/// The TLS connections of a network.
pub struct Secure {
    port: Port,
    flows: BTreeMap<ConnectionId, Secured>,
    by_outward: BTreeMap<FlowKey, ConnectionId>,
    by_inward: BTreeMap<FlowKey, ConnectionId>,
    nowhere: StreamMemory,
    scratch: Vec<u8>,
    past: Work,
    tls: Option<ProtocolId>,
}

impl Default for Secure {
    fn default() -> Secure {
        Secure {
            port: Port::new(EngineConfig::default(), CONTEXTS_MAX),
            flows: BTreeMap::new(),
            by_outward: BTreeMap::new(),
            by_inward: BTreeMap::new(),
            nowhere: StreamMemory::default(),
            scratch: vec![0; 64 << 10],
            past: Work::default(),
            tls: registry::find("tls"),
        }
    }
}

/// Time that this thread has worked.
pub(crate) fn worked() -> Time {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Time::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

impl Secure {
    /// Whether no connection is encrypted.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Whether a connection is encrypted in this direction.
    pub fn has(&self, at: ConnectionId, way: Way) -> bool {
        self.flows.get(&at).is_some_and(|flow| match way {
            Way::Outward => flow.out.is_some(),
            Way::Inward => flow.inward.is_some(),
        })
    }

    /// Encrypts one direction of a connection from here on. `raw` outward: its bytes, which are still to be sent as they
    /// are, are counted only. Inward: bytes that came before and are records.
    pub fn begin(
        &mut self,
        stack: &Stack<PagedBuffers>,
        at: ConnectionId,
        way: Way,
        info: &CryptoInfo,
        raw: &[u8],
    ) -> Result<(), Errno> {
        let (Some(connection), Some(tuple), Some(tls)) = (stack.connection(at), stack.tuple(at), self.tls) else {
            return Err(Errno::NOTCONN);
        };
        let local = SocketAddr::new(tuple.local, tuple.local_port);
        let remote = SocketAddr::new(tuple.remote, tuple.remote_port);
        let outward = FlowKey::between(local, remote);
        let flow = self.flows.entry(at).or_insert_with(|| Secured { outward, out: None, inward: None });
        let keys: &TlsKeys = &info.keys;
        let offload = |flow, start| Offload { flow, protocol: tls, start, state: keys.state() };
        match way {
            Way::Outward if flow.out.is_some() => return Err(Errno::BUSY),
            Way::Outward => {
                let unsent = connection.flow.protocol.tx_avail as usize;
                let tcpsn = Seq(connection.next().0).plus(unsent + raw.len());
                let start = Start { tcpsn, number: info.number };
                self.port.offload_transmit(&offload(outward, start)).map_err(|_| Errno::INVAL)?;
                self.by_outward.insert(outward, at);
                flow.out = Some(Out {
                    sender: RecordSender::new(keys, start),
                    raw_left: raw.len(),
                    partial: Vec::new(),
                    was_full: false,
                    finishes: false,
                    is_released: false,
                });
            }
            Way::Inward => {
                let inward = outward.reverse();
                let next = Seq(connection.expected().0.wrapping_sub(connection.readable()));
                let id = self.port.next_id();
                match &mut flow.inward {
                    Some(known) => {
                        let start = known.reader.rekey(keys, id);
                        self.port.offload_receive(&offload(inward, start)).map_err(|_| Errno::INVAL)?;
                    }
                    None => {
                        let tcpsn = Seq(next.0.wrapping_sub(raw.len() as u32));
                        let start = Start { tcpsn, number: info.number };
                        let given = self.port.offload_receive(&offload(inward, start)).map_err(|_| Errno::INVAL)?;
                        let mut reader = RecordReader::new(keys, start, given.unwrap_or(ContextId(u32::MAX)));
                        reader.push(raw, &Received::without_context());
                        let (reports, waiting) = (Reports::new(next), VecDeque::new());
                        flow.inward = Some(In { reader, reports, waiting, failed: false });
                        self.by_inward.insert(inward, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes pieces of records from an application; returns how many bytes.
    pub fn send(&mut self, stack: &mut Stack<PagedBuffers>, at: ConnectionId, bytes: &[u8], now: Time) -> usize {
        let Some(out) = self.flows.get_mut(&at).and_then(|flow| flow.out.as_mut()) else { return 0 };
        let before = worked();
        let mut taken = 0;
        if out.raw_left > 0 {
            taken = stack.send(at, &bytes[..out.raw_left.min(bytes.len())], false, now).unwrap_or(0);
            out.raw_left -= taken;
            if out.raw_left > 0 {
                stack.with(at, Connection::wait_for_space);
                return taken;
            }
        }
        while taken < bytes.len() && (out.sender.unsent_bytes() < UNSENT_MOST || !out.partial.is_empty()) {
            let wanted = match out.partial.first_chunk::<PIECE_HEADER>() {
                None => PIECE_HEADER,
                Some(header) => PIECE_HEADER + parse_piece_header(*header).1.min(PIECE_MOST),
            };
            let part = (wanted - out.partial.len()).min(bytes.len() - taken);
            out.partial.extend_from_slice(&bytes[taken..taken + part]);
            taken += part;
            if out.partial.len() < wanted {
                break;
            }
            if wanted > PIECE_HEADER || out.partial[1..] == [0, 0] {
                // A piece is never longer than a record may be.
                let _ = out.sender.write(ContentType(out.partial[0]), &out.partial[PIECE_HEADER..], 0);
                out.partial.clear();
            }
        }
        hand_over(out, stack, at, now);
        out.was_full = taken < bytes.len();
        self.past.software += worked().saturating_sub(before);
        taken
    }

    /// Gives pieces of records to an application; returns how many bytes.
    pub fn receive(&mut self, stack: &mut Stack<PagedBuffers>, at: ConnectionId, into: &mut [u8], now: Time) -> usize {
        let Some(flow) = self.flows.get_mut(&at) else { return 0 };
        let Some(inward) = flow.inward.as_mut() else { return 0 };
        let before = worked();
        let mut fresh = true;
        while fresh && inward.waiting.len() < WAITING_MOST {
            let bytes = stack.recv(at, &mut self.scratch, now).unwrap_or(0);
            fresh = bytes > 0;
            if inward.failed {
                continue;
            }
            let mut done = 0;
            for stretch in inward.reports.take(bytes) {
                inward.reader.push(&self.scratch[done..done + stretch.bytes], &stretch.received);
                done += stretch.bytes;
            }
            loop {
                match inward.reader.read() {
                    Ok(Some(record)) => {
                        // A record without content is no end of the stream: nobody is told of it.
                        for piece in record.data.chunks(PIECE_MOST) {
                            inward.waiting.extend(piece_header(record.content.0, piece.len()));
                            inward.waiting.extend(piece);
                        }
                    }
                    Ok(None) => break,
                    Err(cause) => {
                        inward.failed = true;
                        let error = errno(&cause).raw_os_error() as usize;
                        inward.waiting.extend(piece_header(FAILED, error));
                        break;
                    }
                }
            }
        }
        let key = flow.outward.reverse();
        for answer in inward.reader.take_answers() {
            self.port.answer(&key, answer, now);
        }
        let bytes = into.len().min(inward.waiting.len());
        into.iter_mut().zip(inward.waiting.drain(..bytes)).for_each(|(to, byte)| *to = byte);
        self.past.software += worked().saturating_sub(before);
        bytes
    }

    /// Whether plaintext waits for the application.
    pub fn waits(&self, at: ConnectionId) -> bool {
        let inward = self.flows.get(&at).and_then(|flow| flow.inward.as_ref());
        inward.is_some_and(|inward| !inward.waiting.is_empty())
    }

    /// The application sends nothing more; tells whether the FIN waits here for what was written.
    pub fn holds_finish(&mut self, at: ConnectionId) -> bool {
        let Some(out) = self.flows.get_mut(&at).and_then(|flow| flow.out.as_mut()) else { return false };
        out.finishes = out.sender.unsent_bytes() > 0;
        out.finishes
    }

    /// The owner lets go; tells whether the stack must wait for what was written.
    pub fn holds_release(&mut self, at: ConnectionId) -> bool {
        let Some(out) = self.flows.get_mut(&at).and_then(|flow| flow.out.as_mut()) else { return false };
        out.is_released = out.sender.unsent_bytes() > 0;
        out.is_released
    }

    /// Hands over what waits, notes acknowledgments, and forgets connections that ended. `room` learns of connections
    /// that take more.
    pub fn turn(&mut self, stack: &mut Stack<PagedBuffers>, now: Time, mut room: impl FnMut(ConnectionId)) {
        let mut gone = Vec::new();
        for (&at, flow) in &mut self.flows {
            let Some(connection) = stack.connection(at) else {
                gone.push(at);
                continue;
            };
            let Some(out) = &mut flow.out else { continue };
            let una = Seq(connection.una().0);
            out.sender.acknowledge(una);
            self.port.acknowledge(&flow.outward, una);
            if out.sender.unsent_bytes() > 0 {
                hand_over(out, stack, at, now);
            }
            if out.was_full && out.sender.unsent_bytes() < UNSENT_MOST / 2 {
                out.was_full = false;
                room(at);
            }
            if out.sender.unsent_bytes() == 0 {
                if std::mem::take(&mut out.finishes) {
                    stack.shut_write(at, now);
                }
                if std::mem::take(&mut out.is_released) {
                    stack.release(at, now);
                }
            }
        }
        gone.into_iter().for_each(|at| self.forget(at));
    }

    fn forget(&mut self, at: ConnectionId) {
        let Some(flow) = self.flows.remove(&at) else { return };
        let inward = flow.outward.reverse();
        self.port.destroy_transmit(&flow.outward);
        self.port.destroy_receive(&inward);
        self.by_outward.remove(&flow.outward);
        self.by_inward.remove(&inward);
        if let Some(inward) = flow.inward {
            counters::add(&mut self.past.records, &inward.reader.counters());
        }
    }

    /// A frame of the stack on its way to the wire.
    pub fn leave(&mut self, frame: &[u8], mut wire: impl FnMut(&[u8])) {
        let Some(segment) = self.port.leaving(frame) else { return wire(frame) };
        let at = self.by_outward.get(&segment.flow);
        let Some(out) = at.and_then(|at| self.flows.get_mut(at)).and_then(|flow| flow.out.as_mut()) else {
            return wire(frame);
        };
        let before = worked();
        let (layer5, memory) = out.sender.parts();
        let mut left = Vec::with_capacity(1);
        self.port.send(frame, &segment, layer5, memory, |frame| left.push(frame.to_vec()));
        self.past.nic += worked().saturating_sub(before);
        left.iter().for_each(|frame| wire(frame));
    }

    /// A frame from the wire on its way to the stack, which gets it changed where the NIC decrypted it.
    pub fn come(&mut self, frame: &[u8], stack: &mut Stack<PagedBuffers>, now: Time) {
        let segment = Segment::find(frame);
        let flow = segment.as_ref().and_then(|segment| self.by_inward.get(&segment.flow));
        let inward = flow.and_then(|at| self.flows.get_mut(at)).and_then(|flow| flow.inward.as_mut());
        let (Some(segment), Some(inward)) = (segment, inward) else { return stack.receive(frame, now) };
        let before = worked();
        let mut changed = frame.to_vec();
        let received = self.port.receive(&mut changed, &mut self.nowhere, now);
        let received = received.map_or_else(Received::without_context, |(_, received)| received);
        self.past.nic += worked().saturating_sub(before);
        stack.receive(&changed, now);
        if let Some(arrival) = stack.arrival() {
            let seq = segment.seq.plus(arrival.placement.skip as usize);
            inward.reports.note(seq, arrival.placement.len as usize, &received);
        }
        if let Some(tcpsn) = received.resync {
            inward.reader.l5o_resync_rx_req(tcpsn);
        }
    }
}

/// The error that Linux gives for it. OpenSSL sends the alert that fits.
fn errno(cause: &ReadError) -> Errno {
    match cause {
        ReadError::NotARecord { why: HeaderError::TooLong, .. } => Errno::MSGSIZE,
        ReadError::NotARecord { why: HeaderError::Version | HeaderError::Type, .. } => Errno::INVAL,
        _ => Errno::BADMSG,
    }
}

fn hand_over(out: &mut Out, stack: &mut Stack<PagedBuffers>, at: ConnectionId, now: Time) {
    out.sender.hand_over(|bytes| {
        let taken = stack.send(at, bytes, false, now).unwrap_or(0);
        if taken < bytes.len() {
            stack.with(at, Connection::wait_for_space);
        }
        taken
    });
}
