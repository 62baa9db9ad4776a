//! Runs one point of a scenario on the sim ground and measures it.
//!
//! ```text
//!   build.rs: machine + settings ─► World     world/: who is next
//!   measure.rs: counters at both ends of the window ─► Metrics     search.rs: RFC 2544
//! ```

mod app;
mod build;
mod by_core;
mod co_runner;
mod hot_area;
mod interface;
mod measure;
pub mod options;
mod plan;
mod requests;
mod search;
pub(crate) mod stages;
mod traffic;

use std::path::{Path, PathBuf};

use nicforge_apps::{AppError, RouteError};
use nicforge_interfaces::InterfaceError;
use nicforge_nic::NicmemError;
use nicforge_options::ConfigError;
use nicforge_platform::SpaceError;
use nicforge_record::{CoreFigures, Metrics, Steadiness, Switch, TimelineEntry};
use nicforge_stages::StageError;
use nicforge_units::Time;
use nicforge_wire::capture::CaptureWriteError;
use nicforge_wire::traffic::TrafficError;

use self::options::{Measure, Measurement};
use crate::machine::Machine;
use crate::settings::Settings;

#[cfg(target_os = "linux")]
pub(crate) use app::{app_config, app_of_settings};
pub(crate) use build::{core_of, nic_spec};
pub use interface::ring_frames;
pub(crate) use interface::{Surroundings, plan_of};
pub(crate) use interface::{heuristic, receive_buffers};
pub use plan::{at_fault, check_point};
pub use search::trials_max;
pub(crate) use traffic::queue_of;
pub use traffic::{check_replay, line_of, traffic_source};

/// What a run reads and writes beside its settings.
#[derive(Clone, Debug, Default)]
pub struct RunIo {
    /// Every frame that leaves goes into this capture.
    pub pcap_out: Option<PathBuf>,
}

/// Told how far a run is: share done, frames so far.
pub type Progress<'a> = &'a mut dyn FnMut(f64, u64);

/// Why a point has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file or the command line asks for what cannot be had here.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The interface cannot be built.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The application cannot be built.
    #[error(transparent)]
    App(#[from] AppError),
    /// The routes cannot be read.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// The traffic source cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Memory of a NIC that is not to be had.
    #[error(transparent)]
    Nicmem(#[from] NicmemError),
    /// A stage cannot be built.
    #[error(transparent)]
    Stage(Box<StageError>),
    /// A ring found no room.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
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
    /// A file of frame sizes says something else.
    #[error("{}: {cause}", path.display())]
    Sizes {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        cause: TrafficError,
    },
    /// The capture cannot be replayed.
    #[error("{}: {cause}", path.display())]
    Capture {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        cause: TrafficError,
    },
    /// The capture lasts longer than time is kept.
    #[error(
        "{}: to replay it as it is asked for takes {seconds} s, and a run lasts {} s at most: {right}",
        path.display(),
        Time::RUN_MAX.as_seconds()
    )]
    ReplayTooLong {
        /// Which.
        path: PathBuf,
        /// How long it lasts, loops and trials included.
        seconds: u64,
        /// What would do.
        right: String,
    },
    /// The capture cannot be written.
    #[error("{}: {cause}", path.display())]
    Written {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        cause: CaptureWriteError,
    },
    /// The machine has no work cycles for the application.
    #[error("machine {machine} has no [apps.{app}] section: add `work_cycles` for it")]
    NoWorkCycles {
        /// The machine.
        machine: String,
        /// The application.
        app: String,
    },
    /// Frames vanished or multiplied: a defect of the model.
    #[error("frames do not add up: {arrived} arrived, {left} left, {dropped} dropped, {inside} inside")]
    FramesLost {
        /// Came in.
        arrived: u64,
        /// Went out; of whole systems, to the kernel's stack.
        left: u64,
        /// Were dropped.
        dropped: u64,
        /// Are still inside.
        inside: u64,
    },
    /// Buffers vanished or multiplied: a defect of the model.
    #[error("packet buffers do not add up: the pool has {buffers}, {held} were found")]
    BuffersLost {
        /// There are.
        buffers: u64,
        /// Were found.
        held: u64,
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
    /// The live ground cannot be set up, or a port failed.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Live(#[from] nicforge_platform::live::LiveError),
    /// A worker's process cannot attach, or had to go.
    #[cfg(target_os = "linux")]
    #[error("the worker cannot attach: {0}")]
    Attach(String),
    /// The software that is the run's worker cannot start or go on.
    #[cfg(target_os = "linux")]
    #[error("the software behind the NIC: {0}")]
    Software(String),
    /// A point that the live ground cannot run.
    #[error("{what} cannot run on the live ground: {right}")]
    OnlySimulated {
        /// What is in the way.
        what: String,
        /// What to set.
        right: String,
    },
    /// A port's next hop did not answer.
    #[error(
        "{place}: nobody answers for the next hop {address}: bring its host up, or write next_hop as a hardware address"
    )]
    NoNeighbour {
        /// The port.
        place: String,
        /// Who was asked for.
        address: std::net::IpAddr,
    },
    /// The machine has no places for NICs.
    #[error("machine {machine} has no place {placement}: use one with [placements], such as m5-10gbe")]
    NoPlacement {
        /// The machine.
        machine: String,
        /// The place.
        placement: String,
    },
    /// An interface without a queue.
    #[error("interface {0} gives a NIC with one queue no driver: use another interface")]
    NoQueue(String),
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

impl From<StageError> for RunError {
    fn from(error: StageError) -> RunError {
        RunError::Stage(Box::new(error))
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
    match settings.read::<Measurement>().measure {
        Measure::NoDropRate => search::no_drop_rate(machine, settings, seed, progress),
        Measure::Window => measure::one_window(machine, settings, seed, io, progress),
    }
}

/// What a point measured, and how long it simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct PointRun {
    /// The measurements.
    pub metrics: Metrics,
    /// And of each core that runs the application; none of whole systems.
    pub cores: Vec<CoreFigures>,
    /// Simulated time, warm-up included.
    pub simulated: Time,
    /// Why the window may not show a steady state.
    pub steadiness: Steadiness,
    /// How it went on over time, if that was asked for.
    pub timeline: Vec<TimelineEntry>,
    /// Every change of steering, in order.
    pub switches: Vec<Switch>,
}

pub(crate) fn read_text(path: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(path).map_err(|cause| RunError::File { path: path.to_path_buf(), cause })
}
