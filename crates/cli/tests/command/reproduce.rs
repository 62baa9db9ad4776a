//! `nicforge reproduce`: claims beside predictions, and what is wrong with a file of claims.

use std::path::Path;

use crate::common::{folder, nicforge, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;

/// The shipped file.
fn shipped() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/predictions/open.toml").display().to_string()
}

/// A file of claims with `claims`, each of them the lines of a table.
fn book(folder: &TempDir, claims: &[&str]) {
    let mut text = String::from(
        "source = \"a test\"\n\n[[paper]]\nname = \"rx-bisect\"\ntitle = \"rxBisect paper\"\nprefix = \"rxb\"\n\n\
         [[paper]]\nname = \"nicmem\"\ntitle = \"nicmem paper\"\nprefix = \"nm\"\n",
    );
    for claim in claims {
        text += &format!("\n[[claim]]\n{claim}\n");
    }
    std::fs::write(folder.path().join("claims.toml"), text).unwrap();
}

const SHORT: [&str; 10] = [
    "--set",
    "polling_starts_ms=0",
    "--set",
    "window_ms=0.2",
    "--set",
    "warmup_ms=0.2",
    "--set",
    "flows=500",
    "--set",
    "table_entries=4096",
];

#[test]
fn claims_stand_beside_predictions_and_a_second_call_runs_nothing() {
    let folder = folder();
    book(
        &folder,
        &[
            "scenario = \"rxb-02\"\nclaim = \"everything arrives\"\npublished = 1\n\
             predicted = \"offered_gbps{rx_entries=64} / offered_gbps{rx_entries=4096}\"\nknown = \"nothing\"",
            "scenario = \"rxb-02\"\nclaim = \"rates are numbers\"\npredicted = \"throughput_gbps{} > 0\"",
            "scenario = \"rxb-99\"\nclaim = \"it snows\"\nnot_compared = \"no scenario has weather\"",
        ],
    );
    let call = [&["reproduce", "rx-bisect", "--claims", "claims.toml"], &SHORT[..]].concat();
    let not_yet = nicforge(&folder, &[&call[..], &["--no-run"]].concat());
    assert_eq!(not_yet.status.code(), Some(0), "{}", stderr(&not_yet));
    assert!(stdout(&not_yet).contains("rx-bisect  3       –"), "{}", stdout(&not_yet));
    let first = nicforge(&folder, &call);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let table = stdout(&first);
    assert!(table.contains("everything arrives  1          1"), "{table}");
    assert!(table.contains("ordering   holds in 7 of 7"), "{table}");
    assert!(table.contains("rx-bisect  3       1 of 1"), "{table}");
    let again = nicforge(&folder, &[&call[..], &["--json"]].concat());
    assert!(stderr(&again).contains("all 7 points were finished before"), "{}", stderr(&again));
    let json: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(json["claims"][0]["verdict"], "within its interval");
    assert_eq!(json["claims"][2]["known"], "no scenario has weather");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out/reproduce/rx-bisect").join(name)).unwrap();
    assert_eq!(read("reproduce.json"), stdout(&again));
    assert!(read("reproduce.html").contains("no scenario has weather"));
    let markdown = nicforge(&folder, &[&call[..], &["--markdown", "--only", "arrives", "--out", "o"]].concat());
    let page = stdout(&markdown);
    assert!(page.contains("| everything arrives | 1 | 1"), "{page}");
    assert!(page.contains(" | 1.00 | within its interval | nothing |"), "{page}");
    assert!(!page.contains("rates are numbers"));
}

#[test]
fn scenarios_without_open_values_show_what_they_predict() {
    let folder = folder();
    book(&folder, &[]);
    for entry in std::fs::read_dir(folder.path().join("scenarios/paper")).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("rxb-02.toml") && !path.ends_with("nm-02.toml") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let call = [&["reproduce", "rx-bisect", "--blind", "--claims", "claims.toml"], &SHORT[..]].concat();
    let output = nicforge(&folder, &call);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("rxb-02 (1 of 1)") && !said.contains("nm-02"), "{said}");
    assert!(stdout(&output).contains("\nrxb-02: Load balancer"), "{}", stdout(&output));
    let page = std::fs::read_to_string(folder.path().join("out/reproduce/rx-bisect/reproduce.html")).unwrap();
    assert!(page.contains("<summary>rxb-02, no published value: Load balancer"));
}

