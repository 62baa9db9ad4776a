//! A run in a process of its own, slice by slice.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{BASE, FULL_GBPS, Job, Rings, number};

/// Runs of the main job; the fastest counts, for it was disturbed least.
const ROUNDS: usize = 3;

/// What one run took.
pub struct Measured {
    /// Simulated packets of each slice of the window, and CPU time for it.
    slices: Vec<(f64, f64)>,
    /// Seconds before the first packet: tables, flows and rings.
    pub set_up: f64,
    /// The most memory that it ever held.
    pub peak_mib: f64,
    /// Share of frames that were dropped.
    pub dropped: f64,
}

impl Measured {
    /// Packets of the window.
    pub fn packets(&self) -> f64 {
        self.slices.iter().map(|slice| slice.0).sum()
    }

    /// CPU time of the window.
    pub fn seconds(&self) -> f64 {
        self.slices.iter().map(|slice| slice.1).sum()
    }

    /// CPU time for a packet.
    pub fn ns_per_packet(&self) -> f64 {
        self.seconds() / self.packets() * 1e9
    }

    /// The fastest run of a few of the main job on private rings.
    pub fn of(cores: usize, window_ms: f64) -> Measured {
        let job = Job { cores, window_ms, gbps_per_core: FULL_GBPS, interface: BASE, rings: Rings::Large };
        let rounds = (0..ROUNDS).flat_map(|_| Measured::in_turn([job]));
        rounds.min_by(|a, b| a.seconds().total_cmp(&b.seconds())).expect("at least one round")
    }

    /// A run of each job, slice by slice in turn: the machine's speed drifts from one second to the
    /// next, and so all of them see the same of it.
    pub fn in_turn<const N: usize>(jobs: [Job<'_>; N]) -> [Measured; N] {
        let mut runs = jobs.map(Running::begin);
        while runs.iter_mut().map(Running::step).filter(|&went| went).count() > 0 {}
        runs.map(|run| run.measured.expect("a run says what it took"))
    }

    /// The median over all slices of the time for a packet, by that of `base` in the same slice.
    pub fn ratio(&self, base: &Measured) -> f64 {
        let each = |slice: &(f64, f64)| slice.1 / slice.0;
        let pairs = self.slices.iter().zip(&base.slices);
        let mut ratios: Vec<f64> = pairs.map(|(own, base)| each(own) / each(base)).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }
}

/// A run in a process of its own.
struct Running {
    child: Child,
    says: BufReader<ChildStdout>,
    /// CPU time and packets at the ends of slices.
    points: Vec<(f64, f64)>,
    measured: Option<Measured>,
}

impl Running {
    fn begin(job: Job<'_>) -> Running {
        let this = std::env::current_exe().expect("the benchmark's own path");
        let mut command = Command::new(&this);
        let numbers = [job.cores as f64, job.window_ms, job.gbps_per_core];
        command.arg("measure");
        command.args(numbers.map(|number| number.to_string()));
        command.arg(job.interface);
        if let Rings::Small = job.rings {
            command.arg("small");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the benchmark starts itself");
        let says = child.stdout.take().expect("it is piped");
        Running { child, says: BufReader::new(says), points: Vec::new(), measured: None }
    }

    /// Lets it run for one slice; `false` when it has ended.
    fn step(&mut self) -> bool {
        if self.measured.is_some() {
            return false;
        }
        if !self.points.is_empty() {
            let go = self.child.stdin.as_mut().expect("it is piped");
            go.write_all(b"\n").expect("it waits for a line");
        }
        let mut line = String::new();
        self.says.read_line(&mut line).expect("it says something");
        if let Some(end) = line.strip_prefix("end ") {
            let numbers: Vec<f64> = end.split_whitespace().map(number).collect();
            let [set_up, peak_mib, dropped] = numbers[..] else {
                panic!("a run ends with three numbers, not {line:?}");
            };
            let slices = self.points.windows(2);
            self.measured = Some(Measured {
                slices: slices.map(|ends| (ends[1].1 - ends[0].1, ends[1].0 - ends[0].0)).collect(),
                set_up,
                peak_mib,
                dropped,
            });
            let status = self.child.wait().expect("it has ended");
            assert!(status.success(), "{status}");
            return false;
        }
        let (seconds, packets) = line.trim().split_once(' ').expect("two numbers a slice");
        self.points.push((number(seconds), number(packets)));
        true
    }
}
