//! Prints figures of the house.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use nicforge_tidy::figures::{figures, print};
use nicforge_tidy::tree::read_all;

const USAGE: &str = "usage: nicforge-tidy figures [--root DIR]   (DIR: a checkout; this one by default)\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = match arguments[..] {
        ["figures"] => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.."),
        ["figures", "--root", root] => PathBuf::from(root),
        _ => return refuse(USAGE),
    };
    match read_all(&root) {
        Ok(files) => match std::io::stdout().write_all(print(&figures(&files)).as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&format!("error: cannot write the figures: {error}\n")),
        },
        Err(error) => refuse(&format!("error: {error}\n")),
    }
}

fn refuse(why: &str) -> ExitCode {
    // Without standard error the exit code has to say it.
    let _ = std::io::stderr().write_all(why.as_bytes());
    ExitCode::from(2)
}