#[test]
fn the_shipped_claims_ask_for_points_that_their_scenarios_have() {
    let folder = folder();
    let output = nicforge(&folder, &["reproduce", "all", "--no-run", "--json", "--claims", &shipped()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(json["claims"].as_array().unwrap().len(), 102);
    let list = stdout(&nicforge(&folder, &["reproduce", "--list", "--claims", &shipped()]));
    assert!(list.contains("rx-bisect       rxBisect paper               29 claims  rxb-10, rxb-14, rxb-18"), "{list}");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    let folder = folder();
    let good = "scenario = \"rxb-02\"\nclaim = \"c\"\npublished = 1\n";
    let with = |line: &str| format!("{good}{line}");
    let cases = [
        (
            with("predicted = \"throughput_gbp{}\""),
            "claims.toml:17:13: `predicted`: no metric is called `throughput_gbp`",
        ),
        (with("predicted = \"throughput_gbps{} > 1\""), "claims.toml:17:13: `predicted` does not fit the claim; give"),
        (with("predicted = \"max(throughput_gbps{x})\""), "`predicted`: no variant is called `x`: there are "),
        (with("predicted = \"1\"\nnot_compared = \"w\""), "it has `predicted` and `not_compared`; keep one"),
        (with("bounds = \"at_most\""), "unknown key of [[claim]] `bounds`; did you mean `bound`?"),
        (with("bound = \"upper\"\npredicted = \"1\""), "`bound` cannot be \"upper\"; write \"at_most\""),
        (with(""), "a [[claim]] is not compared; add `predicted`, or `not_compared` with the reason"),
        (
            with("run = \"rxb-77\"\npredicted = \"max(offered_gbps{})\""),
            "there is no scenarios/paper/rxb-77.toml; name",
        ),
        ("scenario = \"abc-1\"\nclaim = \"c\"".to_owned(), "no paper has a scenario \"abc-1\"; add a [[paper]]"),
        ("scenario = ".to_owned(), "claims.toml:14:"),
    ];
    for (claim, wrong) in cases {
        book(&folder, &[&claim]);
        let output = nicforge(&folder, &["reproduce", "rx-bisect", "--claims", "claims.toml"]);
        assert_eq!(output.status.code(), Some(2), "{claim}");
        assert!(stderr(&output).contains(wrong), "{wrong}: {}", stderr(&output));
    }
    assert!(!folder.path().join("out").exists(), "nothing is written");
}

#[test]
fn unknown_papers_and_words_are_refused_with_what_there_is() {
    let folder = folder();
    book(&folder, &["scenario = \"rxb-02\"\nclaim = \"c\"\npublished = 1\npredicted = \"1\""]);
    let refused = |arguments: &[&str]| {
        let output = nicforge(&folder, &[&["reproduce"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        stderr(&output)
    };
    let unknown = refused(&["rxbisect", "--claims", "claims.toml"]);
    assert!(unknown.contains("there is no such paper; did you mean `rx-bisect`? known: rx-bisect, nicmem, all"));
    let blind = refused(&["nicmem", "--claims", "claims.toml"]);
    assert!(
        blind.contains("no published value of the nicmem paper is open, all of them stay blind; add --blind"),
        "{blind}"
    );
    let only = refused(&["all", "--claims", "claims.toml", "--only", "snow"]);
    assert!(
        only.contains("--only snow: no claim of all has that; name words of a claim, or a scenario: rxb-02"),
        "{only}"
    );
    assert!(refused(&["all", "--claims", "none.toml"]).contains("none.toml: cannot be read"));
    assert!(refused(&["all"]).contains("there is no docs/predictions/open.toml here or above"));
    assert!(refused(&[]).contains("<PAPER>"));
}
