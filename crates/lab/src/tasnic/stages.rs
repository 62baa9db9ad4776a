//! The three stages of the data path: pre-processing, protocol, post-processing. The protocol is `nicforge_tcp::fast`.

use std::net::{IpAddr, Ipv4Addr};

use nicforge_platform::sim::npu::{Command, ThreadId};
use nicforge_tcp::fast::{self, Bump, FlowFlags, Outcome as Fast, SlowReason, Summary};
use nicforge_tcp::options::{Options, Timestamps};
use nicforge_tcp::queue::ToApplication;
use nicforge_tcp::segment::{Ecn, Flags, Header};
use nicforge_tcp::stack::FourTuple;
use nicforge_units::Time;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN};

use super::flow::NicFlow;
use super::nic::{Event, Job, Nic};
use super::options::Layout;
use super::queue_manager::Update;
use super::records;
use super::work::{Kind, Outcome, Work};
use crate::tas::frame::{Parsed, parse_bytes, write_headers};

/// A tick of the NIC's clock: 16 cycles of 800 MHz.
const TICK: Time = Time::from_ns(20);
/// Echoes of more ticks than these are no round trips: one second.
const ECHO_MOST: u32 = 50_000_000;
/// Flags that the fast path takes; a segment with any other is the slow path's.
const FAST_FLAGS: u8 = Flags::ACK.0 | Flags::FIN.0 | Flags::PSH.0 | Flags::ECE.0 | Flags::CWR.0;

/// A connection's place in the look-up table: the peer's address, and both ports.
pub fn key_of(tuple: &FourTuple) -> u64 {
    let peer = match tuple.remote {
        IpAddr::V4(peer) => u32::from(peer),
        IpAddr::V6(_) => u32::from(Ipv4Addr::UNSPECIFIED),
    };
    u64::from(peer) << 32 | u64::from(tuple.remote_port) << 16 | u64::from(tuple.local_port)
}

impl NicFlow {
    /// The clock of its time stamps.
    fn clock(&self, now: Time) -> u32 {
        let (then, since) = self.clock;
        then.wrapping_add((now.saturating_sub(since).as_ps() / TICK.as_ps()) as u32)
    }

    /// Takes the round trip that an echoed clock shows.
    fn note_echo(&mut self, echo: u32, now: Time) {
        let ticks = self.clock(now).wrapping_sub(echo);
        if ticks < ECHO_MOST {
            let sample = (u64::from(ticks) * TICK.as_ps() / 1_000_000) as u32;
            let estimate = &mut self.state.post.rtt_est;
            *estimate = if *estimate == 0 { sample } else { *estimate - *estimate / 8 + sample / 8 }.max(1);
        }
    }

    /// The header of what leaves. Its clock is read here, where a connection's events are in order: post-processing
    /// works out of order, and a peer drops segments whose clock went back (RFC 7323).
    fn header(&mut self, seq: u32, flags: Flags, payload_len: u32, now: Time) -> Header {
        let has_clock = self.state.has(FlowFlags::TIMESTAMPS);
        let clocks = Timestamps { value: self.clock(now), echo: self.state.protocol.next_ts };
        let marked = self.state.protocol.marks & 1 != 0;
        Header {
            source_port: self.tuple.local_port,
            destination_port: self.tuple.remote_port,
            seq: nicforge_tcp::seq::Seq(seq),
            ack: nicforge_tcp::seq::Seq(self.state.protocol.ack),
            flags: flags.with_if(marked, Flags::ECE),
            window: self.state.window_field(),
            options: Options { timestamps: has_clock.then_some(clocks), ..Options::default() },
            payload_len,
            ..Header::default()
        }
    }
}

impl Nic {
    fn time_of(&mut self, command: Command) -> Time {
        let now = self.npu.now();
        self.npu.units.access(command, 0, now)
    }

    /// Pre-processing: who is it from? Returns what it takes beyond the script.
    pub(super) fn pre(&mut self, number: u32, thread: ThreadId) -> Time {
        let Some(work) = self.works.get(number) else { return Time::ZERO };
        let mut longer = Time::ZERO;
        if work.kind == Kind::Rx {
            let known = parse_bytes(&work.frame).map(|parsed| (key_of(&parsed.tuple), parsed));
            let Ok((key, Parsed { header, envelope, payload_at, .. })) = known else {
                work.is_over = true;
                return longer;
            };
            let odd = header.flags.0 & !FAST_FLAGS != 0 || !header.flags.has(Flags::ACK);
            work.summary = Summary::new(&header, envelope.ecn);
            work.echo = header.options.timestamps.map(|clock| clock.echo);
            work.payload_at = payload_at;
            match self.table.get(&key) {
                Some(&flow) if !odd => {
                    work.flow = flow;
                    self.flows[flow as usize].held += 1;
                }
                _ => work.is_over = true,
            }
            let fpc = self.npu.core_of(thread, self.pools.pre) % self.look_ups.len();
            let hash = (key ^ key >> 32) as u32;
            if !self.look_ups[fpc].put(hash) {
                longer += self.time_of(Command::Imem);
            }
        }
        if self.options.tasnic_layout == Layout::RunToCompletion {
            self.take_ticket(number);
        }
        longer
    }

