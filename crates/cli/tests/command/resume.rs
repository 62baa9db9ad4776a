//! A run that was stopped continues where it stopped, and a report is not replaced by another run's.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{folder, nicforge, stderr};
use tempfile::TempDir;

/// Seven points, each of them short.
const SCENARIO: &str = "scenarios/paper/rxb-02.toml";
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
const POINTS: usize = 7;

fn sweep<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", SCENARIO, "--quiet", "--out", out], &SHORT[..], more].concat()
}

fn kept(folder: &TempDir, out: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path().join(out).join("points")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut whole: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    whole.sort();
    whole
}

fn read(folder: &TempDir, path: &str) -> Vec<u8> {
    std::fs::read(folder.path().join(path)).unwrap()
}

/// `report.json` without the line that says how long the run took.
fn record(folder: &TempDir, out: &str) -> String {
    let text = String::from_utf8(read(folder, &format!("{out}/report.json"))).unwrap();
    text.lines().filter(|line| !line.contains("\"wall_seconds\"")).collect()
}

fn run(folder: &TempDir, arguments: &[&str]) -> String {
    let output = nicforge(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stderr(&output)
}

fn started(folder: &TempDir, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    command.args(arguments).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until `count` points are kept, or until the run has ended.
fn wait_for(folder: &TempDir, out: &str, count: usize, child: &mut Child) {
    while kept(folder, out).len() < count && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_sweep_that_was_killed_five_times_equals_one_that_was_not() {
    let folder = folder();
    run(&folder, &sweep("whole", &[]));
    for kill in 1..=5 {
        let mut child = started(&folder, &sweep("killed", &["--jobs", "2"]));
        wait_for(&folder, "killed", kill, &mut child);
        // SIGKILL: nothing of the program runs any more.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(kept(&folder, "killed").len() >= kill);
        assert!(!folder.path().join("killed/report.json").exists());
    }
    let before = kept(&folder, "killed").len();
    let said = run(&folder, &sweep("killed", &[]));
    let expected = match before {
        POINTS => format!("note: all {POINTS} points were finished before, in killed/points"),
        some => format!("note: continues: {some} of {POINTS} points are finished in killed/points\n"),
    };
    assert!(said.contains(&expected), "{said}");
    assert_eq!(read(&folder, "killed/points.csv"), read(&folder, "whole/points.csv"));
    assert_eq!(record(&folder, "killed"), record(&folder, "whole"));
    let parts = std::fs::read_dir(folder.path().join("killed/points")).unwrap();
    assert_eq!(parts.count(), POINTS, "half files are taken away");
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_says_what_is_kept() {
    let folder = folder();
    let mut child = started(&folder, &sweep("o", &[]));
    wait_for(&folder, "o", 2, &mut child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(output.status.signal(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains(" of 7 points are kept in o/points; the same command continues"), "{said}");
}

#[test]
fn damaged_points_and_those_of_other_programs_run_again() {
    let folder = folder();
    run(&folder, &sweep("o", &[]));
    let (csv, record_before) = (read(&folder, "o/points.csv"), record(&folder, "o"));
    let points = kept(&folder, "o");
    let bytes = std::fs::read(&points[0]).unwrap();
    std::fs::write(&points[0], &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(&points[1], "").unwrap();
    let of_key = |path: &Path| path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
    let theirs = points[2].with_file_name(format!("{}.00000000deadbeef.json", of_key(&points[2])));
    std::fs::rename(&points[2], &theirs).unwrap();
    let said = run(&folder, &sweep("o", &[]));
    let expected = "note: continues: 4 of 7 points are finished in o/points; runs 2 that were cut short or changed and \
                    1 of another version or build again";
    assert!(said.contains(expected), "{said}");
    assert_eq!((read(&folder, "o/points.csv"), record(&folder, "o")), (csv, record_before));
    assert!(theirs.is_file(), "nothing is lost");
}

#[test]
fn a_point_is_found_only_by_all_that_determines_it() {
    let folder = folder();
    run(&folder, &sweep("o", &[]));
    for (change, again) in [(["--seed", "5"], 7), (["--set", "burst=16"], 7)] {
        let changed = sweep("o", &[&change[..], &["--force"]].concat());
        run(&folder, &changed);
        let same = run(&folder, &sweep("o", &change));
        assert!(same.contains(&format!("all {again} points were finished before")), "{same}");
    }
    // A changed machine file, with the same name.
    let machine = folder.path().join("machines/xeon-4216-cx5.toml");
    let text = std::fs::read_to_string(&machine).unwrap();
    std::fs::write(&machine, format!("{text}# measured again\n")).unwrap();
    let output = nicforge(&folder, &sweep("o", &["--set", "burst=16"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("o/report.json is of another run; name another folder"), "{}", stderr(&output));
}

#[test]
fn no_report_is_replaced_without_being_asked_to() {
    let folder = folder();
    let nat = ["run", "scenarios/nat-capture.toml", "--quiet"];
    run(&folder, &[&nat[..], &["--out", "o"]].concat());
    let before = read(&folder, "o/report.json");
    let other = [&nat[..], &["--out", "o", "--seed", "7"]].concat();
    let output = nicforge(&folder, &other);
    assert_eq!(output.status.code(), Some(2));
    let says = "--out o: o/report.json is of another run; name another folder, or replace it by --force";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    assert_eq!(read(&folder, "o/report.json"), before);
    run(&folder, &[&other[..], &["--force"]].concat());
    assert_ne!(read(&folder, "o/report.json"), before);
    // What is there and is no report is somebody's own.
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/points.csv"), "a,b\n").unwrap();
    let output = nicforge(&folder, &[&nat[..], &["--out", "mine"]].concat());
    assert!(stderr(&output).contains("mine/points.csv is of another run"), "{}", stderr(&output));
}

#[test]
fn each_run_has_its_own_folder_and_latest_leads_to_the_newest() {
    let folder = folder();
    let nat = ["run", "scenarios/nat-capture.toml", "--quiet"];
    let runs = || {
        let entries = std::fs::read_dir(folder.path().join("out/nat-capture")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.len() == 8).count()
    };
    let latest = || std::fs::read_link(folder.path().join("out/nat-capture/latest")).unwrap();
    run(&folder, &nat);
    let first = latest();
    run(&folder, &[&nat[..], &["--seed", "3"]].concat());
    assert_ne!(latest(), first);
    assert_eq!(runs(), 2);
    run(&folder, &nat);
    assert_eq!((latest(), runs()), (first, 2));
}

/// A folder on a disk of so many bytes, in a namespace of the command's own; `None` where that is not allowed.
#[cfg(target_os = "linux")]
fn on_small_disk(folder: &TempDir, kib: usize, commands: &str) -> Option<std::process::Output> {
    std::fs::create_dir_all(folder.path().join("disk")).unwrap();
    let mount = format!("mount -t tmpfs -o size={kib}k none disk || exit 99; {commands}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &mount]).current_dir(folder.path());
    let output = command.env("NICFORGE", env!("CARGO_BIN_EXE_nicforge")).output().ok()?;
    (output.status.code() != Some(99) && output.status.code().is_some()).then_some(output)
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_loses_no_finished_point() {
    let folder = folder();
    run(&folder, &sweep("whole", &[]));
    let arguments = sweep("disk/o", &[]).join(" ");
    let commands = format!(
        "$NICFORGE {arguments}; echo code=$? >&2; ls -A disk/o/points >&2; \
         mount -o remount,size=64m disk; $NICFORGE {arguments} || exit 1; cp disk/o/points.csv csv"
    );
    let Some(output) = on_small_disk(&folder, 24, &commands).filter(|output| output.status.success()) else {
        println!("skipped: a disk of a few pages needs the right to mount one");
        return;
    };
    let said = stderr(&output);
    assert!(
        said.contains("error: cannot keep a finished point in disk/o/points")
            && said.contains("No space left on device"),
        "{said}"
    );
    assert!(said.contains("the same command continues") && said.contains("code=1"), "{said}");
    assert!(!said.contains(".part"), "{said}");
    assert!(said.contains("note: continues: "), "{said}");
    assert_eq!(read(&folder, "csv"), read(&folder, "whole/points.csv"));
}
