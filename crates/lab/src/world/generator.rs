//! A traffic source on the wire to one port.

use nicforge_nic::PortId;
use nicforge_units::{BitRate, Time};
use nicforge_wire::traffic::{Arrival, Line, TrafficSource};

/// It acts when a frame's first bit arrives.
pub struct Generator {
    source: TrafficSource,
    line: Line,
    /// No frame's first bit arrives then or later.
    ends: Time,
}

impl Generator {
    /// `source` on `line`.
    pub fn new(source: TrafficSource, line: Line) -> Generator {
        Generator { source, line, ends: Time::RUN_MAX }
    }

    /// Frames come at `rate` from `from` on, and end before `ends`.
    pub fn offer(&mut self, rate: BitRate, from: Time, ends: Time) {
        self.source.begin_again(from, rate);
        self.ends = ends.min(Time::RUN_MAX);
    }

    /// When the next frame's first bit arrives.
    pub fn next_step(&self) -> Time {
        let next = self.source.next_time();
        if next < self.ends { next } else { Time::NEVER }
    }

    /// The frame that arrives now, and when its last bit does.
    #[inline(always)]
    pub fn frame(&mut self) -> Option<(Arrival<'_>, Time)> {
        let line = self.line;
        let arrival = self.source.next()?;
        let on_wire = line.time_for(arrival.bytes.len() as u32);
        Some((arrival, arrival.time + on_wire))
    }

    /// Frames that it gave up so far; `None` where it waits for none.
    pub fn given_up(&self) -> Option<u64> {
        self.source.given_up()
    }
}

/// A frame left, which whoever sent it may wait for.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// Out of which port.
    pub port: PortId,
    /// When its first bit came in.
    pub sent: Time,
    /// When its last bit left.
    pub at: Time,
}

/// Tells the one of `sources` that waits for `frame`, if one does, and returns its number. Most come
/// back where they came in; a router sends some out of other ports.
pub fn returned(sources: &mut [Generator], frame: &Returned) -> Option<usize> {
    let own = usize::from(frame.port.0);
    let others = (0..sources.len()).filter(|&port| port != own);
    std::iter::once(own).chain(others).find(|&port| sources[port].source.returned(frame.sent, frame.at))
}
