//! Makes a random sequence of socket calls and prints what each returned: `calls SEED CALLS SETTLE_MS`.
//!
//! Run over the kernel and over the library it prints the same. All descriptors are non-blocking, and every call is
//! followed by a pause in which what it caused arrives. The hang-up of a socket that was shut down both ways is left
//! out, as docs/sockets.md says.
#![allow(unsafe_code, reason = "calls the C library as a C program does")]

use std::cell::Cell;
use std::rc::Rc;

use libc::{c_int, c_void};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

struct World {
    random: Random,
    listener: c_int,
    at: libc::sockaddr_in,
    closed: libc::sockaddr_in,
    sockets: Vec<Slot>,
    watched: Vec<Slot>,
    epoll: c_int,
    settle_ms: u64,
    next: u8,
}

/// A descriptor, and which halves of its socket were shut down; copies share that.
#[derive(Clone)]
struct Slot {
    fd: c_int,
    shut: Rc<Cell<u8>>,
}

impl Slot {
    fn new(fd: c_int) -> Slot {
        Slot { fd, shut: Rc::default() }
    }

    fn shown(&self, events: u32) -> u32 {
        if self.shut.get() == 3 { events & !(libc::EPOLLHUP as u32) } else { events }
    }
}

fn told(result: i64) -> String {
    if result >= 0 {
        return result.to_string();
    }
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    format!("errno {error}")
}

fn address(port: u16) -> libc::sockaddr_in {
    // SAFETY: the structure is plain bytes.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_addr.s_addr = u32::from(std::net::Ipv4Addr::LOCALHOST).to_be();
    address.sin_port = port.to_be();
    address
}

const ADDRESS_BYTES: u32 = size_of::<libc::sockaddr_in>() as u32;

fn listen() -> (c_int, libc::sockaddr_in) {
    let mut at = address(0);
    let mut len = ADDRESS_BYTES;
    // SAFETY: structures and lengths of this function.
    unsafe {
        let listener = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0);
        assert_eq!(libc::bind(listener, (&raw const at).cast(), len), 0);
        assert_eq!(libc::listen(listener, 16), 0);
        assert_eq!(libc::getsockname(listener, (&raw mut at).cast(), &mut len), 0);
        (listener, at)
    }
}

impl World {
    fn new(seed: u64, settle_ms: u64) -> World {
        let (listener, at) = listen();
        let (gone, closed) = listen();
        // SAFETY: descriptors of this function.
        let epoll = unsafe {
            libc::close(gone);
            libc::epoll_create1(0)
        };
        World {
            random: Random(seed),
            listener,
            at,
            closed,
            sockets: Vec::new(),
            watched: Vec::new(),
            epoll,
            settle_ms,
            next: 0,
        }
    }

    fn pick(&mut self) -> Option<(usize, c_int)> {
        let index = self.random.below(self.sockets.len().max(1) as u64) as usize;
        self.sockets.get(index).map(|slot| (index, slot.fd))
    }

    fn step(&mut self) -> String {
        let kind = self.random.below(26);
        if kind < 3 || self.sockets.is_empty() {
            return self.connect();
        }
        let Some((index, socket)) = self.pick() else { return String::new() };
        match kind {
            3..=5 => self.accept(),
            6..=9 => self.send(index, socket),
            10..=14 => self.receive(index, socket),
            15 => {
                let how = self.random.below(3) as c_int;
                // SAFETY: no pointers.
                let result = unsafe { libc::shutdown(socket, how) };
                if result == 0 {
                    let shut = &self.sockets[index].shut;
                    shut.set(shut.get() | [1, 2, 3][how as usize]);
                }
                format!("shutdown {index} {how}: {}", told(i64::from(result)))
            }
            16 => {
                self.sockets.remove(index);
                // SAFETY: no pointers.
                format!("close {index}: {}", told(i64::from(unsafe { libc::close(socket) })))
            }
            17 => {
                // SAFETY: no pointers.
                let copy = unsafe { libc::dup(socket) };
                let shut = self.sockets[index].shut.clone();
                self.sockets.push(Slot { fd: copy, shut });
                format!("dup {index}")
            }
            18 | 19 => self.poll(),
            20 => self.watch(index, socket),
            21 | 22 => self.wait(),
            _ => self.ask(index, socket),
        }
    }

