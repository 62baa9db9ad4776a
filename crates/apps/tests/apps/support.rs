//! An application on every ground, and etherparse as the independent reference: nothing here
//! is judged by the project's own parser or checksums.

#[path = "../../../wire/tests/common/skip.rs"]
pub mod skip;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use etherparse::checksum::Sum16BitWords;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nicforge_apps::counter::{Counter, CounterKey};
use nicforge_apps::suite::{BUFFER, Ground, On, Sim};
use nicforge_apps::{AppConfig, Apps, Flow, Place, PortMap, Verdict};
use nicforge_nic::{METADATA_BYTES, Packet, PortId, RxFlags, Segment, TxOffload, data_of};
#[cfg(target_os = "linux")]
use nicforge_platform::live::LiveCpu;
use nicforge_platform::{Addr, FlatCpu};
use nicforge_units::Time;
use nicforge_wire::{checksum, parse_frame};

/// Application `name` on `ports`, with tables of a moderate size.
pub fn app(name: &str, ports: PortMap) -> AppConfig {
    AppConfig::new(name, ports).with("table_entries", 1_000_000).with("kvs_log_mib", 1)
}

/// One application on one core of every ground at once, with a buffer for one packet. All must say and
/// do the same.
pub struct Bench {
    pub flat: On<FlatCpu>,
    sim: On<Sim>,
    #[cfg(target_os = "linux")]
    live: On<LiveCpu>,
    /// What the NIC finds out about frames from now on.
    pub flags: RxFlags,
    /// Whether the NIC puts the first part of frames in two before the buffer's data from now on.
    pub inlines: bool,
    /// What the last packet asks the NIC to do on transmit.
    pub offload: TxOffload,
}

/// `$do` with `$on` each ground; all results are the same.
macro_rules! everywhere {
    ($bench:expr, $on:ident => $do:expr) => {{
        let $on = &mut $bench.flat;
        let result = $do;
        let $on = &mut $bench.sim;
        assert_eq!($do, result, "simulated");
        #[cfg(target_os = "linux")]
        {
            let $on = &mut $bench.live;
            assert_eq!($do, result, "live");
        }
        result
    }};
}

impl Bench {
    pub fn new(config: &AppConfig) -> Bench {
        Bench::on_core(config, 0, 1)
    }

    /// Core `core` of `cores`, which has the machine to itself.
    pub fn on_core(config: &AppConfig, core: usize, cores: usize) -> Bench {
        Bench::at(config, &[Place { core, cores }])
    }

    /// Both of two cores over one memory; core 0 is at work.
    pub fn of_two(config: &AppConfig) -> Bench {
        Bench::at(config, &[0, 1].map(|core| Place { core, cores: 2 }))
    }

    /// The core at work and the other one change places.
    pub fn change(&mut self) {
        everywhere!(self, on => on.change(0));
    }

    fn at(config: &AppConfig, places: &[Place]) -> Bench {
        let apps = Apps::shipped();
        Bench {
            flat: On::several(&apps, config, places),
            sim: On::several(&apps, config, places),
            #[cfg(target_os = "linux")]
            live: On::several(&apps, config, places),
            flags: RxFlags::default(),
            inlines: false,
            offload: TxOffload::default(),
        }
    }

    /// It is `time` now; on simulated cores some nanoseconds later, for what they did.
    pub fn set_now(&mut self, time: Time) {
        everywhere!(self, on => on.ground.set_now(time));
    }

    /// Sends a frame in at `port`; gives what became of it.
    pub fn send(&mut self, port: u8, frame: &[u8]) -> (Verdict, Vec<u8>) {
        self.send_split(port, frame, frame.len())
    }

