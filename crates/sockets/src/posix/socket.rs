//! A socket in this process, and the calls that make, name and connect one.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, sockopt};

use super::link::{Link, borrowed, link};
use super::{options, table};
use crate::control::{Request, RequestMessage};
use crate::layout::{Kind, SocketPage, State};
use crate::queue::Message;
use crate::shared::SocketMemory;

/// A socket's memory as this process has it.
#[derive(Debug)]
pub struct Socket {
    /// Page and rings.
    pub memory: SocketMemory,
    /// Name at the service.
    pub flow: u32,
    /// Proof of possession.
    pub key: u64,
    /// The service that made it.
    pub instance: u64,
    /// Made with `AF_INET6`.
    pub v6: bool,
    /// Link through which the service knows that this process has the socket.
    attached: AtomicU64,
}

impl Socket {
    /// The socket in a memory that the service gave.
    pub fn of(memory: OwnedFd) -> Result<Socket, Errno> {
        let memory = SocketMemory::new(&memory)?;
        let service = &memory.page().service;
        let (flow, key) = (service.flow.load(Ordering::Relaxed), service.key.load(Ordering::Relaxed));
        let instance = service.instance.load(Ordering::Relaxed);
        let v6 = service.family.load(Ordering::Relaxed) == libc::AF_INET6 as u32;
        Ok(Socket { memory, flow, key, instance, v6, attached: AtomicU64::new(0) })
    }

    /// Notes that the service knows.
    pub fn attach_to(&self, link: &Link) {
        self.attached.store(link.serial, Ordering::Relaxed);
    }

    /// The page.
    #[inline]
    pub fn page(&self) -> &SocketPage {
        self.memory.page()
    }

    /// State as the service published it.
    #[inline]
    pub fn state(&self) -> State {
        State::of(self.page().service.state.load(Ordering::Acquire))
    }

    /// Whether an error waits to be reported.
    pub fn has_error(&self) -> bool {
        self.page().service.error.load(Ordering::Acquire) != 0
    }

    /// Takes the error that waits to be reported, and the descriptor's, which then shows none.
    pub fn report_error(&self, number: i32) -> Option<Errno> {
        let cause = self.take_error()?;
        let _ = sockopt::socket_error(borrowed(number));
        Some(cause)
    }

    /// Takes the error that waits to be reported.
    pub fn take_error(&self) -> Option<Errno> {
        let error = &self.page().service.error;
        if error.load(Ordering::Acquire) == 0 {
            return None;
        }
        Some(error.swap(0, Ordering::AcqRel)).filter(|error| *error != 0).map(|e| Errno::from_raw_os_error(e as i32))
    }

    /// Adds an entry about this socket.
    #[inline]
    pub fn push(&self, message: Message) -> Result<(), Errno> {
        self.tell(message).map_err(|_| self.lose())
    }

    /// The same, where it is no matter whether the service is there.
    #[inline]
    pub fn tell(&self, message: Message) -> Result<(), Errno> {
        let link = link()?;
        if link.instance != self.instance {
            return Err(Errno::NETDOWN);
        }
        if self.attached.load(Ordering::Relaxed) == link.serial {
            return link.push(&[message]);
        }
        let attach = Message { word: self.key, ..Message::new(Kind::Attach, self.flow) };
        link.push(&[attach, message])?;
        self.attach_to(&link);
        Ok(())
    }

    /// A request about this socket.
    pub fn request(&self, request: Request) -> RequestMessage {
        RequestMessage { request: request as u32, flow: self.flow, key: self.key, ..RequestMessage::default() }
    }

    /// Makes the descriptor unwritable until the service takes what is sent here. Returns whether somebody is there to
    /// take it.
    pub fn hold(descriptor: BorrowedFd<'_>) -> bool {
        loop {
            match send(descriptor, b"w", SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(cause) => return !matches!(cause, Errno::PIPE | Errno::CONNRESET),
            }
        }
    }
}

/// A new socket: its descriptor is the service's to signal.
pub fn create(v6: bool, nonblocking: bool, close_on_exec: bool) -> Result<i32, Errno> {
    let (end, socket) = fresh(v6)?;
    set_flags(end.as_fd(), nonblocking, close_on_exec)?;
    let number = end.as_raw_fd();
    if !table::set(number, Arc::new(socket)) {
        return Err(Errno::MFILE);
    }
    Ok(end.into_raw_fd())
}

/// A socket at the service, and this side's end of it.
pub fn fresh(v6: bool) -> Result<(OwnedFd, Socket), Errno> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET } as u32;
    let request = RequestMessage { request: Request::Socket as u32, value: family, ..RequestMessage::default() };
    let mut link = link()?;
    let answer = match link.ask(&request, &[]) {
        // The service has gone; another may be there.
        Err(Errno::CONNRESET | Errno::PIPE) => {
            link = super::link::link()?;
            link.ask(&request, &[])
        }
        answer => answer,
    };
    let (_, descriptors) = answer?;
    let [end, memory] = <[OwnedFd; 2]>::try_from(descriptors).map_err(|_| Errno::MFILE)?;
    let socket = Socket::of(memory)?;
    socket.attach_to(&link);
    Ok((end, socket))
}

