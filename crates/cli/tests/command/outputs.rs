//! What a command writes is none of what it reads, and can be written: exit code 2 before anything
//! runs, and every file as it was.

use std::path::Path;

use crate::common::{files, folder, nicforge, stderr};
use tempfile::TempDir;

/// Every file under `folder` with its bytes.
fn state(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = |path: &String| std::fs::read(path).unwrap_or_default();
    files(folder).into_iter().map(|path| (path.clone(), bytes(&path))).collect()
}

#[track_caller]
fn refused(folder: &TempDir, arguments: &[&str], parts: &[&str]) {
    let before = state(folder.path());
    let output = nicforge(folder, arguments);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    for part in parts {
        assert!(error.contains(part), "`{part}` in: {error}");
    }
    assert!(state(folder.path()) == before, "{arguments:?}: all as it was");
}

/// A folder with the shipped capture as same.pcap, and links to it of both kinds.
fn with_links() -> TempDir {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(at("scenarios/captures/sample.pcap"), at("same.pcap")).unwrap();
    std::fs::hard_link(at("same.pcap"), at("hard.pcap")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("same.pcap", at("soft.pcap")).unwrap();
    folder
}

#[test]
fn a_run_keeps_what_it_reads() {
    let folder = with_links();
    for out in ["same.pcap", "./scenarios/../same.pcap", "hard.pcap", "soft.pcap"] {
        let scenario = "scenarios/nat-capture.toml";
        let run = ["run", scenario, "--pcap", "same.pcap", "--pcap-out", out];
        refused(&folder, &run, &["--pcap-out ", "is the file that `pcap` reads"]);
    }
    for (out, reads) in
        [("scenarios/nat-capture.toml", "the scenario reads"), ("machines/xeon-4216-cx5.toml", "the machine reads")]
    {
        let run = ["run", "scenarios/nat-capture.toml", "--pcap-out", out];
        refused(&folder, &run, &[reads]);
    }
    // A report, too, is written somewhere.
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("o")).unwrap();
    std::fs::hard_link(at("same.pcap"), at("o/points.csv")).unwrap();
    let scenario = "scenarios/nat-capture.toml";
    let run = ["run", scenario, "--pcap", "same.pcap", "--out", "o"];
    refused(&folder, &run, &["--out o: ", "`pcap` reads"]);
    let run = ["run", scenario, "--out", "new", "--pcap-out", "new/report.json"];
    refused(&folder, &run, &["is the file that --out new writes"]);
}

#[test]
fn a_capture_keeps_what_it_is_made_of() {
    let folder = with_links();
    for out in ["same.pcap", "hard.pcap"] {
        let capture = ["capture", "--pcap", "same.pcap", "--out", out, "--packets", "10"];
        refused(&folder, &capture, &["is the file that `pcap` reads"]);
    }
    // It is written here first.
    let at = |name: &str| folder.path().join(name);
    std::fs::rename(at("hard.pcap"), at("x.pcap.part")).unwrap();
    let capture = ["capture", "--pcap", "x.pcap.part", "--out", "x.pcap"];
    refused(&folder, &capture, &["x.pcap.part is the file that"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_live_run_keeps_what_it_reads() {
    let folder = with_links();
    let live = |ports: &str, more: &[&str], parts: &[&str]| {
        let text = format!("[live]\nname = \"l\"\nduration_s = 0.1\n[settings]\napp = \"l2fwd\"\n{ports}");
        std::fs::write(folder.path().join("live.toml"), text).unwrap();
        refused(&folder, &[&["live", "live.toml"], more].concat(), parts);
    };
    let reads = "[[port]]\nread = \"same.pcap\"\n";
    let crossed = format!("{reads}[[port]]\nwrite = \"hard.pcap\"\n");
    live(&crossed, &[], &["live.toml:8:1: `write`: ", "live.toml:6:1: `read` reads"]);
    let both = "[[port]]\nwrite = \"x.pcap\"\n[[port]]\nwrite = \"./x.pcap\"\n";
    live(both, &[], &["live.toml:6:1: `write` writes"]);
    live("[[port]]\nwrite = \"live.toml\"\n", &[], &["the live run's file reads"]);
    live(reads, &["--attach", "hard.pcap"], &["attach hard.pcap: is there and no socket"]);
}

#[test]
fn a_folder_in_the_place_of_a_report_is_known_before_the_run() {
    for name in ["report.json", "points.csv", "report.html", ".points.csv.part"] {
        let folder = folder();
        std::fs::create_dir_all(folder.path().join("o").join(name)).unwrap();
        let says = format!("--out o: o/{name} is a folder, where a file is to be; take it away");
        let scenario = "scenarios/nat-capture.toml";
        refused(&folder, &["run", scenario, "--out", "o"], &[&says]);
        if cfg!(target_os = "linux") {
            let compare = ["sim-vs-live", scenario, "--set", "nics=1", "--set", "cores=1", "--out", "o"];
            refused(&folder, &compare, &[&says]);
            let ports = "[[port]]\nread = \"scenarios/captures/sample.pcap\"\n";
            let live = format!("[live]\nname = \"l\"\n[settings]\napp = \"l2fwd\"\n{ports}");
            std::fs::write(folder.path().join("live.toml"), live).unwrap();
            refused(&folder, &["live", "live.toml", "--out", "o"], &[&says]);
        }
    }
}

#[test]
fn a_part_that_cannot_be_written_over_is_known_before_the_run() {
    let folder = folder();
    let part = folder.path().join("o/.report.json.part");
    std::fs::create_dir(folder.path().join("o")).unwrap();
    std::fs::write(&part, "").unwrap();
    let mut mode = part.metadata().unwrap().permissions();
    mode.set_readonly(true);
    std::fs::set_permissions(&part, mode).unwrap();
    if std::fs::OpenOptions::new().append(true).open(&part).is_ok() {
        println!("skipped: a user who may write everything");
        return;
    }
    let run = ["run", "scenarios/nat-capture.toml", "--out", "o"];
    let says = ["--out o: cannot be written", "take o/.report.json.part away"];
    refused(&folder, &run, &says);
}

#[test]
fn what_cannot_be_written_is_known_before_the_run() {
    let folder = folder();
    let run = |more: &[&str], parts: &[&str]| {
        let whole = [&["run", "scenarios/nat-capture.toml"], more].concat();
        refused(&folder, &whole, parts);
    };
    let file = "scenarios/nat-capture.toml";
    run(&["--out", file], &["is a file; name a folder"]);
    run(&["--out", &format!("{file}/x/y")], &["cannot be written"]);
    // Of the folders on the way none stays.
    let long = format!("new/folder/{}", "x".repeat(300));
    run(&["--out", &long], &["cannot be written"]);
    run(&["--pcap-out", &format!("{file}/x.pcap")], &["cannot be written"]);
    run(&["--pcap-out", "machines"], &["is a folder; name a file"]);
    if cfg!(target_os = "linux") {
        // Nobody can make anything there, whatever the mode of a folder means to who runs this.
        for out in ["/proc", "/proc/x"] {
            run(&["--out", out], &[&format!("--out {out}: cannot be written")]);
        }
        run(&["--pcap-out", "/proc/x.pcap"], &["cannot be written"]);
        refused(&folder, &["capture", "--out", "/proc/x.pcap"], &["cannot be written"]);
    }
}
