//! `nicforge live`: a NIC and its applications between real ports.

mod dashboard;
mod metrics;
mod shared;
mod table;
mod tcp;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use nicforge_lab::live::{
    FastPath, LiveConfig, LiveRun, LiveRunError, PortKind, Snapshot, TcpOptions, check_followed, load_live, run_live,
    run_live_with, run_on_card,
};
use nicforge_lab::record::{of_live, of_plan};
use nicforge_options::Place;
use nicforge_record::Record;
use nicforge_report::{PointTrace, live_page, table, to_json, trace_paths, write_traced};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::{AttachOptions, LiveOptions};
use crate::error::CliError;
use crate::input::sets;
use crate::openmetrics;
use crate::output::{print, print_notes, tell};
use crate::outputs::{Made, Named, keep_apart, of_report, of_settings};
use crate::registry::catalogue;
use crate::run::Place as RunPlace;

use shared::Shared;

/// Runs until the time is over or somebody says so.
pub fn live(options: &LiveOptions) -> Result<(), CliError> {
    let config = configured(options)?;
    let results = RunPlace::of_next(options.out.as_deref(), &config.name());
    let mut made = check_outputs(&config, options, &results.folder)?;
    let service = config.tcp.as_ref().map(|of_stack| tcp::path(&of_stack.read()));
    let shared = Shared::default();
    if let Some(address) = options.metrics {
        let shared = shared.clone();
        openmetrics::serve(address, move || {
            let of_tcp = service.as_deref().map(crate::sockets::metrics).unwrap_or_default();
            [metrics::of(&shared.now()), of_tcp].concat()
        })?;
    }
    if let Some(address) = options.dashboard {
        dashboard::serve(address, options.dashboard_open, live_page(&of_plan(&config)), shared.clone())?;
    }
    let stop = stopped_by_signals()?;
    let shows = !options.json && !options.quiet;
    if shows {
        print(&table::opening(&config))?;
    }
    let mut before = Snapshot::default();
    let mut failed = None;
    let mut events = 0;
    let mut line_at = table::line_after(0.0);
    let mut watch = |now: &Snapshot| {
        shared.show(now);
        show_events(&mut events, now);
        if now.seconds < line_at {
            return;
        }
        line_at = table::line_after(now.seconds);
        if shows && failed.is_none() {
            failed = print(&table::line(&before, now)).err();
        }
        before = now.clone();
    };
    let began = Instant::now();
    let run = match &config.tcp {
        Some(of_stack) => {
            let of_stack: TcpOptions = of_stack.read();
            let run = if of_stack.fast_path == FastPath::Card { run_on_card } else { run_live_with };
            run(&config, tcp::software(&config, of_stack), &stop, &mut watch)
        }
        None => run_live(&config, &stop, &mut watch),
    };
    let Written { record, snapshot, files, lost } = write_down(&config, run, began, &results, &mut made)?;
    show_events(&mut events, &snapshot);
    if let Some(error) = failed.or(lost) {
        return Err(error);
    }
    if options.json {
        return print(&to_json(&record));
    }
    if options.quiet {
        return Ok(());
    }
    let totals = table::totals(&snapshot);
    print(&format!("{totals}\n{}\n{}", table(&record), wrote(&files)))
}

/// A run that is over, in its files.
struct Written {
    record: Record,
    snapshot: Snapshot,
    files: Vec<PathBuf>,
    /// The error, if the run's counts do not add up.
    lost: Option<CliError>,
}

/// Writes the report of `run`, which began at `began`. There is one, too, of a run whose counts do not add up.
fn write_down(
    config: &LiveConfig,
    run: Result<LiveRun, LiveRunError>,
    began: Instant,
    results: &RunPlace,
    made: &mut Made,
) -> Result<Written, CliError> {
    let (run, lost) = match run {
        Ok(run) => (run, None),
        Err(LiveRunError::Lost { cause, run }) => {
            let counts = (*run).clone();
            (counts, Some(LiveRunError::Lost { cause, run }.into()))
        }
        Err(error) => {
            made.take_back();
            return Err(error.into());
        }
    };
    let record = of_live(config, &run, began.elapsed().as_secs_f64());
    let label = config.name();
    let traces: Vec<PointTrace> =
        run.trace.into_iter().map(|trace| PointTrace { label: label.clone(), trace }).collect();
    let files = write_traced(&record, &traces, &results.folder)?;
    results.link_latest();
    Ok(Written { record, snapshot: run.snapshot, files, lost })
}

