//! Whole systems with TCP between them: what a run must be, whatever it measures.

use std::path::Path;

use nicforge_lab::machine::{Machine, load_machine};
use nicforge_lab::metrics::Metrics;
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;

fn machine() -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    load_machine(&folder.join("m5-10gbe.toml")).unwrap()
}

fn settings(workload: &str, placement: &str) -> Settings {
    Settings {
        workload: workload.into(),
        interface: "conventional".into(),
        placement: placement.into(),
        warmup_ms: 1.0,
        window_ms: 2.0,
        ..Settings::for_machine(&machine())
    }
}

/// Runs a point. That every byte which a process reads is the one that its peer wrote there is
/// checked inside, and so is that every packet buffer is found in one place.
fn measure(settings: &Settings) -> Metrics {
    let io = RunIo::default();
    settings.check(&machine()).unwrap();
    let point = run_point(&machine(), settings, 1, &io, &mut |_, _| {}).unwrap();
    point.metrics
}

#[test]
fn the_same_point_measures_the_same_and_time_adds_up() {
    for workload in ["tcp_receive", "tcp_transmit"] {
        let settings = settings(workload, "HTE");
        let metrics = measure(&settings);
        assert_eq!(metrics, measure(&settings), "{workload}");
        assert!(metrics.bandwidth_gbps.unwrap() > 1.0, "{metrics:?}");
        let time = metrics.cpu_time.unwrap();
        let busy = time.interrupt + time.driver + time.stack + time.copy + time.user;
        assert!((busy + time.idle - 1.0).abs() < 1e-9, "{time:?}");
    }
}

#[test]
fn a_stream_arrives_as_it_was_sent_whatever_the_link_does() {
    let clean = measure(&settings("tcp_receive", "OCC"));
    for streams in [1, 3] {
        let impaired = Settings {
            link_loss: 0.002,
            link_duplicates: 0.02,
            link_reordered: 0.02,
            streams,
            window_ms: 5.0,
            ..settings("tcp_receive", "OCC")
        };
        let metrics = measure(&impaired);
        let bandwidth = metrics.bandwidth_gbps.unwrap();
        assert!(bandwidth > 0.01, "{streams} streams: {bandwidth}");
        assert!(
            Some(bandwidth) < clean.bandwidth_gbps,
            "{streams} streams: {bandwidth}"
        );
    }
}

#[test]
fn several_streams_share_a_link_and_both_ends_drop_nothing() {
    for workload in ["tcp_receive", "tcp_transmit"] {
        let metrics = measure(&Settings {
            streams: 8,
            ..settings(workload, "OCM")
        });
        assert!(
            metrics.bandwidth_gbps.unwrap() > 1.0,
            "{workload}: {metrics:?}"
        );
        assert_eq!(
            metrics.drops.values().sum::<u64>(),
            0,
            "{workload}: {metrics:?}"
        );
    }
}

#[test]
fn data_that_goes_to_the_cache_is_found_there() {
    let misses = |placement| {
        measure(&settings("tcp_receive", placement))
            .misses_per_kb
            .unwrap()
    };
    let (memory, header, cache) = (misses("OCS"), misses("OCSP"), misses("OCC"));
    // 16 lines are 1024 bytes; of each packet's 24 lines OCSP has one in the cache.
    assert!(memory > 16.0 && header < memory - 0.5, "{memory} {header}");
    assert!(cache < 1.0, "{cache}");
}
