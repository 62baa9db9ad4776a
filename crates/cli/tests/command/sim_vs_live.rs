//! `nicforge sim-vs-live`: the shape of what it writes. What the numbers are depends on the machine.

use crate::common::{files, folder, nicforge, stderr, stdout};

const SCENARIO: &str = "scenarios/sim-against-live.toml";
const SMALL: [&str; 8] =
    ["--seconds", "0.3", "--set", "warmup_ms=1", "--set", "window_ms=3", "--set", "interface=priv_ring"];

#[test]
fn a_scenario_runs_on_both_grounds_and_is_put_side_by_side() {
    let folder = folder();
    let output = nicforge(&folder, &[&["sim-vs-live", SCENARIO][..], &SMALL].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("live/sim"), "{said}");
    let out = folder.path().join("out/sim-against-live-sim-vs-live/latest");
    let json = std::fs::read_to_string(out.join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let (points, compared) = (&report["points"], &report["comparisons"]);
    let count = compared.as_array().unwrap().len();
    assert!(count > 0 && points.as_array().unwrap().len() == 2 * count);
    for (number, comparison) in compared.as_array().unwrap().iter().enumerate() {
        for (of, ground) in [(0, "sim"), (1, "live")] {
            let point = &points[2 * number + of];
            assert_eq!(point["params"]["ground"], ground);
            let sent = point["metrics"]["throughput_mpps"].as_f64().unwrap();
            assert!(sent > 0.0, "{ground}: {point}");
        }
        let row = |key: &str| {
            let rows = comparison["rows"].as_array().unwrap().iter();
            rows.clone().find(|row| row["key"] == key).unwrap().clone()
        };
        for key in ["throughput_mpps", "latency_us.p50", "busy_ns_per_packet", "rx_occupancy"] {
            let row = row(key);
            assert!(row["sim"].is_f64() && row["live"].is_f64(), "{row}");
        }
    }
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<h2>Simulated and live</h2>"));
}

#[test]
fn a_capture_is_played_to_its_end_on_both() {
    let folder = folder();
    let arguments = ["sim-vs-live", "scenarios/nat-capture.toml", "--seconds", "60", "--json"];
    let set = ["--set", "nics=1", "--set", "cores=1"];
    let output = nicforge(&folder, &[&arguments[..], &set].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["wall_seconds"].as_f64().unwrap() < 60.0, "it ended by itself");
}

#[test]
fn simulated_only_points_are_refused_before_anything_runs() {
    let folder = folder();
    let before = files(folder.path());
    for (set, says) in [("nics=2", "2 NICs with cores of their own"), ("arrival=ping_pong", "ping-pong traffic")] {
        let arguments = ["sim-vs-live", SCENARIO, "--set", "cores=2", "--set", set];
        let output = nicforge(&folder, &arguments);
        assert_eq!(output.status.code(), Some(2), "{set}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert_eq!(files(folder.path()), before);
}
