//! What fuzz targets do with their bytes, so that tests can run it, too.
#![allow(dead_code)]

use std::collections::BTreeMap;

use nicforge_tcp::Config;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::fast::{Bump, Flow, FlowFlags, Outcome, Summary, application, receive, retransmit, transmit};
use nicforge_tcp::options::{Options, Timestamps};
use nicforge_tcp::queue::{Consumer, ENTRY_LEN, FromApplication, ToApplication};
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::segment::{Flags, Header};
use nicforge_tcp::seq::{Seq, Span};
use nicforge_tcp::socket::{
    EpollOperation, Errno, Family, Fd, Half, Interest, ReceiveFlags, SendFlags, SocketName, Sockets,
};
use nicforge_tcp::stack::{Address, HostConfig, Stack};
use nicforge_units::Time;
use nicforge_wire::IpAddresses;
use nicforge_wire::checksum::{checksum, pseudo_header};
use nicforge_wire::headers::{Ipv4View, ip_protocol};

const OURS: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 2];

/// Bytes as choices; zero when they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }
    fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
    fn word(&mut self) -> u32 {
        u32::from(self.half()) | u32::from(self.half()) << 16
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn packet(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; header.emitted_len()];
    if header.emit(&mut segment).is_err() {
        return Vec::new();
    }
    segment.extend(payload);
    let addresses = IpAddresses::V4 { source: PEER.into(), destination: OURS.into() };
    let mut sum = pseudo_header(&addresses, ip_protocol::TCP, segment.len() as u32);
    sum.add(&segment);
    segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
    let mut packet = vec![0; 20];
    if let Ok(mut view) = Ipv4View::init(&mut packet[..], 20) {
        view.set_total_len((20 + segment.len()) as u16);
        view.set_protocol(ip_protocol::TCP);
        view.set_source(PEER.into());
        view.set_destination(OURS.into());
        let sum = checksum(view.header());
        view.set_checksum(sum);
    }
    packet.extend(segment);
    packet
}

/// Takes what the stack sends; returns the last segment's next sequence number and acknowledgment.
fn drain(stack: &mut Stack<HeapBuffers>, now: Time, last: &mut (Seq, Seq, u16, u16)) {
    let mut out = [0; 4096];
    for count in 0.. {
        assert!(count < 10_000, "the stack sends without end");
        let Some(len) = stack.transmit(now, &mut out) else { break };
        if out[9] == ip_protocol::TCP
            && let Ok(header) = Header::parse(&out[20..len])
        {
            *last = (header.end(), header.ack, header.source_port, header.destination_port);
        }
    }
}

/// Segments against each state: no panic, no endless output, counts that hold.
pub fn segments(data: &[u8]) {
    let mut choices = Choices(data);
    let config = match choices.byte() % 3 {
        0 => Config::default(),
        1 => Config::paper(),
        _ => Config { timestamps: false, fast_path: false, ..Config::default() },
    };
    let mut stack = Stack::new(HostConfig::ip(vec![Address::new(OURS, 24)]), config, HeapBuffers, [1; 16]);
    let mut tuning = Tuning::new(stack.config());
    tuning.receive_buffer = 8192;
    tuning.send_buffer = 8192;
    let mut now = Time::from_ms(1000);
    let listener = stack.listen(None, 80, 2, tuning.clone(), false).expect("a free port");
    let mut last = (Seq(0), Seq(0), 80, 5000);
    let mut ids = Vec::new();
    if choices.byte() % 2 == 1 {
        ids.extend(stack.connect((None, 0), (PEER.into(), 80), tuning, now));
        drain(&mut stack, now, &mut last);
    }
    while !choices.is_empty() {
        match choices.byte() % 8 {
            0 => now += Time::from_ms(u64::from(choices.half())),
            1 => ids.extend(stack.accept(listener)),
            2 => call(&mut stack, &ids, &mut choices, now),
            _ => say(&mut stack, &mut choices, &last, now),
        }
        stack.on_timer(now);
        drain(&mut stack, now, &mut last);
        while stack.next_event().is_some() {}
        ids.iter().filter_map(|id| stack.connection(*id)).for_each(|connection| check(&connection.flow));
    }
}

fn call(stack: &mut Stack<HeapBuffers>, ids: &[nicforge_tcp::stack::ConnectionId], choices: &mut Choices, now: Time) {
    let Some(id) = ids.get(usize::from(choices.byte()) % ids.len().max(1)).copied() else { return };
    let len = usize::from(choices.half()) % 9000;
    match choices.byte() % 5 {
        0 => drop(stack.send(id, &vec![0; len], false, now)),
        1 => drop(stack.recv(id, &mut vec![0; len], now)),
        2 => stack.shut_write(id, now),
        3 => stack.release(id, now),
        _ => stack.abort(id),
    }
}

