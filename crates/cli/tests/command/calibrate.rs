//! `nicforge calibrate`: members that fit, the same from the same seed, and what is wrong with a file of points.

use crate::common::{folder, nicforge, stderr, stdout};
use tempfile::TempDir;

/// A file of points about a short run, with `more` at its end.
fn points(folder: &TempDir, more: &str) {
    let text = format!(
        "samples = 4\nrounds = 1\nmembers = 2\n\n[[parameter]]\nkey = \"apps.nat.work_cycles\"\n\
         range = [1000, 3000]\nstep = 10\nsource = \"a test\"\n\n[[point]]\nname = \"t\"\n\
         scenario = \"scenarios/nat-200g.toml\"\n\
         set = [\"polling_starts_ms=0\", \"warmup_ms=0.2\", \"window_ms=0.2\", \"flows=500\", \"table_entries=4096\", \"offered_gbps=20\"]\n\
         predicted = \"cycles_per_packet.app{{priv_ring}}\"\nvalue = 2000\ntolerance = 0.1\n{more}"
    );
    std::fs::write(folder.path().join("points.toml"), text).unwrap();
}

const CALL: [&str; 3] = ["calibrate", "machines/xeon-4216-cx5.toml", "points.toml"];

#[test]
fn members_are_machines_that_fit_and_a_second_call_says_the_same() {
    let folder = folder();
    points(&folder, "");
    let first = nicforge(&folder, &CALL);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let table = stdout(&first);
    assert!(table.contains("1000 to 3000") && table.contains("1 of 21 candidates fit"), "{table}");
    assert!(!table.contains("none fits") && !table.contains("misses"), "{table}");
    let member = folder.path().join("out/calibrate/xeon-4216-cx5/members/xeon-4216-cx5-a.toml");
    let text = std::fs::read_to_string(member).unwrap();
    assert!(text.contains("title = \"Member a of the calibrated set: Xeon"), "{text}");
    assert!(text.contains("source = \"1000 to 3000: a test\", fitted = \"t\""), "{text}");
    let again = nicforge(&folder, &[&CALL[..], &["--jobs", "2", "--quiet"]].concat());
    assert_eq!(stdout(&again), table);
}

#[test]
fn what_is_wrong_with_a_file_of_points_has_its_place() {
    let folder = folder();
    for (more, wrong) in [
        ("[[parameter]]\nkey = \"dram.peek\"\nrange = [1, 2]\nstep = 1\nsource = \"s\"\n", "dram.peek"),
        ("[[parameter]]\nkey = \"dram.peak_gb_per_s\"\nrange = [2, 1]\nstep = 1\nsource = \"s\"\n", "`range`"),
        (
            "[[parameter]]\nkey = \"dram.peak_gb_per_s\"\nrange = [1, 2]\nstep = 1\nsource = \" \"\n",
            "`source` is empty",
        ),
        ("[[point]]\nname = \"u\"\nscenario = \"scenarios/none.toml\"\n", "`predicted`"),
        ("bound = \"near\"\n", "`bound` cannot be \"near\""),
    ] {
        points(&folder, more);
        let call = nicforge(&folder, &CALL);
        assert_eq!(call.status.code(), Some(2), "{more}: {}", stderr(&call));
        assert!(stderr(&call).contains(wrong), "{more}: {}", stderr(&call));
    }
    assert!(!folder.path().join("out").exists());
}