    fn connect(&mut self) -> String {
        let refused = self.random.below(8) == 0;
        let to = if refused { self.closed } else { self.at };
        // SAFETY: a structure of this object.
        let result = unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
            self.sockets.push(Slot::new(socket));
            libc::connect(socket, (&raw const to).cast(), ADDRESS_BYTES)
        };
        format!("connect refused={refused}: {}", told(i64::from(result)))
    }

    fn accept(&mut self) -> String {
        let mut from = address(0);
        let mut len = ADDRESS_BYTES;
        // SAFETY: a structure and length of this function.
        let socket = unsafe { libc::accept4(self.listener, (&raw mut from).cast(), &mut len, libc::SOCK_NONBLOCK) };
        if socket < 0 {
            return format!("accept: {}", told(-1));
        }
        self.sockets.push(Slot::new(socket));
        let port = from.sin_port != 0;
        format!("accept: family {} address {:x} port {port} length {len}", from.sin_family, from.sin_addr.s_addr)
    }

    fn send(&mut self, index: usize, socket: c_int) -> String {
        let len = self.random.below(3000) as usize;
        let bytes: Vec<u8> = (0..len).map(|n| self.next.wrapping_add(n as u8)).collect();
        let vector = self.random.below(3) == 0;
        // SAFETY: buffers of this function.
        let sent = unsafe {
            if vector {
                let (a, b) = bytes.split_at(len / 3);
                let part = |part: &[u8]| libc::iovec { iov_base: part.as_ptr() as *mut c_void, iov_len: part.len() };
                libc::writev(socket, [part(a), part(b)].as_ptr(), 2)
            } else {
                libc::send(socket, bytes.as_ptr().cast(), len, libc::MSG_NOSIGNAL)
            }
        };
        self.next = self.next.wrapping_add(sent.max(0) as u8);
        format!("send {index} {len}: {}", told(sent as i64))
    }

    fn receive(&mut self, index: usize, socket: c_int) -> String {
        let len = self.random.below(6000) as usize;
        let flags = [0, 0, 0, libc::MSG_PEEK, libc::MSG_WAITALL, libc::MSG_DONTWAIT][self.random.below(6) as usize];
        let mut bytes = vec![0u8; len];
        // SAFETY: a buffer of this function.
        let got = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), len, flags) };
        let sum =
            bytes.iter().take(got.max(0) as usize).fold(0u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
        format!("recv {index} {len} flags {flags:x}: {} sum {sum:x}", told(got as i64))
    }

    fn poll(&mut self) -> String {
        let events = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;
        let all: Vec<Slot> = self.sockets.iter().cloned().chain([Slot::new(self.listener)]).collect();
        let mut polled: Vec<libc::pollfd> =
            all.iter().map(|slot| libc::pollfd { fd: slot.fd, events, revents: 0 }).collect();
        // SAFETY: a list of this function.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
        let events = polled.iter().zip(&all).map(|(polled, slot)| slot.shown(polled.revents as u32));
        let seen: Vec<String> = events.map(|events| format!("{events:x}")).collect();
        format!("poll: {}", seen.join(" "))
    }

    fn watch(&mut self, index: usize, socket: c_int) -> String {
        let way = [0, libc::EPOLLET, libc::EPOLLONESHOT][self.random.below(3) as usize];
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLRDHUP | way) as u32,
            u64: self.watched.len() as u64,
        };
        self.watched.push(self.sockets[index].clone());
        // SAFETY: a structure of this function.
        let result = unsafe {
            let added = libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_ADD, socket, &mut event);
            if added < 0 { libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_MOD, socket, &mut event) } else { added }
        };
        format!("watch {index} {way:x}: {}", told(i64::from(result)))
    }

    fn wait(&mut self) -> String {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 32];
        // SAFETY: a list of this function.
        let count = unsafe { libc::epoll_wait(self.epoll, events.as_mut_ptr(), 32, 0) };
        let mut seen: Vec<(u64, u32)> =
            events.iter().take(count.max(0) as usize).map(|event| (event.u64, event.events)).collect();
        for (number, events) in &mut seen {
            *events = self.watched[*number as usize].shown(*events);
        }
        seen.sort_unstable();
        format!("epoll_wait: {seen:x?}")
    }

    fn ask(&mut self, index: usize, socket: c_int) -> String {
        let mut number: c_int = 0;
        let mut len = 4;
        let mut peer = address(0);
        let mut peer_len = ADDRESS_BYTES;
        let options = [
            (libc::SOL_SOCKET, libc::SO_ERROR),
            (libc::SOL_SOCKET, libc::SO_TYPE),
            (libc::SOL_SOCKET, libc::SO_DOMAIN),
            (libc::SOL_SOCKET, libc::SO_PROTOCOL),
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN),
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
            (libc::SOL_SOCKET, libc::SO_REUSEADDR),
            (libc::IPPROTO_TCP, libc::TCP_NODELAY),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
        ];
        let (level, name) = options[self.random.below(options.len() as u64) as usize];
        let value = self.random.below(3) as c_int;
        // SAFETY: structures and lengths of this function.
        unsafe {
            match self.random.below(5) {
                0 => {
                    let result = libc::getsockopt(socket, level, name, (&raw mut number).cast(), &mut len);
                    format!("getsockopt {index} {level} {name}: {} {number} {len}", told(i64::from(result)))
                }
                1 => {
                    let result = libc::setsockopt(socket, level, name, (&raw const value).cast(), 4);
                    format!("setsockopt {index} {level} {name} {value}: {}", told(i64::from(result)))
                }
                2 => {
                    let result = libc::ioctl(socket, libc::FIONREAD, &raw mut number);
                    format!("FIONREAD {index}: {} {number}", told(i64::from(result)))
                }
                3 => {
                    let result = libc::getpeername(socket, (&raw mut peer).cast(), &mut peer_len);
                    format!("getpeername {index}: {} {:x}", told(i64::from(result)), peer.sin_addr.s_addr)
                }
                _ => {
                    let flags = libc::fcntl(socket, libc::F_GETFL, 0);
                    let mut status: libc::stat = std::mem::zeroed();
                    libc::fstat(socket, &mut status);
                    let terminal = libc::isatty(socket);
                    format!("flags {index}: {flags:x} mode {:o} tty {terminal}", status.st_mode & libc::S_IFMT)
                }
            }
        }
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let &[seed, calls, settle_ms] = numbers.as_slice() else { std::process::exit(2) };
    let mut world = World::new(seed, settle_ms);
    for number in 0..calls {
        let line = world.step();
        println!("{number} {line}");
        std::thread::sleep(std::time::Duration::from_millis(world.settle_ms));
    }
}
