//! How fast the simulator is, and how much memory it takes; each figure beside its target.
//!
//!     cargo bench -p nicforge-cli --bench simulation
//!
//! Every measurement is a process of its own, so that peak memory is that of one run and no
//! run warms the next one's caches. Times depend on the machine and on what else it does:
//! nothing here asserts one.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;

/// Goals of the project for the main job.
const PACKETS_PER_SECOND: f64 = 1e6;
const PACKETS_PER_SECOND_AIM: f64 = 3e6;
const PEAK_MIB: f64 = 1024.0;
const JOBS_RATIO: f64 = 0.6;

/// Runs of each measurement; the fastest counts, for it was disturbed least.
const ROUNDS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|word| word == "measure") {
        Some(at) => measure(&arguments[at + 1..]),
        None => {
            main_job();
            cores();
            jobs();
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The main job (`scenarios/nat-200g.toml`, its variant `priv_ring`) on `cores` cores, each
/// with its share of the load, eight to a NIC.
fn settings(machine: &mut Machine, cores: usize, window_ms: f64) -> Settings {
    let nics = cores.div_ceil(8);
    machine.hardware.cores = machine.hardware.cores.max(cores);
    machine.hardware.nics = machine.hardware.nics.max(nics);
    Settings {
        interface: "priv_ring".to_owned(),
        app: "nat".to_owned(),
        cores,
        nics,
        rx_entries: 1024,
        tx_entries: 1024,
        packet_bytes: 1500,
        offered_gbps: 12.5 * cores as f64,
        window_ms,
        ..Settings::for_machine(machine)
    }
}

/// One run in this process: `cores window_ms`. Prints what [`Measured::parse`] reads.
fn measure(arguments: &[String]) {
    let (cores, window_ms) = (number(&arguments[0]) as usize, number(&arguments[1]));
    let file = root().join("machines/xeon-4216-cx5.toml");
    let mut machine = load_machine(&file).expect("the shipped machine");
    let settings = settings(&mut machine, cores, window_ms);
    let started = Instant::now();
    let mut first: Option<(Duration, u64)> = None;
    let mut last = (Duration::ZERO, 0);
    let mut progress = |_: f64, packets: u64| {
        last = (started.elapsed(), packets);
        first.get_or_insert(last);
    };
    let run = run_point(&machine, &settings, 1, &RunIo::default(), &mut progress);
    let wall = started.elapsed();
    let simulated = run.expect("the main job runs").simulated;
    let first = first.expect("a run tells its progress");
    // Between two ticks there is nothing but the loop.
    let loop_ns = (last.0 - first.0).as_secs_f64() * 1e9 / (last.1 - first.1) as f64;
    println!(
        "{} {} {} {loop_ns} {}",
        last.1,
        wall.as_secs_f64(),
        simulated.as_seconds(),
        peak_mib()
    );
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

/// The most memory that this process ever held; 0 where the system does not say.
fn peak_mib() -> f64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.map_or(0.0, |kib| number(kib) / 1024.0)
}

/// What one run took.
struct Measured {
    packets: f64,
    wall: f64,
    simulated: f64,
    /// Nanoseconds per packet in the run's loop.
    loop_ns: f64,
    peak_mib: f64,
}

impl Measured {
    fn parse(text: &str) -> Measured {
        let numbers: Vec<f64> = text.split_whitespace().map(number).collect();
        let [packets, wall, simulated, loop_ns, peak_mib] = numbers[..] else {
            panic!("a measurement prints five numbers, not {text:?}");
        };
        Measured {
            packets,
            wall,
            simulated,
            loop_ns,
            peak_mib,
        }
    }

    /// The run with the fastest loop out of a few.
    fn of(cores: usize, window_ms: f64) -> Measured {
        let this = std::env::current_exe().expect("the benchmark's own path");
        let round = |_| {
            let mut command = Command::new(&this);
            command.args(["measure", &cores.to_string(), &window_ms.to_string()]);
            let output = command.output().expect("the benchmark starts itself");
            assert!(output.status.success(), "{output:?}");
            Measured::parse(&String::from_utf8_lossy(&output.stdout))
        };
        let rounds = (0..ROUNDS).map(round);
        rounds
            .min_by(|a, b| a.loop_ns.total_cmp(&b.loop_ns))
            .expect("at least one round")
    }

    /// Before the loop: tables, flows and rings.
    fn set_up(&self) -> f64 {
        self.wall - self.packets * self.loop_ns * 1e-9
    }
}

fn row(what: &str, value: String, target: &str) {
    println!("{what:46} {value:>14}   {target}");
}

fn main_job() {
    println!("main job: NAT, 16 cores, 1500 B at 200 Gbit/s, private rings of 1024, all models on");
    println!("{:46} {:>14}   target", "", "measured");
    let (once, tenfold) = (Measured::of(16, 10.0), Measured::of(16, 145.0));
    let rate = 1e9 / tenfold.loop_ns / 1e6;
    let target = format!(
        "at least {:.1}, aim {:.1}",
        PACKETS_PER_SECOND / 1e6,
        PACKETS_PER_SECOND_AIM / 1e6
    );
    row("million simulated packets/s", format!("{rate:.2}"), &target);
    let target = format!(
        "at most {:.0}, aim {:.0}",
        1e9 / PACKETS_PER_SECOND,
        1e9 / PACKETS_PER_SECOND_AIM
    );
    let each = format!("{:.0}", tenfold.loop_ns);
    row("ns per simulated packet", each, &target);
    let of_simulated = tenfold.loop_ns * 1e-9 * tenfold.packets / tenfold.simulated;
    row(
        "wall seconds per simulated second",
        format!("{of_simulated:.2}"),
        "best published peer, no host behind it: 12.6",
    );
    let peak = once.peak_mib.max(tenfold.peak_mib);
    let target = format!("at most {PEAK_MIB:.0}");
    row("peak memory, MiB", format!("{peak:.0}"), &target);
    let set_up = format!("{:.2}", once.set_up());
    row("set-up (tables, a million flows), s", set_up, "");
    println!();
    println!("ten times the packets");
    for (name, measured) in [("1x", &once), ("10x", &tenfold)] {
        let what = format!("{name}: {:.0} packets, ns per packet", measured.packets);
        let target = if name == "1x" { "" } else { "as 1x" };
        row(&what, format!("{:.0}", measured.loop_ns), target);
    }
    println!();
}

fn cores() {
    println!("2, 8 and 32 cores, 12.5 Gbit/s for each");
    let mut first = None;
    for cores in [2, 8, 32] {
        let measured = Measured::of(cores, 20.0);
        let loop_seconds = measured.loop_ns * 1e-9 * measured.packets;
        let each = loop_seconds / measured.simulated / cores as f64;
        let target = first.map_or(String::new(), |first: f64| {
            format!("as 2 cores: {:.2} of it", each / first)
        });
        first.get_or_insert(each);
        let what = format!("{cores} cores: wall s per simulated s and core");
        row(&what, format!("{each:.3}"), &target);
        let what = format!("{cores} cores: ns per simulated packet");
        row(&what, format!("{:.0}", measured.loop_ns), "");
    }
    println!();
}

/// A sweep with one job and with two: time, and whether the results are the same bytes.
fn jobs() {
    println!("--jobs 2 against --jobs 1, scenarios/paper/rxb-03.toml (16 points)");
    let folder = std::env::temp_dir().join(format!("nicforge-bench-{}", std::process::id()));
    let run = |jobs: &str| {
        let out = folder.join(jobs);
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        command.current_dir(root());
        command.args(["run", "scenarios/paper/rxb-03.toml", "--quiet"]);
        command.args(["--jobs", jobs, "--out"]).arg(&out);
        let started = Instant::now();
        let status = command.status().expect("the nicforge binary starts");
        let wall = started.elapsed().as_secs_f64();
        assert!(status.success());
        let report = read_to_string(out.join("report.json")).expect("a report");
        let lines = report
            .lines()
            .filter(|line| !line.contains("\"wall_seconds\""));
        (wall, lines.collect::<Vec<_>>().join("\n"))
    };
    let (one, two) = (run("1"), run("2"));
    // A folder that stays behind in the system's own place for them does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    row("--jobs 1, s", format!("{:.2}", one.0), "");
    row("--jobs 2, s", format!("{:.2}", two.0), "");
    let target = format!("at most {JOBS_RATIO} on two cores");
    row("ratio", format!("{:.2}", two.0 / one.0), &target);
    let same = if one.1 == two.1 { "same" } else { "DIFFERENT" };
    row("report.json but for wall_seconds", same.to_owned(), "same");
}
