//! From the arguments to a job: a checked scenario, its machine and its points. Writes nothing.

use std::path::Path;

use nicforge_lab::job::{Job, Request};
use nicforge_lab::scenario::{Assignment, parse_override, push_once};
use nicforge_options::{ConfigError, Place};

use crate::args::Overrides;
use crate::error::CliError;
use crate::outputs::{Named, of_settings};
use crate::registry::catalogue;

/// Loads and checks all that a run needs; `machine` is a machine file in place of the scenario's.
pub fn load(file: &Path, overrides: &Overrides, machine: Option<&Path>, seeds: u64) -> Result<Job, CliError> {
    let pcap = overrides.pcap.iter().map(|file| format!("pcap={}", file.display()));
    let request = Request {
        machine: machine.map(Path::to_path_buf),
        seed: overrides.seed,
        seeds,
        overrides: assignments(overrides)?,
        said: overrides.set.iter().cloned().chain(pcap).collect(),
        ..Request::of(file)
    };
    Ok(Job::load(request, &catalogue())?)
}

/// Every file that `job` reads.
pub fn files(job: &Job) -> Vec<Named> {
    let mut files = vec![Named::new("the scenario", &job.scenario.file), Named::new("the machine", &job.machine.file)];
    for point in &job.points {
        for file in of_settings(&point.settings) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files
}

/// `--set` and `--pcap` as settings.
pub fn assignments(overrides: &Overrides) -> Result<Vec<Assignment>, ConfigError> {
    let mut all = sets(&overrides.set)?;
    if let Some(pcap) = &overrides.pcap {
        is_capture_file(pcap)?;
        for text in ["arrival=replay".to_string(), format!("pcap={}", pcap.display())] {
            let mut set = parse_override(&text, &catalogue())?;
            // What is found in the capture begins with its path.
            set.place = Place::argument("--pcap");
            push_once(&mut all, set)?;
        }
    }
    Ok(all)
}

/// `--set`, each key once.
pub fn sets(texts: &[String]) -> Result<Vec<Assignment>, ConfigError> {
    let mut all = Vec::new();
    for text in texts {
        push_once(&mut all, parse_override(text, &catalogue())?)?;
    }
    Ok(all)
}

/// Whether there is a file that could be a capture: not what never ends, or waits for somebody.
fn is_capture_file(pcap: &Path) -> Result<(), ConfigError> {
    let wrong = match std::fs::metadata(pcap) {
        _ if pcap == Path::new("-") => "it is standard input, which cannot be played from its beginning".to_string(),
        Ok(meta) if meta.is_file() => return Ok(()),
        Ok(meta) if meta.is_dir() => "it is a folder".to_string(),
        Ok(_) => "it is a pipe or a device, which cannot be played from its beginning".to_string(),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => "there is no such file".to_string(),
        Err(cause) => format!("it cannot be read: {cause}"),
    };
    let place = Place::argument(&format!("--pcap {}", pcap.display()));
    Err(ConfigError::new(&place, wrong, "name a capture file"))
}
