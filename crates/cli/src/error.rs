//! How a command fails, and with which exit code.

use std::process::ExitCode;

use nicforge_lab::run::RunError;
use nicforge_options::{ConfigError, Place};
use nicforge_report::ReportError;
use thiserror::Error;

use crate::output::tell;

/// Why a command did not do what was asked.
#[derive(Debug, Error)]
pub enum CliError {
    /// The scenario, the machine file or `--set` is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The command line asks for what cannot be: what is wrong, and what would be right.
    #[error("{0}")]
    Usage(String),
    /// A capture, size file or route file is wrong, or the traffic is impossible.
    #[error(transparent)]
    Files(RunError),
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
        cause: RunError,
    },
    /// A run failed.
    #[error(transparent)]
    Run(RunError),
    /// Sockets over the project's TCP.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Sockets(#[from] crate::sockets::SocketsError),
    /// The report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The terminal or a file cannot be written.
    #[error("cannot write {what}: {cause}")]
    Write {
        /// The file, or `standard output`.
        what: String,
        /// What the system says.
        cause: std::io::Error,
    },
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> CliError {
        if is_input(&error) { CliError::Files(error) } else { CliError::Run(error) }
    }
}

/// Whether what was asked for is wrong, and not what we made of it.
fn is_input(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Config(_)
            | RunError::Routes(_)
            | RunError::Traffic(_)
            | RunError::File { .. }
            | RunError::Sizes { .. }
            | RunError::Capture { .. }
            | RunError::NoWorkCycles { .. }
            | RunError::AddressSpace { .. }
            | RunError::OnlySimulated { .. }
    )
}

impl CliError {
    /// Prints the error and gives its exit code.
    pub fn report(&self) -> ExitCode {
        if let CliError::Write { cause, .. } = self
            && cause.kind() == std::io::ErrorKind::BrokenPipe
        {
            // The reader of our output has seen enough, as in `nicforge list | head`.
            return ExitCode::SUCCESS;
        }
        tell(&format!("error: {self}\n"));
        match self {
            CliError::Config(_) | CliError::Usage(_) | CliError::Files(_) | CliError::Setting { .. } => {
                ExitCode::from(2)
            }
            CliError::Point { cause, .. } if is_input(cause) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}