/// The file with what the command line changes in it.
fn configured(options: &LiveOptions) -> Result<LiveConfig, CliError> {
    let mut config = load_live(&options.config, &catalogue())?;
    for set in sets(&options.set)? {
        config.set(set)?;
    }
    if let Some(socket) = &options.attach {
        let place = Place::argument(&format!("--attach {}", socket.display()));
        config.live.set("attach", socket.to_string_lossy().into_owned(), place);
    }
    print_notes(&config.notes());
    if let Some(seconds) = options.duration {
        config.live.set("duration_s", seconds, Place::argument("--duration"));
    }
    if let Some(packets) = options.trace {
        config.live.set("trace", packets, Place::argument(&format!("--trace {packets}")));
    }
    check_followed(&config)?;
    Ok(config)
}

/// What is written, seen to before anything runs.
fn check_outputs(config: &LiveConfig, options: &LiveOptions, folder: &Path) -> Result<Made, CliError> {
    let mut reads = of_settings(&config.settings);
    reads.push(Named::new("the live run's file", &options.config));
    let (mut writes, mut made) = (of_report(folder), Made::default());
    for port in &config.ports {
        if let PortKind::Capture(from, to) = &port.kind {
            let named = |key: &str, path: &PathBuf| Named::new(format!("{}: `{key}`", port.section.place()), path);
            reads.extend(from.iter().map(|path| named("read", path)));
            writes.extend(to.iter().map(|path| named("write", path)));
        }
    }
    if options.trace.is_some() {
        let paths = trace_paths(folder).into_iter().flat_map(|(part, path)| [part, path]);
        writes.extend(paths.map(|path| Named::new("--trace", &path)));
    }
    keep_apart(&reads, &writes)?;
    // A socket that an earlier run left goes; nothing else does.
    let other = |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|meta| !meta.file_type().is_socket());
    if let Some(path) = config.attach().as_ref().filter(other) {
        let wrong = format!("attach {}: is there and no socket; name another place", path.display());
        return Err(CliError::Usage(wrong));
    }
    made.folder_of_report(folder)?;
    Ok(made)
}

/// Set by SIGINT and SIGTERM; a second one ends the process at once.
fn stopped_by_signals() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag clear.
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(|cause| CliError::Write { what: "the signal handlers".into(), cause })?;
    }
    Ok(stop)
}

/// Works for a live run until it ends, or somebody says so.
pub fn attach(options: &AttachOptions) -> Result<(), CliError> {
    let stop = stopped_by_signals()?;
    let mut failed = None;
    let mut told = |worker: usize| {
        if !options.quiet {
            failed = print(&format!("worker {worker}\n")).err();
        }
    };
    let socket = &options.socket;
    let ended = nicforge_lab::live::attach(socket, options.worker, &catalogue(), &stop, &mut told)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if options.quiet { Ok(()) } else { print(&table::worker(ended.worker, &ended.counts)) }
}

/// Readers of the report alone also learn of a worker that died.
fn show_events(shown: &mut u64, now: &Snapshot) {
    let (missed, events) = now.events.after(*shown);
    if missed > 0 {
        tell(&format!("{missed} more things happened at once, too many to tell\n"));
    }
    events.for_each(|event| tell(&format!("{event}\n")));
    *shown = now.events.count();
}

fn wrote(files: &[impl AsRef<Path>]) -> String {
    let lines = files.iter().map(|file| format!("wrote {}\n", file.as_ref().display()));
    lines.collect()
}

#[cfg(test)]
mod tests;
