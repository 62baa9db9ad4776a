//! `nicforge calibrate`: the set of machine files that fit what was measured, as far as sources leave a choice.

mod candidate;
mod options;
mod points;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nicforge_report::claims::Bound;

use candidate::{Base, Candidate, write};
pub use options::CalibrateOptions;
use points::Points;
use search::{Draws, Place, far_apart};

use crate::error::CliError;
use crate::output::{columns, path_word, print, tell};

/// How many of the best are refined.
const REFINED: usize = 4;
/// How far the first round of refinement reaches on each axis; each further one reaches seven tenths of it.
const REACH: f64 = 0.2;

/// Searches, writes the members' files, and prints how they fit.
pub fn calibrate(options: &CalibrateOptions) -> Result<(), CliError> {
    let points = points::read(&options.points)?;
    let base = Base::read(&options.machine, &points)?;
    let name = &base.machine.name;
    let folder = options.out.clone().unwrap_or_else(|| Path::new("out/calibrate").join(name));
    let search = Search { points: &points, base: &base, folder: &folder, options };
    let mut all = search.run(vec![base.place(&points.parameters)?])?;
    let mut draws = Draws::new(points.seed);
    let samples = options.samples.unwrap_or(points.samples);
    all.extend(search.run(draws.hypercube(samples as usize, points.parameters.len()))?);
    let mut reach = REACH;
    for _ in 0..options.rounds.unwrap_or(points.rounds) {
        sort(&mut all);
        let best: Vec<Place> = all.iter().take(REFINED).map(|candidate| candidate.place.clone()).collect();
        all.extend(search.run(draws.around(&best, reach))?);
        reach *= 0.7;
    }
    sort(&mut all);
    let members = members(&all, points.members);
    let words = [&options.machine, &options.points].map(|path| path_word(path)).join(" ");
    let head = format!("# A member of the calibrated set, written by `nicforge calibrate {words}`.\n");
    let mut files = Vec::new();
    for (letter, member) in ('a'..='z').zip(&members) {
        let file = folder.join("members").join(format!("{name}-{letter}.toml"));
        let text = base.text(&points, &member.values, &format!("Member {letter} of the calibrated set: "))?;
        write(&file, &format!("{head}{text}"))?;
        files.push(file);
    }
    let said = said(&points, &all, &members);
    write(&folder.join("calibration.md"), &said)?;
    print(&said)?;
    let files: String = files.iter().map(|file| format!("wrote {}\n", file.display())).collect();
    tell(if options.quiet { "" } else { &files });
    Ok(())
}

/// A search as far as it does not change.
struct Search<'a> {
    points: &'a Points,
    base: &'a Base,
    folder: &'a Path,
    options: &'a CalibrateOptions,
}

impl Search<'_> {
    /// Runs candidates at `places`; in their order.
    fn run(&self, places: Vec<Place>) -> Result<Vec<Candidate>, CliError> {
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let candidates: PathBuf = self.folder.join("candidates");
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = places.get(number) else { return };
                let ran = self.base.run(self.points, place.clone(), &candidates);
                if let (Ok(candidate), false) = (&ran, self.options.quiet) {
                    tell(&format!(
                        "{} of {}: worst point {:.2} tolerances\n",
                        number + 1,
                        places.len(),
                        candidate.worst()
                    ));
                }
                if ran.is_err() {
                    next.store(places.len(), Ordering::Relaxed);
                }
                // A poisoned lock means that another candidate panicked; the scope passes that on.
                if let Ok(mut done) = done.lock() {
                    done.push((number, ran));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.options.jobs.min(places.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, ran)| ran).collect()
    }
}

/// The best first.
fn sort(all: &mut [Candidate]) {
    all.sort_by(|a, b| a.misfit().total_cmp(&b.misfit()));
}

/// The best of `all`, which stand best first, and others that fit as well and lie far apart. Where none fits, those whose
/// misfit is at most half as much again as the best's.
fn members(all: &[Candidate], count: usize) -> Vec<Candidate> {
    let fits = |candidate: &&Candidate| candidate.worst() <= 1.0;
    let mut chosen: Vec<&Candidate> = all.iter().filter(fits).collect();
    if chosen.is_empty() {
        let least = all.first().map_or(0.0, Candidate::misfit);
        chosen = all.iter().filter(|candidate| candidate.misfit() <= 1.5 * least).collect();
    }
    let places: Vec<Place> = chosen.iter().map(|candidate| candidate.place.clone()).collect();
    far_apart(&places, count).into_iter().map(|number| chosen[number].clone()).collect()
}

/// How many fit, the members' parameters, and their points.
fn said(points: &Points, all: &[Candidate], members: &[Candidate]) -> String {
    let fit = all.iter().filter(|candidate| candidate.worst() <= 1.0).count();
    let mut text = format!("{fit} of {} candidates fit all points within their tolerance\n", all.len());
    if fit == 0 {
        text += "none fits: the members are those that miss least\n";
    }
    let letters = || ('a'..='z').take(members.len()).map(String::from);
    let head = |first: &[&str]| first.iter().map(|cell| (*cell).to_owned()).chain(letters()).collect::<Vec<_>>();
    let mut rows = vec![head(&["parameter", "range", ""])];
    for (number, parameter) in points.parameters.iter().enumerate() {
        let [low, high] = parameter.range;
        let mut row = vec![parameter.keys.join(", "), format!("{low} to {high}"), String::new()];
        row.extend(members.iter().map(|member| member.values[number].to_string()));
        rows.push(row);
    }
    rows.push(head(&["point", "measured", "tolerance"]));
    for (number, point) in points.points.iter().enumerate() {
        let bound = match point.bound {
            Some(Bound::AtLeast) => "≥ ",
            Some(Bound::AtMost) => "≤ ",
            None => "",
        };
        let name = format!("{} {}", point.name, point.quantity);
        let mut row = vec![name, format!("{bound}{}", point.value), format!("{} %", point.tolerance * 100.0)];
        row.extend(members.iter().map(|member| {
            let (value, error) = member.outcomes[number];
            let mark = if error.abs() <= 1.0 { "" } else { " misses" };
            format!("{value:.4}{mark}")
        }));
        rows.push(row);
    }
    text + &columns(&rows)
}
