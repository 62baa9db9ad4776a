//! Whole runs of random settings: each ends, adds up, and ends the same way again.
//! That frames and buffers are conserved is checked inside of a run, which fails if not.

use nicforge_interfaces::options::RxRing;
use nicforge_interfaces::rx_bisect::RxBisectOptions;
use nicforge_lab::packet_loop::Burst;
use nicforge_lab::run::options::{Arrival, Arrivals, TimelineOptions, WindowOptions};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_nic::TransmitOptions;
use nicforge_record::Metrics;
use proptest::prelude::*;

use crate::common::any_settings::any_settings;
use crate::common::machine::{machine, small};

fn run(settings: &Settings, seed: u64) -> Metrics {
    let point = run_point(machine(), settings, seed, &RunIo::default(), &mut |_, _| {});
    point.unwrap_or_else(|error| panic!("{error}\n{settings:#?}")).metrics
}

/// What must hold for the metrics of any run.
fn check(settings: &Settings, metrics: &Metrics) {
    let seconds = settings.read::<WindowOptions>().window_ms / 1e3;
    let window_bits = metrics.offered_gbps * seconds * 1e9;
    // What was inside when the window began may leave in it: all rings, NIC buffers, wires.
    let receive = settings.read::<RxRing>().rx_entries
        + settings.read::<RxBisectOptions>().bx_entries
        + 2 * settings.read::<RxBisectOptions>().ax_entries;
    let entries = settings.cores()
        * (2 * receive + settings.read::<TransmitOptions>().tx_entries + settings.read::<Burst>().burst);
    let inside_bits = (entries * 9216 * 8) as f64 + 16e6;
    let sent_bits = metrics.throughput_gbps * seconds * 1e9;
    // A store's replies may be longer than the requests.
    let echoes = settings.app() != "kvs";
    assert!(!echoes || sent_bits <= window_bits + inside_bits, "{metrics:?}");
    let line = 100.0 * settings.nics() as f64;
    assert!(metrics.throughput_gbps <= line * 1.01 && metrics.offered_gbps <= line * 1.01);
    let drops: u64 = metrics.drops.values().sum();
    let arrived = metrics.offered_mpps * seconds * 1e6;
    assert_eq!(drops > 0, metrics.drop_fraction > 0.0);
    assert!(metrics.drop_fraction <= 1.0, "{metrics:?}");
    let of_all = metrics.drop_fraction * arrived.max(drops as f64);
    assert!((of_all - drops as f64).abs() < 1e-3, "{metrics:?}");
    assert!(metrics.drops.values().all(|&count| count > 0));
    let waits = settings.read::<Arrivals>().arrival == Arrival::PingPong;
    assert_eq!(metrics.requests_timed_out.is_some(), waits);
    let shares = [
        metrics.rx_occupancy,
        metrics.tx_occupancy,
        metrics.ddio_hit_rate,
        metrics.io_read_hit_rate,
        metrics.io_write_hit_rate,
        metrics.app_hit_rate,
        metrics.core_hit_rate,
        metrics.get_hit_rate,
        metrics.idle_fraction,
    ];
    let in_range = |share: f64| (0.0..=1.0).contains(&share);
    assert!(shares.into_iter().flatten().all(in_range), "{metrics:?}");
    if let Some(latency) = &metrics.latency_us {
        let rising = [latency.p50, latency.p99, latency.p999, latency.max];
        assert!(rising.is_sorted() && latency.p50 > 0.0, "{latency:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 60, ..Default::default() })]

    #[test]
    fn any_run_adds_up_and_repeats(
        settings in any_settings(),
        seed in any::<u64>(),
    ) {
        settings.check(machine()).unwrap();
        let metrics = run(&settings, seed);
        check(&settings, &metrics);
        prop_assert_eq!(run(&settings, seed), metrics);
    }
}

/// The link between the sockets is in the way of each packet, and of no other's throughput.
#[test]
fn cores_that_play_nics_run_on_either_socket() {
    let on = |socket: &str| {
        let settings = small()
            .with("interface", "emulated")
            .with("emulates", "priv_ring")
            .with("emulator_socket", socket)
            .with("offered_gbps", 20.0);
        settings.check(machine()).unwrap();
        run(&settings, 1)
    };
    let [same, other] = ["same", "other"].map(on);
    assert!(same.drops.is_empty() && other.drops.is_empty());
    assert_eq!(same.offered_mpps, other.offered_mpps);
    let [near, far] = [same, other].map(|run| run.latency_us.unwrap().mean);
    // Two lines at least, 60 ns each over the link.
    assert!(far > near + 0.1, "{far} and {near} us");
}

/// Steering changes at every look, while cores are slow and rings small: nothing is lost.
#[test]
fn switching_all_the_time_loses_nothing() {
    for (rx_entries, burst) in [(2, 1), (8, 1), (64, 7), (256, 32)] {
        let settings = small()
            .with("interface", "sh_ring_dynamic")
            .with("rx_entries", rx_entries)
            .with("burst", burst)
            .with("dynamic_step_ms", 0.01)
            .with("dynamic_window", 1)
            .with("dynamic_gbps", 0.0)
            .with("dynamic_memory_gib_per_s", 0.0)
            .with("dynamic_off_share", 0.0)
            .with("packet_bytes", 64)
            .with("window_ms", 0.5)
            .with("timeline_ms", 0.01);
        let point = run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
        check(&settings, &point.metrics);
        assert!(point.metrics.throughput_gbps > 1.0, "{:?}", point.metrics);
        let switches = point.switches.len();
        assert!(switches > 40, "{switches} switches");
    }
}

#[test]
fn the_time_line_adds_up() {
    let settings = small()
        .with("interface", "sh_ring_dynamic")
        .with("dynamic_step_ms", 0.05)
        .with("dynamic_window", 4)
        .with("dynamic_gbps", 1.0)
        .with("offered_gbps", 2.0)
        .with("dynamic_memory_gib_per_s", 0.0)
        .with("packet_bytes", 64)
        .with("target_share", 1.0)
        .with("target_begins_ms", 0.4)
        .with("warmup_ms", 0.3)
        .with("window_ms", 0.72)
        .with("timeline_ms", 0.1);
    let point = run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
    let timeline = &point.timeline;
    let ends: Vec<f64> = timeline.iter().map(|entry| (entry.ms * 100.0).round()).collect();
    let expected = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 102.0];
    assert_eq!(ends, expected);
    // The window begins with the fourth entry.
    let (window, last) = (&timeline[3..], timeline[10].offered_gbps);
    let drops: u64 = window.iter().map(|entry| entry.drops).sum();
    assert_eq!(drops, point.metrics.drops.values().sum::<u64>());
    let offered: f64 = window[..7].iter().map(|entry| entry.offered_gbps).sum();
    let mean = (offered * 0.1 + last * 0.02) / 0.72;
    assert!((mean - point.metrics.offered_gbps).abs() < 1e-6);
    // Sharing begins with the third look, and the overload is later.
    let sets: Vec<_> = timeline.iter().map(|entry| entry.active_set.as_deref().unwrap()).collect();
    assert_eq!(sets[..4], ["private", "shared", "shared", "shared"]);
    assert!(timeline[3].drop_fraction + 0.1 < timeline[9].drop_fraction, "{timeline:?}");
    let mut without = settings;
    without.change(|timeline: &mut TimelineOptions| timeline.timeline_ms = None);
    let point_without = run_point(machine(), &without, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
    assert_eq!((&point_without.metrics, point_without.timeline.len()), (&point.metrics, 0));
}

#[test]
fn a_target_that_never_begins_changes_nothing() {
    let settings = small().with("app", "synthetic");
    let from = |target_begins_ms| {
        settings
            .clone()
            .with("target_share", 0.5)
            .with("target_packet_bytes", 64)
            .with("target_accesses", 50)
            .with("target_begins_ms", target_begins_ms)
    };
    let without = run(&settings, 1);
    assert_eq!(run(&from(1.0), 1), without);
    let [late, early] = [0.06, 0.0].map(|ms| run(&from(ms), 1).throughput_gbps);
    assert!(early < late && late < without.throughput_gbps, "{early} {late}");
}

#[test]
fn another_seed_is_another_run() {
    let settings = small().with("arrival", "poisson");
    assert_ne!(run(&settings, 1), run(&settings, 2));
}

#[test]
fn a_single_flow_of_minimum_frames_drops_under_a_cause() {
    let settings = small()
        .with("packet_bytes", 60)
        .with("offered_gbps", 200.0)
        .with("flow_choice", "single")
        .with("rx_entries", 64);
    let metrics = run(&settings, 1);
    check(&settings, &metrics);
    assert!(metrics.drop_fraction > 0.5, "one core of {}: {metrics:?}", settings.cores());
}

#[test]
fn an_idle_server_drops_nothing() {
    let settings = small().with("offered_gbps", 1.0);
    let metrics = run(&settings, 1);
    check(&settings, &metrics);
    assert_eq!(metrics.drop_fraction, 0.0);
    assert!(metrics.drops.is_empty());
    assert!(metrics.idle_fraction.unwrap() > 0.5);
}

/// Cores that sleep through the window, and cores that slept long before it.
#[test]
fn a_sleeping_core_is_idle() {
    let settings = small().with("flow_choice", "single").with("nics", 1).with("cores", 4).with("offered_gbps", 40.0);
    let busy = run(&settings, 1).idle_fraction.unwrap();
    assert!((0.75..1.0).contains(&busy), "three of four cores get nothing: {busy}");
    let nobody = settings.with("offered_gbps", 0.001);
    assert_eq!(run(&nobody, 1).idle_fraction, Some(1.0));
}

/// Rings of two entries, of which each interface has its own kind: nothing is lost but by name.
#[test]
fn the_smallest_rings_carry_what_they_can() {
    for interface in nicforge_interfaces::Interfaces::shipped().of_rings() {
        let settings = small()
            .with("interface", interface)
            .with("rx_entries", 2)
            .with("ax_entries", 2)
            .with("bx_entries", 2)
            .with("offered_gbps", 20.0);
        settings.check(machine()).unwrap();
        let metrics = run(&settings, 1);
        check(&settings, &metrics);
        assert!(metrics.throughput_gbps > 0.5, "{interface}: {metrics:?}");
    }
}

/// A burst that is worked off, and most of it discarded, in a window in which nothing comes.
#[test]
fn where_all_that_is_dropped_came_before_the_window_all_is_dropped() {
    let settings = small()
        .with("cores", 1)
        .with("nics", 1)
        .with("arrival", "bursts")
        .with("burst_packets", 4000)
        .with("offered_gbps", 1.0)
        .with("rx_entries", 4096)
        .with("flows", 10_000)
        .with("table_entries", 16)
        .with("preload_flows", false)
        .with("warmup_ms", 0.55)
        .with("window_ms", 0.05);
    let point = run_point(machine(), &settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
    assert!(point.steadiness.no_frame_arrived);
    let metrics = point.metrics;
    assert!(metrics.drops["table_full"] > 0, "{metrics:?}");
    assert_eq!((metrics.offered_gbps, metrics.drop_fraction), (0.0, 1.0));
}

/// Frames that wait until cores are to poll are not stuck, however long that is.
#[test]
fn cores_may_begin_to_poll_late() {
    let settings = small()
        .with("offered_gbps", 0.1)
        .with("polling_starts_ms", 60.0)
        .with("warmup_ms", 60.0)
        .with("window_ms", 2.0);
    assert!(run(&settings, 1).throughput_gbps > 0.0);
}

/// A pool that rings empty: each packet that waits to be sent is one that no ring can receive, and all is counted.
#[test]
fn a_pool_that_runs_dry_leaves_entries_empty() {
    for interface in ["priv_ring", "sh_ring", "rx_bisect"] {
        let of = |buffers: f64| {
            let settings = small()
                .with("interface", interface)
                .with("packet_bytes", 64)
                .with("offered_gbps", 100.0)
                .with("pool_cache", 8)
                .with("pool_per_entry", buffers);
            settings.check(machine()).unwrap();
            run(&settings, 1)
        };
        let (dry, ample) = (of(1.0), of(8.0));
        assert!(dry.rx_nombuf > Some(0) && dry.drops["no_descriptor"] > 0, "{interface}: {dry:?}");
        assert!(dry.throughput_gbps > 0.0, "{interface}");
        assert_eq!(ample.rx_nombuf, None, "{interface}");
    }
}

#[test]
fn a_pool_that_cannot_fill_the_rings_is_refused() {
    let error = small().with("pool_buffers", 1023).check(machine()).unwrap_err();
    assert!(format!("{error:?}").contains("set pool_buffers to 1024 or more"), "{error:?}");
    small().with("pool_buffers", 1024).check(machine()).unwrap();
    let both = small().with("pool_buffers", 4096).with("pool_per_entry", 4.0);
    assert!(both.check(machine()).is_err());
}
