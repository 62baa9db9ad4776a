//! Runs a service, or a program over one: `sockets serve PATH [tap NAME ADDRESS…]`, `sockets run PATH PROGRAM…`.

use std::ffi::OsString;
use std::process::ExitCode;

use nicforge_sockets::attach::{Attachment, NetworkConfig, address};
use nicforge_sockets::launch;
use nicforge_sockets::service::{Config, Service};
use nicforge_sockets::transport::Transport;

fn network(arguments: &[OsString]) -> Result<Option<Box<dyn Transport>>, Box<dyn std::error::Error>> {
    let text = |argument: &OsString| argument.to_string_lossy().into_owned();
    let [kind, name, addresses @ ..] = arguments else { return Ok(None) };
    let attachment = if kind == "tap" { Attachment::Tap(text(name)) } else { Attachment::Interface(text(name)) };
    let addresses = addresses.iter().map(|a| address(&text(a))).collect::<Result<_, _>>()?;
    let network = NetworkConfig::new(attachment, addresses).open()?;
    Ok(Some(Box::new(network)))
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [what, path, rest @ ..] = arguments.as_slice() else { return ExitCode::from(2) };
    let result: Result<u8, Box<dyn std::error::Error>> = match what.to_str() {
        Some("serve") => {
            network(rest).and_then(|network| Ok(Service::new(Config::at(path), network)?.run()?)).map(|()| 0)
        }
        Some("run") => {
            launch::run(path.as_ref(), rest).map(|status| status.code().unwrap_or(1) as u8).map_err(Into::into)
        }
        _ => Ok(2),
    };
    result.map(ExitCode::from).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}
