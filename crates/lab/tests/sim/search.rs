//! The search for the highest rate without loss.

use std::path::Path;

use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};

use crate::common::machine::{machine, small};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");

fn run(settings: &Settings) -> Metrics {
    let point = run_point(machine(), settings, 1, &RunIo::default(), &mut |_, _| {});
    point.expect("settings that go together").metrics
}

/// A search of one NIC's no-drop rate.
fn search() -> Settings {
    small()
        .with("measure", "no_drop_rate")
        .with("offered_gbps", 100.0)
        .with("nics", 1)
        .with("rx_entries", 128)
        .with("window_ms", 0.2)
}

#[test]
fn the_no_drop_rate_drops_nothing() {
    for (packet_bytes, cores) in [(1500, 2), (64, 1)] {
        let settings = search().with("packet_bytes", packet_bytes).with("cores", cores);
        let metrics = run(&settings);
        assert_eq!(metrics.drop_fraction, 0.0);
        let best = metrics.no_drop_gbps.unwrap();
        assert!(best > 0.0 && best < 100.0, "{packet_bytes} B: {best}");
        // What was offered, not what left, which is another number in a short window.
        assert_eq!(best, metrics.offered_gbps);
        // A little more, and it drops: the search ends within 1 % of the offered rate.
        let window =
            |rate: f64| settings.clone().with("measure", "window").with("offered_gbps", rate).with("warmup_ms", 0.4);
        assert!(run(&window(best + 2.0)).drop_fraction > 0.0);
    }
}

/// One core lends and is lent all buffers; the others find the pool dry when the last frame has left, and poll on for one.
#[test]
fn a_trial_ends_though_cores_stay_without_buffers() {
    let settings = search()
        .with("app", "l3fwd")
        .with("interface", "rx_bisect")
        .with("cores", 4)
        .with("ax_entries", 64)
        .with("bx_entries", 1024)
        .with("pool_per_entry", 4)
        .with("flow_choice", "single")
        .with("tx_entries", 1024)
        .with("warmup_ms", 2)
        .with("window_ms", 20);
    assert!(run(&settings).no_drop_gbps.is_some());
}

/// Losses count whenever they come: here while the last frames of a trial leave, after its window.
#[test]
fn a_trial_fails_by_what_is_lost_after_its_window() {
    let settings = search()
        // All of a trial is in the ring before the core has begun with it.
        .with("app", "synthetic")
        .with("reads", 2_000)
        .with("cores", 1)
        .with("rx_entries", 1024)
        .with("tx_entries", 8)
        .with("burst", 32)
        .with("window_ms", 0.02);
    let metrics = run(&settings);
    let window = settings.with("measure", "window").with("warmup_ms", 0.0);
    let highest = run(&window);
    assert_eq!(highest.drop_fraction, 0.0, "the window itself loses nothing: {highest:?}");
    assert!(metrics.no_drop_gbps.unwrap() < highest.offered_gbps, "{metrics:?}");
}

#[test]
fn a_cold_start_is_no_part_of_the_no_drop_rate() {
    let settings = search()
        .with("app", "l3fwd")
        .with("packet_bytes", 64)
        .with("cores", 1)
        .with("rx_entries", 64)
        .with("routes", 16_000)
        .with("flows", 2_000);
    // The same from the second search on, whatever it took to get warm.
    let rates = [0.3, 0.6].map(|warmup_ms| {
        let settings = settings.clone().with("warmup_ms", warmup_ms);
        run(&settings).no_drop_gbps.unwrap()
    });
    assert!((rates[0] - rates[1]).abs() <= 1.0, "{rates:?}");
    // From the very beginning on, tables are cold, and the same rate is lost.
    let cold = settings.with("measure", "window").with("offered_gbps", rates[0]).with("warmup_ms", 0.0);
    assert!(run(&cold).drop_fraction > 0.0);
}