    /// It leaves pre-processing: frames by the reordering block, everything else at once.
    pub(super) fn pre_done(&mut self, number: u32) {
        if self.options.tasnic_layout == Layout::RunToCompletion {
            return self.is_complete(number);
        }
        let now = self.npu.now();
        let Some(work) = self.works.get(number) else { return };
        if work.kind != Kind::Rx {
            return self.enter_protocol(number);
        }
        let arrival = work.arrival;
        self.arrivals.put(arrival, number);
        let at = self.reordered.max(now);
        self.npu.at(at, Event::Reordered);
    }

    /// Frames leave the reordering block in the order in which they came, one in so much time.
    pub(super) fn release_arrivals(&mut self) {
        let now = self.npu.now();
        if now < self.reordered {
            return;
        }
        let Some(number) = self.arrivals.take() else { return };
        self.reordered = now + self.reorder_every;
        self.npu.at(self.reordered, Event::Reordered);
        let is_over = self.works.get(number).is_some_and(|work| work.is_over);
        if is_over {
            self.except(number);
        } else {
            self.enter_protocol(number);
        }
    }

    fn take_ticket(&mut self, number: u32) {
        let Some(work) = self.works.get(number).filter(|work| !work.is_over) else { return };
        if let Some(flow) = self.flows.get_mut(work.flow as usize) {
            work.ticket = flow.tickets.0;
            flow.tickets.0 += 1;
        } else {
            work.is_over = true;
        }
    }

    fn enter_protocol(&mut self, number: u32) {
        self.take_ticket(number);
        let Some(work) = self.works.get(number) else { return };
        let Some(flow) = self.flows.get(work.flow as usize) else {
            self.works.take(number);
            return;
        };
        let script = self.scripts.protocol(work.kind);
        self.npu.put(self.pools.protocol[flow.group], 0, Job::Work(number), script);
    }

    /// The protocol stage takes a connection's events in the order of its queue, one at a time.
    pub(super) fn lock(&mut self, thread: ThreadId, number: u32) {
        let Some(work) = self.works.get(number).filter(|work| !work.is_over) else {
            return self.npu.proceed(thread, Time::ZERO);
        };
        let (id, ticket) = (work.flow, work.ticket);
        let flow = &mut self.flows[id as usize];
        if flow.tickets.1 != ticket {
            flow.waiting.push((ticket, thread, number));
            return;
        }
        let group = flow.group;
        let command = self.groups[group].cache.look_up(id, &mut self.emem);
        let longer = if command == Command::Local { Time::ZERO } else { self.time_of(command) };
        let jitter = self.jitter();
        self.npu.proceed(thread, longer + jitter);
    }

    /// The protocol itself: the fast path's four events on the connection's state.
    pub(super) fn process(&mut self, number: u32) {
        let now = self.npu.now();
        let Some(mut work) = self.works.get(number).map(std::mem::take) else { return };
        if !work.is_over {
            let flow = &mut self.flows[work.flow as usize];
            let mut outcome = match work.kind {
                Kind::Rx => received(flow, &mut work, now, (&mut self.drops, &mut self.counters.went_back)),
                Kind::Ac => {
                    let (waits, bad) = (flow.state.rx_waiting(), self.counters.bad_entries);
                    let begin = flow.state.rx_at(flow.state.post.rx_size - waits);
                    let outcome = applied(flow, &work, now, &mut self.counters.bad_entries);
                    if let Some(pages) = self.pages.as_ref().filter(|_| self.counters.bad_entries == bad) {
                        let read = flow.rings.receive.pieces(begin, work.bump.rx);
                        read.into_iter().for_each(|piece| pages.borrow_mut().free(piece));
                    }
                    outcome
                }
                Kind::Tx => departs(flow, now, &mut self.counters.idle_departures),
                Kind::Retx => {
                    fast::retransmit(&mut flow.state);
                    self.counters.probes += u64::from(fast::probe(&mut flow.state));
                    Outcome::default()
                }
            };
            flow.version += 1;
            flow.tickets.1 += 1;
            outcome.sendable = flow.state.sendable();
            (outcome.departed, outcome.version) = (flow.departed, flow.version);
            work.outcome = outcome;
            let turn = flow.tickets.1;
            let next = flow.waiting.iter().position(|(ticket, ..)| *ticket == turn);
            let next = next.map(|place| flow.waiting.swap_remove(place));
            work.order = self.groups[flow.group].out.number();
            if let Some(slot) = self.works.get(number) {
                *slot = work;
            }
            if let Some((_, thread, waits)) = next {
                self.lock(thread, waits);
            }
        } else if let Some(slot) = self.works.get(number) {
            *slot = work;
        }
    }

    /// The result goes to post-processing.
    pub(super) fn enter_post(&mut self, number: u32) {
        let Some(work) = self.works.get(number) else { return };
        let group = self.flows[work.flow as usize].group;
        let script = self.scripts.post(work.kind);
        self.npu.put(self.pools.post[group], 0, Job::Work(number), script);
    }

