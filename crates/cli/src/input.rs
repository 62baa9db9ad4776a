//! From the arguments to a checked scenario, its machine and its points. Writes nothing.

use std::path::Path;

use nicforge_apps::read_routes;
use nicforge_lab::config::{ConfigError, Place};
use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::run::{RunError, line_of, traffic_source};
use nicforge_lab::scenario::{Assignment, Point, Scenario, load_scenario, parse_override};
use nicforge_lab::settings::Settings;
use nicforge_wire::traffic::TrafficSource;

use crate::args::Overrides;
use crate::error::CliError;
use crate::notes;
use crate::outputs::{Named, of_settings};
use crate::registry::names;

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
        let mut files = vec![
            Named::new("the scenario", &self.scenario.file),
            Named::new("the machine", &self.machine.file),
        ];
        for point in &self.points {
            for file in of_settings(&point.settings) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    }

    /// Says them on standard error.
    pub fn print_notes(&self) {
        for note in &self.notes {
            eprintln!("note: {note}");
        }
    }
}

/// Loads and checks all that a run needs; `machine` is a machine file in place of the scenario's.
pub fn load(file: &Path, overrides: &Overrides, machine: Option<&Path>) -> Result<Input, CliError> {
    let mut scenario = load_scenario(file, &names())?;
    scenario.seed = overrides.seed.unwrap_or(scenario.seed);
    let machine = match machine {
        Some(file) => load_machine(file)?,
        None => load_machine(&scenario.machine_file()?)?,
    };
    let points = scenario.expand(&machine, &assignments(overrides)?)?;
    let mut input = Input {
        scenario,
        machine,
        points,
        notes: Vec::new(),
    };
    input.notes = try_files(&input)?;
    for point in &input.points {
        for note in notes::about_sizes(&point.settings, &input.machine) {
            if !input.notes.contains(&note) {
                input.notes.push(note);
            }
        }
    }
    Ok(input)
}

/// Reads every capture, size file and route file once, so that a broken one stops us before
/// the first point has run. Returns what is to be said about them.
fn try_files(input: &Input) -> Result<Vec<String>, CliError> {
    let (mut tried, mut said) = (Vec::new(), Vec::new());
    for Point { settings, .. } in &input.points {
        let files = (&settings.pcap, &settings.size_file, &settings.routes_file);
        if tried.contains(&files) {
            continue;
        }
        tried.push(files);
        if let Some(routes) = &settings.routes_file {
            read_routes(Path::new(routes))
                .map_err(|error| CliError::from(RunError::from(error)))?;
        }
        if settings.pcap.is_some() || settings.size_file.is_some() {
            let line = line_of(&input.machine.hardware);
            // Steering does not matter to the files: one queue spares us the search for flows.
            let unsteered = Settings {
                target_share: 0.0,
                ..settings.clone()
            };
            let source = traffic_source(&unsteered, line, input.scenario.seed, 0, 1, true)?;
            if let (TrafficSource::Replay(replay), Some(pcap)) = (source, &settings.pcap) {
                said.extend(notes::about(Path::new(pcap), &replay.counts()));
            }
        }
    }
    Ok(said)
}

/// `--set` and `--pcap` as settings.
pub fn assignments(overrides: &Overrides) -> Result<Vec<Assignment>, ConfigError> {
    let mut texts = overrides.set.clone();
    if let Some(pcap) = &overrides.pcap {
        if !pcap.is_file() {
            let place = Place::argument(&format!("--pcap {}", pcap.display()));
            return Err(ConfigError::new(
                &place,
                "there is no such file",
                "name a capture",
            ));
        }
        texts.push("arrival=replay".to_string());
        texts.push(format!("pcap={}", pcap.display()));
    }
    texts
        .iter()
        .map(|text| parse_override(text, &names()))
        .collect()
}
