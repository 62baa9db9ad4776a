//! Dialogues in virtual time: at this millisecond send this, expect that. Sequence numbers are relative.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::net::IpAddr;

use nicforge_tcp::Config;
use nicforge_tcp::conn::{Connection, Tuning};
use nicforge_tcp::options::{Options, Timestamps};
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::segment::{Ecn, Flags, Header};
use nicforge_tcp::seq::{Seq, Span};
use nicforge_tcp::stack::{Address, ConnectionId, HostConfig, ListenerId, Stack};
use nicforge_units::Time;
use nicforge_wire::IpAddresses;
use nicforge_wire::checksum::{checksum, pseudo_header};
use nicforge_wire::headers::{Ipv4View, ip_protocol};

pub const OURS: [u8; 4] = [10, 0, 0, 1];
pub const PEER: [u8; 4] = [10, 0, 0, 2];
pub const PEER_ISS: u32 = 5_000_000;

/// A segment of the peer.
#[derive(Clone, Debug)]
pub struct Say {
    header: Header,
    payload: Vec<u8>,
    ecn: Ecn,
}

pub fn flags(text: &str) -> Flags {
    text.chars().fold(Flags::default(), |flags, letter| {
        flags.with(match letter {
            'S' => Flags::SYN,
            'A' => Flags::ACK,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'C' => Flags::CWR,
            other => panic!("{other}"),
        })
    })
}

/// A segment with flags, relative sequence number, payload length and relative acknowledgment number.
pub fn say(letters: &str, seq: u32, len: u32, ack: u32) -> Say {
    let header = Header {
        seq: Seq(seq),
        ack: Seq(ack),
        flags: flags(letters),
        window: 65535,
        payload_len: len,
        ..Header::default()
    };
    Say { header, payload: (0..len).map(|at| (seq + at) as u8).collect(), ecn: Ecn::NotCapable }
}

impl Say {
    pub fn win(mut self, window: u16) -> Say {
        self.header.window = window;
        self
    }
    pub fn mss(mut self, mss: u16) -> Say {
        self.header.options.mss = Some(mss);
        self
    }
    pub fn scale(mut self, shift: u8) -> Say {
        self.header.options.window_scale = Some(shift);
        self
    }
    pub fn sack_ok(mut self) -> Say {
        self.header.options.sack_permitted = true;
        self
    }
    pub fn ts(mut self, value: u32, echo: u32) -> Say {
        self.header.options.timestamps = Some(Timestamps { value, echo });
        self
    }
    pub fn sack(mut self, start: u32, end: u32) -> Say {
        self.header.options.sack.push(Span::new(Seq(start), Seq(end)));
        self
    }
    pub fn urgent(mut self, pointer: u16) -> Say {
        self.header.urgent = pointer;
        self
    }
    pub fn marked(mut self) -> Say {
        self.ecn = Ecn::Marked;
        self
    }
}

/// A segment of ours, with relative numbers.
#[derive(Clone, Debug)]
pub struct Heard {
    pub at: Time,
    pub flags: Flags,
    pub seq: u32,
    pub len: u32,
    pub ack: u32,
    pub window: u16,
    pub options: Options,
    pub ecn: Ecn,
    pub port: u16,
    pub sack: Vec<(u32, u32)>,
}

pub struct Dialogue {
    /// Time that the peer takes to answer a SYN-ACK.
    pub rtt: Time,
    pub stack: Stack<HeapBuffers>,
    pub now: Time,
    pub listener: Option<ListenerId>,
    pub id: Option<ConnectionId>,
    pub iss: Seq,
    pub port: u16,
    pub peer_port: u16,
    out: VecDeque<(Time, Vec<u8>)>,
}

impl Dialogue {
    pub fn new(config: Config) -> Dialogue {
        let host = HostConfig::ip(vec![Address::new(OURS, 24)]);
        Dialogue {
            stack: Stack::new(host, config, HeapBuffers, *b"dialogue's seed."),
            now: Time::from_ms(10_000),
            rtt: Time::ZERO,
            listener: None,
            id: None,
            iss: Seq(0),
            port: 80,
            peer_port: 40_000,
            out: VecDeque::new(),
        }
    }

