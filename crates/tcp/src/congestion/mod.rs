//! Congestion control: a small trait, one file per algorithm.
//!
//! An algorithm sees acknowledgments, round trips and losses and moves a [`Window`] in segments; a rate-based one also
//! states bytes per second. What is lost, and how much of it may be sent when, is the connection's business.

mod cubic;
mod dctcp;
mod hystart;
mod none;
mod reno;
#[cfg(test)]
mod tests;
mod timely;

use std::fmt;

use nicforge_units::Time;

pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use none::Unlimited;
pub use reno::Reno;
pub use timely::Timely;

/// Slow-start threshold before the first loss.
pub const THRESHOLD_NONE: u32 = 0x7fff_ffff;

/// The congestion window of one connection, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Segments that may be in flight.
    pub size: u32,
    /// Slow start ends here.
    pub threshold: u32,
    /// Acknowledged segments since the last growth in congestion avoidance.
    pub count: u32,
    /// The window never grows beyond this.
    pub most: u32,
    /// Window before the last reduction, for undoing it.
    pub prior: u32,
}

impl Window {
    /// A window of `size` segments in slow start.
    pub fn new(size: u32) -> Window {
        Window { size, threshold: THRESHOLD_NONE, count: 0, most: u32::MAX >> 1, prior: 0 }
    }

    /// Whether the window grows by every acknowledged segment.
    pub fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grows in slow start; returns the acknowledged segments that are left over at its end.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let target = self.size.saturating_add(acked).min(self.threshold);
        let left = acked - (target - self.size);
        self.size = target.min(self.most);
        left
    }

    /// Grows by one segment for each `per` acknowledged ones.
    pub fn avoid(&mut self, per: u32, acked: u32) {
        let per = per.max(1);
        if self.count >= per {
            self.count = 0;
            self.size += 1;
        }
        self.count += acked;
        if self.count >= per {
            let steps = self.count / per;
            self.count -= steps * per;
            self.size += steps;
        }
        self.size = self.size.min(self.most);
    }
}

/// What an acknowledgment says.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Present time.
    pub now: Time,
    /// Segments that it acknowledges for the first time.
    pub acked: u32,
    /// Bytes that it acknowledges for the first time.
    pub acked_bytes: u32,
    /// It echoes congestion marks.
    pub marked: bool,
    /// Round-trip sample in microseconds, if it gives one.
    pub rtt_us: Option<u32>,
    /// Smoothed round-trip time in microseconds.
    pub smoothed_us: u32,
    /// Least round-trip time in microseconds.
    pub least_us: u32,
    /// Segments in flight before it.
    pub in_flight: u32,
    /// Sequence number after the last one sent, for counting round trips.
    pub next: crate::seq::Seq,
    /// Oldest sequence number without acknowledgment.
    pub una: crate::seq::Seq,
    /// Largest payload of a segment in bytes.
    pub mss: u32,
}

/// What changed about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A timeout.
    Timeout,
    /// Recovery begins: duplicate acknowledgments or SACK prove a loss.
    Recovery,
    /// An ECN echo begins a reduction.
    Marked,
    /// All is well again.
    Open,
}

/// A congestion control algorithm.
pub trait Congestion: fmt::Debug + Send {
    /// Its name as options and counters show it.
    fn name(&self) -> &'static str;

    /// Sees every acknowledgment that acknowledges something, also while losses are repaired.
    fn observe(&mut self, window: &mut Window, ack: &Ack) {
        let _ = (window, ack);
    }

    /// Grows the window; called when it limits sending and nothing is being repaired.
    fn grow(&mut self, window: &mut Window, ack: &Ack);

    /// Threshold after a loss or a mark, which `trouble` tells apart.
    fn threshold(&mut self, window: &Window, trouble: Trouble) -> u32;

    /// Window after a reduction turns out to be unfounded.
    fn undone(&mut self, window: &Window) -> u32 {
        window.size.max(window.prior)
    }

    /// Losses began or ended.
    fn trouble(&mut self, window: &Window, trouble: Trouble) {
        let _ = (window, trouble);
    }

    /// Sending starts after an idle time.
    fn restart(&mut self, now: Time, idle: Time) {
        let _ = (now, idle);
    }

    /// Whether segments must carry ECT although they carry no data.
    fn wants_ecn(&self) -> bool {
        false
    }

    /// Bytes per second that sending must not exceed, if the algorithm controls a rate.
    fn rate(&self) -> Option<u64> {
        None
    }
}

/// The algorithms that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CUBIC (RFC 9438) with HyStart.
    Cubic,
    /// NewReno's window (RFC 5681).
    Reno,
    /// DCTCP (RFC 8257).
    Dctcp,
    /// TIMELY (paper reference 31): a rate from RTT gradients.
    Timely,
    /// No control: the peer's window is the only limit.
    None,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Cubic, Algorithm::Reno, Algorithm::Dctcp, Algorithm::Timely, Algorithm::None];

    /// Its name as in `TCP_CONGESTION`.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Cubic => "cubic",
            Algorithm::Reno => "reno",
            Algorithm::Dctcp => "dctcp",
            Algorithm::Timely => "timely",
            Algorithm::None => "none",
        }
    }

    /// The algorithm called `name`.
    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// State for a new connection.
    pub fn start(self) -> Box<dyn Congestion> {
        match self {
            Algorithm::Cubic => Box::new(Cubic::default()),
            Algorithm::Reno => Box::new(Reno),
            Algorithm::Dctcp => Box::new(Dctcp::default()),
            Algorithm::Timely => Box::new(Timely::default()),
            Algorithm::None => Box::new(Unlimited),
        }
    }
}
