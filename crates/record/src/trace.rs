//! The lives of some packets of a point, step by step. They are no part of the record: each is what one packet met,
//! and `trace.json` and `trace.txt` have them.

use serde::{Deserialize, Serialize};

/// Packets of a point that were followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Frames that came in while packets were chosen, whose even share they are.
    pub chosen_of: u64,
    /// In the order in which they came in.
    pub packets: Vec<PacketLife>,
}

/// The life of a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketLife {
    /// How many came in before it since choosing began.
    pub number: u64,
    /// The port it came in on.
    pub port: usize,
    /// When its first bit came in, ps since the run began.
    pub arrived_ps: u64,
    /// What it went through, in order and without gaps.
    pub steps: Vec<LifeStep>,
    /// How it ended.
    pub end: LifeEnd,
}

/// A step of a packet's way, or a time that it waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifeStep {
    /// Where it was: `wire`, `NIC 0`, `bus`, `ring` or `core 3`.
    pub place: String,
    /// What happened.
    pub name: String,
    /// When it began and ended, ps since the run began.
    pub from_ps: u64,
    /// Likewise.
    pub until_ps: u64,
    /// Why it took that long.
    pub why: Vec<Reason>,
}

/// A number that says why a step took its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// What it counts, with its unit.
    pub what: String,
    /// How many.
    pub count: f64,
}

/// How a packet's life ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LifeEnd {
    /// Its last bit left.
    Sent,
    /// It was dropped, for this cause.
    Dropped(String),
    /// The application kept or consumed it.
    Kept,
    /// A stage kept it or answered it.
    Diverted,
    /// It was still inside when the run ended.
    #[default]
    Inside,
}

impl PacketLife {
    /// When the last step ended.
    pub fn ended_ps(&self) -> u64 {
        self.steps.last().map_or(self.arrived_ps, |step| step.until_ps)
    }

    /// From the first bit in to the end.
    pub fn lasted_ps(&self) -> u64 {
        self.ended_ps() - self.arrived_ps
    }
}

impl LifeStep {
    /// How long it took.
    pub fn lasted_ps(&self) -> u64 {
        self.until_ps - self.from_ps
    }
}

impl Trace {
    /// The packet that took longest, of those that were sent if any was.
    pub fn slowest(&self) -> Option<&PacketLife> {
        self.by_time().last().copied()
    }

    /// The one in the middle, likewise.
    pub fn median(&self) -> Option<&PacketLife> {
        let packets = self.by_time();
        packets.get(packets.len().saturating_sub(1) / 2).copied()
    }

    fn by_time(&self) -> Vec<&PacketLife> {
        let sent: Vec<&PacketLife> = self.packets.iter().filter(|packet| packet.end == LifeEnd::Sent).collect();
        let mut packets = if sent.is_empty() { self.packets.iter().collect() } else { sent };
        packets.sort_by_key(|packet| (packet.lasted_ps(), packet.number));
        packets
    }
}