    pub fn listen(mut self, backlog: usize) -> Dialogue {
        let tuning = Tuning::new(self.stack.config());
        self.listener = Some(self.stack.listen(None, 80, backlog, tuning, false).unwrap());
        self
    }

    /// A listener and a connection that the peer opened with `syn`; the peer's window is 65535.
    pub fn opened_by(config: Config, syn: Say) -> Dialogue {
        Dialogue::new(config).listen(8).opens(syn)
    }

    pub fn opens(self, syn: Say) -> Dialogue {
        let mut dialogue = self;
        let clock = syn.header.options.timestamps;
        dialogue.send(syn);
        let answer = dialogue.expect("SA", 0, 0, 1);
        dialogue.wait(dialogue.rtt);
        let mut ack = say("A", 1, 0, 1);
        if let (Some(clock), Some(ours)) = (clock, answer.options.timestamps) {
            ack = ack.ts(clock.value, ours.value);
        }
        dialogue.send(ack);
        dialogue.silence();
        dialogue.accept();
        dialogue
    }

    /// The same with an MSS of 1000 and nothing else.
    pub fn opened(config: Config) -> Dialogue {
        Dialogue::opened_by(config, say("S", 0, 0, 0).mss(1000))
    }

    pub fn accept(&mut self) {
        let id = self.stack.accept(self.listener.unwrap()).expect("nobody to accept");
        self.id = Some(id);
    }

    pub fn connect(&mut self) {
        let tuning = Tuning::new(self.stack.config());
        self.id = Some(self.stack.connect((None, 0), (PEER.into(), 80), tuning, self.now).unwrap());
        self.peer_port = 80;
        self.collect();
        let syn = self.out.front().expect("no SYN").1.clone();
        let header = Header::parse(&syn[20..]).unwrap();
        (self.port, self.iss) = (header.source_port, header.seq);
    }

    pub fn connection(&self) -> &Connection {
        self.stack.connection(self.id.unwrap()).unwrap()
    }

    pub fn change(&mut self, change: impl FnOnce(&mut Connection)) {
        self.stack.with(self.id.unwrap(), change).unwrap();
        self.collect();
    }

    pub fn write(&mut self, len: usize) {
        let bytes = vec![0x5a; len];
        assert_eq!(self.stack.send(self.id.unwrap(), &bytes, false, self.now).unwrap(), len);
        self.collect();
    }

    pub fn read(&mut self, len: usize) -> usize {
        let mut out = vec![0; len];
        let len = self.stack.recv(self.id.unwrap(), &mut out, self.now).unwrap();
        self.collect();
        len
    }

    pub fn shut_write(&mut self) {
        self.stack.shut_write(self.id.unwrap(), self.now);
        self.collect();
    }

    pub fn release(&mut self) {
        self.stack.release(self.id.unwrap(), self.now);
        self.collect();
    }

    fn collect(&mut self) {
        let mut out = [0; 4096];
        while let Some(len) = self.stack.transmit(self.now, &mut out) {
            self.out.push_back((self.now, out[..len].to_vec()));
        }
    }

    /// The peer sends.
    pub fn send(&mut self, mut say: Say) {
        say.header.source_port = self.peer_port;
        say.header.destination_port = self.port;
        say.header.seq = Seq(PEER_ISS) + say.header.seq.0;
        say.header.ack = self.iss + say.header.ack.0;
        let mut sack = nicforge_tcp::options::SackBlocks::default();
        for block in say.header.options.sack.as_slice() {
            sack.push(Span::new(self.iss + block.start.0, self.iss + block.end.0));
        }
        say.header.options.sack = sack;
        let packet = packet(&say);
        self.stack.receive(&packet, self.now);
        self.collect();
    }

