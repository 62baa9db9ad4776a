//! Why a job does not run.

use nicforge_apps::AppError;
use nicforge_options::{ConfigError, Place};

use crate::BuildError;
use crate::kept::KeptError;
use crate::run::{RunError, SourceError};

/// Why a job cannot be loaded, or has no result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The scenario, the machine file or an override is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting asks for what cannot run.
    #[error("{place}: {cause}")]
    Setting {
        /// Where it stands.
        place: Place,
        /// Why it cannot.
        cause: Box<RunError>,
    },
    /// A point's run failed.
    #[error("point {number} ({variant}): {cause}")]
    Point {
        /// Its number, from 1.
        number: usize,
        /// Its variant.
        variant: String,
        /// Why.
        cause: Box<RunError>,
    },
    /// A finished point cannot be kept, or not be looked for.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// Whoever watched it stopped it.
    #[error("stopped")]
    Stopped,
}

impl JobError {
    /// Whether what was asked for is wrong, and not what we made of it.
    pub fn is_input(&self) -> bool {
        match self {
            JobError::Config(_) | JobError::Setting { .. } => true,
            JobError::Point { cause, .. } => cause.is_input(),
            JobError::Kept(_) | JobError::Stopped => false,
        }
    }

    /// Where it stands, if it is about something that somebody wrote.
    pub fn place(&self) -> Option<&Place> {
        match self {
            JobError::Config(error) => Some(&error.place),
            JobError::Setting { place, .. } => Some(place),
            JobError::Point { .. } | JobError::Kept(_) | JobError::Stopped => None,
        }
    }
}

impl RunError {
    /// Whether what was asked for is wrong, and not what we made of it.
    pub fn is_input(&self) -> bool {
        match self {
            RunError::Config(_) | RunError::AddressSpace { .. } => true,
            RunError::Build(error) => error.is_input(),
            RunError::Source(error) => error.is_input(),
            _ => false,
        }
    }
}

impl BuildError {
    /// Whether files or settings of a host are wrong, and not what we made of them.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            BuildError::Routes(_) | BuildError::App(AppError::Servers { .. }) | BuildError::NoWorkCycles { .. }
        )
    }
}

impl SourceError {
    /// Whether files or settings of traffic are wrong.
    pub fn is_input(&self) -> bool {
        !matches!(self, SourceError::ReplayTooLong { .. })
    }
}
