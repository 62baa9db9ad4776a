//! Calls that would break determinism or manners, each with what to use instead.

use crate::Finding;
use crate::scan::{line_of, words};
use crate::tree::File;

/// A rule: words that may not occur, where, and the replacement.
struct Rule {
    words: &'static [&'static str],
    applies: fn(&File) -> bool,
    in_tests: bool,
    instead: &'static str,
}

const RULES: [Rule; 5] = [
    Rule {
        words: &["Instant", "SystemTime", "UNIX_EPOCH"],
        applies: |file| !may_read_clock(file),
        in_tests: true,
        instead: "simulated time (`Cpu::now`, `Dma::now`); the wall clock belongs to crates/cli and crates/platform/src/live",
    },
    Rule {
        words: &[
            "thread_rng",
            "rand::random",
            "rand::rng",
            "OsRng",
            "from_entropy",
            "from_os_rng",
            "getrandom",
            "RandomState",
        ],
        applies: |_| true,
        in_tests: true,
        instead: "a `Pcg64` seeded from the scenario's seed",
    },
    Rule {
        words: &["println!", "eprintln!", "print!", "eprint!", "dbg!"],
        applies: |file| is_library(file),
        in_tests: false,
        instead: "a returned value or a typed error; only crates/cli prints",
    },
    Rule {
        words: &["println!", "eprintln!", "print!", "eprint!", "dbg!"],
        applies: |file| file.path.starts_with("crates/cli/src"),
        in_tests: false,
        instead: "`print` or `tell` of crates/cli/src/output.rs; the macro panics where its reader has gone",
    },
    Rule {
        words: &["unsafe"],
        applies: |file| !may_be_unsafe(file) && !is_generated_code(file),
        in_tests: true,
        instead: "safe code, or an interface of crates/platform/src/live or crates/flexnic/src/p4/jit",
    },
];

/// The live ground, the library that packetdrill loads, the TAP device of TCP's tests, and sockets: memory that
/// programs share with the service, and the C library's functions.
fn may_be_unsafe(file: &File) -> bool {
    let folders = [
        "crates/platform/src/live",
        "crates/packetdrill/src",
        "crates/tcp/tests/tap",
        "crates/sockets/src",
        "crates/preload/",
    ];
    folders.iter().any(|folder| file.path.starts_with(folder))
}

fn may_read_clock(file: &File) -> bool {
    file.crate_name() == Some("cli")
        || file.path.starts_with("crates/platform/src/live")
        || file.path.split('/').any(|part| part == "benches")
        // smoltcp gives simulated time this name.
        || file.path == "crates/tcp/tests/smoltcp.rs"
        // Controllers live in real time, and time-outs of their digests with them.
        || file.path.starts_with("crates/p4runtime")
        // Peers on the other side of a device live in real time, and so do programs.
        || file.path.starts_with("crates/tcp/tests/tap")
        || file.path.starts_with("crates/preload/tests")
        // Fuzzing goes on for as long as one asks.
        || file.path.ends_with("tests/fuzzed.rs")
}

/// Calling code that was made at run time needs `unsafe`.
fn is_generated_code(file: &File) -> bool {
    file.path.starts_with("crates/flexnic/src/p4/jit")
}

fn is_library(file: &File) -> bool {
    file.crate_name().is_some_and(|name| name != "cli") && file.path.contains("/src/")
}

/// Crates and folders of the simulated side, where an order of hashing could reach a result.
const SIM_SIDE: [&str; 8] = [
    "crates/wire/src",
    "crates/platform/src",
    "crates/nic/src",
    "crates/interfaces/src",
    "crates/apps/src",
    "crates/lab/src/run",
    "crates/lab/src/systems",
    "crates/units/src",
];

/// Banned words outside the places that may use them.
pub fn calls(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for rule in RULES.iter().filter(|rule| (rule.applies)(file)) {
            for word in rule.words {
                for at in words(&file.code, word).filter(|at| rule.in_tests || !file.in_test(*at)) {
                    let message = format!("`{word}` is banned here: use {}", rule.instead);
                    findings.push(Finding { file: file.path.clone(), line: line_of(&file.code, at), message });
                }
            }
        }
    }
    findings
}

/// Hash maps and sets on the simulated side that `allowed` does not list, and stale entries.
pub fn hashing(files: &[File], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let uses = ["HashMap", "HashSet"].into_iter().flat_map(|word| words(&file.code, word));
        let uses: Vec<usize> = uses.filter(|at| !file.in_test(*at)).collect();
        let listed = allowed.iter().any(|(path, _)| *path == file.path);
        if listed && uses.is_empty() {
            let message = "uses no hash map any more: delete its entry in HASHED of crates/tidy/src/exceptions.rs";
            findings.push(Finding { file: file.path.clone(), line: 1, message: message.into() });
        }
        if listed || !SIM_SIDE.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for at in uses {
            let message = "no hash map or set on the simulated side: use BTreeMap, a Vec or an index, or list the \
                           file with its reason in HASHED of crates/tidy/src/exceptions.rs";
            findings.push(Finding { file: file.path.clone(), line: line_of(&file.code, at), message: message.into() });
        }
    }
    for (path, _) in allowed.iter().filter(|(path, _)| !files.iter().any(|file| file.path == *path)) {
        let message = "HASHED in crates/tidy/src/exceptions.rs names this, but it is gone: delete the entry";
        findings.push(Finding { file: (*path).into(), line: 1, message: message.into() });
    }
    findings
}
