//! How fast the simulator is, and how much memory it takes; each figure beside its target.
//!
//!     cargo bench -p nicforge-cli --bench simulation [-- main_job | cores | interfaces | jobs]
//!     cargo bench -p nicforge-cli --bench simulation -- scenarios [BEGINNING_OF_A_NAME…]
//!
//! The second runs whole scenarios (those of rxb and shr, or such as `int` or `rxb-10`), which takes
//! minutes, so it is done only when asked for.
//!
//! Every measurement is a process of its own, so that peak memory is that of one run and no
//! run warms the next one's caches. Times of runs are CPU times of their one thread, for
//! others may use the machine too. They depend on the machine: nothing here asserts one.

#[path = "../common.rs"]
mod common;
mod measured;
mod scenarios;

use std::fs::read_to_string;
use std::io::stdin;

use nicforge_interfaces::emulated::played_by_cores;
use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::run::options::{Measurement, Warmup, WindowOptions};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::scenario::load_scenario;
use nicforge_lab::settings::{Catalogue, Settings};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use common::{Clock, shipped};
use measured::Measured;
use scenarios::{Scratch, run};

/// What the other interfaces are compared with.
const BASE: &str = "priv_ring";

/// The main job's own load, per core. Its large private rings drop 18 % of the frames there, and a dropped frame
/// is hardly simulated; its small ones carry all of them.
const FULL_GBPS: f64 = 12.5;
/// Loads of which each interface runs the highest that it carries whole: there all simulate the same packets.
/// Cores poll from the beginning then, so that nobody's rings are full. The last one is for lists without
/// batches.
const CARRIED_GBPS: [f64; 3] = [10.0, 7.5, 2.5];
/// A smaller share of frames that is dropped is none: what is under way when the window ends may count.
const NONE_DROPPED: f64 = 1e-3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|word| word == name)?;
        let words = arguments[at + 1..].iter();
        // Cargo adds options of its own.
        Some(words.filter(|word| !word.starts_with("--")).cloned().collect::<Vec<_>>())
    };
    match (after("measure"), after("scenarios")) {
        (Some(words), _) => measure(&words),
        (_, Some(words)) => scenarios::scenarios(&words),
        (None, None) => {
            let sections: [(&str, fn()); 4] =
                [("main_job", main_job), ("cores", cores), ("interfaces", interfaces), ("jobs", jobs)];
            let named = |(name, _): &(&str, fn())| arguments.iter().any(|word| word == name);
            let all = !sections.iter().any(named);
            let wanted = sections.iter().filter(|section| all || named(section));
            wanted.for_each(|(_, show)| show());
        }
    }
}

/// What is run.
#[derive(Clone, Copy)]
struct Job<'a> {
    cores: usize,
    window_ms: f64,
    gbps_per_core: f64,
    /// A name of the registry; `emulated/X` is `emulated` with X inside.
    interface: &'a str,
    rings: Rings,
}

/// The two variants of the main job, in its order: receive rings of 1024 entries, and of 128.
#[derive(Clone, Copy)]
enum Rings {
    Large,
    Small,
}

/// The main job (`scenarios/nat-200g.toml`, the variant with these rings) on a machine that has the
/// cores, each with its share of the load, eight to a NIC. Below its own load it begins with empty rings.
fn main_job_on(job: Job<'_>) -> (Machine, Settings) {
    let Job { cores, window_ms, .. } = job;
    let catalogue = Catalogue::shipped();
    let scenario = load_scenario(&shipped("scenarios/nat-200g.toml"), &catalogue).expect("the shipped scenario");
    let file = scenario.machine_file().expect("its machine");
    let mut machine = load_machine(&file).expect("the shipped machine");
    let points = scenario.expand(&machine, &[], &catalogue).expect("its points");
    let nics = cores.div_ceil(8);
    machine.hardware.cores = machine.hardware.cores.max(cores);
    machine.hardware.nics = machine.hardware.nics.max(nics);
    let (interface, emulates) = job.interface.split_once('/').unwrap_or((job.interface, BASE));
    let begun = &points[job.rings as usize].settings;
    let settings = begun
        .clone()
        .with("cores", cores)
        .with("nics", nics)
        .with(
            "polling_starts_ms",
            if job.gbps_per_core < FULL_GBPS { 0.0 } else { begun.read::<Measurement>().polling_starts_ms },
        )
        .with("offered_gbps", job.gbps_per_core * cores as f64)
        .with("window_ms", window_ms)
        .with("interface", interface)
        .with("emulates", emulates);
    (machine, settings)
}

