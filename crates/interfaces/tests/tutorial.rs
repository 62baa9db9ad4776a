//! docs/adding-an-interface.md shows the code that is compiled and tested, all of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A block of code, and the file that its fence names.
struct Block {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of the document in Rust and TOML, in order.
fn blocks() -> Vec<Block> {
    let document = read("docs/adding-an-interface.md");
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let (language, path) = fence.split_once(' ').unwrap_or((fence, ""));
        if matches!(language, "rust" | "toml") {
            assert!(!path.is_empty(), "a block of {language} names no file");
            blocks.push(Block { path: path.into(), text: body.join("\n") });
        }
    }
    blocks
}

fn lines_of(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_block_stands_in_the_file_that_it_names() {
    for Block { path, text } in blocks() {
        assert!(read(&path).contains(&text), "docs/adding-an-interface.md and {path} differ in\n{text}");
    }
}

#[test]
fn the_interface_is_shown_whole() {
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for Block { path, text } in blocks() {
        let file = shown.entry(path).or_default();
        file.push_str(&text);
        file.push('\n');
    }
    let folder = "crates/interfaces/src/in_place";
    for name in ["layout", "nic", "driver", "options", "mod", "tests"] {
        let path = format!("{folder}/{name}.rs");
        let text = shown.get(&path).map(String::as_str).unwrap_or_default();
        assert_eq!(lines_of(text), lines_of(&read(&path)), "{path}");
    }
    let in_folder = fs::read_dir(root().join(folder)).unwrap();
    let sources = in_folder.flatten().map(|entry| entry.path());
    let count = sources.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    assert_eq!(count.count(), 6, "a file of {folder} is not shown");
}
