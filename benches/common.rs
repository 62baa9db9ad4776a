//! What the benchmarks of the simulation share: the repository's files, and CPU time.

use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

/// `file` of the repository.
pub fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// CPU time that this process spends.
pub struct Clock {
    begun: f64,
}

impl Clock {
    /// From now on.
    pub fn start() -> Clock {
        Clock { begun: cpu_seconds() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        cpu_seconds() - self.begun
    }
}

/// CPU time of this process so far, to the nanosecond. What `/proc` says of it is as old as the last tick
/// of the system's timer, a third of what a slice of a run takes.
fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