/// One run in this process: `cores window_ms gbps_per_core interface`, and a fifth word for small rings. Says
/// after each slice of the window how much CPU time has gone by and how many packets came, and waits for a
/// line; at the end what it took besides. [`Measured::in_turn`] reads that.
fn measure(arguments: &[String]) {
    let (machine, settings) = main_job_on(Job {
        cores: number(&arguments[0]) as usize,
        window_ms: number(&arguments[1]),
        gbps_per_core: number(&arguments[2]),
        interface: &arguments[3],
        rings: match arguments.len() {
            4 => Rings::Large,
            _ => Rings::Small,
        },
    });
    let warmed_up = settings.read::<Warmup>().warmup_ms
        / (settings.read::<Warmup>().warmup_ms + settings.read::<WindowOptions>().window_ms);
    let clock = Clock::start();
    let mut set_up = None;
    let mut progress = |share: f64, packets: u64| {
        let now = clock.seconds();
        set_up.get_or_insert(now);
        if share >= warmed_up {
            println!("{now} {packets}");
            stdin().read_line(&mut String::new()).expect("somebody at the other end");
        }
    };
    let run = run_point(&machine, &settings, 1, &RunIo::default(), &mut progress);
    let dropped = run.expect("it runs").metrics.drop_fraction;
    let set_up = set_up.expect("a run tells its progress");
    println!("end {set_up} {} {dropped}", peak_mib());
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

fn row(what: &str, value: String, target: &str) {
    println!("{what:46} {value:>14}   {target}");
}

fn main_job() {
    println!("main job: NAT, 16 cores, 1500 B at 200 Gbit/s, private rings of 1024, all models on");
    println!("{:46} {:>14}   target", "", "measured");
    let (once, tenfold) = (Measured::of(16, 5.0), Measured::of(16, 50.0));
    let ns = tenfold.ns_per_packet();
    row("million simulated packets/s", format!("{:.2}", 1e3 / ns), "at least 1.0, aim 3.0");
    row("ns per simulated packet", format!("{ns:.0}"), "at most 1000, aim 333");
    row(
        "seconds per simulated second",
        format!("{:.2}", tenfold.seconds() / 50e-3),
        "best published peer, no host behind it: 12.6",
    );
    let peak = once.peak_mib.max(tenfold.peak_mib);
    row("peak memory, MiB", format!("{peak:.0}"), "at most 1024");
    let set_up = format!("{:.2}", once.set_up);
    row("set-up (tables, a million flows), s", set_up, "");
    println!();
    println!("ten times the packets");
    for (name, measured) in [("1x", &once), ("10x", &tenfold)] {
        let what = format!("{name}: {:.0} packets, ns per packet", measured.packets());
        let ns = measured.ns_per_packet();
        row(&what, format!("{ns:.0}"), "the same for both");
    }
    println!();
}

fn cores() {
    println!("2, 8 and 32 cores, 12.5 Gbit/s for each");
    for cores in [2, 8, 32] {
        let measured = Measured::of(cores, 10.0);
        let each = measured.seconds() / 10e-3 / cores as f64;
        let what = format!("{cores} cores: s per simulated s and core");
        row(&what, format!("{each:.3}"), "close for all three");
        let what = format!("{cores} cores: ns per simulated packet");
        row(&what, format!("{:.0}", measured.ns_per_packet()), "");
    }
    println!();
}

/// Every interface against private rings under the same load, and every emulated one against
/// emulated private rings, as the rxBisect paper compares them (section 5): a packet of theirs
/// passes two sets of rings and one more core.
fn interfaces() {
    // Runs that take turns are compared, so they share a processor: two of them may differ by 40 %
    // for what others do there.
    let anywhere = sched_getaffinity(None).expect("where this runs");
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).expect("it may stay where it is");
    println!("interfaces: the main job, the highest of {CARRIED_GBPS:?} Gbit/s a core that both carry");
    println!("{:46} {:>14}   of private rings, ns per frame", "", "measured");
    for (base, name) in pairs() {
        carried(base, &name);
    }
    println!();
    println!("interfaces: the main job at its own {FULL_GBPS} Gbit/s a core, ns per frame offered");
    println!("{:46} {:>14}   of its private rings of 128, and of those of 1024", "", "measured");
    for (base, name) in pairs() {
        at_full_load(base, &name);
    }
    println!();
    sched_setaffinity(None, &anywhere).expect("it may go where it was");
}

