//! From the arguments to a checked scenario, its machine and its points. Writes nothing.

use std::path::Path;

use nicforge_lab::kept::{Keys, hash_of, program_hash};
use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::record::of_scenario;
use nicforge_lab::run::options::{Capture, Empirical};
use nicforge_lab::run::{PointRun, RunError, at_fault, check_point, check_replay, line_of, traffic_source};
use nicforge_lab::scenario::{Assignment, Point, Scenario, load_scenario, parse_override};
use nicforge_options::{ConfigError, Place};
use nicforge_record::{MachineFile, Record, RunOrigin};
use nicforge_wire::traffic::TrafficSource;

use crate::args::Overrides;
use crate::error::CliError;
use crate::notes;
use crate::output::print_notes;
use crate::outputs::{Named, of_settings};
use crate::registry::catalogue;

/// A scenario that can run.
pub struct Input {
    /// The scenario; its seed is the one to use.
    pub scenario: Scenario,
    /// Its machine.
    pub machine: Machine,
    /// What to run, in order.
    pub points: Vec<Point>,
    /// What is to be said that is no error.
    notes: Vec<String>,
}

impl Input {
    /// Every file that is read.
    pub fn files(&self) -> Vec<Named> {
        let mut files =
            vec![Named::new("the scenario", &self.scenario.file), Named::new("the machine", &self.machine.file)];
        for point in &self.points {
            for file in of_settings(&point.settings) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    }

    /// The tasks of a run: each point with each of its seeds.
    pub fn tasks(&self, seeds: u64) -> Vec<Task<'_>> {
        let first = self.scenario.seed;
        let of = |point| (0..seeds).map(move |number| Task { point, seed: first.wrapping_add(number) });
        self.points.iter().flat_map(of).collect()
    }

