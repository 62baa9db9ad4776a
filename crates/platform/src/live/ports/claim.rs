//! Interfaces that a process has for itself: two runs over one interface would both answer its frames.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use crate::live::LiveError;

/// An interface of a network namespace, which the inode of the namespace names.
type Interface = (u64, String);

/// Interfaces that this process has: several of its ports may share one.
static OWN: Mutex<BTreeMap<Interface, Weak<OwnedFd>>> = Mutex::new(BTreeMap::new());

/// How often a claim is tried again, 10 ms apart, that this process had before.
const TRIES: usize = 20;

/// An interface is this process's until the last value is gone, and with the process at the latest.
#[derive(Clone, Debug)]
pub struct Claim {
    _socket: Arc<OwnedFd>,
}

/// The claim of a port that takes the frames of interface `name`, by whatever kind of socket.
///
/// # Errors
/// Another process has the interface, or the system refuses a socket.
pub fn claimed(name: &str) -> Result<Claim, LiveError> {
    let claim = claim(name).map_err(LiveError::of(format!("interface {name}")))?;
    claim.ok_or_else(|| LiveError::Interface {
        name: name.to_owned(),
        problem: "another run takes its frames, and both would answer".into(),
        remedy: "end the other run, or name another interface".into(),
    })
}

/// Claims the interface `name` of the calling thread's network namespace; `None` where another process has it. The claim
/// is an abstract Unix socket: the kernel keeps one set of names for each network namespace and frees a name with its
/// process.
fn claim(name: &str) -> io::Result<Option<Claim>> {
    use std::os::unix::fs::MetadataExt;
    let interface = (std::fs::metadata("/proc/thread-self/ns/net")?.ino(), name.to_owned());
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(socket) = own.get(&interface).and_then(Weak::upgrade) {
        return Ok(Some(Claim { _socket: socket }));
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let address = SocketAddrUnix::new_abstract_name(format!("nicforge-interface-{name}").as_bytes())?;
    // A program that this process just starts has its files until it runs: a claim of before may be one of them.
    let tries = if own.contains_key(&interface) { TRIES } else { 1 };
    for left in (0..tries).rev() {
        match bind(&socket, &address) {
            Ok(()) => break,
            Err(rustix::io::Errno::ADDRINUSE) if left == 0 => return Ok(None),
            Err(rustix::io::Errno::ADDRINUSE) => std::thread::sleep(Duration::from_millis(10)),
            Err(cause) => return Err(cause.into()),
        }
    }
    let socket = Arc::new(socket);
    own.insert(interface, Arc::downgrade(&socket));
    Ok(Some(Claim { _socket: socket }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_shares_its_own_claim_and_gives_it_back() {
        let (first, second) = (claim("test-claim").unwrap(), claim("test-claim").unwrap());
        assert!(first.is_some() && second.is_some());
        // Another process would meet the name in use.
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap();
        let name = SocketAddrUnix::new_abstract_name(b"nicforge-interface-test-claim").unwrap();
        assert_eq!(bind(&socket, &name), Err(rustix::io::Errno::ADDRINUSE));
        drop(first);
        assert_eq!(bind(&socket, &name), Err(rustix::io::Errno::ADDRINUSE));
        drop(second);
        bind(&socket, &name).unwrap();
        assert!(claim("test-claim").unwrap().is_none());
    }
}
