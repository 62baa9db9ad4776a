//! Sockets: the answers and errors that programs know, between two hosts in virtual time.

use nicforge_tcp::Config;
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::socket::{
    EpollEvent, EpollOperation, Errno, Family, Fd, Half, Interest, ReceiveFlags, SendFlags, SocketName, Sockets, level,
    option_name,
};
use nicforge_tcp::stack::{Address, HostConfig, Stack};
use nicforge_units::Time;

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const IN: u32 = 1;
const OUT: u32 = 4;
const RDHUP: u32 = 0x2000;
const ONE_SHOT: u32 = 1 << 30;
const EDGE: u32 = 1 << 31;

struct Pair {
    hosts: [Sockets<HeapBuffers>; 2],
    now: Time,
}

fn name(ip: [u8; 4], port: u16) -> SocketName {
    SocketName { ip: ip.into(), port }
}

impl Pair {
    fn new() -> Pair {
        let host = |ip: [u8; 4]| {
            let config = HostConfig::ip(vec![Address::new(ip, 24)]);
            Sockets::new(Stack::new(config, Config::default(), HeapBuffers, [ip[3]; 16]), 3)
        };
        Pair { hosts: [host(A), host(B)], now: Time::from_ms(1) }
    }

    fn run(&mut self, ms: u64) {
        let mut out = [0; 2048];
        for _ in 0..=ms {
            loop {
                let mut quiet = true;
                for from in 0..2 {
                    while let Some(len) = self.hosts[from].stack.transmit(self.now, &mut out) {
                        quiet = false;
                        self.hosts[1 - from].stack.receive(&out[..len], self.now);
                    }
                }
                if quiet {
                    break;
                }
            }
            self.now += Time::from_ms(1);
            for host in &mut self.hosts {
                host.stack.on_timer(self.now);
                host.dispatch();
            }
        }
    }

    /// A listener on B, and a connection from A.
    fn open(&mut self) -> (Fd, Fd, Fd) {
        let listener = self.hosts[1].socket(Family::V4, true);
        self.hosts[1].bind(listener, name([0; 4], 80)).unwrap();
        self.hosts[1].listen(listener, 4).unwrap();
        assert_eq!(self.hosts[1].accept(listener, true), Err(Errno::AGAIN));
        let client = self.hosts[0].socket(Family::V4, true);
        assert_eq!(self.hosts[0].connect(client, name(B, 80), self.now), Err(Errno::IN_PROGRESS));
        assert_eq!(self.hosts[0].connect(client, name(B, 80), self.now), Err(Errno::ALREADY));
        assert_eq!(self.hosts[0].peer_name(client), Err(Errno::NOT_CONNECTED));
        self.run(2);
        assert_eq!(self.hosts[0].connect(client, name(B, 80), self.now), Ok(()));
        assert_eq!(self.hosts[0].connect(client, name(B, 80), self.now), Err(Errno::IS_CONNECTED));
        let server = self.hosts[1].accept(listener, true).unwrap();
        assert_eq!(self.hosts[1].peer_name(server), self.hosts[0].local_name(client));
        (client, server, listener)
    }

    fn send(&mut self, host: usize, fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
        let sent = self.hosts[host].send(fd, bytes, SendFlags::default(), self.now);
        self.run(1);
        sent
    }

    fn recv(&mut self, host: usize, fd: Fd) -> Result<usize, Errno> {
        self.hosts[host].recv(fd, &mut [0; 4000], ReceiveFlags::default(), self.now)
    }
}

#[test]
fn data_ends_in_zero_after_the_peer_closes() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.open();
    assert_eq!(pair.recv(1, server), Err(Errno::AGAIN));
    assert_eq!(pair.send(0, client, b"hello"), Ok(5));
    assert_eq!(pair.hosts[1].unread(server), Ok(5));
    assert_eq!(pair.recv(1, server), Ok(5));
    pair.hosts[0].shutdown(client, Half::Write, pair.now).unwrap();
    pair.run(1);
    assert_eq!(pair.recv(1, server), Ok(0));
    assert_eq!(pair.send(0, client, b"x"), Err(Errno::PIPE));
    assert_eq!(pair.send(1, server, b"late"), Ok(4));
    assert_eq!(pair.recv(0, client), Ok(4));
    pair.hosts[1].close(server, pair.now).unwrap();
    pair.run(1);
    assert_eq!(pair.recv(0, client), Ok(0));
    assert_eq!(pair.recv(1, server), Err(Errno::BAD_FD));
}

