//! What the commands print when all is well.

use crate::common::{files, folder, nicforge, stderr, stdout};

#[test]
fn check_shows_the_points_and_writes_nothing() {
    let folder = folder();
    let before = files(folder.path());
    let output = nicforge(&folder, &["check", "scenarios/paper/rxb-03.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    // 100 ms of warm-up and a window of 5 ms each.
    assert!(text.contains("16 points, 1680 ms of simulated time"), "{text}");
    assert!(text.contains("next: nicforge run scenarios/paper/rxb-03.toml"), "{text}");
    assert_eq!(files(folder.path()), before);
}

/// A search is many trials, and a replay as long as its capture.
#[test]
fn check_counts_trials_and_no_windows_of_replays() {
    let folder = folder();
    let amount = |arguments: &[&str]| stdout(&nicforge(&folder, arguments));
    // 10 ms of warm-up and 22 times 30 ms, twice.
    let text = amount(&["check", "scenarios/calibration/c9.toml"]);
    let most = "2 points, up to 1340 ms of simulated time in searches of up to 22 trials each, and";
    assert!(text.contains(most), "{text}");
    let replay = ["check", "scenarios/nat-capture.toml"];
    let text = amount(&replay);
    assert!(text.contains("1 point, as long as its capture for each replay\n"), "{text}");
    let search = ["--set", "measure=no_drop_rate"];
    let text = amount(&[&replay[..], &search].concat());
    assert!(text.contains("1 point, searches that replay their capture up to 22 times\n"), "{text}");
}

/// How many frames whole systems send is for TCP to say.
#[test]
fn check_guesses_no_frames_of_whole_systems() {
    let folder = folder();
    let text = stdout(&nicforge(&folder, &["check", "scenarios/paper/int-53.toml"]));
    assert!(text.contains("ms of simulated time"), "{text}");
    assert!(!text.contains("frames\n") && !text.contains("about"), "{text}");
}

#[test]
fn set_replaces_a_sweep() {
    let folder = folder();
    let arguments = ["check", "scenarios/paper/rxb-02.toml", "--set", "rx_entries=64"];
    let text = stdout(&nicforge(&folder, &arguments));
    assert!(text.contains("\n1 point, "), "{text}");
}

#[test]
fn lists_name_what_there_is() {
    let folder = folder();
    for (what, expected) in [
        ("interfaces", "priv_ring"),
        ("apps", "nat"),
        ("machines", "xeon-4216-cx5"),
        ("scenarios", "scenarios/paper/rxb-02.toml"),
        ("settings", "rx_entries"),
    ] {
        let output = nicforge(&folder, &["list", what]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains(expected), "{what}");
        if what != "settings" {
            assert!(stdout(&nicforge(&folder, &["list"])).contains(expected), "{what}");
        }
    }
    let verbose = stdout(&nicforge(&folder, &["list", "machines", "--verbose"]));
    assert!(verbose.contains("core.frequency_ghz"), "{verbose}");
    assert!(verbose.contains("2.1 GHz"), "{verbose}");
}

#[test]
fn interfaces_and_applications_are_listed_with_what_they_are() {
    let folder = folder();
    let text = stdout(&nicforge(&folder, &["list", "interfaces"]));
    let (server, systems) = text.split_once("whole systems").unwrap();
    for (of, name, about) in [
        (server, "priv_ring", "a private receive ring and completion ring per core"),
        (server, "emulated", "played by a core"),
        (systems, "sinic", "registers"),
    ] {
        let mut lines = of.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| line.contains(about)), "{name}: {text}");
    }
    let text = stdout(&nicforge(&folder, &["list", "apps"]));
    assert!(text.contains("nat        translates addresses"), "{text}");
}

#[test]
fn generated_pages_are_up_to_date() {
    for what in ["settings", "machines", "registers"] {
        let printed = stdout(&nicforge(&folder(), &["list", what, "--markdown"]));
        let page = format!("{}/../../docs/{what}.md", env!("CARGO_MANIFEST_DIR"));
        let written = std::fs::read_to_string(page).unwrap();
        let how = format!("run: nicforge list {what} --markdown > docs/{what}.md");
        assert_eq!(written, printed, "{how}");
    }
}

#[test]
fn a_machine_that_a_user_measured_is_not_on_the_page() {
    let folder = folder();
    let before = stdout(&nicforge(&folder, &["list", "machines", "--markdown"]));
    let measured = nicforge(&folder, &["machine", "measure", "--quick"]);
    assert_eq!(measured.status.code(), Some(0), "{}", stderr(&measured));
    assert!(stdout(&nicforge(&folder, &["list", "machines"])).contains("this-machine"));
    assert_eq!(stdout(&nicforge(&folder, &["list", "machines", "--markdown"])), before);
}

#[test]
fn the_registers_of_one_device_can_be_listed() {
    let map = stdout(&nicforge(&folder(), &["list", "registers", "sinic"]));
    assert!(map.contains("RxMaxCopy") && !map.contains("v_sinic"), "{map}");
    let output = nicforge(&folder(), &["list", "registers", "no_such_device"]);
    assert_eq!(output.status.code(), Some(2));
    let output = nicforge(&folder(), &["list", "apps", "sinic"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_command_has_help_with_examples() {
    let folder = folder();
    for command in ["run", "list", "check", "capture", "diff", "completions", "manual"] {
        let output = nicforge(&folder, &[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        let text = stdout(&output);
        assert!(text.contains(&format!("Examples:\n  nicforge {command}")), "{text}");
    }
}

#[test]
fn shells_and_man_know_the_command() {
    let folder = folder();
    let output = nicforge(&folder, &["completions", "bash"]);
    assert_eq!(output.status.code(), Some(0));
    let script = stdout(&output);
    assert!(script.contains("complete -F _nicforge") && script.contains("sim-vs-live"), "{script}");
    assert_eq!(nicforge(&folder, &["completions", "cmd"]).status.code(), Some(2));
    let output = nicforge(&folder, &["manual", "man1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = std::fs::read_to_string(folder.path().join("man1/nicforge-run.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("scenarios/nat\\-200g.toml"), "{page}");
    assert!(folder.path().join("man1/nicforge.1").exists());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = nicforge(&folder, &["manual", "file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("file: "), "{}", stderr(&output));
}

#[test]
fn help_tells_of_commands_and_keys_and_proposes_what_was_meant() {
    let folder = folder();
    let said = |words: &[&str]| {
        let output = nicforge(&folder, &[&["help"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let key = said(&["rx_entries"]);
    for part in ["rx_entries\n", "takes: a power of two, 2 to ", "default: ", "read by: "] {
        assert!(key.contains(part), "`{part}` in: {key}");
    }
    // One name in two sections is two keys.
    assert!(said(&["threads"]).contains("read by: [live] of live files"));
    assert!(said(&["reproduce"]).contains("--claims") && said(&["p4", "run"]).contains("Usage: nicforge p4 run"));
    assert!(said(&[]).contains("Usage: nicforge"));
    for (wrong, meant) in
        [("rx_entrys", "is `rx_entries` meant?"), ("chek", "is `check` meant?"), ("zzzz", "lists commands")]
    {
        let output = nicforge(&folder, &["help", wrong]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(meant), "{}", stderr(&output));
    }
}

#[test]
fn the_list_of_settings_fits_a_terminal() {
    let output = nicforge(&folder(), &["list", "settings"]);
    let text = stdout(&output);
    let long = text.lines().find(|line| line.chars().count() > 120);
    assert_eq!(long, None);
    assert!(text.contains("\n  rx_entries = 1024: a power of two, 2 to 65536 entries\n      "), "{text}");
}