fn say(stack: &mut Stack<HeapBuffers>, choices: &mut Choices, last: &(Seq, Seq, u16, u16), now: Time) {
    let mut options = Options::default();
    let kinds = choices.byte();
    if kinds & 1 != 0 {
        options.mss = Some(choices.half());
    }
    if kinds & 2 != 0 {
        options.window_scale = Some(choices.byte() % 15);
    }
    options.sack_permitted = kinds & 4 != 0;
    if kinds & 8 != 0 {
        options.timestamps = Some(Timestamps { value: choices.word(), echo: choices.word() });
    }
    if kinds & 16 != 0 && kinds & 8 == 0 {
        let start = last.0 - u32::from(choices.half());
        options.sack.push(Span::new(start, start + u32::from(choices.half())));
    }
    let len = if kinds & 32 != 0 { choices.half() % 1400 } else { 0 };
    let far = kinds & 64 != 0;
    let near = |choices: &mut Choices| if far { choices.word() } else { u32::from(choices.byte()).wrapping_sub(100) };
    let header = Header {
        source_port: last.3,
        destination_port: last.2,
        seq: if kinds & 128 != 0 { last.1 } else { last.1 + near(choices) },
        ack: last.0 - near(choices) % 3000,
        flags: Flags(choices.byte()),
        window: choices.half(),
        urgent: choices.half(),
        options,
        payload_len: u32::from(len),
    };
    stack.receive(&packet(&header, &vec![7; usize::from(len)]), now);
}

fn check(flow: &Flow) {
    assert!(flow.protocol.rx_avail <= flow.post.rx_size && flow.protocol.rx_pos < flow.post.rx_size);
    assert!(flow.protocol.tx_pos < flow.post.tx_size);
    // SYN and FIN take numbers, no bytes.
    assert!(flow.protocol.tx_avail + flow.protocol.tx_sent <= flow.post.tx_size + 2);
}

/// Entries of context queues, right and wrong, and segments, against flows of the fast path.
pub fn queues(data: &[u8]) {
    let mut choices = Choices(data);
    let mut flow = Flow::default();
    (flow.post.rx_size, flow.post.tx_size) = (1 + u32::from(choices.half()), 1 + u32::from(choices.half()));
    flow.protocol.rx_avail = flow.post.rx_size;
    flow.protocol.remote_win = choices.word() % 100_000;
    flow.set(FlowFlags::FAST | FlowFlags::GO_BACK_N, true);
    let mut memory = vec![[0u8; ENTRY_LEN]; 8];
    let mut consumer = Consumer::<FromApplication>::new();
    let mut wrong_side = Consumer::<ToApplication>::new();
    let mut slot = 0;
    while !choices.is_empty() {
        match choices.byte() % 5 {
            0 => {
                memory[slot % 8].iter_mut().for_each(|byte| *byte = choices.byte());
                slot += 1;
            }
            1 => {
                if let Ok(Some(entry)) = consumer.pop(&mut memory) {
                    let bump = Bump { rx: entry.rx_bump, tx: entry.tx_bump, close: entry.no_more_data };
                    let before = flow;
                    if application(&mut flow, bump).is_err() {
                        assert_eq!(before, flow, "a refused bump changed the flow");
                    }
                }
            }
            2 => drop(wrong_side.pop(&mut memory)),
            3 => {
                transmit(&mut flow, 1 + u32::from(choices.half() % 1500));
                if choices.byte() % 16 == 0 {
                    retransmit(&mut flow);
                }
            }
            _ => {
                let summary = Summary {
                    seq: flow.protocol.ack.wrapping_add(u32::from(choices.byte())).wrapping_sub(50),
                    ack: flow.protocol.seq.wrapping_sub(u32::from(choices.half() % 3000)),
                    len: u32::from(choices.half() % 1500),
                    window: choices.half(),
                    flags: Flags(choices.byte()).with(Flags::ACK),
                    ..Summary::default()
                };
                if let Outcome::Done(done) = receive(&mut flow, &summary)
                    && let Some(store) = done.store
                {
                    assert!(store.at < flow.post.rx_size && store.len <= flow.post.rx_size);
                    assert!(store.skip + store.len <= summary.len);
                }
            }
        }
        check(&flow);
    }
}

/// A host with sockets, and what a model knows of them.
struct Host {
    sockets: Sockets<HeapBuffers>,
    fds: Vec<Fd>,
    /// Bytes written and read per descriptor's connection, by both ports.
    wrote: BTreeMap<Fd, u64>,
    read: BTreeMap<Fd, u64>,
}

