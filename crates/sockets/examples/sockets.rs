//! Runs a service, or a program over one: `sockets serve PATH`, `sockets run PATH PROGRAM…`, `sockets list PATH`.

use std::ffi::OsString;
use std::process::ExitCode;

use nicforge_sockets::launch;
use nicforge_sockets::service::{Config, Service};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [what, path, program @ ..] = arguments.as_slice() else { return ExitCode::from(2) };
    match what.to_str() {
        Some("serve") => match Service::new(Config::at(path), None).and_then(|mut service| service.run()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Some("run") => match launch::run(path.as_ref(), program) {
            Ok(status) => ExitCode::from(status.code().unwrap_or(1) as u8),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::from(2),
    }
}
