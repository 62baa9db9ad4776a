//! `nicforge diff` and `--overlay`: runs beside each other, and beside values of the user's own.

use crate::common::{files, folder, nicforge, stderr, stdout};
use tempfile::TempDir;

const SHORT: [&str; 8] =
    ["--set", "polling_starts_ms=0", "--set", "window_ms=0.1", "--set", "warmup_ms=0.05", "--set", "flows=500"];

fn nat<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "scenarios/nat-200g.toml", "--quiet", "--set", "table_entries=4096"], &SHORT[..], more].concat()
}

#[track_caller]
fn run(folder: &TempDir, arguments: &[&str]) -> String {
    let output = nicforge(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

#[track_caller]
fn refused(folder: &TempDir, arguments: &[&str], parts: &[&str]) {
    let before = files(folder.path());
    let output = nicforge(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    for part in parts {
        assert!(stderr(&output).contains(part), "`{part}` in: {}", stderr(&output));
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn two_runs_are_compared_by_settings_and_metrics() {
    let folder = folder();
    run(&folder, &nat(&[]));
    run(&folder, &nat(&["--out", "half", "--set", "offered_gbps=100"]));
    let said = run(&folder, &["diff", "out/nat-200g", "half", "--out", "both"]);
    for part in
        ["A  out/nat-200g", "B  half", "offered_gbps  200", "priv_ring", "throughput Gbit/s", "wrote both/report.html"]
    {
        assert!(said.contains(part), "`{part}` in:\n{said}");
    }
    let page = std::fs::read_to_string(folder.path().join("both/report.html")).unwrap();
    assert!(page.contains("priv_ring (A)") && page.contains("priv_ring (B)"));
    let same = run(&folder, &["diff", "half", "half/report.json"]);
    assert!(same.contains("settings, machine and program: the same"), "{same}");
    assert!(same.contains("no main metric differs"), "{same}");
    refused(&folder, &["diff", "half", "out/nat-200g", "--out", "both"], &["both/report.json is of another run"]);
}

#[test]
fn what_is_no_record_is_refused() {
    let folder = folder();
    run(&folder, &nat(&["--out", "o"]));
    refused(&folder, &["diff", "o", "nowhere"], &["nowhere: there is no report.json; name the folder of a run"]);
    let whole = std::fs::read(folder.path().join("o/report.json")).unwrap();
    std::fs::write(folder.path().join("cut.json"), &whole[..whole.len() / 2]).unwrap();
    refused(&folder, &["diff", "cut.json", "o"], &["cut.json: not a report.json: ", "written by `nicforge run`"]);
    let other = "{\"version\": \"0.0.1\", \"results\": []}";
    std::fs::write(folder.path().join("other.json"), other).unwrap();
    refused(
        &folder,
        &["diff", "o", "other.json"],
        &["other.json: a report of version 0.0.1, which", "run its scenario again"],
    );
    refused(&folder, &["diff", "o", "o/points.csv"], &["o/points.csv: not a report.json"]);
}

#[test]
fn own_values_stand_in_table_and_page() {
    let folder = folder();
    let csv = "# measured on the testbed\nrx_entries,throughput_gbps,throughput_gbps.ci95\n1024,160,2.5\n128,197,\n";
    std::fs::write(folder.path().join("testbed.csv"), csv).unwrap();
    let mut arguments = nat(&["--overlay", "testbed.csv", "--out", "o"]);
    arguments.retain(|argument| *argument != "--quiet");
    let said = run(&folder, &arguments);
    for part in ["simulated/own", "testbed, rx_entries 1024  throughput Gbit/s  160 ± 2.5", "testbed, rx_entries 128"]
    {
        assert!(said.contains(part), "`{part}` in:\n{said}");
    }
    let page = std::fs::read_to_string(folder.path().join("o/report.html")).unwrap();
    assert!(page.contains("Own values beside the simulation") && page.contains("testbed, own"));
    // The results are those of a run without them.
    let json = std::fs::read_to_string(folder.path().join("o/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["overlays"][0]["values"]["throughput_gbps"], 160.0);
    assert_eq!(report["points"].as_array().unwrap().len(), 2);
}

#[test]
fn points_of_another_run_stand_beside_its_own() {
    let folder = folder();
    run(&folder, &nat(&["--out", "before"]));
    let shown = |csv: &str, out: &str| {
        let mut arguments = nat(&["--overlay", csv, "--out", out]);
        arguments.retain(|argument| *argument != "--quiet");
        run(&folder, &arguments)
    };
    let said = shown("before/points.csv", "now");
    assert!(said.contains("\npriv_ring_small, rx_entries 128  throughput Gbit/s  "), "{said}");
    assert!(said.contains("the page has ") && said.lines().count() < 60, "{said}");
    std::fs::write(folder.path().join("drops.csv"), "rx_entries,drops.fifo_full,drops.fifo_full.ci95\n128,5,1\n")
        .unwrap();
    let said = shown("drops.csv", "drops");
    assert!(said.contains("drops, rx_entries 128  dropped: fifo_full frames  5 ± 1  priv_ring_small"), "{said}");
}

#[test]
fn wrong_tables_are_refused_before_the_run() {
    let folder = folder();
    let wrong = |csv: &str, parts: &[&str]| {
        std::fs::write(folder.path().join("own.csv"), csv).unwrap();
        refused(&folder, &nat(&["--overlay", "own.csv"]), parts);
    };
    let names = ["--overlay own.csv:1: no column is called `throughput_gbp`", "did you mean `throughput_gbps`?"];
    wrong("rx_entries,throughput_gbp\n128,1\n", &names);
    wrong("rx_entries,colour of the cable\n128,1\n", &["use names of points.csv"]);
    wrong("rx_entries\n128\n", &["no column with values of a metric", "such as throughput_gbps"]);
    wrong("throughput_gbps\n", &["own.csv:2: it has no row"]);
    wrong("throughput_gbps\nfast\n", &["own.csv:2: `throughput_gbps` cannot be \"fast\"", "write a number"]);
    wrong("rx_entries,throughput_gbps\n128,1,2\n", &["own.csv:2: it is no table", "as many fields in each row"]);
    wrong("", &["no column with values"]);
    refused(&folder, &nat(&["--overlay", "missing.csv"]), &["--overlay missing.csv: it cannot be read"]);
}