/// Descriptors come with close-on-exec set and blocking.
pub(super) fn set_flags(descriptor: BorrowedFd<'_>, nonblocking: bool, close_on_exec: bool) -> Result<(), Errno> {
    if nonblocking {
        rustix::fs::fcntl_setfl(descriptor, rustix::fs::OFlags::NONBLOCK)?;
    }
    if !close_on_exec {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
    }
    Ok(())
}

/// `bind`.
pub fn bind(socket: &Socket, address: SocketAddr) -> Result<(), Errno> {
    if address.is_ipv6() && !socket.v6 {
        return Err(Errno::AFNOSUPPORT);
    }
    // A connection that has ended still has its address, and the service knows it no more.
    if (address.is_ipv4() && socket.v6) || socket.state() != State::Fresh {
        return Err(Errno::INVAL);
    }
    let request =
        RequestMessage { address: address.into(), value: bind_flags(socket), ..socket.request(Request::Bind) };
    link()?.ask(&request, &[]).map(|_| ())
}

/// Options that decide who may have which port.
pub fn bind_flags(socket: &Socket) -> u32 {
    use crate::control::{BIND_FREE, BIND_REUSE_ADDRESS, BIND_REUSE_PORT, BIND_V6_ONLY};
    let on = |level, name, flag| if options::number(socket, level, name).is_some_and(|n| n != 0) { flag } else { 0 };
    on(libc::SOL_SOCKET, libc::SO_REUSEADDR, BIND_REUSE_ADDRESS)
        | on(libc::SOL_SOCKET, libc::SO_REUSEPORT, BIND_REUSE_PORT)
        | on(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, BIND_V6_ONLY)
        | on(libc::IPPROTO_IP, libc::IP_FREEBIND, BIND_FREE)
}

/// `listen`.
pub fn listen(number: i32, socket: &Socket, backlog: i32) -> Result<(), Errno> {
    let first = match socket.state() {
        State::Fresh => true,
        State::Listening => false,
        State::Connecting | State::Connected | State::Closed => return Err(Errno::INVAL),
    };
    let backlog = if backlog < 0 { 4096 } else { backlog };
    let extra = u64::from(bind_flags(socket));
    let request = RequestMessage { value: backlog as u32, extra, ..socket.request(Request::Listen) };
    link()?.ask(&request, &[])?;
    socket.page().application.backlog.store(backlog as u32, Ordering::Relaxed);
    if first {
        // A listener never becomes writable.
        Socket::hold(borrowed(number));
    }
    Ok(())
}

/// `connect`.
pub fn connect(number: i32, socket: &Socket, to: SocketAddr) -> Result<(), Errno> {
    if to.is_ipv6() && !socket.v6 {
        return Err(Errno::AFNOSUPPORT);
    }
    if to.port() == 0 {
        return Err(Errno::CONNREFUSED);
    }
    match socket.state() {
        State::Fresh => {}
        State::Listening => return Err(Errno::ISCONN),
        State::Connecting if nonblocking(number) => return Err(Errno::ALREADY),
        State::Connecting => return wait_connected(number, socket),
        State::Connected | State::Closed => return report_connected(number, socket, to),
    }
    let descriptor = borrowed(number);
    Socket::hold(descriptor);
    let request = RequestMessage { address: to.into(), ..socket.request(Request::Connect) };
    link()?.ask(&request, &[])?;
    if nonblocking(number) {
        return Err(Errno::INPROGRESS);
    }
    wait_connected(number, socket)
}

/// A later call on a socket whose handshake has ended: the first one gets the result.
fn report_connected(number: i32, socket: &Socket, to: SocketAddr) -> Result<(), Errno> {
    let reported = &socket.page().application.connect_reported;
    if reported.swap(1, Ordering::AcqRel) == 0 {
        return socket.report_error(number).map_or(Ok(()), Err);
    }
    if socket.state() == State::Connected {
        return Err(Errno::ISCONN);
    }
    renew(number, socket)?;
    let socket = table::get(number).ok_or(Errno::BADF)?;
    connect(number, &socket, to)
}

