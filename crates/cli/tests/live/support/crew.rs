//! A live run whose workers are processes.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::program::Program;

const PATIENCE: Duration = Duration::from_secs(60);

/// Whether cores share a ring on `interface`, so that they restart together.
pub fn shares_rings(interface: &str) -> bool {
    let rings = interface.strip_prefix("emulated/");
    rings.unwrap_or(interface).starts_with("sh_ring")
}

/// Workers as processes of their own; they are killed with the value.
pub struct Crew {
    pub socket: PathBuf,
    /// Runs `nicforge attach` where the workers shall live.
    pub members: Vec<Option<Program>>,
}

impl Crew {
    /// `count` places at the run that will listen at `socket`.
    pub fn new(socket: &Path, count: usize) -> Crew {
        Crew { socket: socket.to_owned(), members: (0..count).map(|_| None).collect() }
    }

    /// Waits until the run listens.
    pub fn wait_for_socket(&self) {
        let until = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(&self.socket).is_err() {
            assert!(Instant::now() < until, "nobody listens");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A worker attaches at place `number`; returns when it has it.
    pub fn attach(&mut self, number: usize) {
        use std::io::BufRead;
        let until = Instant::now() + PATIENCE;
        loop {
            let mut attach = Command::new(env!("CARGO_BIN_EXE_nicforge"));
            attach.arg("attach").arg(&self.socket);
            attach.args(["--worker", &number.to_string()]);
            attach.stdout(Stdio::piped());
            let mut member = Program::start(&mut attach);
            let mut said = String::new();
            let out = member.stdout();
            std::io::BufReader::new(out).read_line(&mut said).unwrap();
            if said.starts_with("worker") {
                self.members[number] = Some(member);
                return;
            }
            // The one before may not be noticed gone yet.
            member.ends();
            assert!(Instant::now() < until, "no place for worker {number}");
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self, number: usize) {
        self.members[number] = None;
    }

    /// All that are still there end by themselves.
    pub fn all_ended(&mut self) {
        for member in self.members.iter_mut().filter_map(Option::take) {
            let status = member.ends();
            assert!(status.success(), "a worker ended with {status}");
        }
    }
}
