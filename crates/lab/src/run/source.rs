//! A traffic source on the wire to one port.

use nicforge_units::{BitRate, Time};
use nicforge_wire::traffic::{Arrival, Line, TrafficSource};

/// A source as an actor: it acts when a frame's first bit arrives.
pub struct SourceActor {
    source: TrafficSource,
    line: Line,
    /// No frame's first bit arrives then or later.
    ends: Time,
}

impl SourceActor {
    /// `source` on `line`.
    pub fn new(source: TrafficSource, line: Line) -> SourceActor {
        SourceActor {
            source,
            line,
            ends: Time::NEVER,
        }
    }

    /// Frames come at `rate` from `from` on, and end before `ends`.
    pub fn offer(&mut self, rate: BitRate, from: Time, ends: Time) {
        self.source.begin_again(from, rate);
        self.ends = ends;
    }

    /// When the next frame's first bit arrives.
    pub fn next_step(&self) -> Time {
        let next = self.source.next_time();
        match next < self.ends {
            true => next,
            false => Time::NEVER,
        }
    }

    /// The frame that arrives now, and when its last bit does.
    pub fn frame(&mut self) -> Option<(Arrival<'_>, Time)> {
        let line = self.line;
        let arrival = self.source.next()?;
        let on_wire = line.time_for(arrival.bytes.len() as u32);
        Some((arrival, arrival.time + on_wire))
    }

    /// A frame came back at `time`.
    pub fn returned(&mut self, time: Time) {
        self.source.returned(time);
    }
}