/// Early trials warm the tables; rates that failed meanwhile are tried again.
#[test]
fn a_short_warm_up_finds_what_a_long_one_does() {
    let rates = [0.01, 2.0].map(|warmup_ms| {
        let settings = search()
            .with("app", "l3fwd")
            .with("packet_bytes", 64)
            .with("offered_gbps", 20.0)
            .with("cores", 1)
            .with("rx_entries", 1024)
            .with("routes", 16_000)
            .with("flows", 10_000)
            .with("window_ms", 0.5)
            .with("warmup_ms", warmup_ms);
        run(&settings).no_drop_gbps.unwrap()
    });
    assert!((rates[0] - rates[1]).abs() <= 0.2, "{rates:?}");
}

/// The warm-up fills the transmit ring of a single flow's core. By the next trial its buffers are taken back: a core
/// that did that with the first packet would be late for those that follow, and the ring would fill again.
#[test]
fn a_trial_starts_with_empty_rings_after_overload() {
    let settings = search()
        .with("app", "l3fwd")
        .with("cores", 1)
        .with("rx_entries", 1024)
        .with("tx_entries", 1024)
        .with("flows", 1)
        .with("flow_choice", "single")
        .with("warmup_ms", 4.0)
        .with("window_ms", 4.0);
    let best = run(&settings).no_drop_gbps.unwrap();
    // It passes where it is the highest rate of a search, too, so that the first trial at it comes after overload.
    let again = settings.with("offered_gbps", best);
    let found = run(&again).no_drop_gbps.unwrap();
    // A search finds the rate to 1 % of what is offered.
    assert!((found - best).abs() <= 0.01 * best, "{found} {best}");
}

#[test]
fn a_rate_that_nobody_carries_is_zero() {
    let settings = search().with("app", "synthetic").with("reads", 10_000).with("cores", 1).with("rx_entries", 8);
    let metrics = run(&settings);
    assert_eq!(metrics.no_drop_gbps, Some(0.0));
    assert!(metrics.drop_fraction > 0.0, "of the slowest trial: {metrics:?}");
}

/// What an application discards for what it is, it discards at every rate.
#[test]
fn frames_that_no_rate_brings_through_do_not_fail_a_trial() {
    let folder = tempfile::tempdir().unwrap();
    let play = |name: &str, with_arp: bool| {
        let path = folder.path().join(name);
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = CaptureWriter::new(file, CaptureFormat::Pcap).unwrap();
        let mut reader = CaptureReader::open(Path::new(SAMPLE)).unwrap();
        while let Some(record) = reader.next_record().unwrap() {
            writer.write(record.time, record.bytes).unwrap();
        }
        if with_arp {
            let mut arp = [0; 60];
            arp[12..14].copy_from_slice(&[8, 6]);
            writer.write(Time::from_ms(1), &arp).unwrap();
        }
        writer.finish().unwrap();
        run(&search().with("arrival", "replay").with("pcap", path.to_str().unwrap()))
    };
    let (clean, mixed) = (play("clean.pcap", false), play("mixed.pcap", true));
    assert!(clean.no_drop_gbps.unwrap() > 0.0, "{clean:?}");
    let rates = [&clean, &mixed].map(|metrics| metrics.no_drop_gbps.unwrap());
    assert!((rates[0] - rates[1]).abs() <= 2.0, "{rates:?}");
    assert_eq!((clean.drops.len(), mixed.drops.len()), (0, 1), "{mixed:?}");
    assert_eq!(mixed.drops.values().sum::<u64>(), 1);
}

/// A window of less than a frame's time counts the frame that it begins with whole.
#[test]
fn no_more_is_found_than_is_offered() {
    let settings = search().with("window_ms", 0.000_2).with("offered_gbps", 40.0);
    let metrics = run(&settings);
    assert!(metrics.offered_gbps > 40.0, "{metrics:?}");
    assert_eq!(metrics.no_drop_gbps, Some(40.0));
}
