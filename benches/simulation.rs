//! How fast the simulator is, and how much memory it takes; each figure beside its target.
//!
//!     cargo bench -p nicforge-cli --bench simulation
//!
//! Every measurement is a process of its own, so that peak memory is that of one run and no
//! run warms the next one's caches. Times of runs are CPU times of their one thread, for
//! others may use the machine too. They depend on the machine: nothing here asserts one.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::scenario::load_scenario;
use nicforge_lab::settings::{Names, Settings};

/// Runs of each measurement; the fastest counts, for it was disturbed least.
const ROUNDS: usize = 3;

/// What the other interfaces are compared with.
const BASE: &str = "priv_ring";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|word| word == "measure") {
        Some(at) => measure(&arguments[at + 1..]),
        None => {
            main_job();
            cores();
            interfaces();
            jobs();
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The main job (`scenarios/nat-200g.toml`, its variant `priv_ring`) on `cores` cores of a
/// machine that has them, each with its share of the load, eight to a NIC, on `interface`.
fn main_job_on(cores: usize, window_ms: f64, interface: &str) -> (Machine, Settings) {
    let interfaces = nicforge_interfaces::registry::names();
    let names = Names {
        interfaces: &interfaces,
        apps: nicforge_apps::names(),
    };
    let file = root().join("scenarios/nat-200g.toml");
    let scenario = load_scenario(&file, &names).expect("the shipped scenario");
    let file = scenario.machine_file().expect("its machine");
    let mut machine = load_machine(&file).expect("the shipped machine");
    let points = scenario.expand(&machine, &[]).expect("its points");
    let nics = cores.div_ceil(8);
    machine.hardware.cores = machine.hardware.cores.max(cores);
    machine.hardware.nics = machine.hardware.nics.max(nics);
    let settings = Settings {
        cores,
        nics,
        offered_gbps: 12.5 * cores as f64,
        window_ms,
        interface: interface.into(),
        ..points[0].settings.clone()
    };
    (machine, settings)
}

/// One run in this process: `cores window_ms interface`. Prints what [`Measured::parse`] reads.
fn measure(arguments: &[String]) {
    let (cores, window_ms) = (number(&arguments[0]) as usize, number(&arguments[1]));
    let (machine, settings) = main_job_on(cores, window_ms, &arguments[2]);
    let warmed_up = settings.warmup_ms / (settings.warmup_ms + window_ms);
    let started = Instant::now();
    let begun = cpu_seconds();
    // Where the system does not tell CPU time, wall time has to do.
    let elapsed = || match (cpu_seconds(), begun) {
        (Some(now), Some(begun)) => now - begun,
        _ => started.elapsed().as_secs_f64(),
    };
    let (mut set_up, mut begin, mut end) = (None, (0.0, 0), (0.0, 0));
    let mut progress = |share: f64, packets: u64| {
        end = (elapsed(), packets);
        set_up.get_or_insert(end.0);
        if share <= warmed_up {
            begin = end;
        }
    };
    run_point(&machine, &settings, 1, &RunIo::default(), &mut progress).expect("it runs");
    let set_up = set_up.expect("a run tells its progress");
    let (seconds, packets) = (end.0 - begin.0, end.1 - begin.1);
    println!("{packets} {seconds} {set_up} {}", peak_mib());
}

fn number(text: &str) -> f64 {
    text.parse().expect("a number")
}

/// CPU time of this process so far, as Linux tells it.
fn cpu_seconds() -> Option<f64> {
    let statistics = read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds: f64 = statistics.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
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
    /// Simulated packets in the window.
    packets: f64,
    /// Seconds for the window.
    seconds: f64,
    /// Seconds before the first packet: tables, flows and rings.
    set_up: f64,
    peak_mib: f64,
}

impl Measured {
    fn parse(text: &str) -> Measured {
        let numbers: Vec<f64> = text.split_whitespace().map(number).collect();
        let [packets, seconds, set_up, peak_mib] = numbers[..] else {
            panic!("a measurement prints four numbers, not {text:?}");
        };
        Measured {
            packets,
            seconds,
            set_up,
            peak_mib,
        }
    }

    fn ns_per_packet(&self) -> f64 {
        self.seconds / self.packets * 1e9
    }

    /// The fastest run of a few, on `cores` cores with a window of `window_ms`.
    fn of(cores: usize, window_ms: f64) -> Measured {
        Measured::with(cores, window_ms, BASE)
    }

    fn with(cores: usize, window_ms: f64, interface: &str) -> Measured {
        let this = std::env::current_exe().expect("the benchmark's own path");
        let round = |_| {
            let mut command = Command::new(&this);
            command.args([
                "measure",
                &cores.to_string(),
                &window_ms.to_string(),
                interface,
            ]);
            let output = command.output().expect("the benchmark starts itself");
            assert!(output.status.success(), "{output:?}");
            Measured::parse(&String::from_utf8_lossy(&output.stdout))
        };
        let rounds = (0..ROUNDS).map(round);
        rounds
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .expect("at least one round")
    }
}

fn row(what: &str, value: String, target: &str) {
    println!("{what:46} {value:>14}   {target}");
}

fn main_job() {
    println!("main job: NAT, 16 cores, 1500 B at 200 Gbit/s, private rings of 1024, all models on");
    println!("{:46} {:>14}   target", "", "measured");
    let (once, tenfold) = (Measured::of(16, 5.0), Measured::of(16, 50.0));
    let ns = tenfold.ns_per_packet();
    row(
        "million simulated packets/s",
        format!("{:.2}", 1e3 / ns),
        "at least 1.0, aim 3.0",
    );
    row(
        "ns per simulated packet",
        format!("{ns:.0}"),
        "at most 1000, aim 333",
    );
    row(
        "seconds per simulated second",
        format!("{:.2}", tenfold.seconds / 50e-3),
        "best published peer, no host behind it: 12.6",
    );
    let peak = once.peak_mib.max(tenfold.peak_mib);
    row("peak memory, MiB", format!("{peak:.0}"), "at most 1024");
    let set_up = format!("{:.2}", once.set_up);
    row("set-up (tables, a million flows), s", set_up, "");
    println!();
    println!("ten times the packets");
    for (name, measured) in [("1x", &once), ("10x", &tenfold)] {
        let what = format!("{name}: {:.0} packets, ns per packet", measured.packets);
        let ns = measured.ns_per_packet();
        row(&what, format!("{ns:.0}"), "the same for both");
    }
    println!();
}

fn cores() {
    println!("2, 8 and 32 cores, 12.5 Gbit/s for each");
    for cores in [2, 8, 32] {
        let measured = Measured::of(cores, 10.0);
        let each = measured.seconds / 10e-3 / cores as f64;
        let what = format!("{cores} cores: s per simulated s and core");
        row(&what, format!("{each:.3}"), "close for all three");
        let what = format!("{cores} cores: ns per simulated packet");
        row(&what, format!("{:.0}", measured.ns_per_packet()), "");
    }
    println!();
}

/// Every interface that needs no core beside the workers, against private rings.
fn interfaces() {
    println!("interfaces: the main job, ns per simulated packet, and of that with private rings");
    let names = nicforge_interfaces::registry::names();
    let base = Measured::with(16, 10.0, BASE).ns_per_packet();
    for name in names.into_iter().filter(|&name| name != "emulated") {
        let ns = Measured::with(16, 10.0, name).ns_per_packet();
        let value = format!("{ns:.0} = {:.2} x", ns / base);
        row(name, value, "at most 1.3 x");
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
    let ratio = format!("{:.2}", two.0 / one.0);
    row("ratio", ratio, "at most 0.6 on two cores");
    let same = if one.1 == two.1 { "same" } else { "DIFFERENT" };
    row("report.json but for wall_seconds", same.to_owned(), "same");
}
