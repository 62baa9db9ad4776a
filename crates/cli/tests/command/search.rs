//! `nicforge search`: how far a key goes while a metric keeps a bound.

use crate::common::{folder, nicforge, stderr, stdout};

/// One core that routes small frames, at most some 10 Mpps of them: 6 Gbit/s.
const SCENARIO: &str = r#"
[scenario]
name = "one-core"
machine = "xeon-4216-cx5"

[settings]
app = "l2fwd"
cores = 1
nics = 1
packet_bytes = 64
flows = 100
warmup_ms = 0.2
window_ms = 0.3

[[variant]]
interface = "priv_ring"

[[variant]]
interface = "sh_ring"
"#;

const SEARCH: [&str; 10] =
    ["search", "one.toml", "--key", "offered_gbps", "--from", "1", "--to", "60", "--while", "drop_fraction <= 0"];

fn folder_with_scenario() -> tempfile::TempDir {
    let folder = folder();
    std::fs::write(folder.path().join("one.toml"), SCENARIO).unwrap();
    folder
}

#[test]
fn a_search_finds_neighbours_between_which_the_bound_breaks() {
    let folder = folder_with_scenario();
    let arguments = [&SEARCH[..], &["--apart", "2", "--out", "out"]].concat();
    let output = nicforge(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for variant in ["priv_ring", "sh_ring"] {
        let line = text.lines().find(|line| line.starts_with(&format!("{variant} ")));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        // Such as: up to offered_gbps = 5 (drop_fraction 0.0000), not at 7 (drop_fraction 0.1234)
        let numbers: Vec<f64> = line.split(" = ").nth(1).unwrap().split(", not at ").map(first_number).collect();
        assert_eq!(numbers[1] - numbers[0], 2.0, "{line}");
    }
    let points = std::fs::read_to_string(folder.path().join("out/points.csv")).unwrap();
    // Both ends and the halvings of 30 steps, of two variants.
    assert!((2 * 4..=2 * 8).contains(&(points.lines().count() - 1)), "{points}");
    let again = nicforge(&folder, &arguments);
    assert_eq!(stdout(&again), text, "nothing depends on what is kept");
    assert!(stderr(&again).contains("were finished before"), "{}", stderr(&again));
}

fn first_number(text: &str) -> f64 {
    text.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn ends_that_agree_are_said() {
    let folder = folder_with_scenario();
    let arguments = ["search", "one.toml", "--key", "rx_entries", "--from", "64", "--to", "256"];
    for (bound, says) in [("throughput_gbps > 0", "at both ends"), ("throughput_gbps > 1000", "at neither end")] {
        let output = nicforge(&folder, &[&arguments[..], &["--while", bound, "--quiet"]].concat());
        assert_eq!(stdout(&output).matches(says).count(), 2, "{}{}", stdout(&output), stderr(&output));
    }
}

#[test]
fn wrong_searches_are_refused() {
    let folder = folder_with_scenario();
    let of = |changed: &[(usize, &'static str)]| {
        let mut arguments = SEARCH;
        changed.iter().for_each(|(at, word)| arguments[*at] = word);
        let output = nicforge(&folder, &arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(of(&[(3, "offered_gbp")]).contains("did you mean `offered_gbps`?"));
    assert!(of(&[(3, "app")]).contains("name a key of numbers"));
    assert!(of(&[(5, "60")]).contains("is no range to search"));
    assert!(of(&[(9, "drop_fracton < 1")]).contains("did you mean `drop_fraction`?"));
    for (bound, metric) in
        [("rpc_mps > 1", "rpc_mps"), ("no_drop_gbps > 1", "no_drop_gbps"), ("cpu_time.idle > 0", "cpu_time.idle")]
    {
        assert!(of(&[(9, bound)]).contains(&format!("measures no `{metric}`; name a metric")), "{bound}");
    }
    assert!(!folder.path().join("out").exists(), "they are refused before anything runs");
    // Only a point tells whether its application answers GETs, so the first points run.
    assert!(of(&[(9, "get_hit_rate > 0")]).contains("measures no `get_hit_rate`"));
}

#[test]
fn what_needs_one_run_is_refused() {
    let folder = folder_with_scenario();
    for more in [["--trace", "3"], ["--pcap-out", "o.pcap"], ["--overlay", "o.csv"]] {
        let output = nicforge(&folder, &[&SEARCH[..], &more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains("leave --pcap-out, --trace and --overlay out"), "{}", stderr(&output));
    }
}
