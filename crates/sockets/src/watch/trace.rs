//! What happens to a connection's segments: losses, repairs, drops with their reasons.
//!
//! The stack is not asked to tell: a trace compares a connection's counters and figures before and after each segment,
//! so a connection that nobody traces pays nothing.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use nicforge_tcp::conn::{Connection, Counters};
use nicforge_tcp::segment::Flags;
use nicforge_tcp::seq::Seq;
use nicforge_tcp::stack::{FourTuple, StackCounters};
use nicforge_units::Time;

use super::event::{Because, Event, What};
use super::frame::Seen;

/// Connections that a trace follows; beyond it new ones replace all old ones.
const CONNECTIONS: usize = 4096;
/// Segments of one connection that a trace remembers.
const SEGMENTS: usize = 4096;

/// A connection's figures at one moment.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The connection, if there is one.
    pub connection: Option<OfConnection>,
    /// Counters of the host.
    pub host: StackCounters,
}

/// Of the connection.
#[derive(Clone, Debug)]
pub struct OfConnection {
    counters: Counters,
    una: Seq,
    expected: Seq,
    outstanding: bool,
    recovery: Recovery,
    smoothed_rtt_us: u32,
    threshold_segments: u32,
    window_segments: u32,
    timeout_us: u32,
}

/// What a connection does about losses (Linux's names).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing.
    Open,
    /// It saw duplicates.
    Disorder,
    /// It reduces its window after a congestion mark.
    Reducing,
    /// It repairs what duplicates or SACK show.
    Recovery,
    /// It repairs after a timeout.
    Loss,
}

impl OfConnection {
    /// The figures now.
    pub fn of(connection: &Connection, now: Time) -> OfConnection {
        // Fields of Linux's structure.
        let info = connection.info(now);
        let word = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        let recovery = match info[1] {
            0 => Recovery::Open,
            1 => Recovery::Disorder,
            2 => Recovery::Reducing,
            3 => Recovery::Recovery,
            _ => Recovery::Loss,
        };
        OfConnection {
            counters: *connection.counters(),
            una: connection.una(),
            expected: connection.expected(),
            outstanding: connection.next() != connection.una(),
            recovery,
            smoothed_rtt_us: word(68),
            threshold_segments: word(76),
            window_segments: word(80),
            timeout_us: word(8),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    from: Seq,
    to: Seq,
    first: Time,
    last: Time,
    copies: u32,
}

/// What a trace remembers of a connection.
#[derive(Debug)]
struct Track {
    /// First number of each direction.
    own: Seq,
    peer: Option<Seq>,
    highest: Seq,
    sent: VecDeque<Sent>,
    duplicates: u32,
}

/// Follows connections.
#[derive(Debug, Default)]
pub struct Tracer {
    tracks: HashMap<FourTuple, Track>,
}

/// A moment when a segment leaves.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Now.
    pub now: Time,
    /// Figures after it was made.
    pub after: &'a Figures,
}

impl Tracer {
    fn track(&mut self, tuple: FourTuple, own: Seq) -> &mut Track {
        if self.tracks.len() >= CONNECTIONS && !self.tracks.contains_key(&tuple) {
            self.tracks.clear();
        }
        let fresh = || Track { own, peer: None, highest: own, sent: VecDeque::new(), duplicates: 0 };
        self.tracks.entry(tuple).or_insert_with(fresh)
    }

    /// A segment leaves.
    pub fn goes(&mut self, seen: &Seen<'_>, wall: u64, outgoing: &Outgoing<'_>) -> Vec<Event> {
        let (Some(tuple), Some(header)) = (seen.outgoing(), seen.tcp) else { return Vec::new() };
        if header.flags.has(Flags::RST) {
            self.tracks.remove(&tuple);
            return Vec::new();
        }
        if header.seq_len() == 0 {
            return Vec::new();
        }
        let now = outgoing.now;
        let track = self.track(tuple, header.seq);
        if header.flags.has(Flags::SYN) && track.sent.is_empty() {
            // The peer's SYN, which came before, says nothing of our numbers.
            (track.own, track.highest) = (header.seq, header.seq);
        }
        let new = !track.highest.after(header.seq);
        if header.end().after(track.highest) {
            track.highest = header.end();
        }
        if new {
            if track.sent.len() >= SEGMENTS {
                track.sent.pop_front();
            }
            track.sent.push_back(Sent { from: header.seq, to: header.end(), first: now, last: now, copies: 1 });
            return Vec::new();
        }
        let (mut copy, mut before) = (0, None);
        // A repetition may cover several segments, or a part of one.
        for sent in track.sent.iter_mut().filter(|sent| header.end().after(sent.from) && sent.to.after(header.seq)) {
            before = before.or(Some(sent.last));
            sent.copies += 1;
            sent.last = now;
            copy = copy.max(sent.copies);
        }
        let figures = outgoing.after.connection.as_ref();
        let recovery = figures.map_or(Recovery::Open, |figures| figures.recovery);
        let because = match recovery {
            _ if header.flags.has(Flags::SYN) => Because::Handshake,
            Recovery::Loss => Because::Timeout,
            Recovery::Recovery => Because::Loss,
            _ => Because::Probe,
        };
        let what = What::Retransmitted {
            from: distance(track.own, header.seq),
            to: distance(track.own, header.end()),
            because,
            copy,
            after_us: before.map(|before| us(now.saturating_sub(before))),
            window_segments: figures.map_or(0, |figures| figures.window_segments),
            threshold_segments: figures.map_or(0, |figures| figures.threshold_segments),
            rtt_us: figures.map_or(0, |figures| figures.smoothed_rtt_us),
            timeout_us: figures.map_or(0, |figures| figures.timeout_us),
        };
        vec![event(wall, &tuple, what)]
    }

