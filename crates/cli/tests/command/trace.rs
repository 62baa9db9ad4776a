//! `--trace`: the lives of packets beside the report, which stays as it is.

use serde_json::Value;

use crate::common::{folder, nicforge, stderr, stdout};

/// The main job, small.
const SMALL: [&str; 16] = [
    "run",
    "scenarios/nat-200g.toml",
    "--set",
    "cores=4",
    "--set",
    "flows=1000",
    "--set",
    "table_entries=4096",
    "--set",
    "polling_starts_ms=0",
    "--set",
    "warmup_ms=0.05",
    "--set",
    "window_ms=0.1",
    "--out",
    "out/trace",
];

/// What the trace-event format asks of each event, and Perfetto of slices of a thread: they lie within each other or one
/// behind the other.
fn check_events(json: &Value) {
    let events = json["traceEvents"].as_array().unwrap();
    let mut open: Vec<(u64, u64, f64, f64)> = Vec::new();
    for event in events {
        assert!(event["name"].is_string() && event["ts"].is_number(), "{event}");
        let (pid, tid) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        match event["ph"].as_str().unwrap() {
            "M" => assert!(event["args"]["name"].is_string(), "{event}"),
            "X" => {
                let (from, lasts) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                assert!(lasts >= 0.0, "{event}");
                let until = from + lasts;
                open.retain(|&(p, t, _, end)| (p, t) == (pid, tid) && end > from + 1e-6);
                assert!(open.iter().all(|&(_, _, begin, end)| begin <= from + 1e-6 && until <= end + 1e-6), "{event}");
                open.push((pid, tid, from, until));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_trace_stands_beside_a_report_that_it_does_not_change() {
    let folder = folder();
    let at = |name: &str| std::fs::read_to_string(folder.path().join("out/trace").join(name));
    let plain = nicforge(&folder, &SMALL);
    assert!(plain.status.success(), "{}", stderr(&plain));
    assert!(at("trace.json").is_err());
    let same = |text: &str| {
        let mut record: Value = serde_json::from_str(text).unwrap();
        record["wall_seconds"] = Value::Null;
        record.to_string()
    };
    let (csv, record) = (at("points.csv").unwrap(), same(&at("report.json").unwrap()));
    let traced = nicforge(&folder, &[&SMALL[..], &["--trace", "30"]].concat());
    assert!(traced.status.success(), "{}", stderr(&traced));
    assert_eq!((at("points.csv").unwrap(), same(&at("report.json").unwrap())), (csv, record));
    assert!(stdout(&traced).contains("wrote out/trace/trace.json\nwrote out/trace/trace.txt\n"), "{}", stdout(&traced));
    let json: Value = serde_json::from_str(&at("trace.json").unwrap()).unwrap();
    check_events(&json);
    let threads = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "thread_name");
    assert_eq!(threads.count(), 2 * 30, "of both variants");
    let text = at("trace.txt").unwrap();
    for part in [
        "priv_ring rx_entries=1024\n=",
        "priv_ring_small rx_entries=128\n=",
        "slowest ns",
        "ring: until the core polls",
        "core: application",
        "total",
    ] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    assert!(at("report.html").unwrap().contains("Where the time of a packet goes"));
    // The same packets again.
    let again = nicforge(&folder, &[&SMALL[..], &["--trace", "30", "--jobs", "2"]].concat());
    assert!(again.status.success());
    assert_eq!(at("trace.txt").unwrap(), text);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = folder();
    for (scenario, set, says) in [
        ("scenarios/paper/int-53.toml", "", "whole systems"),
        ("scenarios/paper/tn-5.1.toml", "", "whole systems"),
        ("scenarios/paper/off-02.toml", "", "whole systems"),
        ("scenarios/paper/fx-08.toml", "", "whole systems"),
        ("scenarios/nat-200g.toml", "measure=no_drop_rate", "use --set measure=window"),
    ] {
        let set: &[&str] = if set.is_empty() { &[] } else { &["--set", set] };
        let output = nicforge(&folder, &[&["run", scenario, "--trace", "5"], set].concat());
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("--trace 5: ") && error.contains(says), "{error}");
    }
    let none = nicforge(&folder, &["run", "scenarios/nat-200g.toml", "--trace", "0"]);
    assert!(stderr(&none).contains("use a whole number from 1 to 10000"), "{}", stderr(&none));
}

/// Packets of a capture, with real times.
#[test]
#[cfg(target_os = "linux")]
fn a_live_run_writes_the_same_files() {
    let folder = folder();
    let file = "[live]\nname = \"c\"\n[settings]\ninterface = \"rx_bisect\"\napp = \"l2fwd\"\ncores = 2\n\
                [[port]]\nread = \"scenarios/captures/sample.pcap\"\n[[port]]\nwrite = \"out.pcap\"\n";
    std::fs::write(folder.path().join("c.toml"), file).unwrap();
    let output = nicforge(&folder, &["live", "c.toml", "--trace", "10", "--out", "o"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("wrote o/trace.json\nwrote o/trace.txt\n"), "{}", stdout(&output));
    let at = |name: &str| std::fs::read_to_string(folder.path().join("o").join(name)).unwrap();
    check_events(&serde_json::from_str(&at("trace.json")).unwrap());
    let text = at("trace.txt");
    for part in ["c\n=", "worker: application", "NIC: sends it by its port", "; sent\n"] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    let attached = nicforge(&folder, &["live", "c.toml", "--trace", "10", "--out", "p", "--attach", "s.sock"]);
    let error = stderr(&attached);
    assert_eq!(attached.status.code(), Some(2), "{error}");
    assert!(error.contains("--trace 10") && error.contains("leave `trace` out"), "{error}");
}
