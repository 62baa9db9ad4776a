//! Figures of the house, to compare one state of the repository with another.
//!
//! All of them are counted from the text of the files, so that they can be taken of any tree:
//! `cargo run -p nicforge-tidy -- figures --root DIR`. Each says in its heading how it is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::scan::{item_end, words};
use crate::tree::File;

/// What stands for all sections: a heading, and lines of a name and a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// What is counted, and how.
    pub heading: String,
    /// Name and count.
    pub rows: Vec<(String, usize)>,
}

/// All figures, in the order in which they are printed.
pub fn figures(files: &[File]) -> Vec<Section> {
    vec![
        production_lines(files),
        contract_methods(files),
        interface_files(files),
        name_comparisons(files),
        always_inlined(files),
        key_paths(files),
        tests(files),
    ]
}

/// The sections as text.
pub fn print(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let width = section.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", section.heading);
        for (name, count) in &section.rows {
            let _ = writeln!(text, "  {name:<width$}  {count:>6}");
        }
        text.push('\n');
    }
    text
}

/// Rust files of the crates that are no tests.
fn production(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.is_rust() && !file.is_test && file.crate_name().is_some())
}

/// Lines of a file outside its test modules.
fn lines_of(file: &File) -> usize {
    let in_tests: usize = file.test_ranges.iter().map(|range| file.text[range.clone()].lines().count()).sum();
    file.text.lines().count() - in_tests
}

fn production_lines(files: &[File]) -> Section {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for file in production(files) {
        *lines.entry(file.crate_name().unwrap_or_default()).or_default() += lines_of(file);
    }
    let all = lines.values().sum();
    let rows = lines.into_iter().map(|(name, count)| (name.to_string(), count));
    Section {
        heading: "Production lines per crate (Rust files without tests, benches and test modules; comments and blank \
                  lines included)"
            .into(),
        rows: rows.chain([("all".to_string(), all)]).collect(),
    }
}

/// The contracts between devices, software and grounds.
const CONTRACTS: [&str; 2] = ["Cpu", "Dma"];

fn contract_methods(files: &[File]) -> Section {
    let count = |name: &str| -> usize {
        let of_platform = production(files).filter(|file| file.crate_name() == Some("platform"));
        of_platform.filter_map(|file| methods_of(&file.code, name)).sum()
    };
    Section {
        heading: "Methods of the contracts (`fn` in the body of `trait Cpu` and `trait Dma`)".into(),
        rows: CONTRACTS.map(|name| (name.to_string(), count(name))).into(),
    }
}

/// Methods that the trait called `name` declares, if `code` has it.
fn methods_of(code: &str, name: &str) -> Option<usize> {
    let at = words(code, name).find(|at| code[..*at].trim_end().ends_with("trait"))?;
    let body = &code[at..item_end(code, at)];
    let open = body.find('{')?;
    let mut depth = 0_usize;
    let mut methods = 0;
    let starts: BTreeSet<usize> = words(body, "fn").collect();
    for (index, byte) in body.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ if depth == 1 && starts.contains(&index) => methods += 1,
            _ => {}
        }
    }
    Some(methods)
}

/// What the page of settings says of a key.
struct DocumentedKey<'a> {
    name: &'a str,
    /// Names that it takes, if it takes one of several.
    choices: Vec<&'a str>,
}

/// The keys in docs/settings.md, which the program writes from their declarations.
fn documented_keys(files: &[File]) -> Vec<DocumentedKey<'_>> {
    let Some(page) = files.iter().find(|file| file.path == "docs/settings.md") else {
        return Vec::new();
    };
    let row = |line: &'_ str| -> Option<(usize, usize, usize, usize)> {
        let name = line.strip_prefix("| `")?;
        let end = name.find("` |")?;
        let takes = end + "` | ".len();
        let close = name[takes..].find(" |")? + takes;
        Some((0, end, takes, close))
    };
    let keys = page.text.lines().filter_map(|line| {
        let (start, end, takes, close) = row(line)?;
        let rest = line.strip_prefix("| `")?;
        let choices = rest[takes..close].strip_prefix("one of ").map(|names| names.split(", ").collect());
        Some(DocumentedKey { name: &rest[start..end], choices: choices.unwrap_or_default() })
    });
    keys.collect()
}

