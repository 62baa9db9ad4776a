//! The `nicforge` command.

mod args;
mod capture;
mod check;
mod error;
mod estimate;
mod input;
mod list;
#[cfg(target_os = "linux")]
mod live;
mod notes;
mod output;
mod registry;
mod run;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Run(options) => run::run(options),
        Command::List(options) => list::list(options),
        Command::Check(options) => check::check(options),
        #[cfg(target_os = "linux")]
        Command::Live(options) => live::live(options),
        #[cfg(target_os = "linux")]
        Command::Attach(options) => live::attach(options),
        Command::Capture(options) => capture::capture(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
