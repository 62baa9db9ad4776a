//! Why a live run cannot start or go on.

use nicforge_options::ConfigError;
use nicforge_platform::live::LiveError;

use crate::assembly::BuildError;
use crate::counts::LostError;
use crate::live::LiveRun;
use crate::run::SourceError;

/// Why a live run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum LiveRunError {
    /// A file or the command line asks for what cannot be had here.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Device and workers cannot be put together.
    #[error(transparent)]
    Build(BuildError),
    /// The traffic of a scenario cannot be made.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The ground cannot be set up, or a port failed.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// What went in and what came out do not add up.
    #[error("{cause}")]
    Lost {
        /// What does not.
        cause: LostError,
        /// What was counted, for the report.
        run: Box<LiveRun>,
    },
    /// A worker's process cannot attach, or had to go.
    #[error("the worker cannot attach: {0}")]
    Attach(String),
    /// The software that is the run's worker cannot start or go on.
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
}

impl<E> From<E> for LiveRunError
where
    BuildError: From<E>,
{
    fn from(error: E) -> LiveRunError {
        LiveRunError::Build(error.into())
    }
}