/// Names of interfaces, as the key `interface` takes them.
fn interfaces(files: &[File]) -> Vec<&str> {
    let keys = documented_keys(files);
    keys.into_iter().find(|key| key.name == "interface").map(|key| key.choices).unwrap_or_default()
}

/// `sh_ring` as `ShRing`.
fn camel(name: &str) -> String {
    let part = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').map(part).collect()
}

/// Whether `file` lies in the folder of interface `name`, or in that of its family.
fn is_at_home(file: &File, name: &str) -> bool {
    let in_interfaces = file.path.starts_with("crates/interfaces/src/");
    let mut parts = file.path.trim_end_matches(".rs").split('/').skip(3);
    in_interfaces && parts.any(|part| name == part || name.strip_prefix(part).is_some_and(|rest| rest.starts_with('_')))
}

fn interface_files(files: &[File]) -> Section {
    let names_it = |file: &&File, name: &str| {
        let production = |at: &usize| !file.in_test(*at);
        let literal = format!("\"{name}\"");
        let path = format!("{name}::");
        let variant = camel(name);
        file.text.match_indices(&literal).any(|(at, _)| !file.in_test(at))
            || words(&file.code, &path).any(|at| production(&at))
            || words(&file.code, &variant).any(|at| production(&at))
    };
    let count = |name: &str| production(files).filter(|f| !is_at_home(f, name) && names_it(f, name)).count();
    Section {
        heading: "Production files that name an interface outside its folder (its name in quotes, as a module or as a \
                  type)"
            .into(),
        rows: interfaces(files).into_iter().map(|name| (name.to_string(), count(name))).collect(),
    }
}

fn name_comparisons(files: &[File]) -> Section {
    let names: Vec<String> = interfaces(files).into_iter().map(|name| format!("\"{name}\"")).collect();
    let outside = production(files).filter(|file| !file.path.starts_with("crates/interfaces/src/"));
    let count = |file: &File| -> usize {
        let of = |name: &String| file.text.match_indices(name.as_str()).filter(|(at, _)| !file.in_test(*at)).count();
        names.iter().map(of).sum()
    };
    let found: Vec<(String, usize)> =
        outside.map(|file| (file.path.clone(), count(file))).filter(|(_, count)| *count > 0).collect();
    let (places, in_files) = (found.iter().map(|(_, count)| count).sum(), found.len());
    let mut rows = found;
    rows.push(("places".into(), places));
    rows.push(("files".into(), in_files));
    Section {
        heading: "Places outside crates/interfaces that compare or list an interface's name (the name in quotes in \
                  production code)"
            .into(),
        rows,
    }
}

fn always_inlined(files: &[File]) -> Section {
    let count = |file: &File| {
        let all = file.code.match_indices("inline(always)");
        all.filter(|(at, _)| !file.in_test(*at)).count()
    };
    Section {
        heading: "Functions marked `inline(always)`".into(),
        rows: vec![("all".into(), production(files).map(count).sum())],
    }
}

/// Keys whose files are listed, those with most.
const LONGEST_PATHS: usize = 8;

fn key_paths(files: &[File]) -> Section {
    // Names of one word (`app`, `flows`) are words of the code as well.
    let keys = documented_keys(files);
    let keys: Vec<&str> = keys.iter().map(|key| key.name).filter(|name| name.contains('_')).collect();
    let names_it =
        |file: &&File, key: &str| words(&file.text, key).any(|at| !file.in_test(at) && !is_comment(file, at));
    let count = |key: &str| production(files).filter(|file| names_it(file, key)).count();
    let mut rows: Vec<(String, usize)> = keys.into_iter().map(|key| (key.to_string(), count(key))).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let middle = rows.get(rows.len() / 2).map(|(_, count)| *count);
    rows.truncate(LONGEST_PATHS);
    rows.extend(middle.map(|count| ("median of all such keys".to_string(), count)));
    Section {
        heading:
            "Longest paths of a key from file to use (production files that name it; keys of docs/settings.md with \
                  an underscore, which are no other word of the code)"
                .into(),
        rows,
    }
}

