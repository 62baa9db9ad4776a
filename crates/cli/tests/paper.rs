//! The scenarios of the papers: all of them check, and the one that replays a capture from beside
//! the repository says what is missing where that is not there.

mod common;

use common::{folder, nicforge, stderr, stdout};

const REPLAYS: &str = "scenarios/paper/nm-10.toml";

#[test]
fn every_paper_scenario_checks() {
    let folder = folder();
    let paper = folder.path().join("scenarios/paper");
    let mut names: Vec<String> = std::fs::read_dir(paper)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let file = format!("scenarios/paper/{name}");
        let mut arguments = vec!["check", &file];
        if file == REPLAYS {
            arguments.extend(["--set", "pcap=\"scenarios/captures/sample.pcap\""]);
        }
        let output = nicforge(&folder, &arguments);
        assert_eq!(output.status.code(), Some(0), "{file}: {}", stderr(&output));
    }
}

#[test]
fn a_capture_that_is_not_there_ends_the_run_with_place_and_remedy() {
    let folder = folder();
    for command in ["check", "run"] {
        let output = nicforge(&folder, &[command, REPLAYS]);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        let said = stderr(&output);
        for part in [
            "scenarios/paper/nm-10.toml:",
            "`pcap` names a file that is not there",
            "shared/data/pcap/",
            "name an existing file",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}

#[test]
fn a_hot_area_larger_than_the_nics_memory_is_refused() {
    let folder = folder();
    let arguments = ["check", "scenarios/paper/nm-13.toml", "--set"];
    let output = nicforge(&folder, &[&arguments[..], &["nicmem_kib=22528"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(
        said.contains("65536 KiB of each NIC's memory wanted, it gives 22528"),
        "{said}"
    );
    assert!(said.contains("set nicmem_kib to at least 65536"), "{said}");
}
