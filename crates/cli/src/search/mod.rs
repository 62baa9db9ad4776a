//! `nicforge search`: how far a key goes while a metric keeps a bound.
//!
//! All points of the scenario halve the key's range in step, so that they run side by side. What they ran is the report of
//! a run, and is kept as a run's points are.

mod bracket;
mod condition;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use clap::Args;
use nicforge_lab::job::{Job, Kept};
use nicforge_options::nearest;

use bracket::{Bracket, Crossing, Steps};
use condition::Condition;

use crate::args::RunOptions;
use crate::error::CliError;
use crate::output::{print, tell};
use crate::registry::catalogue;
use crate::run::{Done, Place, carry_out, closing, load_run, runs_of};

/// What is searched for.
#[derive(Args)]
pub struct SearchOptions {
    #[command(flatten)]
    pub run: RunOptions,
    /// The key to search along, such as offered_gbps
    #[arg(long)]
    pub key: String,
    /// Its lowest value
    #[arg(long, value_name = "NUMBER")]
    pub from: f64,
    /// Its highest value
    #[arg(long, value_name = "NUMBER")]
    pub to: f64,
    /// How far values are apart at least [default: 1 for whole numbers, a hundredth of the range for others]
    #[arg(long, value_name = "NUMBER")]
    pub apart: Option<f64>,
    /// The bound: a metric of points.csv, one of <=, >=, <, >, and a number
    #[arg(long = "while", value_name = "BOUND", value_parser = Condition::parse)]
    pub holds: Condition,
}

/// One run of a point: the point's number, that of the key's value, and what its metric said.
#[derive(Clone, Copy, Debug)]
struct Trial {
    point: usize,
    value: u64,
    metric: f64,
}

/// Searches, and writes the report of all that ran.
pub fn search(options: &SearchOptions) -> Result<(), CliError> {
    let steps = steps(options)?;
    if options.run.pcap_out.is_some() || options.run.overlay.is_some() || options.run.trace.is_some() {
        let wrong = "search runs many points: it writes no capture and no trace, and takes no overlay";
        return Err(CliError::Usage(format!("{wrong}; leave --pcap-out, --trace and --overlay out")));
    }
    let job = at(options, steps, 0)?;
    if let Some(point) = job.points.iter().find(|point| !options.holds.may_be_measured(&point.settings)) {
        return Err(unmeasured(options, &point.variant));
    }
    let names = job.names();
    let mut brackets = vec![Bracket::default(); names.len()];
    let mut done: Vec<Trial> = Vec::new();
    loop {
        let each = brackets.iter().enumerate();
        let wanted =
            each.flat_map(|(point, bracket)| bracket.wanted(steps.last()).into_iter().map(move |at| (point, at)));
        let wanted: Vec<(usize, u64)> = wanted.collect();
        if wanted.is_empty() {
            break;
        }
        for trial in run(options, steps, &wanted)? {
            brackets[trial.point].learn(trial.value, options.holds.holds(trial.metric));
            done.push(trial);
        }
    }
    done.sort_by_key(|trial| (trial.point, trial.value));
    let all: Vec<(usize, u64)> = done.iter().map(|trial| (trial.point, trial.value)).collect();
    let Done { record, files, shown } = carry_out(trials(options, steps, &all)?, Vec::new(), &options.run, false)?;
    let answers = brackets.iter().zip(&names).enumerate().map(|(point, (bracket, name))| {
        let metric = |value| done.iter().find(|trial| (trial.point, trial.value) == (point, value));
        format!("{name}: {}\n", answer(options, steps, bracket.crossing(), |value| metric(value).map(|it| it.metric)))
    });
    let answers: String = answers.collect();
    if options.run.json {
        print(&nicforge_report::to_json(&record))?;
        tell(&answers);
        return Ok(());
    }
    print(&answers)?;
    if options.run.quiet { Ok(()) } else { print(&format!("\n{}", closing(&files, &shown))) }
}

/// The values between the ends that the user named.
fn steps(options: &SearchOptions) -> Result<Steps, CliError> {
    let SearchOptions { key: name, from, to, apart, .. } = options;
    let catalogue = catalogue();
    let vocabulary = catalogue.vocabulary();
    let Some(key) = vocabulary.key(name) else {
        let names: Vec<&str> = vocabulary.keys().iter().map(|key| key.name).collect();
        let near = nearest(name, &names)
            .map_or("see nicforge list settings".to_owned(), |near| format!("did you mean `{near}`?"));
        return Err(CliError::Usage(format!("--key {name}: there is no such key; {near}")));
    };
    Steps::of(key, *from, *to, *apart).ok_or_else(|| {
        let right = "name a key of numbers, and ends with another value between or at them";
        CliError::Usage(format!("--key {name} --from {from} --to {to}: is no range to search; {right}"))
    })
}

/// The scenario's points with the key at value `number`.
fn at(options: &SearchOptions, steps: Steps, number: u64) -> Result<Job, CliError> {
    load_run(&options.run, Some(format!("{}={}", options.key, steps.value(number))))
}

/// A job of the points `wanted`: number of the point, number of the key's value.
fn trials(options: &SearchOptions, steps: Steps, wanted: &[(usize, u64)]) -> Result<Job, CliError> {
    let mut jobs = BTreeMap::new();
    for &(_, value) in wanted {
        if let Entry::Vacant(entry) = jobs.entry(value) {
            entry.insert(at(options, steps, value)?);
        }
    }
    let mut all = load_run(&options.run, None)?;
    all.points = wanted.iter().map(|(point, value)| jobs[value].points[*point].clone()).collect();
    Ok(all)
}

/// Runs the points `wanted`.
fn run(options: &SearchOptions, steps: Steps, wanted: &[(usize, u64)]) -> Result<Vec<Trial>, CliError> {
    let job = trials(options, steps, wanted)?;
    let place = Place::of(options.run.out.as_deref(), &job.scenario.name, "");
    let kept = Kept::open(&place.points, job.keys()?, options.run.force)?;
    let runs = job.of_points(runs_of(&job, &options.run, &kept)?);
    let each = wanted.iter().zip(runs).map(|(&(point, value), run)| {
        let variant = &job.points[0].variant;
        let metric = options.holds.value(&run.metrics).ok_or_else(|| unmeasured(options, variant))?;
        Ok(Trial { point, value, metric })
    });
    each.collect()
}

fn unmeasured(options: &SearchOptions, variant: &str) -> CliError {
    let wrong = format!("--while {}: {variant} measures no `{}`", options.holds, options.holds.metric);
    CliError::Usage(format!("{wrong}; name a metric that its points.csv has values of"))
}

/// What was found for a point, whose metric at a value's number `metric` says.
fn answer(options: &SearchOptions, steps: Steps, crossing: Crossing, metric: impl Fn(u64) -> Option<f64>) -> String {
    let SearchOptions { key, holds, .. } = options;
    let at = |number: u64| {
        let value = steps.value(number);
        metric(number).map_or(value.clone(), |metric| format!("{value} ({} {metric:.4})", holds.metric))
    };
    let (first, last) = (at(0), at(steps.last()));
    match crossing {
        Crossing::Always => format!("{holds} at both ends, {key} = {first} and {last}"),
        Crossing::Never => format!("{holds} at neither end, {key} = {first} and {last}"),
        Crossing::UpTo(number) => format!("{holds} up to {key} = {}, not at {}", at(number), at(number + 1)),
        Crossing::From(number) => format!("{holds} from {key} = {} on, not at {}", at(number), at(number - 1)),
    }
}
