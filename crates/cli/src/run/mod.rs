//! `nicforge run`: all points of a scenario, the table, the report.

mod kept;
mod overlay;
mod place;
mod progress;
mod ray;

use std::path::{Path, PathBuf};
use std::time::Instant;

use nicforge_lab::job::{Job, Kept};
use nicforge_lab::run::options::{Measure, Measurement, Run};
use nicforge_lab::run::{PointRun, RunIo};
use nicforge_lab::scenario::Point;
use nicforge_lab::settings::Settings;
use nicforge_record::{Overlay, Record};
use nicforge_report::{PointTrace, findings, table, to_json, trace_paths, write_traced};
use nicforge_wire::capture::part_of;

use kept::{say_how_to_continue, say_what_is_there};
pub use place::{Place, refuse_other_run};
use progress::Progress;

use crate::args::{Overrides, RunOptions};
use crate::error::CliError;
use crate::input::load;
use crate::output::{print, print_notes, tell};
use crate::outputs::{Made, Named, keep_apart, of_report};

/// A finished run.
pub struct Done {
    /// What it measured.
    pub record: Record,
    /// What was written.
    pub files: Vec<PathBuf>,
    /// The path under which the report is found from now on.
    pub shown: PathBuf,
}

/// Runs the scenario.
pub fn run(options: &RunOptions) -> Result<(), CliError> {
    let Done { record, files, shown } = simulate(options)?;
    if options.json {
        print(&to_json(&record))?;
    }
    if options.quiet {
        return Ok(());
    }
    let closing = closing(&files, &shown);
    if options.json {
        tell(&closing);
        return Ok(());
    }
    print(&format!("{}\n{closing}", table(&record)))
}

/// Runs the scenario and writes its report; prints notes and progress only.
pub fn simulate(options: &RunOptions) -> Result<Done, CliError> {
    let input = load_run(options, None)?;
    let overlays = match &options.overlay {
        Some(file) => overlay::read(file, &input.points)?,
        None => Vec::new(),
    };
    let anew = options.force || options.pcap_out.is_some() || options.trace.is_some();
    carry_out(input, overlays, options, anew)
}

/// What is to run; `set` is one more setting.
pub fn load_run(options: &RunOptions, set: Option<String>) -> Result<Job, CliError> {
    let mut overrides = with_precision(options);
    overrides.set.extend(set);
    load(&options.scenario, &overrides, options.machine.as_deref(), options.seeds)
}

/// Runs `input` and writes its report, with `overlays`; with `anew` also the points that are kept.
pub fn carry_out(input: Job, overlays: Vec<Overlay>, options: &RunOptions, anew: bool) -> Result<Done, CliError> {
    let keys = input.keys()?;
    let origin = input.origin(&keys, option_env!("NICFORGE_COMMIT"))?;
    let place = Place::of(options.out.as_deref(), &input.scenario.name, &origin.run);
    let folder = place.folder.as_path();
    let mut made = check_outputs(&input, options, &place, &origin.run)?;
    print_notes(&input.notes);
    let started = Instant::now();
    let kept = Kept::open(&place.points, keys, anew)?;
    say_what_is_there(&kept);
    let runs = runs_of(&input, options, &kept).inspect_err(|_| made.take_back())?;
    let wall_seconds = started.elapsed().as_secs_f64();
    let mut runs = input.of_points(runs);
    print_notes(&input.notes_of_runs(&runs));
    let traces = traces_of(&input, &mut runs);
    let record = Record { overlays, ..input.record(runs, Some(origin), wall_seconds) };
    let of_windows = findings(&record).into_iter().filter(|finding| ["unsteady", "warm-up"].contains(&finding.rule));
    print_notes(&of_windows.map(|finding| finding.text).collect::<Vec<_>>());
    let mut files = write_traced(&record, &traces, folder).inspect_err(|_| say_how_to_continue(&kept))?;
    let shown = place.link_latest();
    files.extend(options.pcap_out.clone());
    Ok(Done { record, files, shown })
}

/// A result for each task of `input`; those that `kept` has do not run.
pub fn runs_of(input: &Job, options: &RunOptions, kept: &Kept) -> Result<Vec<PointRun>, CliError> {
    #[cfg(target_os = "linux")]
    let _until_done = kept::say_what_is_there_on_signals(kept)?;
    let progress = Progress::new(input.labels(), options);
    let io = RunIo { pcap_out: options.pcap_out.clone(), trace: options.trace };
    let runs = match &options.ray {
        Some(address) => ray::run(input, address, kept, &progress),
        None => input.run(options.jobs, &io, Some(kept), &progress).map_err(CliError::from),
    };
    progress.finish();
    runs.inspect_err(|_| say_how_to_continue(kept))
}

