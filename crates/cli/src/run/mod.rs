//! `nicforge run`: all points of a scenario, the table, the report.

mod assemble;
mod progress;
mod queue;

use std::path::{Path, PathBuf};
use std::time::Instant;

use nicforge_lab::report::{table, to_json, write_all};
use nicforge_lab::run::{PointRun, RunIo, run_point};

use crate::args::RunOptions;
use crate::error::CliError;
use crate::input::{Input, load};
use crate::output::print;
pub use assemble::report;
use progress::Progress;

/// Runs the scenario.
pub fn run(options: &RunOptions) -> Result<(), CliError> {
    let input = load(
        &options.scenario,
        &options.overrides,
        options.machine.as_deref(),
    )?;
    let folder = options
        .out
        .clone()
        .unwrap_or_else(|| Path::new("out").join(&input.scenario.name));
    check_outputs(&input, options, &folder)?;
    if let Some(parent) = options.pcap_out.as_deref().and_then(Path::parent) {
        std::fs::create_dir_all(parent).map_err(|cause| CliError::Write {
            what: parent.display().to_string(),
            cause,
        })?;
    }
    if !options.quiet {
        input.print_notes();
    }
    let started = Instant::now();
    let progress = Progress::new(&input.points, options);
    let runs = run_points(&input, options, &progress);
    progress.finish();
    let wall_seconds = started.elapsed().as_secs_f64();
    let report = self::report(&input, runs?, wall_seconds);
    let mut files = write_all(&report, &folder)?;
    files.extend(options.pcap_out.clone());
    if options.json {
        print(&to_json(&report))?;
    }
    if options.quiet {
        return Ok(());
    }
    let closing = closing(&files, &folder);
    if options.json {
        eprint!("{closing}");
        return Ok(());
    }
    print(&format!("{}\n{closing}", table(&report)))
}

/// What the outputs need, checked before anything runs.
fn check_outputs(input: &Input, options: &RunOptions, folder: &Path) -> Result<(), CliError> {
    if folder.exists() && !folder.is_dir() {
        let wrong = format!("--out {}: is a file; name a folder", folder.display());
        return Err(CliError::Usage(wrong));
    }
    if let Some(pcap) = &options.pcap_out {
        let place = format!("--pcap-out {}", pcap.display());
        if pcap.is_dir() {
            return Err(CliError::Usage(format!(
                "{place}: is a folder; name a file"
            )));
        }
        if input.points.len() != 1 {
            let count = input.points.len();
            let right = "use a scenario without [[variant]] and [sweep]";
            return Err(CliError::Usage(format!(
                "{place}: needs one point, not {count}; {right}"
            )));
        }
    }
    Ok(())
}

fn run_points(
    input: &Input,
    options: &RunOptions,
    progress: &Progress,
) -> Result<Vec<PointRun>, CliError> {
    queue::in_order(input.points.len(), options.jobs, |index| {
        let point = &input.points[index];
        let io = RunIo {
            pcap_out: options.pcap_out.clone(),
        };
        let seed = input.scenario.seed;
        let mut tick = |share: f64, packets: u64| progress.tick(index, share, packets);
        let point_run =
            run_point(&input.machine, &point.settings, seed, &io, &mut tick).map_err(|cause| {
                CliError::Point {
                    number: index + 1,
                    variant: point.variant.clone(),
                    cause,
                }
            })?;
        progress.done(index, &point_run.metrics);
        Ok(point_run)
    })
}

/// What was written, and what to do with it.
pub fn closing(files: &[PathBuf], folder: &Path) -> String {
    let mut text: String = files
        .iter()
        .map(|file| format!("wrote {}\n", file.display()))
        .collect();
    let page = folder.join("report.html");
    text.push_str(&format!("next: open {} in a browser\n", page.display()));
    text
}
