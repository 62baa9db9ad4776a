//! How sure values are: intervals, longer windows, several seeds.

use crate::common::{folder, nicforge, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;

/// A small server, whose windows are short.
fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let scenario = "scenarios/nat-200g.toml";
    let sets = [
        "polling_starts_ms=0",
        "warmup_ms=0.5",
        "window_ms=0.5",
        "flows=500",
        "table_entries=4096",
        "cores=2",
        "nics=1",
    ];
    let sets = sets.into_iter().chain(["offered_gbps=20", "arrival=poisson"]);
    ["run", scenario].into_iter().chain(sets.flat_map(|set| ["--set", set])).chain(more.iter().copied()).collect()
}

#[track_caller]
fn run(folder: &TempDir, out: &str, more: &[&str]) -> (Value, String) {
    let output = nicforge(folder, &[&small(&["--out", out])[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json = std::fs::read(folder.path().join(out).join("report.json")).unwrap();
    (serde_json::from_slice(&json).unwrap(), stdout(&output))
}

fn half_width(report: &Value, key: &str) -> f64 {
    report["points"][0]["intervals"][key]["half_width"].as_f64().unwrap()
}

#[test]
fn intervals_stand_in_record_table_csv_and_page() {
    let folder = folder();
    let (report, said) = run(&folder, "o", &[]);
    for key in ["throughput_gbps", "latency_us.mean", "latency_us.p99", "cycles_per_packet.total", "memory_gb_per_s"] {
        let interval = &report["points"][0]["intervals"][key];
        assert_eq!(interval["samples"], 25, "{key}");
        assert!(interval["half_width"].as_f64().unwrap() >= 0.0, "{key}");
    }
    assert!(half_width(&report, "throughput_gbps") > 0.0);
    assert!(said.contains("95 %") && said.contains('±'), "{said}");
    let csv = std::fs::read_to_string(folder.path().join("o/points.csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|head| head == "throughput_gbps.ci95").unwrap();
    let cell: f64 = csv.lines().nth(1).unwrap().split(',').nth(column).unwrap().parse().unwrap();
    assert_eq!(cell, half_width(&report, "throughput_gbps"));
    let page = std::fs::read_to_string(folder.path().join("o/report.html")).unwrap();
    assert!(page.contains("<small>±"), "the tables of the page have them");
}

#[test]
fn a_precision_makes_windows_longer_up_to_a_limit() {
    let folder = folder();
    let (plain, _) = run(&folder, "plain", &[]);
    let relative = |report: &Value| {
        half_width(report, "throughput_gbps") / report["points"][0]["metrics"]["throughput_gbps"].as_f64().unwrap()
    };
    let lasted = |report: &Value| report["points"][0]["simulated_seconds"].as_f64().unwrap() * 1e3 - 0.5;
    assert!((lasted(&plain) - 0.5).abs() < 1e-9);
    let asked = format!("{}", relative(&plain) / 1.5);
    let (longer, _) = run(&folder, "longer", &["--precision", &asked, "--max-window", "64"]);
    assert!(lasted(&longer) >= 1.0 && lasted(&longer) <= 64.0, "{}", lasted(&longer));
    let missed = &longer["points"][0]["steadiness"]["precision_missed"];
    assert!(relative(&longer) < relative(&plain) && missed.is_null(), "{missed}");
    assert_eq!(longer["points"][0]["intervals"]["throughput_gbps"]["samples"], 25);
    // Nothing is that sure so soon.
    let (limited, _) = run(&folder, "limited", &["--precision", "0.01%", "--max-window", "2"]);
    assert!((lasted(&limited) - 2.0).abs() < 1e-9, "{}", lasted(&limited));
    assert!(limited["points"][0]["steadiness"]["precision_missed"].as_f64().unwrap() > 0.0001);
    let output =
        nicforge(&folder, &small(&["--precision", "0.01%", "--max-window", "2", "--out", "limited", "--quiet"]));
    assert!(stderr(&output).contains("shows no steady state: the longest window gives ±"), "{}", stderr(&output));
}

#[test]
fn seeds_give_means_with_intervals_of_independent_runs() {
    let folder = folder();
    let (three, _) = run(&folder, "three", &["--seeds", "3", "--jobs", "2"]);
    let point = &three["points"][0];
    assert_eq!(point["seeds"], serde_json::json!([1, 2, 3]));
    let throughput = |seed: &str| {
        let (one, _) = run(&folder, seed, &["--seed", seed]);
        one["points"][0]["metrics"]["throughput_gbps"].as_f64().unwrap()
    };
    let mean = (throughput("1") + throughput("2") + throughput("3")) / 3.0;
    assert!((point["metrics"]["throughput_gbps"].as_f64().unwrap() - mean).abs() < 1e-9);
    assert_eq!(point["intervals"]["throughput_gbps"]["samples"], 3);
    // Each seed of each point is a point on disk, and more seeds run only what is new.
    let output = nicforge(&folder, &small(&["--seeds", "4", "--out", "three", "--force", "--quiet"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let kept = std::fs::read_dir(folder.path().join("three/points")).unwrap().count();
    assert_eq!(kept, 8);
}

#[test]
fn wrong_precisions_and_seeds_are_refused() {
    let folder = folder();
    let cases: [(&[&str], &str); 5] = [
        (&["--precision", "much"], "use a percentage, such as 1%"),
        (&["--precision", "0"], "use a percentage"),
        (&["--max-window", "5"], "--precision"),
        (&["--precision", "1%", "--max-window", "long"], "`max_window_ms` cannot be \"long\""),
        (&["--seeds", "0"], "1..=1000"),
    ];
    for (more, says) in cases {
        let output = nicforge(&folder, &small(more));
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains(says), "{more:?}: {}", stderr(&output));
    }
}
