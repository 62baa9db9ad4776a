//! A service that has gone. Its connections are reset, once each. Its listeners hear nothing, as on a network that is
//! down, until another service at the same path takes them over.
//!
//! The kernel shows the descriptors of a service that has gone as hung up for good, so a server that waits for its
//! listener would spin. The first `accept` puts another file under the listener's number, where the server's epoll
//! instances find it: a listener of the new service, or, while there is none, an inotify instance that becomes readable
//! when the service's socket file appears.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;

use super::link::{borrowed, link, lost, owned, path, present};
use super::socket::{self, Socket};
use super::{options, table};
use crate::control::{BIND_REUSE_PORT, Request, RequestMessage};
use crate::layout::State;

impl Socket {
    /// Notes that the service has gone, and returns what the call that found out gets. Later calls find a closed socket.
    pub fn lose(&self) -> Errno {
        if present().is_some_and(|link| !link.alive()) {
            lost();
        }
        let before = self.state();
        // Listeners and fresh sockets move to the service that comes next.
        if matches!(before, State::Connecting | State::Connected) {
            self.page().service.state.store(State::Closed as u32, Ordering::Release);
        }
        if before == State::Connecting { Errno::NETDOWN } else { Errno::CONNRESET }
    }

    /// Whether the service has gone without a word: one that lives says that a connection is closed before it hangs up.
    pub fn is_lost(&self, number: i32) -> bool {
        hangs_up(number) && self.state() != State::Closed
    }
}

fn hangs_up(number: i32) -> bool {
    let descriptor = borrowed(number);
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)) == Ok(1) && polled[0].revents().contains(PollFlags::HUP)
}

/// A socket that was neither connected nor listening moves to the service that is there now, and keeps its address. So
/// does a listener that was shut down, whom the service has forgotten.
pub fn moved(number: i32, socket: &Arc<Socket>) -> Result<Arc<Socket>, Errno> {
    let idle = match socket.state() {
        State::Fresh => true,
        State::Listening => socket.page().application.shut.load(Ordering::Acquire) != 0,
        _ => false,
    };
    if !idle || !hangs_up(number) {
        return Ok(socket.clone());
    }
    let address = socket.page().service.local.load();
    socket::renew(number, socket).map_err(down)?;
    let fresh = table::get(number).ok_or(Errno::BADF)?;
    if let Some(address) = address {
        socket::bind(&fresh, address)?;
    }
    Ok(fresh)
}

/// A service that is not there is a network that is down.
pub fn down(cause: Errno) -> Errno {
    match cause {
        Errno::CONNREFUSED | Errno::NOENT | Errno::CONNRESET | Errno::PIPE => Errno::NETDOWN,
        other => other,
    }
}

/// One thread replaces a listener, others find it replaced.
static REPLACING: Mutex<()> = Mutex::new(());

/// A listener whose service has gone: puts another file under its number. Returns whether that is a listener again.
pub fn listen_again(number: i32, socket: &Arc<Socket>) -> Result<bool, Errno> {
    let _one = REPLACING.lock().unwrap_or_else(PoisonError::into_inner);
    let current = table::get(number).ok_or(Errno::BADF)?;
    if !Arc::ptr_eq(&current, socket) {
        return Ok(true);
    }
    if present().is_some_and(|link| !link.alive()) {
        lost();
    }
    let waits = drain(borrowed(number));
    // Watched before the attempt: a service that comes after it is noticed.
    let watch = if waits { None } else { Some(watch_service()?) };
    match listener_like(socket) {
        Ok((end, listener)) => {
            replace(number, &end)?;
            if !table::set(number, Arc::new(listener)) {
                return Err(Errno::MFILE);
            }
            Ok(true)
        }
        Err(_) => {
            if let Some(watch) = watch {
                replace(number, &watch)?;
            }
            Ok(false)
        }
    }
}

/// A listener at the address of one that its service left. Processes that shared it share the port now.
fn listener_like(old: &Socket) -> Result<(OwnedFd, Socket), Errno> {
    let address = old.page().service.local.load().ok_or(Errno::INVAL)?;
    let (end, socket) = socket::fresh(old.v6)?;
    options::copy(old, &socket);
    let flags = socket::bind_flags(&socket) | BIND_REUSE_PORT;
    let backlog = old.page().application.backlog.load(Ordering::Relaxed);
    let bind = RequestMessage { address: address.into(), value: flags, ..socket.request(Request::Bind) };
    let listen = RequestMessage { value: backlog, ..socket.request(Request::Listen) };
    let link = link()?;
    link.ask(&bind, &[])?;
    link.ask(&listen, &[])?;
    socket.page().application.backlog.store(backlog, Ordering::Relaxed);
    Socket::hold(end.as_fd());
    Ok((end, socket))
}

