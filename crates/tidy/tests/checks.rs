//! Each check fails when it should, and only then.

use nicforge_tidy::tree::{File, mark_test_modules};
use nicforge_tidy::{Finding, banned, layers, leftovers, lengths};

fn one(path: &str, text: &str) -> Vec<File> {
    vec![File::new(path, text)]
}

#[track_caller]
fn only(findings: Vec<Finding>) -> Finding {
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.into_iter().next().unwrap()
}

const LIB: &str = "crates/nic/src/a.rs";

#[test]
fn long_files_fail_and_exceptions_only_shrink() {
    let file = |lines: usize| one(LIB, &"//\n".repeat(lines));
    assert!(lengths::files(&file(400), &[]).is_empty());
    let finding = only(lengths::files(&file(401), &[]));
    assert!(finding.to_string().starts_with("crates/nic/src/a.rs:401: file of 401 lines, the limit is 400"));
    assert!(lengths::files(&file(450), &[(LIB, 450)]).is_empty());
    assert!(lengths::files(&file(445), &[(LIB, 450)]).is_empty());
    assert!(only(lengths::files(&file(451), &[(LIB, 450)])).message.contains("may only shrink"));
    assert!(only(lengths::files(&file(444), &[(LIB, 450)])).message.contains("lower its exception"));
    assert!(only(lengths::files(&file(100), &[(LIB, 450)])).message.contains("needs no exception"));
    assert!(only(lengths::files(&[], &[(LIB, 450)])).message.contains("is gone"));
}

#[test]
fn long_functions_fail_and_exceptions_only_shrink() {
    let function = |lines: usize| one(LIB, &format!("\nfn long() {{\n{}}}\n", "1;\n".repeat(lines - 2)));
    assert!(lengths::function_lengths(&function(70), &[]).is_empty());
    let finding = only(lengths::function_lengths(&function(71), &[]));
    assert!(finding.to_string().starts_with("crates/nic/src/a.rs:2: function `long` of 71 lines, the limit is 70"));
    assert!(lengths::function_lengths(&function(80), &[(LIB, "long", 80)]).is_empty());
    assert_eq!(lengths::function_lengths(&function(81), &[(LIB, "long", 80)]).len(), 1);
    assert_eq!(lengths::function_lengths(&function(74), &[(LIB, "long", 80)]).len(), 1);
    assert_eq!(lengths::function_lengths(&function(9), &[(LIB, "short", 80)]).len(), 1);
}

#[test]
fn dependencies_may_only_point_down() {
    let manifest = |name: &str, table: &str, on: &str| {
        one(&format!("crates/{name}/Cargo.toml"), &format!("[{table}]\nnicforge-{on}.workspace = true\n"))
    };
    assert!(layers::directions(&manifest("nic", "dependencies", "wire")).is_empty());
    let finding = only(layers::directions(&manifest("nic", "dependencies", "apps")));
    assert_eq!(finding.line, 2);
    assert!(finding.message.contains("must not depend on `apps`"));
    assert_eq!(layers::directions(&manifest("nic", "build-dependencies", "nic")).len(), 1);
    assert!(layers::directions(&manifest("nic", "dev-dependencies", "lab")).is_empty());
    assert_eq!(layers::directions(&manifest("tidy", "dependencies", "units")).len(), 1);
    assert!(only(layers::directions(&manifest("stray", "dependencies", "wire"))).message.contains("has no layer"));
}

#[test]
fn grounds_are_for_the_lab_and_tests() {
    for text in [
        "use nicforge_platform::sim::Engine;",
        "use nicforge_platform::{Addr, sim::{Engine}};",
        "\nuse nicforge_platform::live;",
    ] {
        assert_eq!(layers::grounds(&one("crates/apps/src/nat.rs", text)).len(), 1, "{text}");
        assert!(layers::grounds(&one("crates/lab/src/run.rs", text)).is_empty());
        assert!(layers::grounds(&one("crates/apps/tests/nat.rs", text)).is_empty());
    }
    let innocent = "use nicforge_platform::{Addr, Cpu};\nmod sim { fn similar() {} }\nuse nicforge_platform::simple;";
    assert!(layers::grounds(&one("crates/apps/src/nat.rs", innocent)).is_empty());
}

#[test]
fn halves_see_their_own_contract() {
    let nic = "crates/interfaces/src/priv_ring/nic.rs";
    assert_eq!(layers::halves(&one(nic, "fn f<C: Cpu, D: Dma>() {}")).len(), 1);
    assert!(
        layers::halves(&one(nic, "// no Cpu here\nfn f<D: Dma>() {}\n#[cfg(test)]\nmod t { use Cpu; }")).is_empty()
    );
    assert_eq!(layers::halves(&one("crates/interfaces/src/priv_ring/driver.rs", "use Dma;")).len(), 1);
    assert!(layers::halves(&one("crates/interfaces/src/priv_ring/layout.rs", "use Dma; use Cpu;")).is_empty());
}

