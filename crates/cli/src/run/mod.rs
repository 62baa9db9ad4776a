//! `nicforge run`: all points of a scenario, the table, the report.

mod progress;
mod queue;

use std::path::{Path, PathBuf};
use std::time::Instant;

use nicforge_lab::run::options::{Measure, Measurement, Run};
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::scenario::Point;
use nicforge_report::{table, to_json, write_all};
use nicforge_wire::capture::part_of;
use progress::Progress;

use crate::args::RunOptions;
use crate::error::CliError;
use crate::input::{Input, load};
use crate::output::{print, tell};
use crate::outputs::{Made, Named, keep_apart, of_report};

/// Runs the scenario.
pub fn run(options: &RunOptions) -> Result<(), CliError> {
    let input = load(&options.scenario, &options.overrides, options.machine.as_deref())?;
    let folder = options.out.clone().unwrap_or_else(|| Path::new("out").join(&input.scenario.name));
    let mut made = check_outputs(&input, options, &folder)?;
    input.print_notes();
    let started = Instant::now();
    let progress = Progress::new(&input.points, options);
    let runs = run_points(&input, options, &progress);
    progress.finish();
    if runs.is_err() {
        made.take_back();
    }
    let wall_seconds = started.elapsed().as_secs_f64();
    let runs = runs?;
    print_notes_of_runs(&input, &runs);
    let record = input.record(runs, wall_seconds);
    let mut files = write_all(&record, &folder)?;
    files.extend(options.pcap_out.clone());
    if options.json {
        print(&to_json(&record))?;
    }
    if options.quiet {
        return Ok(());
    }
    let closing = closing(&files, &folder);
    if options.json {
        tell(&closing);
        return Ok(());
    }
    print(&format!("{}\n{closing}", table(&record)))
}

/// What readers of the measurements must know.
pub fn print_notes_of_runs(input: &Input, runs: &[PointRun]) {
    for (point, run) in input.points.iter().zip(runs) {
        let none = "no frame came in the window: use a larger window_ms, or more offered_gbps".to_owned();
        let none = run.steadiness.no_frame_arrived.then_some(none);
        for note in none.iter().chain(&run.steadiness.standstill) {
            tell(&format!("note: {}: {note}\n", point.variant));
        }
    }
}

/// What the outputs need, seen to before anything runs.
fn check_outputs(input: &Input, options: &RunOptions, folder: &Path) -> Result<Made, CliError> {
    let mut files = of_report(folder);
    let mut made = Made::default();
    if let Some(pcap) = &options.pcap_out {
        let place = format!("--pcap-out {}", pcap.display());
        can_be_captured(&input.points).map_err(|why| CliError::Usage(format!("{place}: {why}")))?;
        files.extend([pcap, &part_of(pcap)].map(|path| Named::new(&place, path)));
        keep_apart(&input.files(), &files)?;
        made.file(&place, pcap)?;
    }
    keep_apart(&input.files(), &files)?;
    made.folder_of_report(folder)?;
    Ok(made)
}

/// Whether what is sent makes a capture: else why not, and what would.
fn can_be_captured(points: &[Point]) -> Result<(), String> {
    for settings in points.iter().map(|point| &point.settings) {
        if settings.is_of_whole_systems() {
            return Err(format!(
                "whole systems (workload = \"{}\") write no capture; leave it out, or use a scenario of one server",
                settings.read::<Run>().workload.word()
            ));
        }
        if settings.read::<Measurement>().measure != Measure::Window {
            return Err(format!(
                "measure = \"{}\" runs trials at several rates and writes none of them; use --set measure=window",
                settings.read::<Measurement>().measure.word()
            ));
        }
    }
    match points.len() {
        1 => Ok(()),
        count => Err(format!("needs one point, not {count}; use a scenario without [[variant]] and [sweep]")),
    }
}

fn run_points(input: &Input, options: &RunOptions, progress: &Progress) -> Result<Vec<PointRun>, CliError> {
    queue::in_order(input.points.len(), options.jobs, |index| {
        let point = &input.points[index];
        let io = RunIo { pcap_out: options.pcap_out.clone() };
        let seed = input.scenario.seed;
        let mut tick = |share: f64, packets: u64| progress.tick(index, share, packets);
        let point_run = run_point(&input.machine, &point.settings, seed, &io, &mut tick).map_err(|cause| {
            CliError::Point { number: index + 1, variant: point.variant.clone(), cause: Box::new(cause.into()) }
        })?;
        progress.done(index, &point_run.metrics);
        Ok(point_run)
    })
}

/// What was written, and what to do with it.
pub fn closing(files: &[PathBuf], folder: &Path) -> String {
    let mut text: String = files.iter().map(|file| format!("wrote {}\n", file.display())).collect();
    let page = folder.join("report.html");
    text.push_str(&format!("next: open {} in a browser\n", page.display()));
    text
}
