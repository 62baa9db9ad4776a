//! What the benchmarks of the simulation share: the repository's files, and CPU time.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// `file` of the repository.
pub fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file)
}

/// CPU time that this process spends; where the system does not tell it, wall time has to do.
pub struct Clock {
    started: Instant,
    begun: Option<f64>,
}

impl Clock {
    /// From now on.
    pub fn start() -> Clock {
        Clock {
            started: Instant::now(),
            begun: cpu_seconds(),
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        match (cpu_seconds(), self.begun) {
            (Some(now), Some(begun)) => now - begun,
            _ => self.started.elapsed().as_secs_f64(),
        }
    }
}

/// CPU time of this process so far, as Linux tells it.
fn cpu_seconds() -> Option<f64> {
    let statistics = read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds: f64 = statistics.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
}
