//! The scenarios that a comparison needs, and their runs.

use std::path::{Path, PathBuf};

use nicforge_lab::scenario::Point;
use nicforge_options::ConfigError;
use nicforge_record::{PointRecord, Record};
use nicforge_report::claims::selected;

use super::ReproduceOptions;
use super::book::{Book, Entry};
use crate::args::RunOptions;
use crate::error::CliError;
use crate::input::load;
use crate::output::tell;
use crate::run::{is_finished, simulate};

/// Where scenarios of papers are.
const FOLDER: &str = "scenarios/paper";

/// The records of scenarios by name, each with why it is not there.
pub type Records = Vec<(String, Result<Record, String>)>;

/// Runs `scenarios` one after the other. What fails does not keep the rest from running; the first error is returned beside.
pub fn run_all(
    scenarios: &[(String, PathBuf)],
    options: &ReproduceOptions,
) -> Result<(Records, Option<CliError>), CliError> {
    let (mut records, mut failed) = (Records::new(), None);
    for (index, (scenario, path)) in scenarios.iter().enumerate() {
        let run = run_options(path, options.machine.as_deref(), options);
        if options.no_run && !is_finished(&run)? {
            records.push((scenario.clone(), Err("not run yet".to_owned())));
            continue;
        }
        tell(&format!("{scenario} ({} of {})\n", index + 1, scenarios.len()));
        let record = simulate(&run).map(|done| done.record).map_err(|error| {
            tell(&format!("error: {scenario}: {error}\n"));
            let why = format!("{scenario} did not run: {error}");
            failed.get_or_insert(error);
            why
        });
        records.push((scenario.clone(), record));
    }
    Ok((records, failed))
}

/// The records of `scenarios` on each member of their machine's calibrated set, by the scenario's name.
pub fn run_members(
    scenarios: &[(String, PathBuf)],
    options: &ReproduceOptions,
) -> Result<Vec<(String, Record)>, CliError> {
    let mut records = Vec::new();
    for (scenario, path) in scenarios {
        for member in members(path, options)? {
            let run = run_options(path, Some(&member), options);
            if options.no_run && !is_finished(&run)? {
                continue;
            }
            tell(&format!("{scenario} on {}\n", member.display()));
            records.push((scenario.clone(), simulate(&run)?.record));
        }
    }
    Ok(records)
}

/// The machine files of the calibrated set of the machine that the scenario of `path` runs on.
fn members(path: &Path, options: &ReproduceOptions) -> Result<Vec<PathBuf>, CliError> {
    let machine = load(path, &options.overrides, None, 1)?.machine;
    let folder = machine.file.with_file_name("members");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_member = |file: &PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let letter = name.strip_prefix(&machine.name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".toml"));
        letter.is_some_and(|letter| letter.len() == 1)
    };
    let mut found: Vec<PathBuf> = entries.filter(is_member).collect();
    found.sort();
    Ok(found)
}

/// Scenarios of the paper `name`, or of all, that no claim is about.
pub fn blind(book: &Book, claims: &Path, name: &str) -> Result<Vec<(String, PathBuf)>, CliError> {
    let of_paper = |scenario: &str| {
        book.papers.iter().any(|paper| {
            paper.has(scenario) && (name == "all" || [&paper.name, &paper.prefix].contains(&&name.to_owned()))
        })
    };
    let folder = places(claims, "").find(|folder| folder.is_dir()).unwrap_or_default();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_scenario = path.extension().is_some_and(|ending| ending == "toml");
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_scenario) else {
            continue;
        };
        if of_paper(stem) && !book.claims.iter().any(|entry| entry.claim.scenario == stem) {
            found.push((stem.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// The scenarios that run for `entries`, each once, with their files. Checks that they have the points that are asked for.
pub fn of_claims(
    file: &Path,
    entries: &[&Entry],
    options: &ReproduceOptions,
) -> Result<Vec<(String, PathBuf)>, CliError> {
    let mut scenarios: Vec<(&str, PathBuf, Record)> = Vec::new();
    for entry in entries {
        let Ok(expression) = &entry.claim.predicted else {
            continue;
        };
        if !scenarios.iter().any(|(name, ..)| *name == entry.run) {
            let path = scenario_file(file, entry)?;
            let input = load(&path, &options.overrides, options.machine.as_deref(), 1)?;
            let point = |point: &Point| {
                let (variant, params) = (point.variant.clone(), point.params.clone());
                PointRecord { variant, params, ..PointRecord::default() }
            };
            let points = input.points.iter().map(point).collect();
            scenarios.push((&entry.run, path, Record { points, ..Record::default() }));
        }
        let points = scenarios.iter().find(|(name, ..)| *name == entry.run).map(|(_, _, points)| points);
        for selection in expression.selections() {
            let found = points.map_or(Ok(Vec::new()), |points| selected(selection, points));
            found.map_err(|wrong| {
                let right = format!("ask for a point of {}", entry.run);
                ConfigError::new(&entry.place, format!("`predicted`: {wrong}"), right)
            })?;
        }
    }
    Ok(scenarios.into_iter().map(|(name, path, _)| (name.to_owned(), path)).collect())
}

/// `scenarios/paper/NAME.toml` in the working directory, or in a folder above the file of claims.
fn scenario_file(claims: &Path, entry: &Entry) -> Result<PathBuf, ConfigError> {
    let name = format!("{}.toml", entry.run);
    places(claims, &name).find(|file| file.is_file()).ok_or_else(|| {
        let wrong = format!("there is no {FOLDER}/{name}");
        ConfigError::new(&entry.place, wrong, "name a scenario that there is, or write `not_compared` with the reason")
    })
}

/// Where `name` in the scenarios' folder may be: in the working directory, where paths are short, or above `claims`.
fn places(claims: &Path, name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let name = Path::new(FOLDER).join(name);
    let above = std::path::absolute(claims).unwrap_or_default();
    let above: Vec<PathBuf> = above.ancestors().skip(1).map(|folder| folder.join(&name)).collect();
    std::iter::once(name).chain(above)
}

/// A run of the scenario, on `machine` if one is named, as `nicforge run` has it: with the same folder, and so with the
/// same points kept.
fn run_options(path: &Path, machine: Option<&Path>, options: &ReproduceOptions) -> RunOptions {
    RunOptions {
        scenario: path.to_path_buf(),
        overrides: options.overrides.clone(),
        machine: machine.map(Path::to_path_buf),
        out: None,
        force: false,
        json: false,
        quiet: options.quiet,
        jobs: options.jobs,
        seeds: options.seeds,
        precision: None,
        max_window: None,
        overlay: None,
        pcap_out: None,
        trace: None,
        ray: None,
    }
}