/// An event that comes when a file appears beside the service's socket, or that one changes. Where the folder has gone,
/// it never comes.
fn watch_service() -> Result<OwnedFd, Errno> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let folder = path().and_then(|path| path.parent());
    if let Some(folder) = folder {
        let folder = if folder.as_os_str().is_empty() { std::path::Path::new(".") } else { folder };
        let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ATTRIB;
        let _ = inotify::add_watch(&watch, folder, flags);
    }
    Ok(watch)
}

/// Takes what waits in an inotify instance; false if the descriptor is none.
fn drain(descriptor: BorrowedFd<'_>) -> bool {
    if rustix::net::sockopt::socket_type(descriptor) != Err(Errno::NOTSOCK) {
        return false;
    }
    let mut events = [0u8; 4096];
    // It blocks like the listener whose place it has: another process may empty it first.
    while rustix::io::ioctl_fionread(descriptor).is_ok_and(|waiting| waiting > 0)
        && matches!(rustix::io::read(descriptor, &mut events), Ok(1..))
    {}
    true
}

/// One epoll instance's interest in a number.
struct Interest {
    instance: OwnedFd,
    events: u32,
    data: u64,
}

/// Puts a file under a number, with its flags and in the epoll instances of this process that watch it.
fn replace(number: i32, file: &OwnedFd) -> Result<(), Errno> {
    let place = borrowed(number);
    rustix::fs::fcntl_setfl(file, rustix::fs::fcntl_getfl(place)? & rustix::fs::OFlags::NONBLOCK)?;
    let close_on_exec = rustix::io::fcntl_getfd(place)?.contains(rustix::io::FdFlags::CLOEXEC);
    let flags = if close_on_exec { rustix::io::DupFlags::CLOEXEC } else { rustix::io::DupFlags::empty() };
    let interests = interests(number);
    for interest in &interests {
        let _ = epoll::delete(&interest.instance, place);
    }
    let mut slot = std::mem::ManuallyDrop::new(owned(number));
    rustix::io::dup3(file, &mut slot, flags)?;
    for interest in interests {
        let data = EventData::new_u64(interest.data);
        let _ = epoll::add(&interest.instance, place, data, EventFlags::from_bits_retain(interest.events));
    }
    Ok(())
}

/// Who waits for a number, as the kernel lists it.
fn interests(number: i32) -> Vec<Interest> {
    let Ok(files) = std::fs::read_dir("/proc/self/fdinfo") else { return Vec::new() };
    let files: Vec<i32> = files.flatten().filter_map(|file| file.file_name().to_str()?.parse().ok()).collect();
    let mut found = Vec::new();
    for instance in files {
        let Ok(text) = std::fs::read_to_string(format!("/proc/self/fdinfo/{instance}")) else { continue };
        found.extend(text.lines().filter_map(|line| interest(line, number)).map(|interest| (instance, interest)));
    }
    let interests = found.into_iter().filter_map(|(instance, (events, data))| {
        let instance = rustix::io::fcntl_dupfd_cloexec(borrowed(instance), 0).ok()?;
        Some(Interest { instance, events, data })
    });
    interests.collect()
}

/// Events and data of a line `tfd: 7 events: 1d data: 7`, if it is about `number`.
fn interest(line: &str, number: i32) -> Option<(u32, u64)> {
    let mut words = line.split_whitespace();
    let mut after = |name: &str| words.by_ref().find(|word| *word == name).and_then(|_| words.next());
    let target: i32 = after("tfd:")?.parse().ok()?;
    let events = u32::from_str_radix(after("events:")?, 16).ok()?;
    let data = u64::from_str_radix(after("data:")?, 16).ok()?;
    (target == number).then_some((events, data))
}

/// Waits until a listener without a service may have one again.
pub fn wait_for_service(number: i32) -> Result<(), Errno> {
    poll(&mut [PollFd::from_borrowed_fd(borrowed(number), PollFlags::IN)], None).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn the_kernels_list_of_interests_is_read() {
        let line = "tfd:        7 events: 80002019 data: 55d0c0ffee  pos:0 ino:9c1 sdev:8";
        assert_eq!(interest(line, 7), Some((0x8000_2019, 0x55_d0c0_ffee)));
        assert_eq!(interest(line, 8), None);
        assert_eq!(interest("pos:	0", 7), None);
        let instance = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let (watched, other) = (watch_service().unwrap(), watch_service().unwrap());
        epoll::add(&instance, &watched, EventData::new_u64(9), EventFlags::IN).unwrap();
        assert_eq!(interests(watched.as_raw_fd()).iter().map(|i| i.data).collect::<Vec<_>>(), [9]);
        assert!(interests(other.as_raw_fd()).is_empty());
    }
}
