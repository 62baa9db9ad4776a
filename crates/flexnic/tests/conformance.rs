//! p4lang/p4c's programs and packet tests, where `NICFORGE_P4C` names a checkout of them.

use std::path::{Path, PathBuf};

use nicforge_flexnic::p4::{Engine, Options, Program, compile, stf};

fn checkout() -> Option<PathBuf> {
    let found = std::env::var_os("NICFORGE_P4C").map(PathBuf::from);
    if found.is_none() {
        println!("skipped: NICFORGE_P4C names no checkout of p4lang/p4c");
    }
    found
}

/// Names of the packet tests that must pass, one a line, beside the project.
fn listed() -> Option<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/p4/stf-programs.txt");
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        println!("skipped: the list of packet tests is not there");
    }
    text.map(|text| text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect())
}

#[test]
fn listed_packet_tests_pass_in_both_engines() {
    let (Some(root), Some(names)) = (checkout(), listed()) else { return };
    for engine in [Engine::Interpreter, Engine::Compiled] {
        let mut passed = 0;
        for name in &names {
            let file = |end: &str| root.join(format!("{name}.{end}"));
            let report = stf::run_file(&file("p4"), &file("stf"), &Options::default(), engine);
            if report.passed() {
                passed += 1;
            } else {
                println!("{engine:?}: {name}: {}", report.failures.join("\n"));
            }
        }
        println!("{engine:?}: {passed} of {} packet tests pass", names.len());
        assert!(passed >= 95.min(names.len()), "only {passed} of {} pass", names.len());
    }
}

#[test]
fn all_v1model_packet_tests_agree_between_engines() {
    let Some(root) = checkout() else { return };
    let folder = root.join("testdata/p4_16_samples");
    let (mut total, mut passed) = (0, 0);
    for path in files(&folder, "stf") {
        let program = path.with_extension("p4");
        let Ok(text) = std::fs::read_to_string(&program) else { continue };
        if !text.contains("v1model.p4") {
            continue;
        }
        total += 1;
        let of = |engine| stf::run_file(&program, &path, &Options::default(), engine);
        let (reference, compiled) = (of(Engine::Interpreter), of(Engine::Compiled));
        assert_eq!(reference, compiled, "{}", path.display());
        if reference.passed() {
            passed += 1;
        } else {
            println!("{}: {}", path.display(), reference.failures.join("\n"));
        }
    }
    println!("{passed} of {total} v1model packet tests pass");
}

/// Programs that must be refused but are not: p4c refuses them for a reason that is not the language's.
#[test]
fn programs_with_errors_are_refused() {
    let Some(root) = checkout() else { return };
    let (mut total, mut refused, mut accepted) = (0, 0, Vec::new());
    for path in files(&root.join("testdata/p4_16_errors"), "p4") {
        total += 1;
        let outcome = match compile::check_file(&path, &Options::default()) {
            Err(errors) => Err(errors),
            // Some mistakes show only when the program is put together.
            Ok(front) if front.checked.main.is_some() => Program::compile(&path, &Options::default()).map(drop),
            Ok(_) => Ok(()),
        };
        match outcome {
            Err(errors) => {
                assert!(errors.errors() > 0 && !errors.to_string().is_empty(), "{}", path.display());
                refused += 1;
            }
            Ok(()) => accepted.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        }
    }
    println!("{refused} of {total} programs with errors are refused; accepted:");
    for name in &accepted {
        println!("  {name}");
    }
    assert!(refused * 100 >= total * 85, "only {refused} of {total} are refused");
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}
