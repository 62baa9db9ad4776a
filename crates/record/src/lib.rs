//! The record of a run: everything that it measured and everything that it ran with.
//!
//! A ground fills one [`Record`]; `report.json` is its serialisation. CSV, findings, page and
//! tables are functions of the record alone, so a record that was read back reads the same.
//! Both grounds write one schema: what a ground cannot know is absent, not zero.

mod comparison;
mod cores;
mod differences;
mod facts;
mod interval;
mod metrics;
mod origin;
mod settings;
mod stages;
mod timeline;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use comparison::{ComparedRow, Comparison};
pub use cores::CoreFigures;
pub use differences::{Differences, MetricDifference, PointDifferences, SettingDifference, Verdict};
pub use facts::{CHECKSUM_REMEDY, Drift, Facts, Steadiness, Wire};
pub use interval::{CONFIDENCE, Difference, Interval, SIGNIFICANT, warmup_end};
pub use metrics::{CpuTime, CyclesPerPacket, Latency, Metrics, TupleTimes, drop_fraction};
pub use origin::{MachineFile, Overlay, RunOrigin};
pub use settings::{MachineParameter, Origin, Setting, share};
pub use stages::StageFigures;
pub use timeline::{Switch, TimelineEntry};
pub use trace::{LifeEnd, LifeStep, PacketLife, Reason, Trace};

/// All points of a run, and what they have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The scenario's name (its file without folder and ending).
    pub scenario: String,
    /// Seed of all random choices in the run.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// The machine's name; `live` on the live ground.
    pub machine: String,
    /// Real time that the run took, s: the only value that differs between two runs of the same input.
    pub wall_seconds: f64,
    /// Simulated time of all points together, s; absent on the live ground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// One per variant and swept value.
    pub points: Vec<PointRecord>,
    /// Which run it is, by what program, with what files; absent on the live ground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunOrigin>,
    /// Values of the user's own that stand beside those of the points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<Overlay>,
    /// Points on both grounds side by side; only of `nicforge sim-vs-live`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// What differs between the two runs whose points these are; only of `nicforge diff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<Differences>,
    /// A line for headings; the scenario's name stands in when it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What the scenario asks, in prose; blank lines separate paragraphs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Capacity of the last-level cache, bytes; absent where points differ in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_bytes: Option<u64>,
    /// Capacity of those of its ways that DMA may allocate into (I/O ways), bytes; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_way_bytes: Option<u64>,
    /// Names of drop causes that a lower rate avoids; every other cause is in the frame or in the settings.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub load_drops: BTreeSet<String>,
    /// Effective settings with the same value in all points that use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Every number of the machine file, with its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_parameters: Vec<MachineParameter>,
}

/// One measured point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointRecord {
    /// What is compared.
    pub variant: String,
    /// Every swept or varied value, by the scenario's own keys.
    pub params: Map<String, Value>,
    /// What was measured.
    pub metrics: Metrics,
    /// How sure the metrics are, by the metric's key as `points.csv` has it; empty where it is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, Interval>,
    /// Seeds whose means the metrics are; empty for the run's seed alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    /// The same of each core that runs the application; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreFigures>,
    /// Stages of the server's NIC; empty unless that runs TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFigures>,
    /// Measurements over time; empty unless the scenario sets `timeline_ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<TimelineEntry>,
    /// Every change of steering, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switch>,
    /// Simulated time, warm-up included, s; absent on the live ground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// Effective settings in which points differ; the others are in [`Record::settings`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Capacities and times that bound the point.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// Why the window may not show a steady state.
    #[serde(default, skip_serializing_if = "Steadiness::is_empty")]
    pub steadiness: Steadiness,
}
