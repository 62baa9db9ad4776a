//! Cost per segment of the fast path, and bytes per second of one stream through two stacks in memory, beside smoltcp
//! in the same run.
//!
//!     cargo bench -p nicforge-tcp

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use nicforge_tcp::Config;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::fast::{Bump, Flow, FlowFlags, Outcome, Summary, application, receive, transmit};
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::segment::{Ecn, Flags, Header};
use nicforge_tcp::seq::Seq;
use nicforge_tcp::stack::{Address, HostConfig, Stack};
use nicforge_units::Time;

const MSS: u32 = 1448;
const TURNS: u32 = 5_000_000;
const STREAM: usize = 512 << 20;

fn flow(paper: bool) -> Flow {
    let mut flow = Flow::default();
    (flow.post.rx_size, flow.post.tx_size) = (1 << 20, 1 << 20);
    flow.protocol.rx_avail = 1 << 20;
    flow.protocol.remote_win = 1 << 20;
    flow.set_shifts(8, 8);
    flow.set(FlowFlags::FAST | FlowFlags::TIMESTAMPS, true);
    flow.set(FlowFlags::GO_BACK_N, paper);
    flow
}

fn nanoseconds(name: &str, turns: u32, mut turn: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..turns {
        turn();
    }
    println!("{name:<58}{:8.1} ns", start.elapsed().as_nanos() as f64 / f64::from(turns));
}

fn fast_path() {
    for (paper, kind) in [(false, "predicted"), (true, "go-back-N")] {
        let mut at = flow(paper);
        nanoseconds(&format!("{kind}: data in, application reads it"), TURNS, || {
            let summary = Summary {
                seq: at.protocol.ack,
                ack: at.protocol.seq,
                len: MSS,
                window: 4096,
                flags: Flags::ACK,
                has_clock: true,
                ..Summary::default()
            };
            assert!(matches!(black_box(receive(&mut at, black_box(&summary))), Outcome::Done(_)));
            let _ = black_box(application(&mut at, Bump { rx: MSS, ..Bump::default() }));
        });
        let mut at = flow(paper);
        nanoseconds(&format!("{kind}: application writes, data out, acknowledged"), TURNS, || {
            let _ = black_box(application(&mut at, Bump { tx: MSS, ..Bump::default() }));
            black_box(transmit(&mut at, MSS));
            let summary = Summary {
                seq: at.protocol.ack,
                ack: at.protocol.seq,
                window: 4096,
                flags: Flags::ACK,
                has_clock: true,
                ..Summary::default()
            };
            assert!(matches!(black_box(receive(&mut at, black_box(&summary))), Outcome::Done(_)));
        });
    }
    let header = Header { seq: Seq(1), ack: Seq(2), flags: Flags::ACK, ..Header::default() };
    nanoseconds("digest of a header", TURNS, || {
        black_box(Summary::new(black_box(&header), Ecn::NotCapable));
    });
}

fn report(name: &str, bytes: usize, segments: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:<34}{:8.2} GB/s {:8.2} Gbit/s {:8.0} ns per segment of either direction",
        bytes as f64 / seconds / 1e9,
        bytes as f64 * 8.0 / seconds / 1e9,
        seconds * 1e9 / segments as f64
    );
}

fn ours(name: &str, config: Config) {
    let config = Config {
        receive: nicforge_tcp::config::BufferSizes { default: 1 << 20, ..config.receive },
        send: nicforge_tcp::config::BufferSizes { default: 1 << 19, ..config.send },
        ..config
    };
    let host = |last: u8| {
        let mut host = HostConfig::ip(vec![Address::new([10, 0, 0, last], 24)]);
        host.mtu = 1500;
        host
    };
    let mut sender = Stack::new(host(1), config.clone(), HeapBuffers, [1; 16]);
    let mut receiver = Stack::new(host(2), config.clone(), HeapBuffers, [2; 16]);
    let mut now = Time::from_ms(1);
    let listener = receiver.listen(None, 80, 4, Tuning::new(&config), false).expect("a free port");
    let id = sender.connect((None, 0), ([10, 0, 0, 2].into(), 80), Tuning::new(&config), now).expect("a route");
    let chunk = vec![7u8; 65536];
    let mut out = vec![0u8; 65536];
    let mut frame = [0u8; 2048];
    let (mut done, mut segments) = (0, 0u64);
    let mut other = None;
    let start = Instant::now();
    while done < STREAM {
        now += Time::from_us(10);
        let _ = sender.send(id, &chunk, false, now);
        while let Some(len) = sender.transmit(now, &mut frame) {
            receiver.receive(&frame[..len], now);
            segments += 1;
        }
        other = other.or_else(|| receiver.accept(listener));
        if let Some(other) = other {
            done += receiver.recv(other, &mut out, now).unwrap_or(0);
        }
        while let Some(len) = receiver.transmit(now, &mut frame) {
            sender.receive(&frame[..len], now);
            segments += 1;
        }
        sender.on_timer(now);
        receiver.on_timer(now);
    }
    report(name, done, segments, start);
}

