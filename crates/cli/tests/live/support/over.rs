//! Programs over the TCP of a live run: its service, and what is started over it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::skip;
use crate::support::netns::has;
use crate::support::program::Program;

/// How long a test waits for a program.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A service, and the folder in which programs over it run.
pub struct Over {
    folder: PathBuf,
    service: PathBuf,
}

impl Over {
    /// With everything in `folder`; nothing, with a line, where no programs are wanted.
    pub fn at(folder: &Path) -> Option<Over> {
        if std::env::var_os("NICFORGE_PROGRAMS").is_none() || !has("python3") {
            skip::skipped("programs over the live stack run with NICFORGE_PROGRAMS=1");
            return None;
        }
        build_library();
        Some(Over { folder: folder.to_path_buf(), service: folder.join("service") })
    }

    /// The service's socket.
    pub fn service(&self) -> &Path {
        &self.service
    }

    /// A subcommand that speaks to the service.
    fn nicforge(&self, subcommand: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        command.args([subcommand, "--service"]).arg(&self.service);
        command
    }

    /// A program over the service.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.nicforge("sockets");
        command.arg("--").args(words).current_dir(&self.folder);
        command
    }

    /// A server over the service, once it listens.
    pub fn serve(&self, port: u16, words: &[&str]) -> Served {
        let server = Served(Some(Program::start_silent(&mut self.command(words))));
        let until = Instant::now() + PATIENCE;
        while !self.listens(port) {
            assert!(Instant::now() < until, "{words:?} does not listen at {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// What `nicforge ss` shows.
    pub fn seen(&self) -> String {
        text(&mut self.nicforge("ss"))
    }

    fn listens(&self, port: u16) -> bool {
        let ending = format!(":{port} ");
        self.seen().lines().any(|line| line.contains("LISTEN") && format!("{line} ").contains(&ending))
    }
}

/// A program over the service, which is asked to stop: the command passes that on to it.
pub struct Served(Option<Program>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|mut program| {
            if program.is_running() {
                program.stop();
            }
        });
    }
}

/// Builds the library that is preloaded, which Cargo does not build for tests.
pub fn build_library() {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "nicforge-preload"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
}

/// Standard output of a command that must succeed.
pub fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}