    /// A segment came and was handled.
    pub fn came(&mut self, seen: &Seen<'_>, wall: u64, now: Time, before: &Figures, after: &Figures) -> Vec<Event> {
        let (Some(tuple), Some(header)) = (seen.incoming(), seen.tcp) else { return Vec::new() };
        let mut events = Vec::new();
        let mut tell = |what| events.push(event(wall, &tuple, what));
        let own = before.connection.as_ref().map_or(header.ack, |connection| connection.una);
        let track = self.track(tuple, own);
        let peer = *track.peer.get_or_insert(header.seq);
        let (from, to) = (distance(peer, header.seq), distance(peer, header.end()));
        for because in host_drops(&before.host, &after.host) {
            tell(What::Dropped { because, from, to });
        }
        let (Some(before), Some(after)) = (&before.connection, &after.connection) else { return events };
        for because in drops(&before.counters, &after.counters) {
            tell(What::Dropped { because, from, to });
        }
        if after.counters.out_of_order > before.counters.out_of_order {
            tell(What::OutOfOrder { from, to, missing: distance(before.expected, header.seq) });
        } else if header.payload_len > 0 && !(header.seq + header.payload_len).after(before.expected) {
            tell(What::Dropped { because: Because::Duplicate, from, to });
        }
        if after.una.after(before.una) {
            track.duplicates = 0;
            let mut repaired = None;
            while let Some(sent) = track.sent.front().filter(|sent| !sent.to.after(after.una)).copied() {
                if sent.copies > 1 {
                    repaired = repaired.or(Some(sent));
                }
                track.sent.pop_front();
            }
            if let Some(sent) = repaired {
                let took_us = us(now.saturating_sub(sent.first));
                tell(What::Repaired { to: distance(track.own, after.una), took_us, copies: sent.copies });
            }
        } else if header.flags.has(Flags::ACK)
            && header.seq_len() == 0
            && header.ack == before.una
            && before.outstanding
            && (!header.options.sack.is_empty() || track.sent.iter().any(|sent| sent.copies > 1))
        {
            track.duplicates += 1;
            let has = header.options.sack.as_slice().iter();
            let has = has.map(|block| (distance(track.own, block.start), distance(track.own, block.end))).collect();
            tell(What::DuplicateAck { waits_for: distance(track.own, after.una), count: track.duplicates, has });
        }
        if after.counters.undone > before.counters.undone {
            tell(What::Undone);
        }
        events
    }
}

/// Numbers from `from` to `to`.
fn distance(from: Seq, to: Seq) -> u32 {
    to.0.wrapping_sub(from.0)
}

fn us(time: Time) -> u64 {
    time.as_ps() / 1_000_000
}

fn event(time_ns: u64, tuple: &FourTuple, what: What) -> Event {
    let local = SocketAddr::new(tuple.local, tuple.local_port);
    Event { time_ns, local, remote: SocketAddr::new(tuple.remote, tuple.remote_port), what }
}

fn drops(before: &Counters, after: &Counters) -> impl Iterator<Item = Because> {
    let causes = [
        (before.paws_drops, after.paws_drops, Because::OldClock),
        (before.outside_window, after.outside_window, Because::OutsideWindow),
        (before.bad_acks, after.bad_acks, Because::BadAck),
        (before.challenges, after.challenges, Because::Challenged),
        (before.no_interval, after.no_interval, Because::NoInterval),
    ];
    causes.into_iter().filter(|(before, after, _)| after > before).map(|(_, _, because)| because)
}

fn host_drops(before: &StackCounters, after: &StackCounters) -> impl Iterator<Item = Because> {
    let causes = [
        (before.malformed, after.malformed, Because::Malformed),
        (before.no_port, after.no_port, Because::NoPort),
        (before.accept_queue_full, after.accept_queue_full, Because::QueueFull),
        (before.backlog_full, after.backlog_full, Because::QueueFull),
        (before.cookies_bad, after.cookies_bad, Because::BadCookie),
    ];
    causes.into_iter().filter(|(before, after, _)| after > before).map(|(_, _, because)| because)
}
