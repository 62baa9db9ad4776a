//! `nicforge sockets`: unmodified programs over the project's TCP.
//!
//! | file | command |
//! | --- | --- |
//! | ss.rs | `nicforge ss`: sockets, traces of connections, limits |
//! | tcpdump.rs | `nicforge tcpdump` |
//! | metrics.rs | the page for Prometheus |

mod metrics;
mod ss;
mod tcpdump;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;

use clap::Args;
use nicforge_sockets::attach::{AttachError, NetworkConfig, ORPHANS};
use nicforge_sockets::launch::{LaunchError, command};
use nicforge_sockets::observe::{ObserveError, list};
use nicforge_sockets::posix::link::PATH_VARIABLE;
use nicforge_sockets::posix::policy::KERNEL_VARIABLE;
use nicforge_sockets::service::{Config, Limits, Service, ServiceError, Stopper};
use nicforge_sockets::transport::Transport;
use nicforge_sockets::transport::loss::Loss;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use thiserror::Error;

use crate::error::CliError;
use crate::network::NetworkOptions;

pub use metrics::of as metrics;
pub use ss::{SsOptions, ss};
pub use tcpdump::{TcpdumpOptions, tcpdump};

/// Options of `nicforge sockets`.
#[derive(Args)]
pub struct SocketsOptions {
    #[command(flatten)]
    place: Place,
    /// Run a service until it is interrupted, and no program
    #[arg(long, conflicts_with = "program")]
    serve: bool,
    #[command(flatten)]
    network: NetworkOptions,
    /// Connections that close without an owner, TIME-WAIT included; the oldest beyond it are reset
    #[arg(long, value_name = "N", default_value_t = ORPHANS)]
    orphans: usize,
    /// Sockets that an application may have
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// Bytes per second that an application may send
    #[arg(long, value_name = "BYTES")]
    rate: Option<u64>,
    /// Serve counters for Prometheus on this loopback address, such as 127.0.0.1:9478
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Addresses that stay with the kernel, such as 127.0.0.0/8,::1
    #[arg(long, value_name = "PREFIXES")]
    kernel: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "serve")]
    program: Vec<OsString>,
}

/// Where the service is.
#[derive(Args)]
pub struct Place {
    /// The service's socket [default: as NICFORGE_SOCKETS says, or nicforge-sockets in the user's runtime folder or /tmp]
    #[arg(long, value_name = "PATH")]
    service: Option<PathBuf>,
}

/// Why sockets could not be had.
#[derive(Debug, Error)]
pub enum SocketsError {
    /// The service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Its network.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The program.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Looking at it.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// Waiting for the program or a signal.
    #[error("waiting: {0}")]
    Wait(std::io::Error),
}

impl Place {
    pub(crate) fn at(service: Option<PathBuf>) -> Place {
        Place { service }
    }

    /// The service's socket.
    pub(crate) fn path(&self) -> PathBuf {
        let named = self.service.clone().or_else(|| std::env::var_os(PATH_VARIABLE).map(PathBuf::from));
        named.unwrap_or_else(|| runtime_folder().join("nicforge-sockets"))
    }
}

/// Where sockets of services are, if nothing else is said.
pub(crate) fn runtime_folder() -> PathBuf {
    std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Runs a program over a service, which is started where none answers, or a service alone.
pub fn sockets(options: &SocketsOptions) -> Result<(), CliError> {
    let path = options.place.path();
    if let Some(address) = options.metrics {
        let path = path.clone();
        crate::openmetrics::serve(address, move || metrics::of(&path))?;
    }
    if options.serve {
        let (stopper, thread) = start(config(&path, options), network(options)?, options.network.loss)?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(SocketsError::Wait)?;
        signals.forever().next();
        stopper.stop();
        return ended(thread);
    }
    let network = network(options)?;
    let running = list(&path).is_ok();
    if running && network.is_some() {
        let path = path.display();
        return Err(CliError::Usage(format!("a service runs at {path} already; a network is given when it starts")));
    }
    let own = if running { None } else { Some(start(config(&path, options), network, options.network.loss)?) };
    let mut command = command(&path, &options.program).map_err(SocketsError::Launch)?;
    if let Some(kernel) = &options.kernel {
        command.env(KERNEL_VARIABLE, kernel);
    }
    let child = command.spawn().map_err(|cause| {
        let program = options.program.first().map_or_else(String::new, |p| p.to_string_lossy().into_owned());
        SocketsError::Launch(LaunchError::Program { program, cause })
    })?;
    let status = wait(child)?;
    if let Some((stopper, thread)) = own {
        stopper.stop();
        ended(thread)?;
    }
    std::process::exit(status);
}

type Running = std::thread::JoinHandle<Result<(), ServiceError>>;

/// Starts a service in a thread of its own, where it is also made.
fn start(config: Config, network: Option<NetworkConfig>, loss: f64) -> Result<(Stopper, Running), CliError> {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let opened = network.map(|network| network.open()).transpose().map_err(SocketsError::Attach);
        let service = opened.and_then(|network| {
            // Which frames are lost is the same each time.
            let network = network.map(|network| network.with_loss(Loss::new(loss, 1)));
            let network = network.map(|network| Box::new(network) as Box<dyn Transport>);
            Ok(Service::new(config, network)?)
        });
        match service {
            Ok(mut service) => {
                let _ = tell.send(Ok(service.stopper()));
                service.run()
            }
            Err(error) => {
                let _ = tell.send(Err(error));
                Ok(())
            }
        }
    });
    match told.recv() {
        Ok(Ok(stopper)) => Ok((stopper, thread)),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(CliError::Usage("the service's thread ended before it began".into())),
    }
}

fn ended(thread: Running) -> Result<(), CliError> {
    match thread.join() {
        Ok(result) => Ok(result.map_err(SocketsError::Service)?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Waits for the program and passes signals on. An interrupt from the terminal reaches it without us.
fn wait(mut child: Child) -> Result<i32, CliError> {
    use std::os::unix::process::ExitStatusExt;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(SocketsError::Wait)?;
    let handle = signals.handle();
    let pid = rustix::process::Pid::from_child(&child);
    let passing = std::thread::spawn(move || {
        for _ in signals.forever().filter(|signal| *signal != SIGINT) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    });
    let status = child.wait().map_err(SocketsError::Wait)?;
    handle.close();
    let _ = passing.join();
    // As a shell says it.
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// The service's configuration.
fn config(path: &Path, options: &SocketsOptions) -> Config {
    let connections = options.connections.unwrap_or(Limits::default().connections);
    Config { limits: Limits { connections, bytes_per_second: options.rate }, ..Config::at(path) }
}

fn network(options: &SocketsOptions) -> Result<Option<NetworkConfig>, CliError> {
    let network = options.network.config()?;
    Ok(network.map(|network| NetworkConfig { orphans: options.orphans, ..network }))
}
