//! Runs: what is written and printed, and that the number of jobs changes nothing.

use std::process::{Command, Stdio};

use crate::common::{files, folder, nicforge, stderr, stdout};
use tempfile::TempDir;

/// Settings that make a run short.
const SHORT: [&str; 10] = [
    "--set",
    "polling_starts_ms=0",
    "--set",
    "window_ms=0.05",
    "--set",
    "warmup_ms=0.05",
    "--set",
    "flows=500",
    "--set",
    "table_entries=4096",
];

fn short<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &SHORT].concat()
}

/// `report.json` without the line that says how long the run took.
fn without_wall_time(json: &str) -> String {
    let lines = json.lines().filter(|line| !line.contains("\"wall_seconds\""));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_writes_its_report_and_says_where() {
    let folder = folder();
    let output = nicforge(&folder, &short(&["run", "scenarios/nat-200g.toml"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let folders = std::fs::read_dir(folder.path().join("out/nat-200g")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own: Vec<String> = folders.filter(|name| !["points", "latest"].contains(&name.as_str())).collect();
    let [own] = own.as_slice() else { panic!("a run has one folder: {own:?}") };
    for name in ["report.json", "points.csv", "report.html"] {
        assert!(folder.path().join("out/nat-200g/latest").join(name).is_file(), "{name}");
        assert!(text.contains(&format!("wrote out/nat-200g/{own}/{name}")), "{text}");
    }
    assert!(text.contains("next: open out/nat-200g/latest/report.html"), "{text}");
    // No terminal: one line per finished point instead of a bar.
    assert_eq!(stderr(&output).lines().count(), 2, "{}", stderr(&output));
    assert!(stderr(&output).starts_with("1/2 priv_ring rx_entries=1024: "));
}

#[test]
fn jobs_change_nothing() {
    let folder = folder();
    let run = |jobs: &'static str, out: &'static str| {
        let scenario = "scenarios/paper/rxb-02.toml";
        let arguments = ["run", scenario, "--jobs", jobs, "--out", out, "--quiet"];
        let output = nicforge(&folder, &short(&arguments));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!((stdout(&output), stderr(&output)), (String::new(), String::new()));
        let json = std::fs::read_to_string(folder.path().join(out).join("report.json")).unwrap();
        without_wall_time(&json)
    };
    let one = run("1", "one");
    assert_eq!(one, run("3", "three"));
    assert_eq!(one.matches("\"variant\"").count(), 7);
}

#[test]
fn json_on_standard_output_is_the_report() {
    let folder = folder();
    let arguments = ["run", "scenarios/nat-200g.toml", "--json", "--seed", "9", "--out", "o"];
    let output = nicforge(&folder, &short(&arguments));
    let written = std::fs::read_to_string(folder.path().join("o/report.json")).unwrap();
    assert_eq!(stdout(&output), written);
    let report: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(report["seed"], 9);
    assert_eq!(report["points"][1]["variant"], "priv_ring_small");
    assert_eq!(report["points"][1]["params"]["rx_entries"], 128);
    assert!(stderr(&output).contains("wrote o/report.json"));
}

#[test]
fn the_record_has_every_effective_setting_with_its_origin() {
    let folder = folder();
    let output = nicforge(&folder, &short(&["run", "scenarios/nat-200g.toml", "--json", "--quiet"]));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let find = |settings: &serde_json::Value, key: &str| {
        let mut settings = settings.as_array().unwrap().iter();
        settings.find(|setting| setting["key"] == key).cloned()
    };
    let shared = |key: &str| find(&report["settings"], key).unwrap_or_else(|| panic!("{key} is not shared"));
    assert_eq!(shared("table_entries")["origin"], "override");
    assert_eq!(shared("table_entries")["value"], 4096);
    assert_eq!(shared("app")["value"], "nat");
    assert_eq!((&shared("burst")["origin"], &shared("warmup_ms")["unit"]), (&"default".into(), &"ms".into()));
    // Keys of other interfaces and applications are not in effect.
    assert_eq!(find(&report["settings"], "ax_entries"), None);
    for (point, entries) in report["points"].as_array().unwrap().iter().zip([1024, 128]) {
        let own = find(&point["settings"], "rx_entries").unwrap();
        assert_eq!((&own["value"], &own["unit"]), (&entries.into(), &"entries".into()));
    }
    let parameters = report["machine_parameters"].as_array().unwrap();
    assert!(parameters.iter().all(|number| number["source"].as_str().is_some_and(|source| !source.is_empty())));
}

/// The exit code of `nicforge` with `arguments` and these outputs.
fn code_with(folder: &TempDir, arguments: &[&str], out: Stdio, error: Stdio) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    command.args(arguments).current_dir(folder.path());
    command.stdout(out).stderr(error).status().unwrap().code()
}

#[test]
fn a_run_ends_as_it_would_where_nobody_reads_standard_error() {
    let folder = folder();
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let run = |out| short(&["run", "scenarios/nat-200g.toml", "--json", "--out", out]);
    let report = |out: &str| folder.path().join(out).join("report.json").is_file();
    let code = |arguments: &[&str]| code_with(&folder, arguments, Stdio::null(), gone());
    assert_eq!(code(&run("gone")), Some(0));
    assert!(report("gone"));
    assert_eq!(code(&["run", "missing.toml"]), Some(2));
    assert_eq!(code(&["run", "--quite"]), Some(2));
    if cfg!(target_os = "linux") {
        let full = || {
            let full = std::fs::File::options().write(true).open("/dev/full");
            Stdio::from(full.unwrap())
        };
        assert_eq!(code_with(&folder, &run("full"), Stdio::null(), full()), Some(0));
        assert!(report("full"));
        assert_eq!(code_with(&folder, &["list"], full(), gone()), Some(1));
    }
}

#[test]
fn the_shipped_capture_runs_and_comes_out() {
    let folder = folder();
    let scenario = "scenarios/nat-capture.toml";
    let output = nicforge(&folder, &["run", scenario, "--pcap-out", "new/nat.pcap", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(folder.path().join("new/nat.pcap").is_file());
}

#[test]
fn a_written_capture_is_the_same_for_the_same_seed_and_can_be_replayed() {
    let folder = folder();
    let capture = |out: &'static str, seed: &'static str| {
        let arguments = ["capture", "--out", out, "--packets", "50", "--seed", seed];
        let output = nicforge(&folder, &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).starts_with(&format!("wrote {out}: 50 frames")));
        std::fs::read(folder.path().join(out)).unwrap()
    };
    let first = capture("a.pcap", "3");
    assert_eq!(first, capture("b.pcap", "3"));
    assert_ne!(first, capture("c.pcap", "4"));
    let replay = ["run", "scenarios/nat-capture.toml", "--pcap", "a.pcap", "--quiet"];
    assert_eq!(nicforge(&folder, &replay).status.code(), Some(0));
}

#[test]
fn broken_input_files_stop_a_run_before_it_writes() {
    let folder = folder();
    std::fs::write(folder.path().join("bad.pcap"), "no capture").unwrap();
    std::fs::write(folder.path().join("sizes"), "64 1\nmany 2\n").unwrap();
    std::fs::write(folder.path().join("routes"), "10.0.0.0/40 0\n").unwrap();
    let before = files(folder.path());
    let cases: [(&[&str], &str); 3] = [
        (&["--pcap", "bad.pcap"], "bad.pcap: "),
        (&["--set", "packet_sizes=empirical", "--set", "size_file=sizes"], "line 2"),
        (&["--set", "app=l3fwd", "--set", "routes_file=routes"], "routes:1: "),
    ];
    for (arguments, expected) in cases {
        let run = ["run", "scenarios/nat-200g.toml"];
        let output = nicforge(&folder, &[&run, arguments].concat());
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{error}");
        assert_eq!(files(folder.path()), before);
    }
}

#[test]
fn captures_refuse_traffic_that_cannot_be() {
    let folder = folder();
    let before = files(folder.path());
    for (set, expected) in [("arrival=replay", "no capture to play"), ("flows=0", "1 to 100000000 flows")] {
        let output = nicforge(&folder, &["capture", "--out", "x.pcap", "--set", set]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn captures_say_what_is_not_about_their_traffic() {
    let folder = folder();
    for (set, owner) in [("cores=4", "every run"), ("zipf_s=1", "flow_choice = zipf")] {
        let output = nicforge(&folder, &["capture", "--out", "x.pcap", "--packets", "1", "--set", set]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(&format!("note: --set {set}: ")) && said.contains(owner), "{said}");
    }
}