    /// An ICMP message about the segment with relative number `seq`.
    pub fn icmp(&mut self, kind: u8, code: u8, rest: [u8; 4], seq: u32) {
        let mut message = vec![kind, code, 0, 0];
        message.extend(rest);
        let mut quoted = vec![0x45, 0, 5, 0xdc, 0, 0, 0x40, 0, 64, 6, 0, 0];
        quoted.extend(OURS);
        quoted.extend(PEER);
        message.extend(quoted);
        message.extend(self.port.to_be_bytes());
        message.extend(self.peer_port.to_be_bytes());
        message.extend((self.iss + seq).0.to_be_bytes());
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let packet = ip_packet(&message, ip_protocol::ICMP, 0);
        self.stack.receive(&packet, self.now);
        self.collect();
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Time) {
        let until = self.now + time;
        while let Some(at) = self.stack.poll_at().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.stack.on_timer(self.now);
            self.collect();
        }
        self.now = until;
    }

    pub fn wait_ms(&mut self, ms: u64) {
        self.wait(Time::from_ms(ms));
    }

    /// The next segment of ours, if there is one.
    pub fn hear(&mut self) -> Option<Heard> {
        let (at, packet) = self.out.pop_front()?;
        let ip = Ipv4View::new(&packet[..]).unwrap();
        let header = Header::parse(ip.payload()).unwrap();
        if header.flags.has(Flags::SYN) {
            self.iss = header.seq;
        }
        let relative = |seq: Seq| seq - Seq(PEER_ISS);
        Some(Heard {
            at,
            flags: header.flags,
            seq: header.seq - self.iss,
            len: header.payload_len,
            ack: if header.flags.has(Flags::ACK) { relative(header.ack) } else { 0 },
            window: header.window,
            options: header.options,
            ecn: Ecn::from_tos(ip.type_of_service()),
            port: header.source_port,
            sack: header.options.sack.as_slice().iter().map(|s| (relative(s.start), relative(s.end))).collect(),
        })
    }

    /// The next segment of ours, which must be this one.
    #[track_caller]
    pub fn expect(&mut self, letters: &str, seq: u32, len: u32, ack: u32) -> Heard {
        let heard = self.hear().unwrap_or_else(|| panic!("expected {letters} {seq}+{len} ack {ack}, heard nothing"));
        let got = (heard.flags, heard.seq, heard.len, heard.ack);
        assert_eq!(got, (flags(letters), seq, len, ack), "{heard:?}");
        heard
    }

    #[track_caller]
    pub fn silence(&mut self) {
        if let Some(heard) = self.hear() {
            panic!("expected nothing, heard {heard:?}");
        }
    }

    /// Milliseconds since the beginning.
    pub fn ms(&self, heard: &Heard) -> u64 {
        heard.at.as_ps() / 1_000_000_000 - 10_000
    }
}

fn packet(say: &Say) -> Vec<u8> {
    let header_len = say.header.emitted_len();
    let mut segment = vec![0; header_len];
    say.header.emit(&mut segment).unwrap();
    segment.extend(&say.payload);
    let addresses = IpAddresses::V4 { source: PEER.into(), destination: OURS.into() };
    let mut sum = pseudo_header(&addresses, ip_protocol::TCP, segment.len() as u32);
    sum.add(&segment);
    segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
    ip_packet(&segment, ip_protocol::TCP, say.ecn as u8)
}

fn ip_packet(payload: &[u8], protocol: u8, tos: u8) -> Vec<u8> {
    let mut packet = vec![0; 20];
    let mut view = Ipv4View::init(&mut packet[..], 20).unwrap();
    view.set_total_len((20 + payload.len()) as u16);
    view.set_type_of_service(tos);
    view.set_time_to_live(64);
    view.set_protocol(protocol);
    view.set_source(PEER.into());
    view.set_destination(OURS.into());
    let sum = checksum(view.header());
    view.set_checksum(sum);
    packet.extend(payload);
    packet
}

pub fn peer() -> IpAddr {
    PEER.into()
}