#[test]
fn clocks_randomness_and_printing_are_banned_with_a_replacement() {
    let cases = [
        ("use std::time::Instant;", "simulated time"),
        ("let t = std::time::SystemTime::now();", "simulated time"),
        ("let r = rand::random();", "seeded"),
        ("let r = rand::thread_rng();", "seeded"),
        ("println!();", "a returned value"),
        ("dbg!(1);", "a returned value"),
    ];
    for (text, remedy) in cases {
        let finding = only(banned::calls(&one(LIB, text)));
        assert!(finding.message.contains(remedy), "{finding}");
    }
    let keyword = format!("fn f() {{ {} {{}} }}", concat!("un", "safe"));
    assert!(only(banned::calls(&one(LIB, &keyword))).message.contains("safe code"));
    assert!(banned::calls(&one("crates/platform/src/live/region.rs", &keyword)).is_empty());
    assert!(banned::calls(&one("crates/cli/src/main.rs", "use std::time::Instant; tell();")).is_empty());
    for text in ["eprintln!();", "print!();"] {
        let finding = only(banned::calls(&one("crates/cli/src/main.rs", text)));
        assert!(finding.message.contains("use `print` or `tell`"));
    }
    assert!(banned::calls(&one(LIB, "// Instant\nlet s = \"println!()\"; struct Instantly;")).is_empty());
    assert!(banned::calls(&one(LIB, "#[cfg(test)]\nmod tests { fn skip() { println!(); } }")).is_empty());
}

#[test]
fn hashing_needs_a_listed_reason() {
    let text = "use std::collections::HashMap;";
    let finding = only(banned::hashing(&one(LIB, text), &[]));
    assert!(finding.message.contains("BTreeMap"));
    assert!(banned::hashing(&one(LIB, text), &[(LIB, "only looked up")]).is_empty());
    assert!(only(banned::hashing(&one(LIB, ""), &[(LIB, "")])).message.contains("any more"));
    assert!(only(banned::hashing(&[], &[(LIB, "")])).message.contains("is gone"));
    assert!(banned::hashing(&one("crates/cli/src/main.rs", text), &[]).is_empty());
}

#[test]
fn markers_are_found_in_comments_too() {
    for marker in [concat!("to", "do!()"), concat!("// FIX", "ME later"), concat!("/* XX", "X */")] {
        assert_eq!(leftovers::markers(&one(LIB, marker)).len(), 1, "{marker}");
    }
    assert!(leftovers::markers(&one(LIB, concat!("mktemp XX", "XX", "XX"))).is_empty());
}

#[test]
fn machine_paths_are_found_in_any_text() {
    let path = concat!("see /", "work/main");
    assert_eq!(leftovers::machine_paths(&one("docs/model.md", path)).len(), 1);
    assert_eq!(leftovers::machine_paths(&one("a.toml", concat!("\"/", "root/x\""))).len(), 1);
    assert!(leftovers::machine_paths(&one("docs/model.md", "https://example.org/work/x and a/root/b")).is_empty());
}

#[test]
fn what_a_merge_left_is_found_in_any_text() {
    let text = format!("a\n{0} HEAD\nb\n=======\nc\n{1} other\n", "<".repeat(7), ">".repeat(7));
    let found = leftovers::conflicts(&one("docs/model.md", &text));
    assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2, 6]);
    let title = "Title\n=======\n>>> a quotation of a quotation\n";
    assert!(leftovers::conflicts(&one("docs/model.md", title)).is_empty());
}

#[test]
fn a_crate_opens_with_a_sentence() {
    let root = "crates/nic/src/lib.rs";
    assert!(leftovers::crate_docs(&one(root, "//! What every NIC has.\n")).is_empty());
    assert_eq!(leftovers::crate_docs(&one(root, "//! nic\n")).len(), 1);
    assert_eq!(leftovers::crate_docs(&one(root, "mod packet;\n")).len(), 1);
    assert!(leftovers::crate_docs(&one(LIB, "mod packet;\n")).is_empty());
}

#[test]
fn modules_declared_as_tests_are_tests() {
    let mut files = vec![
        File::new("crates/nic/src/lib.rs", "#[cfg(test)]\nmod mock;\nmod real;"),
        File::new("crates/nic/src/mock.rs", ""),
        File::new("crates/nic/src/mock/inner.rs", ""),
        File::new("crates/nic/src/real.rs", ""),
    ];
    mark_test_modules(&mut files);
    let tests: Vec<bool> = files.iter().map(|file| file.is_test).collect();
    assert_eq!(tests, [false, true, true, false]);
}