struct Queues {
    rx: VecDeque<Vec<u8>>,
    tx: VecDeque<Vec<u8>>,
    free: Vec<Vec<u8>>,
}

mod peer {
    use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
    use smoltcp::time::Instant;

    pub struct Received(pub Vec<u8>);
    pub struct Sending<'a>(&'a mut std::collections::VecDeque<Vec<u8>>, Vec<u8>);

    impl RxToken for Received {
        fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
            f(&self.0)
        }
    }

    impl TxToken for Sending<'_> {
        fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, len: usize, f: F) -> R {
            self.1.resize(len, 0);
            let result = f(&mut self.1);
            self.0.push_back(self.1);
            result
        }
    }

    impl Device for super::Queues {
        type RxToken<'a> = Received;
        type TxToken<'a> = Sending<'a>;

        fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
            let packet = self.rx.pop_front()?;
            let spare = self.free.pop().unwrap_or_default();
            Some((Received(packet), Sending(&mut self.tx, spare)))
        }

        fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
            let spare = self.free.pop().unwrap_or_default();
            Some(Sending(&mut self.tx, spare))
        }

        fn capabilities(&self) -> DeviceCapabilities {
            let mut capabilities = DeviceCapabilities::default();
            capabilities.medium = Medium::Ip;
            capabilities.max_transmission_unit = 1500;
            capabilities
        }
    }
}

fn theirs() {
    use smoltcp::iface::{Config, Interface, SocketSet};
    use smoltcp::socket::tcp;
    use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

    let mut hosts: Vec<_> = [1u8, 2]
        .into_iter()
        .map(|last| {
            let mut device = Queues { rx: VecDeque::new(), tx: VecDeque::new(), free: Vec::new() };
            let zero = smoltcp::time::Instant::ZERO;
            let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, zero);
            interface.update_ip_addrs(|addresses| {
                let _ = addresses.push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24));
            });
            let mut sockets = SocketSet::new(Vec::new());
            let buffer = || tcp::SocketBuffer::new(vec![0; 1 << 19]);
            let socket = sockets.add(tcp::Socket::new(buffer(), buffer()));
            (device, interface, sockets, socket)
        })
        .collect();
    let (mut second, mut first) = (hosts.pop().expect("two"), hosts.pop().expect("two"));
    second.2.get_mut::<tcp::Socket>(second.3).listen(80).expect("a free port");
    let socket = first.2.get_mut::<tcp::Socket>(first.3);
    socket.connect(first.1.context(), (IpAddress::v4(10, 0, 0, 2), 80), 50_000).expect("a route");
    let chunk = vec![7u8; 65536];
    let mut out = vec![0u8; 65536];
    let (mut done, mut segments, mut us) = (0, 0u64, 1_000i64);
    let start = Instant::now();
    while done < STREAM {
        us += 10;
        let now = smoltcp::time::Instant::from_micros(us);
        let _ = first.2.get_mut::<tcp::Socket>(first.3).send_slice(&chunk);
        first.1.poll(now, &mut first.0, &mut first.2);
        segments += first.0.tx.len() as u64;
        second.0.rx.append(&mut first.0.tx);
        second.1.poll(now, &mut second.0, &mut second.2);
        let socket = second.2.get_mut::<tcp::Socket>(second.3);
        if socket.can_recv() {
            done += socket.recv_slice(&mut out).unwrap_or(0);
        }
        second.1.poll(now, &mut second.0, &mut second.2);
        segments += second.0.tx.len() as u64;
        first.0.rx.append(&mut second.0.tx);
    }
    report("smoltcp", done, segments, start);
}

fn main() {
    fast_path();
    println!("one stream of {} MiB, segments of {} bytes, two stacks in memory, one thread:", STREAM >> 20, MSS + 12);
    ours("nicforge-tcp", Config::default());
    ours("nicforge-tcp, no fast path", Config { fast_path: false, ..Config::default() });
    ours("nicforge-tcp, paper", Config::paper());
    theirs();
}
