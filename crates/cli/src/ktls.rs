//! `nicforge ktls`: a NIC under the kernel's own TCP.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use nicforge_sockets::kernel::nic::{KernelNic, KernelNicError};
use nicforge_sockets::kernel::program::PATH_VARIABLE;
use nicforge_sockets::launch::{LaunchError, command_over_kernel};
use nicforge_sockets::transport::loss::Loss;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::error::CliError;
use crate::network::share;
use crate::output::{print, show_counters};

/// Examples of `nicforge ktls`.
pub const KTLS_EXAMPLES: &str = "\
Examples:
  ip link set eth1 arp off up                          # the wire: the kernel must not answer there
  nicforge ktls serve --tap nfk0 --interface eth1      # the NIC: between the kernel's TCP and the wire, until Ctrl-C
  ip address add 10.1.0.1/24 dev nfk0                  # in another terminal: the kernel's end
  ip link set nfk0 up
  nicforge ktls run -- nginx -c /etc/nginx/ktls.conf   # with `ssl_conf_command Options KTLS;` in it";

#[derive(Args)]
pub struct KtlsOptions {
    #[command(subcommand)]
    command: KtlsCommand,
}

#[derive(Subcommand)]
enum KtlsCommand {
    /// Be the NIC: make the TAP device, encrypt what programs hand keys over for; until interrupted
    Serve(ServeOptions),
    /// Run a program over the kernel's TCP, its TLS records encrypted by the NIC
    Run(RunOptions),
}

/// Where the NIC is.
#[derive(Args)]
struct Place {
    /// The NIC's socket [default: as NICFORGE_KTLS says, or nicforge-ktls in the user's runtime folder or /tmp]
    #[arg(long, value_name = "PATH")]
    service: Option<PathBuf>,
}

#[derive(Args)]
struct ServeOptions {
    #[command(flatten)]
    place: Place,
    /// The TAP device where the kernel's TCP is; it is made
    #[arg(long, value_name = "NAME")]
    tap: String,
    /// The wire: an interface without addresses of the kernel's
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// Share of frames that the wire loses by intent, 0 to 1, in each direction
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    loss: f64,
}

#[derive(Args)]
struct RunOptions {
    #[command(flatten)]
    place: Place,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

/// The NIC or its program failed.
#[derive(Debug, Error)]
pub enum KtlsError {
    /// The NIC.
    #[error(transparent)]
    Nic(#[from] KernelNicError),
    /// The program.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// No NIC.
    #[error("no NIC is at {}: start `nicforge ktls serve` first, or name its socket with --service", .0.display())]
    NoNic(PathBuf),
    /// Signals.
    #[error("waiting for signals: {0}")]
    Signals(std::io::Error),
}

impl Place {
    fn path(&self) -> PathBuf {
        let named = self.service.clone().or_else(|| std::env::var_os(PATH_VARIABLE).map(PathBuf::from));
        named.unwrap_or_else(|| crate::sockets::runtime_folder().join("nicforge-ktls"))
    }
}

/// Runs the command.
pub fn ktls(options: &KtlsOptions) -> Result<(), CliError> {
    match &options.command {
        KtlsCommand::Serve(options) => serve(options),
        KtlsCommand::Run(options) => run(options),
    }
}

fn serve(options: &ServeOptions) -> Result<(), CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(KtlsError::Signals)?;
    }
    let (path, loss) = (options.place.path(), Loss::new(options.loss, 1));
    let mut nic = KernelNic::open(&options.tap, &options.interface, loss, &path).map_err(KtlsError::Nic)?;
    let ServeOptions { tap, interface, .. } = options;
    print(&format!("NIC between {tap} and {interface}, programs at {}, until Ctrl-C\n", path.display()))?;
    nic.run(&stop).map_err(KtlsError::Nic)?;
    show_counters("ended", &nic.counters())
}

fn run(options: &RunOptions) -> Result<(), CliError> {
    use std::os::unix::process::CommandExt;
    let path = options.place.path();
    if !path.exists() {
        return Err(KtlsError::NoNic(path).into());
    }
    let mut command = command_over_kernel(&path, &options.program).map_err(KtlsError::Launch)?;
    // Nothing is left to do here: the program takes this process's place, and gets its signals itself.
    let cause = command.exec();
    let program = options.program.first().map_or_else(String::new, |p| p.to_string_lossy().into_owned());
    Err(KtlsError::Launch(LaunchError::Program { program, cause }).into())
}
