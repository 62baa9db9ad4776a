//! A candidate: the machine file with other numbers, and how far its runs are from the points.

use std::path::{Path, PathBuf};

use nicforge_lab::job::{Job, Kept, Request, Watcher};
use nicforge_lab::kept::hash_of;
use nicforge_lab::machine::{Machine, parse_machine};
use nicforge_lab::run::RunIo;
use nicforge_options::{ConfigError, Place as FilePlace};
use nicforge_report::claims::{Outcome, evaluate};

use super::points::{Parameter, Point, Points};
use super::search::Place;
use crate::error::CliError;
use crate::input::sets;
use crate::registry::catalogue;
use crate::run::Place as RunPlace;

/// A candidate that ran.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Where it lies.
    pub place: Place,
    /// The values of the parameters.
    pub values: Vec<f64>,
    /// The model's value of each point, and how far that is off in tolerances.
    pub outcomes: Vec<(f64, f64)>,
}

impl Candidate {
    /// The farthest that a point is off.
    pub fn worst(&self) -> f64 {
        self.outcomes.iter().map(|(_, error)| error.abs()).fold(0.0, f64::max)
    }

    /// The mean square of how far the points are off, without its root: what refinement makes less.
    pub fn misfit(&self) -> f64 {
        let squares: f64 = self.outcomes.iter().map(|(_, error)| error * error).sum();
        squares / self.outcomes.len().max(1) as f64
    }
}

/// The machine that candidates are made of.
pub struct Base {
    text: String,
    /// The machine as it stands in its file.
    pub machine: Machine,
}

impl Base {
    /// Of `file`, which has all `parameters`.
    pub fn read(file: &Path, points: &Points) -> Result<Base, CliError> {
        let text = nicforge_options::read_text(file)?;
        let base = Base { machine: parse_machine(&text, file)?, text };
        for key in points.parameters.iter().flat_map(|parameter| &parameter.keys) {
            base.value(key)?;
        }
        Ok(base)
    }

    fn value(&self, key: &str) -> Result<f64, ConfigError> {
        let row = self.machine.rows.iter().find(|row| format!("{}.{}", row.section, row.key) == key);
        row.map(|row| row.value).ok_or_else(|| {
            let known: Vec<String> =
                self.machine.rows.iter().map(|row| format!("{}.{}", row.section, row.key)).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            ConfigError::unknown(&FilePlace::argument("[[parameter]]"), "number of the machine", key, &known)
        })
    }

    /// Where the machine itself lies, ends of ranges where it is outside of them.
    pub fn place(&self, parameters: &[Parameter]) -> Result<Place, CliError> {
        let of = |parameter: &Parameter| {
            let [low, high] = parameter.range;
            Ok(((self.value(&parameter.keys[0])? - low) / (high - low)).clamp(0.0, 1.0))
        };
        parameters.iter().map(of).collect()
    }

    /// The values at `place`, in the steps of their parameters.
    fn values(place: &Place, parameters: &[Parameter]) -> Vec<f64> {
        let of = |(at, parameter): (&f64, &Parameter)| parameter.at(*at);
        place.iter().zip(parameters).map(of).collect()
    }

    /// The machine file with `values`, and `title` behind its own.
    pub fn text(&self, points: &Points, values: &[f64], title: &str) -> Result<String, CliError> {
        let mut fitted: Vec<&str> = points.points.iter().map(|point| point.name.as_str()).collect();
        fitted.dedup();
        let fitted = fitted.join(", ");
        let mut section = String::new();
        let mut text = String::new();
        for line in self.text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                section = name.to_owned();
            }
            let key = line.split('=').next().unwrap_or("").trim();
            let wanted = format!("{section}.{key}");
            let found = points.parameters.iter().zip(values).find(|(parameter, _)| parameter.keys.contains(&wanted));
            match found {
                Some((parameter, value)) => {
                    let [low, high] = parameter.range;
                    let source =
                        format!("{low} to {high}: {}", parameter.source).replace('\\', "\\\\").replace('"', "\\\"");
                    text += &format!("{key} = {{ value = {value}, source = \"{source}\", fitted = \"{fitted}\" }}\n");
                }
                None if key == "title" && section == "machine" => {
                    text += &line.replacen("title = \"", &format!("title = \"{title}"), 1);
                    text.push('\n');
                }
                None => {
                    text += line;
                    text.push('\n');
                }
            }
        }
        Ok(text)
    }

    /// Runs the candidate at `place`, whose file goes into `folder`.
    pub fn run(&self, points: &Points, place: Place, folder: &Path) -> Result<Candidate, CliError> {
        let values = Base::values(&place, &points.parameters);
        let text = self.text(points, &values, "")?;
        let file = folder.join(format!("{}.toml", &hash_of([text.as_str()])[..12]));
        write(&file, &text)?;
        let mut outcomes = Vec::new();
        let mut before: Option<(&Point, nicforge_record::Record)> = None;
        for point in &points.points {
            // Neighbours in the file often read the same run.
            let same = before.take().filter(|(other, _)| other.scenario == point.scenario && other.set == point.set);
            let record = match same {
                Some((_, record)) => record,
                None => record(point, &file)?,
            };
            let outcome = evaluate(&point.predicted, &record).map_err(|why| wrong(point, &why))?;
            let Outcome::Number(sure) = outcome else {
                return Err(wrong(point, "it is no number"));
            };
            outcomes.push((sure.value, point.error(sure.value)));
            before = Some((point, record));
        }
        Ok(Candidate { place, values, outcomes })
    }
}

fn wrong(point: &Point, why: &str) -> CliError {
    CliError::Usage(format!("point {}: `predicted` = \"{}\": {why}", point.name, point.quantity))
}

/// A watcher that shows no progress: a candidate is one line of many.
struct Quiet;

impl Watcher for Quiet {}

/// The record of the scenario of `point` on the machine of `file`; its points are kept where `nicforge run` has them.
fn record(point: &Point, file: &Path) -> Result<nicforge_record::Record, CliError> {
    let request = Request {
        machine: Some(file.to_path_buf()),
        overrides: sets(&point.set)?,
        said: point.set.clone(),
        ..Request::of(&point.scenario)
    };
    let job = Job::load(request, &catalogue())?;
    let place = RunPlace::of(None, &job.scenario.name, "");
    let kept = Kept::open(&place.points, job.keys()?, false)?;
    let runs = job.run(1, &RunIo::default(), Some(&kept), &Quiet)?;
    Ok(job.record(job.of_points(runs), None, 0.0))
}

/// Writes `text` so that a file that is there is whole.
pub fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let failed = |cause| CliError::Write { what: file.display().to_string(), cause };
    let part: PathBuf = file.with_extension("part");
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, file)).map_err(failed)
}
