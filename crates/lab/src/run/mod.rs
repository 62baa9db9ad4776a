//! Runs one point of a scenario on the sim ground and measures it.
//!
//! ```text
//!   build.rs: machine + settings ─► World     world/: who is next
//!   window.rs, between.rs: warm-up, window     measure.rs: counters at both its ends ─► Metrics     search.rs: RFC 2544
//! ```

mod app;
pub(crate) mod batches;
pub(crate) mod between;
mod build;
mod by_core;
mod co_runner;
mod follow;
mod goal;
mod hot_area;
mod interface;
mod measure;
pub mod options;
mod plan;
mod replicas;
mod requests;
mod search;
pub(crate) mod stages;
#[cfg(test)]
mod tests;
mod traffic;
mod window;

use std::collections::BTreeMap;
use std::path::PathBuf;

use nicforge_options::ConfigError;
use nicforge_record::{CoreFigures, Interval, Metrics, StageFigures, Steadiness, Switch, TimelineEntry, Trace};
use nicforge_units::Time;
use nicforge_wire::capture::CaptureWriteError;
use serde::{Deserialize, Serialize};

use self::options::{Measure, Measurement};
use crate::assembly::BuildError;
use crate::counts::LostError;
use crate::machine::Machine;
use crate::settings::Settings;

#[cfg(target_os = "linux")]
pub(crate) use app::{app_config, app_of_settings, read_servers_of, servers_file};
pub(crate) use build::{core_of, driver_costs, nic_spec};
pub(crate) use interface::heuristic;
pub use interface::ring_frames;
pub(crate) use measure::write_capture;
pub use plan::{at_fault, check_point};
pub use replicas::merged;
pub use search::trials_max;
pub use traffic::{SourceError, check_replay, line_of, traffic_source};
pub(crate) use traffic::{queue_of, rss_of};

/// What a run reads and writes beside its settings.
#[derive(Clone, Debug, Default)]
pub struct RunIo {
    /// Every frame that leaves goes into this capture.
    pub pcap_out: Option<PathBuf>,
    /// The lives of so many packets are written down.
    pub trace: Option<usize>,
}

/// Told how far a run is: share done, frames so far.
pub type Progress<'a> = &'a mut dyn FnMut(f64, u64);

/// Why a point of the simulation has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file or the command line asks for what cannot be had here.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The hosts cannot be put together.
    #[error(transparent)]
    Build(BuildError),
    /// The traffic source cannot be made.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// What went in and what came out do not add up.
    #[error(transparent)]
    Lost(#[from] LostError),
    /// More memory than the model of the caches can tell apart.
    #[error(
        "the tables, buffers and arrays of this point take {} GiB, and caches of this machine's sizes are \
         modelled over {} GiB at most: give it fewer `table_entries`, `array_mib`, `kvs_log_mib` or buffers, \
         or the machine a larger L2",
        .needs.div_ceil(1 << 30),
        .most >> 30
    )]
    AddressSpace {
        /// Bytes of address space that the point takes.
        needs: u64,
        /// Bytes that there may be.
        most: u64,
    },
    /// More memory than the system gives.
    #[error(
        "this point takes {} MiB of memory, and the system has not so much: {cause}; give it fewer \
         `table_entries`, `array_mib`, `kvs_log_mib` or buffers, or run fewer `--jobs`",
        .needs.div_ceil(1 << 20)
    )]
    Memory {
        /// Bytes that the simulated host has.
        needs: u64,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The capture cannot be written.
    #[error("{}: {cause}", path.display())]
    Written {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        cause: CaptureWriteError,
    },
    /// A core's time is not all charged, or charged twice: a defect of the model.
    #[error("time does not add up: of {passed} of core {core}, {charged} are charged")]
    TimeLost {
        /// Which core.
        core: usize,
        /// How much time passed.
        passed: Time,
        /// How much of it is charged to something.
        charged: Time,
    },
    /// The machine has no places for NICs.
    #[error("machine {machine} has no place {placement}: use one with [placements], such as m5-10gbe")]
    NoPlacement {
        /// The machine.
        machine: String,
        /// The place.
        placement: String,
    },
    /// A process got other bytes than its peer sent: a defect of the model.
    #[error("{bytes} bytes came to a process that its peer did not send")]
    WrongBytes {
        /// How many.
        bytes: u64,
    },
    /// Nothing moves although frames are inside.
    #[error("stuck at {at}: {inside} frames inside and nothing moves\n{}", actors.join("\n"))]
    Stuck {
        /// When.
        at: Time,
        /// How many frames are inside.
        inside: u64,
        /// What each actor waits for.
        actors: Vec<String>,
    },
}

impl<E> From<E> for RunError
where
    BuildError: From<E>,
{
    fn from(error: E) -> RunError {
        RunError::Build(error.into())
    }
}

/// Runs one point; `seed` decides everything that is random.
pub fn run_point(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    io: &RunIo,
    progress: Progress<'_>,
) -> Result<PointRun, RunError> {
    if settings.is_of_whole_systems() {
        return crate::systems::run_point(machine, settings, seed, progress);
    }
    if settings.is_of_rpcs() {
        return crate::tas::run_point(machine, settings, seed, progress);
    }
    if settings.is_of_storm() {
        return crate::storm::run_point(machine, settings, seed, io, progress);
    }
    match settings.read::<Measurement>().measure {
        Measure::NoDropRate => search::no_drop_rate(machine, settings, seed, progress),
        Measure::Window => window::one_window(machine, settings, seed, io, progress),
    }
}

/// What a point measured, and how long it simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointRun {
    /// The measurements.
    pub metrics: Metrics,
    /// How sure they are; empty where nothing says so.
    #[serde(default)]
    pub intervals: BTreeMap<String, Interval>,
    /// And of each core that runs the application; none of whole systems.
    pub cores: Vec<CoreFigures>,
    /// Stages of the server's NIC, if that runs TCP.
    pub stages: Vec<StageFigures>,
    /// Simulated time, warm-up included.
    #[serde(with = "picoseconds")]
    pub simulated: Time,
    /// Why the window may not show a steady state.
    pub steadiness: Steadiness,
    /// How it went on over time, if that was asked for.
    pub timeline: Vec<TimelineEntry>,
    /// Every change of steering, in order.
    pub switches: Vec<Switch>,
    /// The lives of some packets, if that was asked for. Points that are kept on disk have none.
    #[serde(skip)]
    pub trace: Option<Trace>,
}

/// A time as a whole number.
mod picoseconds {
    use nicforge_units::Time;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_ps())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        u64::deserialize(deserializer).map(Time::from_ps)
    }
}