/// Calls in random order on two hosts: only errors that POSIX knows, streams in order.
pub fn calls(data: &[u8]) {
    let mut choices = Choices(data);
    let mut now = Time::from_ms(1000);
    let mut hosts = [OURS, PEER].map(|ip| {
        let stack = Stack::new(
            HostConfig::ip(vec![Address::new(ip, 24)]),
            Config::default(),
            HeapBuffers,
            ip.repeat(4).try_into().unwrap_or([0; 16]),
        );
        Host { sockets: Sockets::new(stack, 3), fds: Vec::new(), wrote: BTreeMap::new(), read: BTreeMap::new() }
    });
    while !choices.is_empty() {
        let at = usize::from(choices.byte() & 1);
        one_call(&mut hosts[at], if at == 0 { PEER } else { OURS }, &mut choices, now);
        if choices.byte() % 4 == 0 {
            now += Time::from_ms(u64::from(choices.byte()) * 20);
        }
        exchange(&mut hosts, now);
    }
}

fn exchange(hosts: &mut [Host; 2], now: Time) {
    for round in 0.. {
        assert!(round < 20_000, "the hosts never fall silent");
        let mut quiet = true;
        for from in 0..2 {
            let mut out = [0; 2048];
            hosts[from].sockets.stack.on_timer(now);
            while let Some(len) = hosts[from].sockets.stack.transmit(now, &mut out) {
                quiet = false;
                hosts[1 - from].sockets.stack.receive(&out[..len], now);
            }
            hosts[from].sockets.dispatch();
        }
        if quiet {
            break;
        }
    }
}

fn one_call(host: &mut Host, other: [u8; 4], choices: &mut Choices, now: Time) {
    let pick = usize::from(choices.byte());
    let fd = host.fds.get(pick % host.fds.len().max(1)).copied().unwrap_or(Fd(999));
    let known = host.sockets.owns(fd);
    let sockets = &mut host.sockets;
    let outcome: Result<(), Errno> = match choices.byte() % 14 {
        0 if host.fds.len() < 40 => {
            host.fds.push(sockets.socket(Family::V4, true));
            Ok(())
        }
        1 => sockets.bind(fd, SocketName { ip: [0, 0, 0, 0].into(), port: 1000 + u16::from(choices.byte() % 4) }),
        2 => sockets.listen(fd, i32::from(choices.byte() % 4)),
        3 => {
            let name = SocketName { ip: other.into(), port: 1000 + u16::from(choices.byte() % 4) };
            let outcome = sockets.connect(fd, name, now);
            if outcome == Err(Errno::IN_PROGRESS) {
                // A new connection, after one that ended before the program knew of it.
                host.wrote.remove(&fd);
                host.read.remove(&fd);
            }
            outcome
        }
        4 => sockets.accept(fd, true).map(|new| host.fds.push(new)),
        5 | 6 => {
            let from = host.wrote.get(&fd).copied().unwrap_or(0);
            let bytes: Vec<u8> = (0..u64::from(choices.half() % 5000)).map(|at| (from + at) as u8).collect();
            let sent = sockets.send(fd, &bytes, SendFlags { more: pick > 200, ..SendFlags::default() }, now);
            sent.map(|sent| *host.wrote.entry(fd).or_default() += sent as u64)
        }
        7 | 8 => {
            let mut out = vec![0; usize::from(choices.half() % 5000)];
            let how = ReceiveFlags { peek: pick > 200, discard: false };
            sockets.recv(fd, &mut out, how, now).map(|len| {
                let from = host.read.get(&fd).copied().unwrap_or(0);
                assert!(out[..len].iter().enumerate().all(|(at, byte)| *byte == (from + at as u64) as u8));
                if !how.peek {
                    *host.read.entry(fd).or_default() += len as u64;
                }
            })
        }
        9 => sockets.shutdown(fd, [Half::Read, Half::Write, Half::Both][pick % 3], now),
        10 => sockets.set_option(
            fd,
            i32::from(choices.byte() % 8),
            i32::from(choices.byte() % 64),
            &choices.word().to_le_bytes(),
            now,
        ),
        11 => sockets
            .option(fd, i32::from(choices.byte() % 8), i32::from(choices.byte() % 64), &mut [0; 300], now)
            .map(|_| ()),
        12 => {
            let epoll = sockets.epoll_create();
            let watched =
                sockets.epoll_ctl(epoll, fd, EpollOperation::Add(Interest { events: choices.word(), data: 7 }));
            let _ = sockets.readiness(fd);
            sockets.close(epoll, now).and(watched)
        }
        _ => {
            host.fds.retain(|open| *open != fd);
            host.wrote.remove(&fd);
            host.read.remove(&fd);
            sockets.close(fd, now)
        }
    };
    if !known {
        assert!(matches!(outcome, Err(Errno::BAD_FD) | Ok(())), "{outcome:?} on a descriptor that is not open");
    }
}