/// A descriptor whose connection has ended gets a new socket: Linux lets programs connect again.
pub fn renew(number: i32, old: &Socket) -> Result<(), Errno> {
    let (end, socket) = fresh(old.v6)?;
    set_flags(end.as_fd(), nonblocking(number), true)?;
    let flags = rustix::io::fcntl_getfd(borrowed(number))?;
    options::copy(old, &socket);
    let mut place = std::mem::ManuallyDrop::new(super::link::owned(number));
    let duplicate = if flags.contains(rustix::io::FdFlags::CLOEXEC) {
        rustix::io::DupFlags::CLOEXEC
    } else {
        rustix::io::DupFlags::empty()
    };
    rustix::io::dup3(&end, &mut place, duplicate)?;
    table::set(number, Arc::new(socket));
    Ok(())
}

pub(super) fn nonblocking(number: i32) -> bool {
    rustix::fs::fcntl_getfl(borrowed(number)).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK))
}

/// Waits until the handshake has ended, at most for the send timeout.
fn wait_connected(number: i32, socket: &Socket) -> Result<(), Errno> {
    let descriptor = borrowed(number);
    let timeout = sockopt::socket_timeout(descriptor, sockopt::Timeout::Send).ok().flatten();
    let timeout = timeout.map(|t| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: i64::from(t.subsec_nanos()) });
    while socket.state() == State::Connecting {
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
        if poll(&mut polled, timeout.as_ref())? == 0 {
            return Err(Errno::INPROGRESS);
        }
        if socket.state() == State::Connecting && polled[0].revents().contains(PollFlags::HUP) {
            return Err(socket.lose());
        }
    }
    socket.page().application.connect_reported.store(1, Ordering::Release);
    socket.report_error(number).map_or(Ok(()), Err)
}

/// `shutdown`.
pub fn shutdown(number: i32, socket: &Socket, how: i32) -> Result<(), Errno> {
    if !(0..=2).contains(&how) {
        return Err(Errno::INVAL);
    }
    let (read, write) = (how != libc::SHUT_WR, how != libc::SHUT_RD);
    match socket.state() {
        State::Fresh | State::Closed => return Err(Errno::NOTCONN),
        State::Connecting => {}
        State::Connected => {}
        State::Listening if read => {
            socket.page().application.shut.store(1, Ordering::Release);
            return rustix::net::shutdown(borrowed(number), Shutdown::Both);
        }
        State::Listening => return Ok(()),
    }
    let shut = &socket.page().application.shut;
    if write && shut.fetch_or(2, Ordering::AcqRel) & 2 == 0 {
        socket.push(Message::new(Kind::Finish, socket.flow))?;
    }
    if read && shut.fetch_or(1, Ordering::AcqRel) & 1 == 0 {
        let _ = rustix::net::shutdown(borrowed(number), Shutdown::Read);
    }
    if shut.load(Ordering::Acquire) == 3 {
        socket.push(Message::new(Kind::Deaf, socket.flow))?;
    }
    Ok(())
}

/// Own address as `getsockname` gives it.
pub fn local(socket: &Socket) -> SocketAddr {
    let unbound: std::net::IpAddr =
        if socket.v6 { std::net::Ipv6Addr::UNSPECIFIED.into() } else { std::net::Ipv4Addr::UNSPECIFIED.into() };
    socket.page().service.local.load().unwrap_or(SocketAddr::new(unbound, 0))
}

/// The peer's address as `getpeername` gives it.
pub fn remote(socket: &Socket) -> Result<SocketAddr, Errno> {
    match socket.state() {
        State::Connected => socket.page().service.remote.load().ok_or(Errno::NOTCONN),
        _ => Err(Errno::NOTCONN),
    }
}

/// Whether a descriptor that this process inherited or received is one of the service's, and makes it ours.
pub fn adopt(number: i32) -> bool {
    let descriptor = borrowed(number);
    // The service's descriptors are Unix streams with the least send buffer; few others are.
    let likely = sockopt::socket_domain(descriptor) == Ok(rustix::net::AddressFamily::UNIX)
        && sockopt::socket_type(descriptor) == Ok(rustix::net::SocketType::STREAM)
        && sockopt::socket_send_buffer_size(descriptor).is_ok_and(|bytes| bytes < 8192);
    if !likely {
        return false;
    }
    let Ok(link) = link() else { return false };
    let request = RequestMessage { request: Request::Adopt as u32, ..RequestMessage::default() };
    let Ok((_, mut descriptors)) = link.ask(&request, &[descriptor]) else { return false };
    let Some(Ok(socket)) = descriptors.pop().map(Socket::of) else { return false };
    socket.attach_to(&link);
    table::set(number, Arc::new(socket))
}

/// Waits until the descriptor is readable as the kernel would: `O_NONBLOCK`, the receive timeout and signals count.
/// Returns whether the service can still signal.
/// With `now` it does not wait.
pub fn wait_readable(number: i32, now: bool) -> Result<bool, Errno> {
    let mut token = [0u8; 1];
    let flags = if now { RecvFlags::PEEK | RecvFlags::DONTWAIT } else { RecvFlags::PEEK };
    recv(borrowed(number), &mut token[..], flags).map(|(len, _)| len > 0)
}