    /// The keys by which finished ones of `tasks` are found, in their order.
    pub fn keys(&self, tasks: &[Task<'_>]) -> Result<Vec<String>, CliError> {
        let mut keys = Keys::default();
        let each = tasks.iter().map(|task| Ok(keys.of_point(&self.machine, &task.point.settings, task.seed)?));
        each.collect()
    }

    /// Which run this is, with points of `keys`.
    pub fn origin(&self, keys: &[String], overrides: &Overrides) -> Result<RunOrigin, CliError> {
        let Scenario { name, title, description, .. } = &self.scenario;
        let program = program_hash()?;
        let mut parts = vec![program, &self.machine.name, name, title, description];
        let params: Vec<String> = self.points.iter().map(|point| format!("{:?}", point.params)).collect();
        for (point, params) in self.points.iter().zip(&params) {
            parts.extend([point.variant.as_str(), params]);
        }
        parts.extend(keys.iter().map(String::as_str));
        let pcap = overrides.pcap.iter().map(|file| format!("pcap={}", file.display()));
        let path = self.machine.file.display().to_string();
        Ok(RunOrigin {
            run: hash_of(parts),
            program: program.to_owned(),
            commit: option_env!("NICFORGE_COMMIT").map(str::to_owned),
            machine_file: MachineFile { path, sha256: self.machine.hash.clone() },
            overrides: overrides.set.iter().cloned().chain(pcap).collect(),
        })
    }

    /// The record of its points; `runs` in their order.
    pub fn record(&self, runs: Vec<PointRun>, origin: Option<RunOrigin>, wall_seconds: f64) -> Record {
        of_scenario(&self.scenario, &self.machine, &self.points, runs, (origin, wall_seconds))
    }

    /// Says them on standard error.
    pub fn print_notes(&self) {
        print_notes(&self.notes);
    }
}

/// A run of a point.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The point that runs.
    pub point: &'a Point,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// Loads and checks all that a run needs; `machine` is a machine file in place of the scenario's.
pub fn load(file: &Path, overrides: &Overrides, machine: Option<&Path>) -> Result<Input, CliError> {
    let mut scenario = load_scenario(file, &catalogue())?;
    scenario.seed = overrides.seed.unwrap_or(scenario.seed);
    if let Some(name) = machine.and_then(name_of_machine) {
        scenario.machine_place = Place::argument(&format!("--machine {name}"));
        scenario.machine = name;
    }
    let machine = match machine.filter(|file| name_of_machine(file).is_none()) {
        Some(file) => load_machine(file)?,
        None => load_machine(&scenario.machine_file()?)?,
    };
    let overrides = assignments(overrides)?;
    let points = scenario.expand(&machine, &overrides, &catalogue())?;
    let mut input = Input { scenario, machine, points, notes: Vec::new() };
    input.notes = try_files(&input)?;
    input.notes.extend(notes::about_equal_points(&input.points));
    let moot = notes::about_unused_keys(&input.scenario, &overrides, &input.points);
    input.notes.extend(moot);
    for point in &input.points {
        check_point(&input.machine, &point.settings, input.scenario.seed).map_err(|cause| at_fault_in(point, cause))?;
        for note in notes::about_settings(point, &input.machine) {
            if !input.notes.contains(&note) {
                input.notes.push(note);
            }
        }
    }
    Ok(input)
}

/// The name of a machine, as scenarios have it, where `machine` is no file.
fn name_of_machine(machine: &Path) -> Option<String> {
    let name = machine.to_str()?;
    let bare = machine.extension().is_none() && machine.components().count() == 1;
    (bare && !machine.exists()).then(|| name.to_string())
}

/// The error with the place of the setting that it is about.
fn at_fault_in(point: &Point, cause: RunError) -> CliError {
    let keys = at_fault(&point.settings, &cause);
    CliError::Setting { place: point.place_of(&keys).clone(), cause: Box::new(cause) }
}

/// Makes every point's traffic once, so that a broken capture or size file stops us before the
/// first point has run. Returns what is to be said about them.
fn try_files(input: &Input) -> Result<Vec<String>, CliError> {
    let (mut tried, mut said) = (Vec::new(), Vec::new());
    for point in &input.points {
        let settings = &point.settings;
        let Capture { pcap, .. } = settings.read();
        let files = (settings.replays(), pcap.clone(), settings.read::<Empirical>().size_file);
        if !settings.is_of_frames() || tried.contains(&files) {
            continue;
        }
        tried.push(files);
        let line = line_of(&input.machine.hardware);
        // Steering does not matter to the files: one queue spares us the search for flows.
        let unsteered = settings.clone().with("target_share", 0.0).with("busiest_to_idlest", 0.0);
        let source = traffic_source(&unsteered, line, input.scenario.seed, 0, 1, true)
            .map_err(|cause| at_fault_in(point, cause.into()))?;
        if let (TrafficSource::Replay(replay), Some(pcap)) = (source, &pcap) {
            let capture = Path::new(pcap);
            said.extend(notes::about(capture, &replay.counts()));
            let (wrong, frames) = (replay.wrong_ip_checksums(), replay.frames());
            let same = |other: &&Point| {
                let theirs = &other.settings;
                theirs.replays() && theirs.read::<Capture>().pcap.as_ref() == Some(pcap)
            };
            for point in input.points.iter().filter(same) {
                let settings = &point.settings;
                check_replay(settings, &replay).map_err(|cause| at_fault_in(point, cause.into()))?;
                let mut found = notes::about_long_replay(capture, &replay, settings, &input.machine);
                found.extend(notes::about_checksums(capture, wrong, frames, settings));
                found.retain(|note| !said.contains(note));
                said.extend(found);
            }
        }
    }
    Ok(said)
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

/// A key that is set twice is an error: no order says which of the two counts.
fn push_once(all: &mut Vec<Assignment>, set: Assignment) -> Result<(), ConfigError> {
    let same = |other: &&Assignment| other.key.name == set.key.name && other.value != set.value;
    if let Some(other) = all.iter().find(same) {
        let wrong = format!("`{}` is set by {}, too", set.key.name, other.place);
        return Err(ConfigError::new(&set.place, wrong, "keep one of the two"));
    }
    all.push(set);
    Ok(())
}

/// Whether there is a file that could be a capture: not what never ends, or waits for somebody.
fn is_capture_file(pcap: &Path) -> Result<(), ConfigError> {
    let wrong = match std::fs::metadata(pcap) {
        Ok(meta) if meta.is_file() => return Ok(()),
        Ok(meta) if meta.is_dir() => "it is a folder".to_string(),
        Ok(_) => "it is a pipe or a device, which cannot be played from its beginning".to_string(),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => "there is no such file".to_string(),
        Err(cause) => format!("it cannot be read: {cause}"),
    };
    let place = Place::argument(&format!("--pcap {}", pcap.display()));
    Err(ConfigError::new(&place, wrong, "name a capture file"))
}
