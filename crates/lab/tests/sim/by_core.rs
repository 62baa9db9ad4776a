//! What each core did adds up to what the point says of all of them, on every interface, and shows which
//! of them is the limit.

use nicforge_interfaces::Interfaces;
use nicforge_interfaces::emulated::played_by_cores;
use nicforge_lab::packet_loop::Burst;
use nicforge_lab::run::options::TimelineOptions;
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::CoreFigures;

use crate::common::machine::{machine, small};

/// Two cores on each of two NICs, of which the first has nine times the packets of the second and cannot keep
/// up. Rings are full of them before the window begins.
fn unequal() -> Settings {
    small()
        .with("busiest_to_idlest", 9.0)
        .with("offered_gbps", 60.0)
        .with("rx_entries", 64)
        .with("ax_entries", 64)
        .with("bx_entries", 128)
        .with("timeline_ms", 0.1)
        .with("warmup_ms", 0.2)
        .with("window_ms", 0.4)
}

fn run(settings: &Settings) -> PointRun {
    settings.check(machine()).unwrap();
    let point = run_point(machine(), settings, 1, &RunIo::default(), &mut |_, _| {});
    point.unwrap_or_else(|error| panic!("{error}\n{settings:#?}"))
}

fn sum(run: &PointRun, of: impl Fn(&CoreFigures) -> f64) -> f64 {
    run.cores.iter().map(of).sum()
}

#[track_caller]
fn near(sum: f64, whole: f64, what: &str) {
    assert!((sum - whole).abs() <= 1e-9 * whole.abs().max(1.0), "{what}: {sum} of {whole}");
}

/// Everything that is known of all cores together.
fn check_sums(settings: &Settings, run: &PointRun) {
    let (metrics, cores) = (&run.metrics, &run.cores);
    let said: Vec<_> = cores.iter().map(|core| (core.core, core.nic, core.queue)).collect();
    let place = |core: usize| (core, Some(core / 2), Some(core % 2));
    assert_eq!(said, [0, 1, 2, 3].map(place));

    let gbps = |core: &CoreFigures| core.throughput_gbps.unwrap();
    near(sum(run, gbps), metrics.throughput_gbps, "throughput");
    let in_window = run.timeline.iter().filter(|at| at.ms > 0.2 + 1e-6);
    let taken: u64 = in_window.map(|at| at.taken).sum();
    near(sum(run, |core| core.received as f64), taken as f64, "taken");
    for (cause, &count) in &metrics.drops {
        let of_cores = sum(run, |core| core.drops.get(cause).copied().unwrap_or(0) as f64);
        let count = if cause == "fifo_full" { 0 } else { count };
        near(of_cores, count as f64, cause);
    }
    let dropped: u64 = cores.iter().map(CoreFigures::dropped).sum();
    let before = metrics.drops.get("fifo_full").copied().unwrap_or(0);
    assert_eq!(dropped + before, metrics.drops.values().sum::<u64>());

    // All frames are equally long, so that bits weigh as frames do.
    let cycles = |core: &CoreFigures| core.cycles_per_packet.unwrap_or(0.0) * gbps(core);
    let total = metrics.cycles_per_packet.as_ref().unwrap().total;
    near(sum(run, cycles), total * metrics.throughput_gbps, "cycles of all");
    let busy = sum(run, |core| core.busy_fraction.unwrap()) / settings.cores() as f64;
    // Of each by itself the last poll may be charged beyond the window.
    assert!((busy - (1.0 - metrics.idle_fraction.unwrap())).abs() < 1e-3);

    let full: Vec<f64> = cores.iter().map(|core| core.rx_occupancy.unwrap()).collect();
    let (least, most) = full.iter().fold((1.0, 0.0), |(least, most): (f64, f64), &at| (least.min(at), most.max(at)));
    let mean = metrics.rx_occupancy.unwrap();
    assert!(least <= mean && mean <= most, "{mean} of {full:?}");
    for core in cores.iter().filter(|core| core.received > 0) {
        let burst = core.mean_burst.unwrap();
        assert!(1.0 <= burst && burst <= settings.read::<Burst>().burst as f64, "{core:?}");
    }
}

/// Where cores lend each other buffers, those of a NIC lent what the others borrowed: here the one with time
/// to spare to the other.
#[track_caller]
fn check_lending(run: &PointRun, lends: bool) {
    assert_eq!(run.metrics.borrowed_fraction.is_some(), lends);
    for pair in run.cores.chunks(2) {
        let [busiest, idlest] = pair else { unreachable!("two cores for each NIC") };
        let counts = |core: &CoreFigures| core.borrowed.zip(core.lent);
        assert_eq!(counts(busiest).is_some(), lends);
        if let (Some((borrowed, lent)), Some(others)) = (counts(busiest), counts(idlest)) {
            assert_eq!((borrowed, lent), (others.1, others.0));
            assert!(borrowed > 100 && borrowed > 10 * lent, "{borrowed} {lent}");
        }
    }
}

#[test]
fn the_cores_of_every_interface_add_up_to_the_point() {
    let plain = Interfaces::shipped().of_rings().into_iter();
    let plain = plain.filter(|name| *name != "emulated");
    let plain = plain.map(|name| (name, "priv_ring"));
    for (interface, emulates) in plain.chain(played_by_cores().into_iter().map(|name| ("emulated", name))) {
        let settings = unequal().with("interface", interface).with("emulates", emulates).with("sharing", 2);
        let run = run(&settings);
        assert!(run.metrics.drop_fraction > 0.05, "{interface}");
        check_sums(&settings, &run);
        check_lending(&run, interface == "rx_bisect" || emulates == "rx_bisect");
    }
}

#[test]
fn with_unequal_load_it_shows_which_core_is_the_limit() {
    let run = run(&unequal());
    for pair in run.cores.chunks(2) {
        let [busiest, idlest] = pair else { unreachable!("two cores for each NIC") };
        assert!(busiest.busy_fraction.unwrap() > 0.99 && busiest.rx_occupancy.unwrap() > 0.8);
        assert!(busiest.drops["no_descriptor"] > 100);
        assert!(idlest.busy_fraction.unwrap() < 0.5 && idlest.drops.is_empty());
        assert!(idlest.received > 0 && busiest.received > 3 * idlest.received);
        assert!(busiest.mean_burst > idlest.mean_burst);
    }
}

/// The best trial's, as all other metrics.
#[test]
fn a_search_has_the_cores_of_the_trial_that_counts() {
    let mut settings = unequal().with("measure", "no_drop_rate");
    settings.change(|timeline: &mut TimelineOptions| timeline.timeline_ms = None);
    let run = run(&settings);
    let gbps = |core: &CoreFigures| core.throughput_gbps.unwrap();
    near(sum(&run, gbps), run.metrics.throughput_gbps, "throughput");
    assert_eq!(run.cores.iter().map(CoreFigures::dropped).sum::<u64>(), 0);
}
