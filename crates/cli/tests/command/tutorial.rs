//! docs/adding-an-interface.md shows code that is compiled and tested.

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

#[test]
fn every_block_stands_in_the_file_that_it_names() {
    let blocks = blocks();
    assert!(blocks.len() > 5);
    for Block { path, text } in blocks {
        assert!(read(&path).contains(&text), "docs/adding-an-interface.md and {path} differ in\n{text}");
    }
}
