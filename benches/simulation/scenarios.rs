//! The scenarios of the papers as a user runs them, one after the other: a line each with its time.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::common::shipped;

/// What the names begin with of those whose time is promised, together and with two jobs.
const PROMISED: [&str; 2] = ["rxb-", "shr-"];
const PROMISED_SECONDS: f64 = 900.0;
/// Linux tells processes of CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs those whose names begin with one of `wanted`; all that are promised if nothing is wanted.
pub fn scenarios(wanted: &[String]) {
    let promised = PROMISED.map(str::to_owned);
    let wanted = if wanted.is_empty() { &promised } else { wanted };
    let is_wanted = |name: &String| wanted.iter().any(|begin| name.starts_with(begin));
    let all = names();
    let chosen: Vec<&String> = all.iter().filter(|name| is_wanted(name)).collect();
    if chosen.is_empty() {
        eprintln!("no scenario begins with {}: there are {}", wanted.join(" or "), all.join(", "));
        std::process::exit(2);
    }
    println!("scenarios/paper, --jobs 2");
    println!("{:14} {:>7} {:>9} {:>19}", "scenario", "points", "seconds", "processor seconds");
    let folder = Scratch::new();
    let (mut points, mut wall, mut processor) = (0, 0.0, 0.0);
    for name in &chosen {
        let run = run(&format!("scenarios/paper/{name}.toml"), "2", &folder.0.join(name));
        line(name, run.points, run.wall, run.processor);
        points += run.points;
        wall += run.wall;
        processor += run.processor;
    }
    line("all of these", points, wall, processor);
    let promised = |name: &&String| PROMISED.iter().any(|begin| name.starts_with(begin));
    let count = chosen.iter().filter(|name| promised(name)).count();
    let of = all.iter().filter(|name| promised(name)).count();
    if count == chosen.len() {
        println!(
            "{count} of the {of} rxb and shr scenarios: {wall:.0} s; all, on two idle cores: at most {PROMISED_SECONDS} s"
        );
    }
    println!();
}

fn line(name: &str, points: usize, wall: f64, processor: f64) {
    println!("{name:14} {points:>7} {wall:>9.1} {processor:>19.1}");
}

/// The shipped scenarios of papers, in the order of their names.
fn names() -> Vec<String> {
    let files = read_dir(shipped("scenarios/paper")).expect("the shipped scenarios");
    let stem = |file: PathBuf| Some(file.file_stem()?.to_str()?.to_owned());
    let files = files.map(|file| file.expect("a file's name").path());
    let mut names: Vec<String> = files.filter_map(stem).collect();
    names.sort();
    names
}

/// What a run of a scenario took, and what it wrote.
pub struct Run {
    /// Seconds.
    pub wall: f64,
    processor: f64,
    points: usize,
    /// `report.json`.
    pub report: String,
}

/// Runs `scenario`, a file of the repository, with so many jobs; it writes into `out`.
pub fn run(scenario: &str, jobs: &str, out: &Path) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    command.current_dir(shipped(""));
    command.args(["run", scenario, "--quiet", "--jobs", jobs, "--out"]);
    let (started, before) = (Instant::now(), processor_of_children());
    // Notes would stand between the rows.
    let ended = command.arg(out).output().expect("the nicforge binary starts");
    let (wall, processor) = (started.elapsed(), processor_of_children() - before);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{scenario} runs: {said}");
    let report = read_to_string(out.join("report.json")).expect("a report");
    let json: Value = serde_json::from_str(&report).expect("a report in JSON");
    Run { wall: wall.as_secs_f64(), processor, points: json["points"].as_array().map_or(0, Vec::len), report }
}

/// CPU time of the children that have ended; 0 where the system does not say.
fn processor_of_children() -> f64 {
    let text = read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses; fields 16 and 17 are what we want.
    let behind_name = text.rsplit(')').next().unwrap_or_default();
    let fields = behind_name.split_whitespace().skip(13).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

/// A folder of our own, which goes when we are done.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// One that nobody else has.
    pub fn new() -> Scratch {
        let name = format!("nicforge-bench-{}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays behind in the system's own place for them does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
