//! Progress on standard error: a bar with rate and time left, or a line per finished point.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nicforge_lab::metrics::Metrics;
use nicforge_lab::scenario::Point;

use crate::args::RunOptions;
use crate::check::{differing, plain};

/// Steps of the bar per point.
const STEPS: f64 = 1000.0;

/// Where all points are.
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    labels: Vec<String>,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    /// Of each point: share done, packets so far.
    points: Vec<(f64, u64)>,
    finished: usize,
}

impl Progress {
    /// A bar when a person watches; else lines, unless all is to be quiet.
    pub fn new(points: &[Point], options: &RunOptions) -> Progress {
        let watched = std::io::stderr().is_terminal() && !options.json;
        let bar = (watched && !options.quiet).then(|| bar(points.len()));
        Progress {
            lines: bar.is_none() && !options.quiet,
            bar,
            labels: labels(points),
            started: Instant::now(),
            state: Mutex::new(State {
                points: vec![(0.0, 0); points.len()],
                finished: 0,
            }),
        }
    }

    /// Point `index` has done `share` (0 to 1) of its run, `packets` so far.
    pub fn tick(&self, index: usize, share: f64, packets: u64) {
        let (Some(bar), Ok(mut state)) = (&self.bar, self.state.lock()) else {
            return;
        };
        state.points[index] = (share.clamp(0.0, 1.0), packets);
        let total: u64 = state.points.iter().map(|(_, packets)| packets).sum();
        let done: f64 = state.points.iter().map(|(share, _)| share).sum();
        let rate = total as f64 / self.started.elapsed().as_secs_f64().max(1e-3) / 1e6;
        let count = state.points.len();
        bar.set_message(format!(
            "{}/{count} points, {rate:.2} M packets/s",
            state.finished
        ));
        bar.set_position((done * STEPS) as u64);
    }

    /// Point `index` is done.
    pub fn done(&self, index: usize, metrics: &Metrics) {
        let finished = match self.state.lock() {
            Ok(mut state) => {
                state.points[index].0 = 1.0;
                state.finished += 1;
                state.finished
            }
            Err(_) => return,
        };
        if self.lines {
            eprintln!(
                "{finished}/{} {}: {:.2} Gbit/s",
                self.labels.len(),
                self.labels[index],
                metrics.throughput_gbps
            );
        }
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(points: usize) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(8);
    let bar = ProgressBar::with_draw_target(Some(points as u64 * STEPS as u64), target);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Each point by its variant and by what differs between the points.
fn labels(points: &[Point]) -> Vec<String> {
    let differs = differing(points);
    points
        .iter()
        .map(|point| {
            let params = point.params.iter().filter(|(key, _)| differs.contains(key));
            let params: Vec<String> = params
                .map(|(key, value)| format!(" {key}={}", plain(value)))
                .collect();
            format!("{}{}", point.variant, params.concat())
        })
        .collect()
}
