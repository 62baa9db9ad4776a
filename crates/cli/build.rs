//! The build script gives a release build the commit that it is built from. A debug build gets none: each commit would
//! link all tests again. The Python package has the same script.

use std::process::Command;

/// Runs `git` here; `None` where it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=../cli/build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // An unpacked archive may lie inside another project's repository, whose commit is not ours.
    if !is_release || git(&["ls-files", "--error-unmatch", "Cargo.toml"]).is_none() {
        return;
    }
    let Some(commit) = git(&["rev-parse", "HEAD"]) else {
        return;
    };
    for part in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", part]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=..");
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|files| !files.is_empty());
    let changes = if changed { "+changes" } else { "" };
    println!("cargo::rustc-env=NICFORGE_COMMIT={commit}{changes}");
}
