//! Wrong usage and input: exit code 2, the place and the remedy, and nothing written.

mod common;

use common::{files, folder, nicforge, stderr, stdout};

/// Runs with `arguments` after writing `text` to `s.toml`; asserts code 2, nothing written,
/// nothing on standard output, and all of `parts` in the error.
fn refused(text: &str, arguments: &[&str], parts: &[&str]) {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let before = files(folder.path());
    let output = nicforge(&folder, arguments);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(error.contains(part), "`{part}` in: {error}");
    }
    assert_eq!(files(folder.path()), before, "nothing is written");
}

const HEADER: &str = "[scenario]\nname = \"s\"\nmachine = \"xeon-4216-cx5\"\n";

#[test]
fn a_wrong_scenario() {
    let text = format!("{HEADER}[settings]\nrx_entries = 100\n");
    for command in ["run", "check"] {
        refused(
            &text,
            &[command, "s.toml"],
            &["error: s.toml:5:14: ", "64 or 128 would do"],
        );
    }
}

#[test]
fn more_memory_than_is_modelled() {
    let text = format!("{HEADER}[settings]\napp = \"kvs\"\nkvs_log_mib = 65536\n");
    refused(
        &text,
        &["run", "s.toml"],
        &["over 64 GiB at most", "fewer `table_entries`"],
    );
}

#[test]
fn a_missing_scenario() {
    refused(
        "",
        &["run", "none.toml"],
        &["error: none.toml: cannot be read"],
    );
    refused("", &["run", "scenarios"], &["error: scenarios: is no file"]);
}

#[test]
fn a_missing_machine() {
    let text = "[scenario]\nname = \"s\"\nmachine = \"xeon-4216\"\n";
    refused(
        text,
        &["run", "s.toml"],
        &["s.toml:3:11: ", "did you mean \"xeon-4216-cx5\"?"],
    );
}

#[test]
fn wrong_overrides() {
    let run = ["run", "scenarios/nat-200g.toml"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    refused(
        "",
        &with(&["--set", "core=4"]),
        &["--set core=4: ", "did you mean `cores`?"],
    );
    refused(
        "",
        &with(&["--set", "cores=0"]),
        &["--set cores=0: ", "1 to 256 cores"],
    );
    refused(
        "",
        &with(&["--set", "io_ways=12"]),
        &["--set io_ways=12: ", "set io_ways to 0 to 11"],
    );
    refused(
        "",
        &with(&["--pcap", "none.pcap"]),
        &["--pcap none.pcap: there is no such file"],
    );
    refused(
        "",
        &with(&["--jobs", "0"]),
        &["'--jobs <N>'", "from 1 to 1024"],
    );
    refused("", &with(&["--seed", "x"]), &["--seed"]);
    refused("", &with(&["--quite"]), &["--quite", "--quiet"]);
}

#[test]
fn outputs_that_cannot_be() {
    let run = ["run", "scenarios/nat-200g.toml"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    refused(
        "",
        &with(&["--out", "s.toml"]),
        &["--out s.toml: is a file"],
    );
    refused(
        "",
        &with(&["--pcap-out", "x.pcap"]),
        &["needs one point, not 2"],
    );
}

#[test]
fn a_wrong_machine_file() {
    let folder = folder();
    let file = folder.path().join("machines/xeon-4216-cx5.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("frequency_ghz", "frequency_mhz")).unwrap();
    let output = nicforge(&folder, &["run", "scenarios/nat-200g.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("machines/xeon-4216-cx5.toml:"), "{error}");
    assert!(error.contains("did you mean `frequency_ghz`?"), "{error}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn flags_that_do_not_belong() {
    refused("", &["list", "apps", "--verbose"], &["--verbose goes with"]);
    refused("", &["list", "interface"], &["interfaces"]);
    refused("", &[], &["Usage: nicforge"]);
}
