//! Runs a program over the service: finds the library, sets the environment, starts a service where none is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::posix::link::PATH_VARIABLE;

/// Environment variable: path of the library, where it does not lie beside the command.
pub const LIBRARY_VARIABLE: &str = "NICFORGE_SOCKETS_LIBRARY";
/// The library's file name.
pub const LIBRARY: &str = "libnicforge_sockets.so";

/// A program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The library is nowhere.
    #[error(
        "{LIBRARY} is neither beside this command nor named by {LIBRARY_VARIABLE}; build it with `cargo build -p nicforge-preload`"
    )]
    NoLibrary,
    /// The program did not start.
    #[error("starting {program}: {cause}")]
    Program {
        /// Its name.
        program: String,
        /// Why.
        cause: std::io::Error,
    },
}

/// The library: as the environment says, beside the running command, or in a folder above it.
pub fn library() -> Result<PathBuf, LaunchError> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE) {
        return Ok(path.into());
    }
    let command = std::env::current_exe().unwrap_or_default();
    let found = command.ancestors().skip(1).take(3).map(|folder| folder.join(LIBRARY)).find(|path| path.exists());
    found.ok_or(LaunchError::NoLibrary)
}

/// The command that runs a program over the service at `path`.
pub fn command(path: &Path, program: &[OsString]) -> Result<Command, LaunchError> {
    command_with(PATH_VARIABLE, path, program)
}

/// The command that runs a program over the kernel's TCP, and its TLS over the NIC whose socket is at `path`.
pub fn command_over_kernel(path: &Path, program: &[OsString]) -> Result<Command, LaunchError> {
    command_with(crate::kernel::program::PATH_VARIABLE, path, program)
}

fn command_with(variable: &str, path: &Path, program: &[OsString]) -> Result<Command, LaunchError> {
    let library = library()?;
    let [name, arguments @ ..] = program else {
        let cause = std::io::Error::from(std::io::ErrorKind::InvalidInput);
        return Err(LaunchError::Program { program: String::new(), cause });
    };
    let mut preload = library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let mut command = Command::new(name);
    command.args(arguments).env("LD_PRELOAD", preload).env(variable, path);
    Ok(command)
}

/// Runs a program over the service at `path` and waits for its end.
pub fn run(path: &Path, program: &[OsString]) -> Result<ExitStatus, LaunchError> {
    let name = program.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    command(path, program)?.status().map_err(|cause| LaunchError::Program { program: name, cause })
}