    /// The same, with the frame split into two buffers after `split` bytes.
    pub fn send_split(&mut self, port: u8, frame: &[u8], split: usize) -> (Verdict, Vec<u8>) {
        let (head, rest) = frame.split_at(split.min(frame.len()));
        let segment = |at, bytes: &[u8]| Segment { at, len: bytes.len() as u32 };
        let buffer = data_of(self.flat.mbuf);
        let packet = Packet {
            mark: 0,
            mbuf: self.flat.mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: if self.inlines { segment(self.flat.mbuf + METADATA_BYTES, head) } else { segment(buffer, head) },
            // At a distance, so that nothing reads over the gap by mistake.
            rest: segment(buffer + BUFFER / 2, rest),
            port: PortId(port),
            rss_hash: 0,
            flags: self.flags,
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        let (verdict, offload, out) = everywhere!(self, on => {
            let (verdict, packet, out) = on.handle(packet, [head, rest]);
            (verdict, packet.offload, out)
        });
        self.offload = offload;
        (verdict, out)
    }

    /// Puts a flow into the tables without a packet ([`App::learn`](nicforge_apps::App::learn)).
    pub fn learn(&mut self, from: SocketAddrV4, to: SocketAddrV4, protocol: u8) {
        let learnt = everywhere!(self, on => {
            let flow = Flow { source: from, destination: to, protocol };
            on.app.learn(&mut *on.ground.core(), &flow)
        });
        learnt.unwrap();
    }

    /// Puts a pair into the store without a request.
    pub fn store_pair(&mut self, key: &[u8], value: &[u8]) {
        everywhere!(self, on => on.app.store_pair(&mut *on.ground.core(), key, value));
    }

    /// What `counter` counted for a flow: packets and bytes.
    pub fn flow_counts(&mut self, key: &CounterKey) -> Option<(u64, u64)> {
        everywhere!(self, on => {
            let counter: &mut Counter = on.app.downcast().unwrap();
            let entry = counter.read(&mut *on.ground.core(), key);
            entry.map(|entry| (entry.packets, entry.bytes))
        })
    }

    /// A frame that must be sent on; gives it as it left.
    pub fn forward(&mut self, port: u8, frame: &[u8]) -> Vec<u8> {
        let (verdict, out) = self.send(port, frame);
        assert!(matches!(verdict, Verdict::Transmit(_)), "{verdict:?}");
        out
    }

    /// A frame that must be dropped, left as it was; gives the cause.
    pub fn drop(&mut self, port: u8, frame: &[u8]) -> &'static str {
        match self.send(port, frame) {
            (Verdict::Drop(cause), out) => {
                assert_eq!(out, frame, "a dropped frame was changed");
                cause
            }
            (verdict, _) => panic!("not dropped: {verdict:?}"),
        }
    }

    pub fn counter(&mut self, name: &str) -> u64 {
        let counted = everywhere!(self, on => [on.app.counters(), on.app.gauges()].concat());
        counted.iter().find(|(n, _)| *n == name).unwrap().1
    }
}

/// What the NIC does on transmit when it is asked to.
pub fn fill_checksums(frame: &mut [u8], offload: TxOffload) {
    if offload.l3_checksum || offload.l4_checksum {
        let summary = parse_frame(frame).expect("only sensible frames are sent");
        checksum::fill(frame, &summary, offload.l3_checksum, offload.l4_checksum);
    }
}

/// What etherparse says of an IPv4 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub source: (Ipv4Addr, u16),
    pub destination: (Ipv4Addr, u16),
    pub ttl: u8,
    /// Whether the IPv4 header checksum is right.
    pub l3_right: bool,
    /// Whether the TCP, UDP or ICMP checksum is right; `None` when there is none.
    pub l4_right: Option<bool>,
}

/// Decodes with etherparse; `None` for what is not a whole IPv4 packet to it.
pub fn decode(frame: &[u8]) -> Option<Decoded> {
    let sliced = SlicedPacket::from_ethernet(frame).ok()?;
    let Some(NetSlice::Ipv4(net)) = sliced.net else {
        return None;
    };
    let header = net.header().to_header();
    let mut decoded = Decoded {
        source: (net.header().source_addr(), 0),
        destination: (net.header().destination_addr(), 0),
        ttl: header.time_to_live,
        l3_right: header.header_checksum == header.calc_header_checksum(),
        l4_right: None,
    };
    match sliced.transport {
        Some(TransportSlice::Udp(udp)) => {
            decoded.source.1 = udp.source_port();
            decoded.destination.1 = udp.destination_port();
            if udp.checksum() != 0 {
                let right = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).ok()?;
                decoded.l4_right = Some(right == udp.checksum());
            }
        }
        Some(TransportSlice::Tcp(tcp)) => {
            decoded.source.1 = tcp.source_port();
            decoded.destination.1 = tcp.destination_port();
            let right = tcp.calc_checksum_ipv4(header.source, header.destination).ok();
            decoded.l4_right = right.map(|right| right == tcp.checksum());
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            let right = icmp.icmp_type().calc_checksum(icmp.payload());
            decoded.l4_right = Some(right == icmp.checksum());
        }
        _ => {}
    }
    Some(decoded)
}