/// Whether `at` lies in a comment: what follows on the line from `//` on.
fn is_comment(file: &File, at: usize) -> bool {
    let line = file.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    file.text[line..at].contains("//")
}

fn tests(files: &[File]) -> Section {
    let rust = files.iter().filter(|file| file.is_rust() && file.crate_name().is_some());
    Section {
        heading: "Tests (`#[test]`)".into(),
        rows: vec![("all".into(), rust.map(|file| file.code.matches("#[test]").count()).sum())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = "| `interface` | one of priv_ring, sh_ring, sh_ring_list | \"priv_ring\" | What. |\n\
                            | `rx_entries` | a power of two | 1024 | Entries. |\n";

    fn rows(section: Section) -> Vec<(String, usize)> {
        section.rows
    }

    fn row(name: &str, count: usize) -> (String, usize) {
        (name.to_string(), count)
    }

    #[test]
    fn lines_of_tests_do_not_count() {
        let text = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let files = [File::new("crates/lab/src/a.rs", text), File::new("crates/lab/tests/b.rs", text)];
        assert_eq!(rows(production_lines(&files)), [row("lab", 2), row("all", 2)]);
    }

    #[test]
    fn methods_are_counted_and_functions_within_them_are_not() {
        let text = "/// fn\npub trait Cpu: Sized {\n    fn a(&self);\n    fn b(&self) {\n        fn c() {}\n    }\n}\n\
                    impl Cpu for X { fn a(&self) {} }\n";
        let files = [File::new("crates/platform/src/cpu.rs", text)];
        assert_eq!(rows(contract_methods(&files)), [row("Cpu", 2), row("Dma", 0)]);
    }

    #[test]
    fn an_interface_is_named_by_string_module_or_type_outside_its_folder() {
        let files = [
            File::new("docs/settings.md", SETTINGS),
            File::new("crates/interfaces/src/sh_ring/list/nic.rs", "const NAME: &str = \"sh_ring_list\";"),
            File::new("crates/lab/src/a.rs", "fn f(s: &str) -> bool { s == \"sh_ring\" || s == \"sh_ring\" }"),
            File::new("crates/lab/src/b.rs", "// \"sh_ring\"\nuse x::ShRing;"),
        ];
        assert_eq!(rows(interface_files(&files)), [row("priv_ring", 0), row("sh_ring", 2), row("sh_ring_list", 0)]);
    }

    #[test]
    fn names_in_quotes_are_places_outside_the_interfaces() {
        let files = [
            File::new("docs/settings.md", SETTINGS),
            File::new("crates/interfaces/src/registry.rs", "\"sh_ring\""),
            File::new("crates/lab/src/a.rs", "fn f(s: &str) -> bool { s == \"sh_ring\" || s == \"priv_ring\" }"),
        ];
        let expected = [row("crates/lab/src/a.rs", 2), row("places", 2), row("files", 1)];
        assert_eq!(rows(name_comparisons(&files)), expected);
    }

    #[test]
    fn the_path_of_a_key_is_the_files_that_name_it() {
        let files = [
            File::new("docs/settings.md", SETTINGS),
            File::new("crates/lab/src/a.rs", "rx_entries: usize"),
            File::new("crates/lab/src/b.rs", "\"rx_entries\""),
            File::new("crates/lab/src/c.rs", "// rx_entries\n"),
        ];
        assert_eq!(rows(key_paths(&files))[0], row("rx_entries", 2));
    }
}
