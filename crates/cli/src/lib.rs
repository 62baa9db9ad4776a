//! The `nicforge` command as a library: a program of another crate adds interfaces, applications and stages of its own to the
//! [`Registry`] and hands it to [`main`]. It then has every command, `run`, `live`, `list`, `check` and the others, with
//! them.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     nicforge::main(nicforge::Registry::shipped())
//! }
//! ```
//!
//! `nicforge new interface NAME` writes such a crate.

mod args;
mod calibrate;
mod capture;
mod check;
mod diff;
mod error;
mod estimate;
mod examples;
mod fields;
mod help;
#[cfg(target_os = "linux")]
mod http;
mod input;
#[cfg(target_os = "linux")]
mod ktls;
mod list;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod machine;
mod manual;
#[cfg(target_os = "linux")]
mod network;
mod new;
#[cfg(target_os = "linux")]
mod nvme;
#[cfg(target_os = "linux")]
mod openmetrics;
mod output;
mod outputs;
mod p4;
mod registry;
mod reproduce;
mod rss;
mod run;
mod search;
mod settings;
#[cfg(target_os = "linux")]
mod sim_vs_live;
#[cfg(target_os = "linux")]
mod sockets;

use std::process::ExitCode;

use clap::Parser;

pub use nicforge_apps as apps;
pub use nicforge_interfaces as interfaces;
pub use nicforge_lab::Registry;
pub use nicforge_nic as nic;
pub use nicforge_options as options;
pub use nicforge_platform as platform;
pub use nicforge_stages as stages;
pub use nicforge_units as units;
pub use nicforge_wire as wire;

use args::{Arguments, Command};
#[cfg(target_os = "linux")]
use machine::MachineCommand;

/// Runs the command that the command line asks for, with all that `registry` holds. Returns 0 when all went well, 1 when
/// something failed, 2 for wrong usage or input. Only the first registry of a process counts.
pub fn main(registry: Registry) -> ExitCode {
    let registry = registry.stage::<nicforge_p4stage::P4Kind>();
    registry::set(registry.interface::<nicforge_p4stage::flexnic::FlexNic>());
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Run(options) => run::run(options),
        Command::Search(options) => search::search(options),
        Command::Diff(options) => diff::diff(options),
        Command::Reproduce(options) => reproduce::reproduce(options),
        Command::Calibrate(options) => calibrate::calibrate(options),
        Command::List(options) => list::list(options),
        Command::Help(options) => help::help(options),
        Command::Check(options) => check::check(options),
        Command::Rss(options) => rss::rss(options),
        #[cfg(target_os = "linux")]
        Command::Live(options) => live::live(options),
        #[cfg(target_os = "linux")]
        Command::Attach(options) => live::attach(options),
        #[cfg(target_os = "linux")]
        Command::SimVsLive(options) => sim_vs_live::sim_vs_live(options),
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
        #[cfg(target_os = "linux")]
        Command::Nvme(options) => nvme::nvme(options),
        #[cfg(target_os = "linux")]
        Command::Ktls(options) => ktls::ktls(options),
        Command::Capture(options) => capture::capture(options),
        Command::P4(options) => return p4::p4(options),
        Command::New(options) => new::new(options),
        Command::Completions(options) => manual::completions(options),
        Command::Manual(options) => manual::manual(options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