/// Whether all points of the run are finished.
pub fn is_finished(options: &RunOptions) -> Result<bool, CliError> {
    let input = load_run(options, None)?;
    let keys = input.keys()?;
    let origin = input.origin(&keys, option_env!("NICFORGE_COMMIT"))?;
    let place = Place::of(options.out.as_deref(), &input.scenario.name, &origin.run);
    // Looking for points would make their folder.
    Ok(place.points.is_dir() && Kept::open(&place.points, keys, false)?.is_whole())
}

/// What the outputs need, seen to before anything runs.
fn check_outputs(input: &Job, options: &RunOptions, place: &Place, run: &str) -> Result<Made, CliError> {
    let mut files = of_report(&place.folder);
    let mut made = Made::default();
    let capture = options.pcap_out.as_ref().map(|pcap| (pcap, format!("--pcap-out {}", pcap.display())));
    if let Some((pcap, by)) = &capture {
        can_be_captured(&input.points, options.seeds).map_err(|why| CliError::Usage(format!("{by}: {why}")))?;
        files.extend([pcap, &part_of(pcap)].map(|path| Named::new(by, path)));
    }
    if let Some(packets) = options.trace {
        let by = format!("--trace {packets}");
        can_be_traced(&input.points).map_err(|why| CliError::Usage(format!("{by}: {why}")))?;
        let paths = trace_paths(&place.folder).into_iter().flat_map(|(part, path)| [part, path]);
        files.extend(paths.map(|path| Named::new(&by, &path)));
    }
    let overlay = options.overlay.iter().map(|file| Named::new("--overlay", file));
    keep_apart(&crate::input::files(input).into_iter().chain(overlay).collect::<Vec<_>>(), &files)?;
    if !options.force {
        place.refuse_other_run(run)?;
    }
    if let Some((pcap, by)) = &capture {
        made.file(by, pcap)?;
    }
    made.folder_of_report(&place.folder)?;
    Ok(made)
}

/// Whether what is sent makes a capture: else why not, and what would.
fn can_be_captured(points: &[Point], seeds: u64) -> Result<(), String> {
    for settings in points.iter().map(|point| &point.settings) {
        if settings.is_of_whole_systems() {
            return Err(of_systems(settings, "write no capture"));
        }
        measures_a_window(settings, "writes")?;
    }
    match points.len() * seeds as usize {
        1 => Ok(()),
        count => Err(format!("needs one point, not {count}; use a scenario without [[variant]], [sweep] and --seeds")),
    }
}

/// Whether packets can be followed: else why not, and what would.
fn can_be_traced(points: &[Point]) -> Result<(), String> {
    for settings in points.iter().map(|point| &point.settings) {
        if !settings.is_of_frames() {
            return Err(of_systems(settings, "follow no packets"));
        }
        measures_a_window(settings, "follows")?;
    }
    Ok(())
}

fn of_systems(settings: &Settings, cannot: &str) -> String {
    let workload = settings.read::<Run>().workload.word();
    format!("whole systems (workload = \"{workload}\") {cannot}; leave it out, or use a scenario of one server")
}

fn measures_a_window(settings: &Settings, does: &str) -> Result<(), String> {
    let Measurement { measure, .. } = settings.read();
    match measure {
        Measure::Window => Ok(()),
        _ => Err(format!(
            "measure = \"{}\" runs trials at several rates and {does} none of them; use --set measure=window",
            measure.word()
        )),
    }
}

/// The packets that were followed in each point; of several seeds those of the first.
fn traces_of(input: &Job, runs: &mut [PointRun]) -> Vec<PointTrace> {
    let labels = input.labels().into_iter().step_by(input.seeds as usize);
    let each = labels.zip(runs).map(|(label, run)| Some(PointTrace { label, trace: run.trace.take()? }));
    each.flatten().collect()
}

/// The overrides, and what `--precision` and `--max-window` are short for.
fn with_precision(options: &RunOptions) -> Overrides {
    let mut overrides = options.overrides.clone();
    overrides.set.extend(options.precision.map(|share| format!("precision={share}")));
    overrides.set.extend(options.max_window.as_ref().map(|ms| format!("max_window_ms={ms}")));
    overrides
}

/// What was written, and what to do with it.
pub fn closing(files: &[PathBuf], folder: &Path) -> String {
    let mut text: String = files.iter().map(|file| format!("wrote {}\n", file.display())).collect();
    let page = folder.join("report.html");
    text.push_str(&format!("next: open {} in a browser\n", page.display()));
    text
}