pub fn address(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

/// A UDP frame.
pub fn udp(from: (&str, u16), to: (&str, u16), payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(address(from.0).octets(), address(to.0).octets(), 64)
        .udp(from.1, to.1)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

/// A UDP frame over IPv6.
pub fn udp6(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([1; 16], [2; 16], 9)
        .udp(from, to)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

/// A TCP frame with these flags out of `S`, `A`, `F`, `R`.
pub fn tcp(from: (&str, u16), to: (&str, u16), flags: &str, payload: &[u8]) -> Vec<u8> {
    let mut step = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(address(from.0).octets(), address(to.0).octets(), 64)
        .tcp(from.1, to.1, 1000, 2000);
    for flag in flags.chars() {
        step = match flag {
            'S' => step.syn(),
            'A' => step.ack(1),
            'F' => step.fin(),
            _ => step.rst(),
        };
    }
    let mut frame = Vec::new();
    step.write(&mut frame, payload).unwrap();
    frame
}

/// An IPv4 frame as it is one hop later.
pub fn one_hop_on(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[22] -= 1;
    let header = etherparse::Ipv4Header::from_slice(&frame[14..]).unwrap().0;
    frame[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    frame
}

/// An ICMP echo request, or the reply to one.
pub fn echo(from: &str, to: &str, identifier: u16, reply: bool) -> Vec<u8> {
    let step =
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(address(from).octets(), address(to).octets(), 64);
    let step = if reply { step.icmpv4_echo_reply(identifier, 7) } else { step.icmpv4_echo_request(identifier, 7) };
    let mut frame = Vec::new();
    step.write(&mut frame, b"ping").unwrap();
    frame
}

/// The answer's 5-tuple and bytes: the other way round, with the payload given.
pub fn answer(frame: &[u8], payload: &[u8]) -> Vec<u8> {
    let seen = decode(frame).unwrap();
    let (from, to) = (seen.destination, seen.source);
    udp((&from.0.to_string(), from.1), (&to.0.to_string(), to.1), payload)
}

/// What follows the Ethernet header.
pub fn ip_packet(frame: &[u8]) -> &[u8] {
    &frame[14..]
}

/// An ICMP error that quotes the first `quoted` bytes of an IP packet.
pub fn unreachable(from: &str, to: &str, packet: &[u8], quoted: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(address(from).octets(), address(to).octets(), 64)
        .icmpv4(etherparse::Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Port))
        .write(&mut frame, &packet[..quoted.min(packet.len())])
        .unwrap();
    frame
}

/// Whether the checksum of an ICMP message over IPv4 is right.
pub fn icmp_sum_is_right(frame: &[u8]) -> bool {
    Sum16BitWords::new().add_slice(&frame[34..]).ones_complement() == 0
}

/// The folder of real captures, if it is there; otherwise says that the test is skipped.
pub fn captures(folder: &str) -> Vec<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/pcap");
    let Ok(files) = std::fs::read_dir(PathBuf::from(root).join(folder)) else {
        skip::skipped(&format!("no captures in {root}/{folder}"));
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Cuts a frame into two fragments of which the first has `first` payload bytes.
pub fn fragments(frame: &[u8], first: usize, identification: u16) -> [Vec<u8>; 2] {
    let piece = |offset: usize, bytes: &[u8], more: bool| {
        let mut out = frame[..34].to_vec();
        out[16..18].copy_from_slice(&(20 + bytes.len() as u16).to_be_bytes());
        out[18..20].copy_from_slice(&identification.to_be_bytes());
        let field = (offset / 8) as u16 | if more { 0x2000 } else { 0 };
        out[20..22].copy_from_slice(&field.to_be_bytes());
        let header = etherparse::Ipv4Header::from_slice(&out[14..]).unwrap().0;
        out[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
        out.extend_from_slice(bytes);
        out
    };
    let payload = &frame[34..];
    [piece(0, &payload[..first], true), piece(first, &payload[first..], false)]
}
