//! How a command fails, and with which exit code.

use std::process::ExitCode;

use nicforge_lab::job::JobError;
use nicforge_lab::kept::KeptError;
#[cfg(target_os = "linux")]
use nicforge_lab::live::LiveRunError;
use nicforge_lab::run::RunError;
use nicforge_options::ConfigError;
use nicforge_report::ReportError;
use thiserror::Error;

#[cfg(target_os = "linux")]
use crate::ktls::KtlsError;
#[cfg(target_os = "linux")]
use crate::nvme::NvmeError;
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
    /// A scenario cannot run, or its run failed.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A point's run failed, on either ground.
    #[error("point {number} ({variant}): {cause}")]
    Point {
        /// Its number, from 1.
        number: usize,
        /// Its variant.
        variant: String,
        /// Why.
        cause: Box<CliError>,
    },
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A live run cannot start, or failed.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Live(#[from] LiveRunError),
    /// Sockets over the project's TCP.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Sockets(#[from] crate::sockets::SocketsError),
    /// Blocks over NVMe/TCP.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Nvme(#[from] crate::nvme::NvmeError),
    /// A NIC under the kernel's TCP.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Ktls(#[from] crate::ktls::KtlsError),
    /// A finished point cannot be kept, or not be looked for.
    #[error(transparent)]
    Kept(#[from] KeptError),
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
        if self.is_input() { ExitCode::from(2) } else { ExitCode::FAILURE }
    }

    /// Whether what was asked for is wrong, and not what we made of it.
    fn is_input(&self) -> bool {
        match self {
            CliError::Config(_) | CliError::Usage(_) => true,
            CliError::Job(error) => error.is_input(),
            CliError::Point { cause, .. } => cause.is_input(),
            #[cfg(target_os = "linux")]
            CliError::Nvme(NvmeError::Image(_) | NvmeError::File { .. } | NvmeError::Length { .. }) => true,
            CliError::Run(error) => error.is_input(),
            #[cfg(target_os = "linux")]
            CliError::Ktls(KtlsError::NoNic(_)) => true,
            #[cfg(target_os = "linux")]
            CliError::Live(LiveRunError::Config(_) | LiveRunError::OnlySimulated { .. }) => true,
            #[cfg(target_os = "linux")]
            CliError::Live(LiveRunError::Build(error)) => error.is_input(),
            #[cfg(target_os = "linux")]
            CliError::Live(LiveRunError::Source(error)) => error.is_input(),
            _ => false,
        }
    }
}