/// What is compared, behind what it is compared with.
fn pairs() -> impl Iterator<Item = (&'static str, String)> {
    let plain = nicforge_interfaces::Interfaces::shipped().of_rings().into_iter();
    let plain = plain.filter(|&name| name != "emulated").map(str::to_owned);
    let emulated = played_by_cores().into_iter().map(|name| ("emulated/priv_ring", format!("emulated/{name}")));
    let both = ["emulated/priv_ring", "emulated/rx_bisect"].map(|name| (BASE, name.to_owned()));
    plain.map(|name| (BASE, name)).chain(emulated).chain(both)
}

/// A job of the comparison.
fn compared(interface: &str, gbps_per_core: f64) -> Job<'_> {
    Job { cores: 16, window_ms: 10.0, gbps_per_core, interface, rings: Rings::Large }
}

fn carried(base: &str, interface: &str) {
    for gbps_per_core in CARRIED_GBPS {
        let both = [base, interface].map(|name| compared(name, gbps_per_core));
        let [base_run, run] = Measured::in_turn(both);
        if base_run.dropped.max(run.dropped) < NONE_DROPPED {
            let ns = format!("{:.0}", run.ns_per_packet());
            let ratio = run.ratio(&base_run);
            let against = format!("{ratio:.2} x {base} at {gbps_per_core}, at most 1.3 x");
            return row(interface, ns, &against);
        }
    }
    row(interface, "-".into(), "drops frames at each of these loads");
}

/// Beside both variants of the main job: the one that carries its load, and the one that drops some of it.
fn at_full_load(base: &str, interface: &str) {
    let [large, run] = [base, interface].map(|name| compared(name, FULL_GBPS));
    let small = Job { rings: Rings::Small, ..large };
    let [small, large, run] = Measured::in_turn([small, large, run]);
    let [of_small, of_large] = [&small, &large].map(|base| run.ratio(base));
    let [dropped, by_small, by_large] = [&run, &small, &large].map(|run| 100.0 * run.dropped);
    let carried = of_large * (100.0 - by_large) / (100.0 - dropped);
    let ns = format!("{:.0}", run.ns_per_packet());
    let against = format!(
        "{of_small:.2} x {base}, at most 1.3 x; {of_large:.2} x, a frame carried {carried:.2} x \
         ({dropped:.0} %, {by_small:.0} % and {by_large:.0} % dropped)"
    );
    row(interface, ns, &against);
}

/// A sweep with one job and with two: time, and whether the results are the same bytes.
fn jobs() {
    println!("--jobs 2 against --jobs 1, scenarios/paper/rxb-03.toml (16 points)");
    let folder = Scratch::new();
    let run = |jobs: &str| {
        let run = run("scenarios/paper/rxb-03.toml", jobs, &folder.0.join(jobs));
        let lines = run.report.lines();
        let lines = lines.filter(|line| !line.contains("\"wall_seconds\""));
        (run.wall, lines.collect::<Vec<_>>().join("\n"))
    };
    let (one, two) = (run("1"), run("2"));
    row("--jobs 1, s", format!("{:.2}", one.0), "");
    row("--jobs 2, s", format!("{:.2}", two.0), "");
    let ratio = format!("{:.2}", two.0 / one.0);
    row("ratio", ratio, "at most 0.6 on two cores");
    let same = if one.1 == two.1 { "same" } else { "DIFFERENT" };
    row("report.json but for wall_seconds", same.to_owned(), "same");
}
