//! What `nicforge calibrate` may be told.

use std::path::PathBuf;

use clap::Args;

use crate::args::jobs;

#[derive(Args)]
pub struct CalibrateOptions {
    /// The machine file, whose numbers are the first candidate and stay where no [[parameter]] names them
    pub machine: PathBuf,
    /// The file of points: parameters with their ranges, and what was measured
    pub points: PathBuf,
    /// Candidates of the Latin hypercube [default: the file's `samples`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub samples: Option<u64>,
    /// Rounds of refinement [default: the file's `rounds`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub rounds: Option<u64>,
    /// Candidates to run at once; the results are the same for every N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = jobs)]
    pub jobs: usize,
    /// Folder for candidates, the members' machine files and calibration.md [default: the machine's name in out/calibrate]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print nothing but the table
    #[arg(long)]
    pub quiet: bool,
}
