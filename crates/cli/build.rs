//! Tells the program which commit it is built from, in release builds: a debug build is linked anew for every change,
//! and each commit would build all of its tests again.

use std::process::Command;

/// What `git` says here; `None` where it has nothing to say.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    // Sources without a repository of their own may lie in somebody else's.
    if !is_release || git(&["ls-files", "--error-unmatch", "build.rs"]).is_none() {
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
