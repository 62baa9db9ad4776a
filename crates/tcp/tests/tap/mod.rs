//! A stack behind a TAP device, driven in real time, with faults between the two.
#![allow(unsafe_code, dead_code)]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Instant;

use nicforge_tcp::Config;
use nicforge_tcp::conn::{ConnectionError, Tuning};
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::stack::{Address, ConnectionId, HostConfig, Stack};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// What happens to frames, in parts of 1000.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faulty {
    pub loss: u32,
    pub swap: u32,
    pub twice: u32,
    pub seed: u64,
}

/// What the application over our stack does; either way it echoes until the peer closes.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    Connect(IpAddr, u16),
    Listen(u16),
}

/// Anything that frames are read from and written to, one per call.
pub struct Port {
    file: File,
    faults: Faulty,
    rng: Pcg64,
    /// A frame that a later one overtakes, per direction: in, out.
    held: [Option<Vec<u8>>; 2],
}

pub struct Harness {
    stack: Stack<HeapBuffers>,
    port: Port,
    started: Instant,
}

const IFF_TAP_NO_PI: i16 = 0x0002 | 0x1000;
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// Moves this thread, and those it starts, into a namespace of its own with a TAP device in it.
fn tap() -> Option<File> {
    // SAFETY: a plain system call about this thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return None;
    }
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").ok()?;
    // `struct ifreq`: name, then flags.
    let mut request = [0u8; 40];
    request[..4].copy_from_slice(b"tap0");
    request[16..18].copy_from_slice(&IFF_TAP_NO_PI.to_ne_bytes());
    // SAFETY: the request takes the address of an `ifreq`, which `request` is.
    if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) } != 0 {
        return None;
    }
    let commands = [
        "link set lo up",
        "link set tap0 up",
        "addr add 10.9.0.2/24 dev tap0",
        "-6 addr add fd09::2/64 dev tap0 nodad",
    ];
    for command in commands {
        let status = Command::new("ip").args(command.split(' ')).status().ok()?;
        if !status.success() {
            return None;
        }
    }
    Some(file)
}

/// The program that `command` starts finds `port` as descriptor 3.
pub fn give_descriptor_3(command: &mut Command, port: OwnedFd) {
    let give = move || {
        // SAFETY: a plain system call between fork and exec, which allocates nothing.
        let given = unsafe { libc::dup2(port.as_raw_fd(), 3) };
        if given == 3 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure only calls dup2, which may be called there.
    unsafe { command.pre_exec(give) };
}

fn nonblocking(fd: RawFd) {
    // SAFETY: plain system calls on a descriptor of our own.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

impl Port {
    pub fn new(file: File, faults: Faulty) -> Port {
        nonblocking(file.as_raw_fd());
        Port { file, faults, rng: Pcg64::seed_from_u64(faults.seed), held: [None, None] }
    }

    fn chance(&mut self, of_1000: u32) -> bool {
        of_1000 > 0 && self.rng.next_u32() % 1000 < of_1000
    }

    /// The frame with faults: none, one or two, the held one after a later one.
    fn fate(&mut self, direction: usize, frame: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        if self.chance(self.faults.loss) {
            return frames;
        }
        if self.held[direction].is_none() && self.chance(self.faults.swap) {
            self.held[direction] = Some(frame.to_vec());
            return frames;
        }
        frames.push(frame.to_vec());
        if self.chance(self.faults.twice) {
            frames.push(frame.to_vec());
        }
        frames.extend(self.held[direction].take());
        frames
    }

    fn wait(&self, timeout_ms: i32) {
        let mut entry = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&mut entry, 1, timeout_ms) };
    }
}

impl Harness {
    /// A stack behind a new TAP device; nothing where that cannot be had.
    pub fn new(config: Config, faults: Faulty) -> Option<Harness> {
        Some(Harness::over(tap()?, config, faults))
    }

    /// A stack behind anything that carries frames.
    pub fn over(file: File, config: Config, faults: Faulty) -> Harness {
        let addresses = vec![
            Address::new([10, 9, 0, 1], 24),
            Address::new(std::net::Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1), 64),
        ];
        let host = HostConfig::ethernet(MacAddress([2, 0, 0, 9, 0, 1]), addresses);
        let stack = Stack::new(host, config, HeapBuffers, [9; 16]);
        Harness { stack, port: Port::new(file, faults), started: Instant::now() }
    }

    fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64 + 1_000_000_000)
    }

    /// Echoes until `is_done` and our connection has closed; panics after a minute.
    pub fn run(&mut self, role: Role, is_done: impl Fn() -> bool) {
        let tuning = Tuning::new(self.stack.config());
        let (mut connection, mut listener) = (None, None);
        match role {
            Role::Connect(ip, port) => {
                connection = Some(self.stack.connect((None, 0), (ip, port), tuning, self.now()).unwrap());
            }
            Role::Listen(port) => listener = Some(self.stack.listen(None, port, 4, tuning, false).unwrap()),
        }
        let mut waiting = Vec::new();
        let mut shut = false;
        while !is_done() {
            if self.started.elapsed().as_secs() >= 60 {
                let connection = connection.and_then(|id| self.stack.connection(id));
                panic!("not done in a minute: {:?} {connection:?}", self.stack.counters());
            }
            self.turn();
            connection = connection.or_else(|| listener.and_then(|listener| self.stack.accept(listener)));
            let error = connection.and_then(|id| self.stack.connection(id)).and_then(|connection| connection.error());
            if let (Role::Connect(ip, port), Some(ConnectionError::Refused)) = (role, error) {
                // The peer does not listen yet.
                std::thread::sleep(std::time::Duration::from_millis(20));
                let (now, tuning) = (self.now(), Tuning::new(self.stack.config()));
                connection = Some(self.stack.connect((None, 0), (ip, port), tuning, now).unwrap());
            }
            if let Some(id) = connection {
                self.echo(id, &mut waiting, &mut shut);
            }
        }
    }

    fn echo(&mut self, id: ConnectionId, waiting: &mut Vec<u8>, shut: &mut bool) {
        let now = self.now();
        if waiting.is_empty() {
            let mut out = vec![0; 65536];
            let len = self.stack.recv(id, &mut out, now).unwrap_or(0);
            waiting.extend_from_slice(&out[..len]);
        }
        let sent = self.stack.send(id, waiting, false, now).unwrap_or(0);
        waiting.drain(..sent);
        let ended = self.stack.connection(id).is_some_and(|connection| connection.is_peer_done());
        let empty = self.stack.connection(id).is_some_and(|connection| connection.readable() == 0);
        if ended && empty && waiting.is_empty() && !*shut {
            self.stack.shut_write(id, now);
            *shut = true;
        }
        self.flush();
    }

    fn turn(&mut self) {
        let now = self.now();
        let due = self.stack.poll_at().map_or(5, |at| (at.saturating_sub(now).as_ps() / 1_000_000_000) as i32);
        self.port.wait(due.clamp(0, 5));
        let mut frame = [0; 65536];
        while let Ok(len) = self.port.file.read(&mut frame) {
            if len == 0 {
                break;
            }
            for frame in self.port.fate(0, &frame[..len]) {
                let now = self.now();
                self.stack.receive(&frame, now);
                self.flush();
            }
        }
        let now = self.now();
        self.stack.on_timer(now);
        self.flush();
    }

    fn flush(&mut self) {
        let mut out = [0; 2048];
        let now = self.now();
        while let Some(len) = self.stack.transmit(now, &mut out) {
            for frame in self.port.fate(1, &out[..len]) {
                let _ = self.port.file.write(&frame);
            }
        }
    }
}