    /// Where post-processing finds its part of the state; returns what that takes beyond local memory.
    pub(super) fn look_up_post(&mut self, number: u32, thread: ThreadId) -> Time {
        let Some(work) = self.works.get(number).filter(|work| !work.is_over) else { return Time::ZERO };
        let (id, group) = (work.flow, self.flows[work.flow as usize].group);
        let first = self.pools.post.first().copied().unwrap_or(self.pools.pre);
        let fpc = self.npu.core_of(thread, first) % self.post_local.len();
        let (hit, evicted) = self.post_local[fpc].take(id);
        if hit {
            return Time::ZERO;
        }
        if let Some(evicted) = evicted {
            self.groups[group].post.put(evicted);
        }
        let command = if self.groups[group].post.put(id) {
            Command::Cls
        } else if self.emem.put(id) {
            Command::Emem
        } else {
            Command::Dram
        };
        self.time_of(command)
    }

    /// Headers of what leaves, statistics, and news for the queue manager.
    pub(super) fn post(&mut self, number: u32) {
        let now = self.npu.now();
        let Some(work) = self.works.get(number).filter(|work| !work.is_over) else { return };
        let flow = &mut self.flows[work.flow as usize];
        if let Some(echo) = work.echo.filter(|_| work.kind == Kind::Rx && work.summary.flags.has(Flags::ACK)) {
            flow.note_echo(echo, now);
        }
        if let Some(header) = work.outcome.header.take() {
            let marks = header.payload_len > 0 && flow.state.has(FlowFlags::ECN);
            let ecn = if marks { Ecn::Capable0 } else { Ecn::NotCapable };
            work.out = vec![0; ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + header.emitted_len()];
            write_headers(&mut work.out, &flow.tuple, &header, ecn, work.order as u16);
        }
        let Outcome { sendable, departed, version, .. } = work.outcome;
        let update = Update { flow: work.flow, sendable, departed, version };
        // A flow that has nothing to send, and had nothing, is no news.
        if sendable > 0 || work.kind == Kind::Tx {
            self.tell_queue(update);
        }
    }
}

/// RX.
fn received(
    flow: &mut NicFlow,
    work: &mut Work,
    now: Time,
    (drops, went_back): (&mut nicforge_nic::DropCounters, &mut u64),
) -> Outcome {
    let done = match fast::receive(&mut flow.state, &work.summary) {
        Fast::Done(done) => done,
        Fast::Slow(SlowReason::OldClock) => {
            drops.count("old_clock");
            let seq = flow.state.protocol.seq;
            return Outcome { header: Some(flow.header(seq, Flags::ACK, 0, now)), ..Outcome::default() };
        }
        Fast::Slow(reason) => {
            drops.count(cause_of(reason));
            return Outcome::default();
        }
    };
    *went_back += u64::from(done.went_back);
    let again = records::came(flow, &done);
    let news = done.rx_bump > 0 || done.tx_bump > 0 || done.fin;
    let seq = flow.state.protocol.seq;
    Outcome {
        header: done.acknowledge.then(|| flow.header(seq, Flags::ACK, 0, now)),
        store: done.store,
        again,
        notify: news.then_some(ToApplication {
            opaque: flow.state.post.opaque,
            rx_bump: done.rx_bump,
            tx_bump: done.tx_bump,
            peer_closed: done.fin,
        }),
        ..Outcome::default()
    }
}

fn cause_of(reason: SlowReason) -> &'static str {
    match reason {
        SlowReason::Acknowledgment => "impossible_acknowledgment",
        SlowReason::Options => "unexpected_options",
        _ => "not_fast",
    }
}

/// AC.
pub(super) fn applied(flow: &mut NicFlow, work: &Work, now: Time, bad_entries: &mut u64) -> Outcome {
    if work.bump.close {
        flow.closes_after = Some(work.entry);
    }
    // What was written before the end may come behind it.
    let close = flow.closes_after == Some(flow.entries);
    flow.entries = flow.entries.wrapping_add(1);
    match fast::application(&mut flow.state, Bump { close, ..work.bump }) {
        Ok(applied) => {
            let seq = flow.state.protocol.seq;
            let header = applied.window_update.then(|| flow.header(seq, Flags::ACK, 0, now));
            Outcome { header, ..Outcome::default() }
        }
        Err(_) => {
            *bad_entries += 1;
            Outcome::default()
        }
    }
}

/// TX.
fn departs(flow: &mut NicFlow, now: Time, idle: &mut u64) -> Outcome {
    flow.departed += 1;
    let Some(sent) = fast::transmit(&mut flow.state, flow.mss) else {
        *idle += 1;
        return Outcome::default();
    };
    let again = records::leaves(flow, &sent);
    let header = flow.header(sent.seq, sent.flags, sent.len, now);
    let fetch = (sent.len > 0).then_some((sent.at, sent.len));
    Outcome { header: Some(header), fetch, again, ..Outcome::default() }
}
