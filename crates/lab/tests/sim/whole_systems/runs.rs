//! Whole systems with TCP between them: what a run must be, whatever it measures.

use std::path::Path;

use nicforge_lab::machine::parse_machine;
use nicforge_lab::settings::Settings;

use super::{machine, measure, run_on};

fn settings(workload: &str, placement: &str) -> Settings {
    super::settings(workload, "conventional", placement)
}

#[test]
fn the_same_point_measures_the_same_and_time_adds_up() {
    for workload in ["tcp_receive", "tcp_transmit"] {
        let settings = settings(workload, "HTE");
        let metrics = measure(&settings);
        assert_eq!(metrics, measure(&settings), "{workload}");
        assert!(metrics.bandwidth_gbps.unwrap() > 1.0, "{metrics:?}");
        // That no picosecond of the window is missing, or charged twice, is checked inside.
        let time = metrics.cpu_time.unwrap();
        let busy = time.interrupt + time.driver + time.stack + time.copy + time.user;
        assert!((busy + time.idle - 1.0).abs() < 1e-9, "{time:?}");
    }
}

#[test]
fn a_precision_lets_the_data_decide_on_the_window() {
    let settings = settings("tcp_receive", "HTE");
    let precise = run_on(&machine(), &settings.clone().with("precision", 0.01).with("max_window_ms", 200.0));
    assert!(precise.simulated > run_on(&machine(), &settings).simulated);
    assert_eq!(precise.steadiness.precision_missed, None);
    let interval = &precise.intervals["bandwidth_gbps"];
    assert!(interval.half_width < 0.01 * interval.mean, "{interval:?}");
    assert!(precise.intervals.contains_key("cpu_time.driver"), "{:?}", precise.intervals.keys());
}

#[test]
fn a_stream_arrives_as_it_was_sent_whatever_the_link_does() {
    let clean = measure(&settings("tcp_receive", "OCC"));
    for streams in [1, 3] {
        let impaired = settings("tcp_receive", "OCC")
            .with("link_loss", 0.002)
            .with("link_duplicates", 0.02)
            .with("link_reordered", 0.02)
            .with("streams", streams)
            .with("window_ms", 5.0);
        let metrics = measure(&impaired);
        let bandwidth = metrics.bandwidth_gbps.unwrap();
        assert!(bandwidth > 0.01, "{streams} streams: {bandwidth}");
        assert!(Some(bandwidth) < clean.bandwidth_gbps, "{streams} streams: {bandwidth}");
    }
}

#[test]
fn several_streams_share_a_link_and_both_ends_drop_nothing() {
    for workload in ["tcp_receive", "tcp_transmit"] {
        let metrics = measure(&settings(workload, "OCM").with("streams", 8));
        assert!(metrics.bandwidth_gbps.unwrap() > 1.0, "{workload}: {metrics:?}");
        assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{workload}: {metrics:?}");
    }
}

#[test]
fn data_that_goes_to_the_cache_is_found_there() {
    let misses = |placement| measure(&settings("tcp_receive", placement)).misses_per_kb.unwrap();
    let (memory, header, cache) = (misses("OCS"), misses("OCSP"), misses("OCC"));
    // 16 lines are 1024 bytes; of each packet's 24 lines OCSP has one in the cache.
    assert!(memory > 16.0 && header < memory - 0.5, "{memory} {header}");
    assert!(cache < 1.0, "{cache}");
}

/// The far NICs work ahead of time by a descriptor read of almost a microsecond. A status that told
/// of a frame before it was in memory let the driver look in vain, and nobody woke it again.
#[test]
fn no_interrupt_is_lost_where_the_nic_is_far_and_the_core_slow() {
    for placement in ["STE", "HTE"] {
        for workload in ["nat_gateway", "tcp_receive"] {
            let metrics = measure(&settings(workload, placement).with("cpu_ghz", 2.0));
            let bandwidth = metrics.bandwidth_gbps.unwrap();
            assert!(bandwidth > 1.0, "{workload} {placement}: {metrics:?}");
        }
    }
}

/// A place that no shipped file has: on the memory's bus, like OCM, but all data goes to the cache.
const MINE: &str = r#"
[placements.MINE]
cpu_die_bridges = { value = 0, source = "own design" }
chipset_bridges = { value = 0, source = "own design" }
io_bridges = { value = 0, source = "own design" }
pcie = { value = 0, source = "own design" }
hypertransport = { value = 0, source = "own design" }
off_chip_memory = { value = 0, source = "own design" }
registers_at_cache = { value = 0, source = "own design" }
data_at_cache = { value = 0, source = "own design" }
lines_to_cache = { value = 1000000, source = "own design" }
"#;

#[test]
fn a_nic_runs_at_a_place_that_a_users_file_describes() {
    let text = std::fs::read_to_string(&machine().file).unwrap();
    let machine = parse_machine(&format!("{text}{MINE}"), Path::new("mine.toml")).unwrap();
    let misses = |placement: &str| {
        let metrics = run_on(&machine, &settings("tcp_receive", placement)).metrics;
        assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{metrics:?}");
        assert!(metrics.bandwidth_gbps.unwrap() > 1.0, "{metrics:?}");
        metrics.misses_per_kb.unwrap()
    };
    let (ocm, occ, mine) = (misses("OCM"), misses("OCC"), misses("MINE"));
    // Data goes where OCC's goes, by another bus.
    assert!(mine < ocm / 10.0 && occ < ocm / 10.0, "{ocm} {occ} {mine}");
    let error = settings("tcp_receive", "MIEN").check(&machine).unwrap_err();
    assert!(format!("{error:?}").contains("MINE"), "{error:?}");
}