#[test]
fn errors_are_reported_once() {
    let mut pair = Pair::new();
    let lone = pair.hosts[0].socket(Family::V4, true);
    assert_eq!(pair.recv(0, lone), Err(Errno::NOT_CONNECTED));
    assert_eq!(pair.send(0, lone, b"x"), Err(Errno::PIPE));
    assert_eq!(pair.hosts[0].connect(lone, name(B, 81), pair.now), Err(Errno::IN_PROGRESS));
    pair.run(2);
    assert!(pair.hosts[0].readiness(lone).unwrap().error);
    assert_eq!(pair.hosts[0].connect_outcome(lone), Ok(Some(Err(Errno::REFUSED))));
    let (client, server, _) = pair.open();
    let linger = [1i32.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    pair.hosts[1].set_option(server, level::SOCKET, option_name::LINGER, &linger, pair.now).unwrap();
    pair.hosts[1].close(server, pair.now).unwrap();
    pair.run(2);
    // Whoever was told of a connection keeps it.
    assert_eq!(pair.hosts[0].connect(client, name(B, 80), pair.now), Err(Errno::IS_CONNECTED));
    let mut error = [0; 4];
    let now = pair.now;
    assert_eq!(pair.hosts[0].option(client, level::SOCKET, option_name::ERROR, &mut error, now), Ok(4));
    assert_eq!(i32::from_ne_bytes(error), Errno::RESET.0);
    assert_eq!(pair.recv(0, client), Ok(0));
}

#[test]
fn ports_are_taken_once_unless_shared() {
    let mut pair = Pair::new();
    let (_, _, listener) = pair.open();
    let host = &mut pair.hosts[1];
    let other = host.socket(Family::V4, true);
    assert_eq!(host.bind(other, name([0; 4], 80)), Err(Errno::ADDRESS_IN_USE));
    assert_eq!(host.bind(other, name([9, 9, 9, 9], 90)), Err(Errno::ADDRESS_UNAVAILABLE));
    assert_eq!(host.accept(other, true), Err(Errno::INVALID));
    host.close(listener, pair.now).unwrap();
    let one = 1i32.to_ne_bytes();
    for _ in 0..2 {
        let shared = host.socket(Family::V4, true);
        host.set_option(shared, level::SOCKET, option_name::REUSEPORT, &one, pair.now).unwrap();
        host.bind(shared, name([0; 4], 90)).unwrap();
        host.listen(shared, 4).unwrap();
    }
}

#[test]
fn epoll_reports_levels_edges_and_single_shots() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.open();
    let mut events = [EpollEvent { events: 0, data: 0 }; 4];
    for (flags, second_wait) in [(0, 1), (EDGE, 0), (ONE_SHOT, 0)] {
        let epoll = pair.hosts[1].epoll_create();
        let interest = Interest { events: IN | RDHUP | flags, data: 42 };
        pair.hosts[1].epoll_ctl(epoll, server, EpollOperation::Add(interest)).unwrap();
        assert_eq!(pair.hosts[1].epoll_ctl(epoll, server, EpollOperation::Add(interest)), Err(Errno::EXISTS));
        assert_eq!(pair.hosts[1].epoll_wait(epoll, &mut events), Ok(0));
        pair.send(0, client, b"ping").unwrap();
        assert_eq!(pair.hosts[1].epoll_wait(epoll, &mut events), Ok(1));
        assert_eq!((events[0].events, events[0].data), (IN, 42));
        assert_eq!(pair.hosts[1].epoll_wait(epoll, &mut events), Ok(second_wait), "{flags:#x}");
        pair.send(0, client, b"more").unwrap();
        let again = if flags == ONE_SHOT { 0 } else { 1 };
        assert_eq!(pair.hosts[1].epoll_wait(epoll, &mut events), Ok(again), "{flags:#x}");
        assert_eq!(pair.recv(1, server), Ok(8));
        pair.hosts[1].close(epoll, pair.now).unwrap();
    }
}

#[test]
fn a_full_buffer_says_when_there_is_room() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.open();
    let epoll = pair.hosts[0].epoll_create();
    let interest = Interest { events: OUT | EDGE, data: 1 };
    pair.hosts[0].epoll_ctl(epoll, client, EpollOperation::Add(interest)).unwrap();
    let mut events = [EpollEvent { events: 0, data: 0 }; 4];
    assert_eq!(pair.hosts[0].epoll_wait(epoll, &mut events), Ok(1));
    while pair.send(0, client, &[1; 20_000]).is_ok() {}
    assert_eq!(pair.send(0, client, &[1; 20_000]), Err(Errno::AGAIN));
    assert_eq!(pair.hosts[0].epoll_wait(epoll, &mut events), Ok(0));
    while pair.recv(1, server).is_ok_and(|len| len > 0) {
        pair.run(1);
    }
    assert_eq!(pair.hosts[0].epoll_wait(epoll, &mut events), Ok(1));
}

#[test]
fn options_have_the_kernels_answers() {
    let mut pair = Pair::new();
    let (client, _, _) = pair.open();
    let now = pair.now;
    let host = &mut pair.hosts[0];
    let mut get = |level, name| {
        let mut value = [0; 4];
        host.option(client, level, name, &mut value, now).map(|_| i32::from_ne_bytes(value))
    };
    assert_eq!(get(level::SOCKET, option_name::TYPE), Ok(1));
    assert_eq!(get(level::TCP, option_name::NODELAY), Ok(0));
    assert_eq!(get(level::TCP, option_name::MAXSEG), Ok(1448));
    assert_eq!(get(level::TCP, 999), Err(Errno::NO_OPTION));
    let small = 5i32.to_ne_bytes();
    assert_eq!(host.set_option(client, level::TCP, option_name::MAXSEG, &small, now), Err(Errno::INVALID));
    assert_eq!(host.set_option(client, level::TCP, option_name::NODELAY, &[1], now), Err(Errno::INVALID));
    assert_eq!(host.set_option(client, level::TCP, option_name::CONGESTION, b"bbr", now), Err(Errno::NO_ENTRY));
    host.set_option(client, level::TCP, option_name::CONGESTION, b"reno\0", now).unwrap();
    let mut info = [0; 280];
    assert_eq!(host.option(client, level::TCP, option_name::INFO, &mut info, now), Ok(280));
    assert_eq!((info[0], info[80]), (1, 10), "established, window of ten segments");
}
