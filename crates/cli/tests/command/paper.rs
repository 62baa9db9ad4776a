//! The shipped scenarios: all of them check, and one whose capture is not there says what is missing. Those of the papers
//! have a text each.

use crate::common::{files, folder, nicforge, stderr, stdout};

#[test]
fn every_shipped_scenario_checks() {
    let folder = folder();
    let all = files(&folder.path().join("scenarios"));
    let of_folder = |file: &String| Some(file.split_once("scenarios/")?.1.to_owned());
    let all = all.iter().filter(|file| file.ends_with(".toml"));
    let names: Vec<String> = all.filter_map(of_folder).collect();
    for (part, least) in [("paper/", 40), ("calibration/", 6), ("", 50)] {
        let found = names.iter().filter(|name| name.starts_with(part)).count();
        assert!(found >= least, "{part}: {names:?}");
    }
    for name in names {
        let file = format!("scenarios/{name}");
        let output = nicforge(&folder, &["check", &file]);
        assert_eq!(output.status.code(), Some(0), "{file}: {}", stderr(&output));
    }
}

/// A text says how each is run, and the list of texts names each text.
#[test]
fn every_paper_scenario_has_a_prediction_text_and_every_text_is_listed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        entries.map(|entry| name(entry).into_string().unwrap()).collect()
    };
    let read = |text: &str| {
        let file = root.join("docs/predictions").join(text);
        std::fs::read_to_string(file).unwrap()
    };
    let texts = names("docs/predictions");
    let all: String = texts.iter().map(|text| read(text)).collect();
    for scenario in names("scenarios/paper") {
        let command = format!("run scenarios/paper/{scenario}");
        assert!(all.contains(&command), "no text says what `{command}` shows");
    }
    let list = read("README.md");
    for text in texts.iter().filter(|text| *text != "README.md" && text.ends_with(".md")) {
        let line = format!("- [{}]({text}): ", text.trim_end_matches(".md"));
        assert!(list.contains(&line), "docs/predictions/README.md has no `{line}`");
    }
}

/// The page is what `nicforge reproduce all --markdown` printed; the README of the repository has its first table.
#[test]
fn the_page_of_open_claims_has_every_claim_and_its_summary_is_in_the_readme() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let page = read("docs/predictions/open.md");
    let text =
        |line: &str, key: &str| Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.trim_end_matches('"').to_owned());
    let claims = read("docs/predictions/open.toml");
    let mut of_scenario = "";
    let mut count = 0;
    for line in claims.lines() {
        if let Some(scenario) = text(line, "scenario") {
            let heading = format!("\n## {scenario}\n");
            let (_, rest) = page.split_once(&heading).expect("each scenario has a table");
            of_scenario = rest.split("\n## ").next().unwrap_or_default();
        }
        if let Some(claim) = text(line, "claim") {
            assert!(of_scenario.contains(&format!("| {claim} | ")), "docs/predictions/open.md has no `{claim}`");
            count += 1;
        }
    }
    let (_, tables) = page.split_once("\n## ").unwrap();
    let is_claim = |line: &&str| line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| claim |");
    assert_eq!(tables.lines().filter(is_claim).count(), count, "no claim is there twice");
    let summary: Vec<&str> =
        page.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).collect();
    assert!(read("README.md").contains(&summary.join("\n")), "README.md has another summary");
}

#[test]
fn a_capture_that_is_not_there_ends_the_run_with_place_and_remedy() {
    let folder = folder();
    let replays = "scenarios/nat-capture.toml";
    let file = folder.path().join(replays);
    let scenario = std::fs::read_to_string(&file).unwrap();
    assert!(scenario.contains("captures/sample.pcap"), "{scenario}");
    std::fs::write(&file, scenario.replace("captures/sample.pcap", "not-here/sample.pcap")).unwrap();
    for command in ["check", "run"] {
        let output = nicforge(&folder, &[command, replays]);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        let said = stderr(&output);
        for part in [
            "scenarios/nat-capture.toml:",
            "`pcap` names a file that is not there",
            "not-here/sample.pcap",
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
    assert!(said.contains("65536 KiB of each NIC's memory wanted, it gives 22528"), "{said}");
    assert!(said.contains("set nicmem_kib to at least 65536"), "{said}");
}
