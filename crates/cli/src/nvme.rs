//! `nicforge nvme`: blocks over NVMe/TCP.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use nicforge_l5p::nvme::subsystem::SubsystemConfig;
use nicforge_sockets::attach::NetworkConfig;
use nicforge_sockets::transport::loss::Loss;
use nicforge_storage::disk::{Disk, DiskConfig, DiskError};
use nicforge_storage::image::{Image, ImageError};
use nicforge_storage::target::{Server, TargetError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use thiserror::Error;

use crate::error::CliError;
use crate::network::NetworkOptions;
use crate::output::{print, show_counters};
use crate::sockets::SocketsError;

/// The name of a target's subsystem, if none is given.
const DEFAULT_NQN: &str = "nqn.2026-01.org.nicforge:disk";
/// A host's own name.
const HOST_NQN: &str = "nqn.2026-01.org.nicforge:host";

/// Examples of `nicforge nvme`.
pub const NVME_EXAMPLES: &str = "\
Examples:
  truncate -s 1G disk.img
  nicforge nvme serve disk.img --interface nf-inside --address 10.99.1.1/24
  nvme connect -t tcp -a 10.99.1.1 -s 4420 -n nqn.2026-01.org.nicforge:disk --data-digest   # on a Linux host
  nicforge nvme read copy.img --target 10.99.1.1:4420 --interface nf-outside --address 10.99.1.9/24";

#[derive(Args)]
pub struct NvmeOptions {
    #[command(subcommand)]
    command: NvmeCommand,
}

#[derive(Subcommand)]
enum NvmeCommand {
    /// Serve a file as a disk to hosts of any kind, digests and placement on the NIC; until interrupted
    Serve(ServeOptions),
    /// Copy a whole disk of a target into a file
    Read(CopyOptions),
    /// Copy a file to the beginning of a disk of a target
    Write(CopyOptions),
}

/// Options of `nicforge nvme read` and `write`.
#[derive(Args)]
struct CopyOptions {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    network: NetworkOptions,
    /// The target's address and port, such as 10.99.1.1:4420
    #[arg(long, value_name = "ADDRESS:PORT")]
    target: SocketAddr,
    /// Name of the subsystem
    #[arg(long, value_name = "NQN", default_value = DEFAULT_NQN)]
    nqn: String,
    /// Leave digests and copies to software
    #[arg(long)]
    software: bool,
}

/// Options of `nicforge nvme serve`.
#[derive(Args)]
struct ServeOptions {
    /// The disk: a file of whole blocks of 512 bytes
    image: PathBuf,
    #[command(flatten)]
    network: NetworkOptions,
    /// TCP port
    #[arg(long, default_value_t = 4420)]
    port: u16,
    /// Name of the subsystem
    #[arg(long, value_name = "NQN", default_value = DEFAULT_NQN)]
    nqn: String,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    /// Leave digests and copies to software
    #[arg(long)]
    software: bool,
}

/// Blocks could not be served.
#[derive(Debug, Error)]
pub enum NvmeError {
    /// The file.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The disk of a target.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file that is copied.
    #[error("{}: {cause}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why it cannot be used.
        cause: std::io::Error,
    },
    /// The file does not fit.
    #[error("{} has {bytes} bytes, and the disk has {disk}, of which whole blocks are written", path.display())]
    Length {
        /// Its path.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The disk's.
        disk: u64,
    },
}

/// Runs the command.
pub fn nvme(options: &NvmeOptions) -> Result<(), CliError> {
    match &options.command {
        NvmeCommand::Serve(options) => serve(options),
        NvmeCommand::Read(options) => read(options),
        NvmeCommand::Write(options) => write(options),
    }
}

fn connect(options: &CopyOptions) -> Result<Disk, CliError> {
    let network = network(&options.network)?;
    let attached = network.attach().map_err(SocketsError::Attach)?;
    let config = DiskConfig {
        target: options.target,
        subsystem: options.nqn.clone(),
        host: HOST_NQN.into(),
        offloads: !options.software,
    };
    Ok(Disk::connect(attached, Loss::new(options.network.loss, 1), config).map_err(NvmeError::Disk)?)
}

fn read(options: &CopyOptions) -> Result<(), CliError> {
    let path = &options.file;
    let wrong = |cause| NvmeError::File { path: path.clone(), cause };
    let mut disk = connect(options)?;
    let file = File::create(path).map_err(wrong)?;
    disk.read_all(|at, bytes| file.write_all_at(bytes, at)).map_err(NvmeError::Disk)?;
    show_counters(&format!("{} bytes read", disk.bytes()), &disk.counters())
}

fn write(options: &CopyOptions) -> Result<(), CliError> {
    let path = &options.file;
    let wrong = |cause| NvmeError::File { path: path.clone(), cause };
    let file = File::open(path).map_err(wrong)?;
    let bytes = file.metadata().map_err(wrong)?.len();
    let mut disk = connect(options)?;
    if bytes > disk.bytes() || !bytes.is_multiple_of(disk.block_bytes().into()) {
        return Err(NvmeError::Length { path: path.clone(), bytes, disk: disk.bytes() }.into());
    }
    disk.write_all(bytes, |at, into| file.read_exact_at(into, at)).map_err(NvmeError::Disk)?;
    show_counters(&format!("{bytes} bytes written"), &disk.counters())
}

fn network(options: &NetworkOptions) -> Result<NetworkConfig, CliError> {
    let without = || CliError::Usage("NVMe/TCP needs a network: --interface or --tap, and --address".into());
    options.config()?.ok_or_else(without)
}

fn serve(options: &ServeOptions) -> Result<(), CliError> {
    let network = network(&options.network)?;
    // A network has an address.
    let at = SocketAddr::new(network.addresses[0].0, options.port);
    if !options.nqn.starts_with("nqn.") || options.nqn.len() > 223 {
        let wrong =
            format!("`{}` is no NVMe qualified name: it begins with `nqn.` and has at most 223 bytes", options.nqn);
        return Err(CliError::Usage(wrong));
    }
    let image = Image::open(&options.image, options.read_only).map_err(NvmeError::Image)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(SocketsError::Wait)?;
    }
    let attached = network.attach().map_err(SocketsError::Attach)?;
    let config = SubsystemConfig { nqn: options.nqn.clone(), at };
    let loss = Loss::new(options.network.loss, 1);
    let mut server = Server::new(attached, loss, config, image, !options.software).map_err(NvmeError::Target)?;
    print(&format!("{} at {at}, until Ctrl-C\n", options.nqn))?;
    server.run(&stop).map_err(NvmeError::Target)?;
    let ended =
        server.last_failure().map_or_else(|| "ended".into(), |why| format!("the last connection that failed: {why}"));
    show_counters(&ended, &server.counters())
}
