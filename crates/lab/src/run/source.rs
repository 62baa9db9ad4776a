//! A traffic source on the wire to one port.

use nicforge_units::Time;
use nicforge_wire::traffic::{Arrival, Line, TrafficSource};

/// A source as an actor: it acts when a frame's first bit arrives.
pub struct SourceActor {
    source: TrafficSource,
    line: Line,
}

impl SourceActor {
    /// `source` on `line`.
    pub fn new(source: TrafficSource, line: Line) -> SourceActor {
        SourceActor { source, line }
    }

    /// When the next frame's first bit arrives.
    pub fn next_step(&self) -> Time {
        self.source.next_time()
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
