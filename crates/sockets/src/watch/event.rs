//! Events of a trace, as data and as lines.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// One event of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Own end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened. Sequence numbers count from the first that the trace saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum What {
    /// A segment left again.
    Retransmitted {
        /// First byte.
        from: u32,
        /// First byte behind.
        to: u32,
        /// Why.
        because: Because,
        /// Which copy: the first repetition is 2. 0 where the trace did not see the original.
        copy: u32,
        /// Since the copy before left.
        after_us: Option<u64>,
        /// Congestion window, segments.
        window_segments: u32,
        /// Slow-start threshold, segments.
        threshold_segments: u32,
        /// Smoothed round-trip time.
        rtt_us: u32,
        /// The retransmission timeout now.
        timeout_us: u32,
    },
    /// The peer acknowledged nothing new while data is out.
    DuplicateAck {
        /// What it still waits for.
        waits_for: u32,
        /// How many in a row.
        count: u32,
        /// What it has beyond.
        has: Vec<(u32, u32)>,
    },
    /// What was sent again is acknowledged.
    Repaired {
        /// Acknowledged up to here.
        to: u32,
        /// Since the segment left for the first time.
        took_us: u64,
        /// Copies of it that left.
        copies: u32,
    },
    /// A recovery was undone: nothing was lost.
    Undone,
    /// A segment came before one that is missing.
    OutOfOrder {
        /// First byte.
        from: u32,
        /// First byte behind.
        to: u32,
        /// Bytes missing before it.
        missing: u32,
    },
    /// A segment that came was dropped.
    Dropped {
        /// Why.
        because: Because,
        /// First byte.
        from: u32,
        /// First byte behind.
        to: u32,
    },
}

/// Why a segment was sent again or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// Nothing was acknowledged for the timeout.
    Timeout,
    /// Duplicate acknowledgments or SACK show a loss.
    Loss,
    /// The end of the data is probed for.
    Probe,
    /// The SYN or its answer was not answered.
    Handshake,
    /// All of it came before.
    Duplicate,
    /// It lies outside the window.
    OutsideWindow,
    /// Its clock is old (PAWS).
    OldClock,
    /// It acknowledges what was never sent, or too old.
    BadAck,
    /// It would reset the connection, and was not exact (RFC 5961).
    Challenged,
    /// No interval for out-of-order data is free.
    NoInterval,
    /// Header or checksum are wrong.
    Malformed,
    /// Nobody listens.
    NoPort,
    /// The listener's queue is full.
    QueueFull,
    /// The SYN cookie is wrong or old.
    BadCookie,
}

impl Because {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Because::Timeout => "timeout",
            Because::Loss => "duplicate acknowledgments",
            Because::Probe => "tail loss probe",
            Because::Handshake => "unanswered handshake",
            Because::Duplicate => "duplicate",
            Because::OutsideWindow => "outside the window",
            Because::OldClock => "old clock (PAWS)",
            Because::BadAck => "impossible acknowledgment",
            Because::Challenged => "inexact reset or SYN, challenged",
            Because::NoInterval => "no interval free",
            Because::Malformed => "malformed",
            Because::NoPort => "nobody listens",
            Because::QueueFull => "queue of the listener full",
            Because::BadCookie => "wrong SYN cookie",
        }
    }
}

impl Event {
    /// One line, without the time.
    pub fn line(&self) -> String {
        let place = format!("{} > {}", self.local, self.remote);
        match &self.what {
            What::Retransmitted { from, to, because, copy, after_us, .. } => {
                let copy = if *copy > 0 { format!(", copy {copy}") } else { String::new() };
                let after = after_us.map_or_else(String::new, |us| format!(", {} after the last", shown(us)));
                format!("{place} retransmit {from}:{to} ({}){copy}{after}, {}", because.words(), self.window())
            }
            What::DuplicateAck { waits_for, count, has } => {
                let has: Vec<String> = has.iter().map(|(from, to)| format!("{from}:{to}")).collect();
                let has = if has.is_empty() { String::new() } else { format!(", has {}", has.join(" ")) };
                format!("{place} duplicate ack {count}: waits for {waits_for}{has}")
            }
            What::Repaired { to, took_us, copies } => {
                format!("{place} repaired up to {to} after {}, {copies} copies", shown(*took_us))
            }
            What::Undone => format!("{place} undone: nothing was lost"),
            What::OutOfOrder { from, to, missing } => {
                format!("{place} out of order {from}:{to}, {missing} bytes missing before it")
            }
            What::Dropped { because, from, to } => format!("{place} dropped {from}:{to} ({})", because.words()),
        }
    }

    fn window(&self) -> String {
        let What::Retransmitted { window_segments, threshold_segments, rtt_us, timeout_us, .. } = self.what else {
            return String::new();
        };
        let threshold = if threshold_segments > 1 << 20 { "-".into() } else { threshold_segments.to_string() };
        let (rtt, timeout) = (shown(rtt_us.into()), shown(timeout_us.into()));
        format!("cwnd {window_segments} ssthresh {threshold} rtt {rtt} rto {timeout}")
    }
}

fn shown(us: u64) -> String {
    if us < 10_000 { format!("{us} us") } else { format!("{:.1} ms", us as f64 / 1000.0) }
}
