//! How the service is set up, and its door.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::Limits;

/// How the service is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Path of its Unix socket.
    pub path: PathBuf,
    /// Bytes of each ring of each socket, a power of two from 4096 up.
    pub ring_bytes: usize,
    /// Every application's limits at the start.
    pub limits: Limits,
    /// Most sockets in all.
    pub sockets: usize,
}

impl Config {
    /// Default figures at a path.
    pub fn at(path: impl Into<PathBuf>) -> Config {
        Config { path: path.into(), ring_bytes: 256 << 10, limits: Limits::default(), sockets: 1 << 19 }
    }
}

/// The service cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {cause}")]
pub struct ServiceError {
    pub(super) doing: String,
    pub(super) cause: Errno,
}

impl ServiceError {
    pub(super) fn of(doing: impl Into<String>) -> impl FnOnce(Errno) -> ServiceError {
        move |cause| ServiceError { doing: doing.into(), cause }
    }
}

/// The Unix socket where applications come in. A socket file without a living service is replaced.
pub(crate) fn open_door(path: &Path) -> Result<OwnedFd, ServiceError> {
    let doing = |what: &str| ServiceError::of(format!("{what} {}", path.display()));
    let address = SocketAddrUnix::new(path).map_err(doing("naming"))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let make = || rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let door = make().map_err(doing("creating"))?;
    if let Err(cause) = rustix::net::bind(&door, &address) {
        let probe = make().map_err(doing("creating"))?;
        if cause != Errno::ADDRINUSE || rustix::net::connect(&probe, &address) != Err(Errno::CONNREFUSED) {
            return Err(doing("binding")(cause));
        }
        let _ = std::fs::remove_file(path);
        rustix::net::bind(&door, &address).map_err(doing("binding"))?;
    }
    rustix::net::listen(&door, 1024).map_err(doing("listening at"))?;
    // Users are told apart by what the kernel says of them; everybody may come. Listeners that an earlier service left
    // wait for this change of the file.
    let _ = rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o666));
    Ok(door)
}
