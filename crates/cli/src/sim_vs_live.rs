//! `nicforge sim-vs-live`: a scenario on both grounds, side by side in one report.

use std::time::Instant;

use nicforge_lab::job::Job;
use nicforge_lab::live::{LiveRun, check_live, run_point_live};
use nicforge_lab::run::options::Clock;
use nicforge_lab::run::{RunIo, run_point};
use nicforge_report::{LiveSide, comparison_table, to_json, write_all};
use nicforge_units::Time;

use crate::args::SimVsLiveOptions;
use crate::error::CliError;
use crate::input::{files, load};
use crate::output::{print, print_notes};
use crate::outputs::{Made, keep_apart, of_report};
use crate::run::{Place, closing};

/// Runs every point of the scenario, first simulated, then live.
pub fn sim_vs_live(options: &SimVsLiveOptions) -> Result<(), CliError> {
    let input = load(&options.scenario, &options.overrides, options.machine.as_deref(), 1)?;
    let name = format!("{}-sim-vs-live", input.scenario.name);
    let place = Place::of_next(options.out.as_deref(), &name);
    let folder = place.folder.as_path();
    keep_apart(&files(&input), &of_report(folder))?;
    if !options.force {
        place.refuse_other_run("")?;
    }
    let failed = |index: usize, cause: CliError| CliError::Point {
        number: index + 1,
        variant: input.points[index].variant.clone(),
        cause: Box::new(cause),
    };
    // Before anything runs.
    for (index, point) in input.points.iter().enumerate() {
        check_live(&point.settings).map_err(|cause| failed(index, cause.into()))?;
    }
    Made::default().folder_of_report(folder)?;
    print_notes(&input.notes);
    note_about_cores(&input);
    let started = Instant::now();
    let (mut simulated, mut live) = (Vec::new(), Vec::new());
    let (seed, io) = (input.scenario.seed, RunIo::default());
    let duration = Time::from_seconds(options.seconds);
    let clock = input.machine.hardware.core.frequency.cycles_in(Time::from_ns(1));
    for (index, point) in input.points.iter().enumerate() {
        let settings = &point.settings;
        let sim = run_point(&input.machine, settings, seed, &io, &mut |_, _| {});
        simulated.push(sim.map_err(|cause| failed(index, cause.into()))?);
        let run = run_point_live(&input.machine, settings, seed, duration);
        let run = run.map_err(|cause| failed(index, cause.into()))?;
        let core_ghz = settings.read::<Clock>().cpu_ghz.unwrap_or(clock);
        let LiveRun { metrics, cores, switches, .. } = run;
        live.push(LiveSide { metrics, cores, switches, core_count: settings.cores(), core_ghz });
    }
    print_notes(&input.notes_of_runs(&simulated));
    let mut record = input.record(simulated, None, started.elapsed().as_secs_f64());
    nicforge_report::compare(&mut record, live);
    let files = write_all(&record, folder)?;
    let shown = place.link_latest();
    if options.json {
        return print(&to_json(&record));
    }
    if options.quiet {
        return Ok(());
    }
    print(&format!("{}\n{}", comparison_table(&record), closing(&files, &shown)))
}

/// Threads that share a core wait for each other, which the simulation's do not.
fn note_about_cores(input: &Job) {
    let most = input.points.iter().map(|point| point.settings.cores()).max();
    let threads = most.unwrap_or(0) + 2;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if threads > cores {
        print_notes(&[format!(
            "live, {threads} threads (workers, device, generator) share {cores} core(s) here: they wait for \
             each other, which those of the simulation do not"
        )]);
    }
}
