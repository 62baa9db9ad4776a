//! The `nicforge` command.

mod args;
mod capture;
mod check;
#[cfg(target_os = "linux")]
mod compare;
mod error;
mod estimate;
mod input;
mod list;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod machine;
mod notes;
mod output;
mod outputs;
mod p4;
mod registry;
mod run;
#[cfg(target_os = "linux")]
mod sockets;

use std::process::ExitCode;

use clap::Parser;

#[cfg(target_os = "linux")]
use args::MachineCommand;
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
        #[cfg(target_os = "linux")]
        Command::Compare(options) => compare::compare(options),
        #[cfg(target_os = "linux")]
        Command::Machine(options) => match &options.command {
            MachineCommand::Measure(options) => machine::measure(options),
        },
        #[cfg(target_os = "linux")]
        Command::Sockets(options) => sockets::sockets(options),
        #[cfg(target_os = "linux")]
        Command::Ss(options) => sockets::ss(options),
        #[cfg(target_os = "linux")]
        Command::Tcpdump(options) => sockets::tcpdump(options),
        Command::Capture(options) => capture::capture(options),
        Command::P4(options) => return p4::p4(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
