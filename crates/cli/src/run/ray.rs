//! `nicforge run --ray`: points run on a Ray cluster, through the Python package.
//!
//! ```text
//! this command ── what to run ──► python3, package nicforge ── tasks ──► Ray's nodes
//!  keeps points ◄─ a line each ──
//! ```

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use nicforge_lab::job::{Finished, Job, Kept, Watcher};
use nicforge_lab::run::PointRun;
use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// Names the Python to use.
const VARIABLE: &str = "NICFORGE_PYTHON";
const REMEDY: &str = "install the packages nicforge and ray for it (docs/cluster.md), or name another Python by \
                      NICFORGE_PYTHON";
/// What that Python runs. It says in the same form as all else that the package is not there.
const PROGRAM: &str = "\
import json, sys
try:
    from nicforge._bridge import main
except ImportError as cause:
    text = f'{sys.executable} has no package nicforge that can run points: {cause}'
    print(json.dumps({'error': text, 'is_input': True, 'lacks': True}))
    sys.exit(1)
sys.exit(main())";

#[derive(Serialize)]
struct Request<'a> {
    address: &'a str,
    version: &'static str,
    commit: Option<&'static str>,
    labels: Vec<String>,
    wanted: Vec<usize>,
    parcel: String,
}

/// What a line says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Point {
        index: usize,
        run: String,
        packets: u64,
    },
    Error {
        error: String,
        is_input: bool,
        #[serde(default)]
        lacks: bool,
    },
}

/// Runs all points that are not finished on the cluster at `address`. Returns a result for each task.
pub fn run(job: &Job, address: &str, kept: &Kept, watcher: &dyn Watcher) -> Result<Vec<PointRun>, CliError> {
    let mut runs: Vec<Option<PointRun>> = (0..kept.all()).map(|index| kept.take(index)).collect();
    let finished = |(index, run): (usize, &Option<PointRun>)| run.is_some().then_some(index);
    let before: Vec<usize> = runs.iter().enumerate().filter_map(finished).collect();
    before.iter().for_each(|index| watcher.finished(*index, Finished::Before));
    let wanted: Vec<usize> = (0..runs.len()).filter(|index| runs[*index].is_none()).collect();
    if !wanted.is_empty() {
        let parcel = job.parcel(kept.keys())?.to_text()?;
        let (version, commit) = (env!("CARGO_PKG_VERSION"), option_env!("NICFORGE_COMMIT"));
        let request = Request { address, version, commit, labels: job.labels(), wanted, parcel };
        let mut python = Python::start(&request)?;
        while let Some((index, run, packets)) = python.next()? {
            let run: PointRun = serde_json::from_str(&run).map_err(|cause| wrong(&cause.to_string()))?;
            let place = runs.get_mut(index).ok_or_else(|| wrong("a point that was not asked for"))?;
            kept.keep(index, &run)?;
            watcher.tick(index, 1.0, packets);
            watcher.finished(index, Finished::Now(&run));
            *place = Some(run);
        }
        python.wait(runs.iter().all(Option::is_some))?;
    }
    Ok(runs.into_iter().flatten().collect())
}

/// The process that talks with the cluster. It ends when its standard input does.
struct Python {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Python {
    fn start(request: &Request<'_>) -> Result<Python, CliError> {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        let program = named.clone().unwrap_or_else(|| "python3".into());
        let mut command = Command::new(&program);
        command.args(["-c", PROGRAM]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|cause| {
            let by = if named.is_some() { "NICFORGE_PYTHON=" } else { "--ray: " };
            CliError::Usage(format!("{by}{}: cannot be started: {cause}; {REMEDY}", program.display()))
        })?;
        let lines = process.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        let lines = lines.ok_or_else(|| wrong("it has no output"))?;
        let text = serde_json::to_string(request).map_err(|cause| wrong(&cause.to_string()))?;
        if let Some(stdin) = &mut process.stdin {
            // One that ends before it has read says why in its output.
            let _ = writeln!(stdin, "{text}");
        }
        Ok(Python { process, lines })
    }

    /// The next result: index, text and frames.
    fn next(&mut self) -> Result<Option<(usize, String, u64)>, CliError> {
        let Some(line) = self.lines.next() else {
            return Ok(None);
        };
        let line = line.map_err(|cause| wrong(&cause.to_string()))?;
        match serde_json::from_str(&line).map_err(|_| wrong(&format!("it says {line}")))? {
            Answer::Point { index, run, packets } => Ok(Some((index, run, packets))),
            Answer::Error { error, lacks: true, .. } => Err(CliError::Usage(format!("{error}; {REMEDY}"))),
            Answer::Error { error, is_input: true, .. } => Err(CliError::Usage(error)),
            Answer::Error { error, .. } => Err(CliError::Cluster(error)),
        }
    }

    /// Waits for its end; `whole` says whether there are all results.
    fn wait(mut self, whole: bool) -> Result<(), CliError> {
        drop(self.process.stdin.take());
        let ended = self.process.wait().map_err(|cause| wrong(&cause.to_string()))?;
        if whole { Ok(()) } else { Err(wrong(&format!("it has ended early, with {ended}"))) }
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // Without its input it takes tasks back and ends; it is waited for, so that none of them outlives the command.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn wrong(why: &str) -> CliError {
    CliError::Cluster(format!("the Python process that talks with the cluster fails: {why}"))
}
