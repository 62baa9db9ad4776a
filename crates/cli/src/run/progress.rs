//! Progress on standard error: a bar with rate and time left, or a line per finished point.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use nicforge_lab::job::{Finished, Watcher};
use nicforge_report::rate;

use crate::args::RunOptions;
use crate::output::tell;

/// Steps of the bar per point.
const STEPS: f64 = 1000.0;
/// Of points that must be done before anybody can say how long the rest takes.
const LEAST_SHARE: f64 = 0.01;

/// Where all points are.
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    labels: Vec<String>,
    state: Mutex<State>,
}

struct State {
    /// Of each point: share done, packets so far.
    points: Vec<(f64, u64)>,
    finished: usize,
    /// When the first packet was simulated, or soon after.
    first_packet: Option<Instant>,
}

impl State {
    /// What is said beside the bar, `since` the first packet.
    fn text(&self, since: Option<Duration>) -> String {
        let finished = format!("{}/{} points", self.finished, self.points.len());
        let Some(since) = since.map(|since| since.as_secs_f64().max(1e-3)) else {
            return format!("{finished}, setting up");
        };
        let packets: u64 = self.points.iter().map(|(_, packets)| packets).sum();
        let rate = packets as f64 / since / 1e6;
        let done = self.done();
        let left = if done > LEAST_SHARE {
            let seconds = since * (self.points.len() as f64 - done) / done;
            let left = Duration::from_secs_f64(seconds.min(1e9));
            format!(", {:#} left", HumanDuration(left))
        } else {
            String::new()
        };
        format!("{finished}, {rate:.2} M packets/s{left}")
    }

    /// Points that are done, parts of them included.
    fn done(&self) -> f64 {
        self.points.iter().map(|(share, _)| share).sum()
    }
}

impl Progress {
    /// A bar when a person watches; else lines, unless all is to be quiet.
    pub fn new(labels: Vec<String>, options: &RunOptions) -> Progress {
        let watched = std::io::stderr().is_terminal() && !options.json;
        let bar = (watched && !options.quiet).then(|| bar(labels.len()));
        Progress {
            lines: bar.is_none() && !options.quiet,
            bar,
            state: Mutex::new(State { points: vec![(0.0, 0); labels.len()], finished: 0, first_packet: None }),
            labels,
        }
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Progress {
    fn tick(&self, index: usize, share: f64, packets: u64) {
        let (Some(bar), Ok(mut state)) = (&self.bar, self.state.lock()) else {
            return;
        };
        state.points[index] = (share.clamp(0.0, 1.0), packets);
        if packets > 0 {
            state.first_packet.get_or_insert_with(Instant::now);
        }
        bar.set_message(state.text(state.first_packet.map(|first| first.elapsed())));
        bar.set_position((state.done() * STEPS) as u64);
    }

    fn finished(&self, index: usize, by: Finished<'_>) {
        let finished = match self.state.lock() {
            Ok(mut state) => {
                state.points[index].0 = 1.0;
                state.finished += 1;
                state.finished
            }
            Err(_) => return,
        };
        if let (Finished::Now(run), true) = (by, self.lines) {
            let rate = rate(&run.metrics);
            tell(&format!("{finished}/{} {}: {rate:.2} Gbit/s\n", self.labels.len(), self.labels[index]));
        }
    }
}

fn bar(points: usize) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(8);
    let bar = ProgressBar::with_draw_target(Some(points as u64 * STEPS as u64), target);
    let style =
        ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar.set_message(format!("0/{points} points, setting up"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_begin_with_the_first_packet() {
        let mut state = State { points: vec![(0.0, 0); 2], finished: 0, first_packet: None };
        assert_eq!(state.text(None), "0/2 points, setting up");
        state.points[0] = (0.001, 1000);
        let text = state.text(Some(Duration::from_millis(10)));
        assert_eq!(text, "0/2 points, 0.10 M packets/s");
        state.points[0] = (0.5, 3_000_000);
        let text = state.text(Some(Duration::from_secs(6)));
        assert_eq!(text, "0/2 points, 0.50 M packets/s, 18s left");
        (state.points[0].0, state.finished) = (1.0, 1);
        let text = state.text(Some(Duration::from_secs(12)));
        assert_eq!(text, "1/2 points, 0.25 M packets/s, 12s left");
    }
}
