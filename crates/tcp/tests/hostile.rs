//! A hostile host on the link of two others: whatever it sends, theirs is exchanged whole, and nothing of it stays.

mod common;

use std::net::{IpAddr, Ipv4Addr};

use common::{Faults, V4, World, exchange_under, host};
use nicforge_tcp::Config;
use nicforge_tcp::segment::{Flags, Header};
use nicforge_tcp::stack::ConnectionId;
use nicforge_units::Time;
use nicforge_wire::IpAddresses;
use nicforge_wire::checksum::{checksum, pseudo_header};
use nicforge_wire::headers::{Ipv4View, ip_protocol};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

const ATTACKER: [u8; 4] = [10, 0, 0, 66];
/// Frames that it sends.
const FRAMES: usize = 20_000;

/// A segment to host 1, its options as bytes of any kind.
struct Segment {
    source: [u8; 4],
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Segment {
    fn frame(&self) -> Vec<u8> {
        let mut segment = Vec::new();
        segment.extend(self.ports.0.to_be_bytes());
        segment.extend(self.ports.1.to_be_bytes());
        segment.extend(self.seq.to_be_bytes());
        segment.extend(self.ack.to_be_bytes());
        segment.extend([(((20 + self.options.len()) / 4) << 4) as u8, self.flags]);
        segment.extend(self.window.to_be_bytes());
        segment.extend([0; 4]);
        segment.extend(&self.options);
        segment.extend(&self.payload);
        let addresses = IpAddresses::V4 { source: self.source.into(), destination: V4[1].into() };
        let mut sum = pseudo_header(&addresses, ip_protocol::TCP, segment.len() as u32);
        sum.add(&segment);
        segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
        let mut frame = host(1).mac.0.to_vec();
        frame.extend([2, 0, 0, 0, 0, 66, 8, 0]);
        let at = frame.len();
        frame.extend([0; 20]);
        let mut view = Ipv4View::init(&mut frame[at..], 20).unwrap();
        view.set_total_len((20 + segment.len()) as u16);
        view.set_protocol(ip_protocol::TCP);
        view.set_time_to_live(64);
        view.set_source(self.source.into());
        view.set_destination(V4[1].into());
        let sum = checksum(view.header());
        view.set_checksum(sum);
        frame.extend(segment);
        frame
    }
}

/// Runs an exchange while `attack` makes frames from random numbers and the client's port.
fn under(seed: u64, mut attack: impl FnMut(&mut Pcg64, &mut World, u16) -> Segment) -> World {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut world = World::new([Config::default(), Config::default()], Faults::clean(Time::from_us(200)), seed);
    let mut sent = 0;
    let meanwhile = |world: &mut World, server: ConnectionId| {
        let Some(port) = world.stacks[1].tuple(server).map(|tuple| tuple.remote_port) else { return };
        for _ in 0..50 {
            if sent < FRAMES {
                sent += 1;
                let frame = attack(&mut rng, world, port).frame();
                world.stacks[1].receive(&frame, world.now);
                world.flush();
            }
        }
    };
    exchange_under(&mut world, [3_000_000, 3_000_000], 16_384, Time::from_ms(600_000), false, meanwhile);
    assert!(sent > FRAMES / 4, "the exchange was over after {sent} frames of the attack");
    world.stacks[1].on_timer(world.now);
    assert_eq!(world.stacks[1].connection_count(), 0);
    world
}

fn anywhere(rng: &mut Pcg64, source: [u8; 4], port: u16, flags: u8) -> Segment {
    Segment {
        source,
        ports: (port, 80),
        seq: rng.next_u32(),
        ack: rng.next_u32(),
        flags,
        window: rng.next_u32() as u16,
        options: Vec::new(),
        payload: Vec::new(),
    }
}

#[test]
fn a_flood_of_syns_is_answered_without_memory() {
    let world = under(1, |rng, _, _| {
        let any = rng.next_u32().to_le_bytes();
        let source = if any[0] % 2 == 0 { [10, 0, 0, 3 + any[1] % 200] } else { any };
        Segment { ack: 0, ..anywhere(rng, source, any[2].into(), Flags::SYN.0) }
    });
    let counters = world.stacks[1].counters();
    assert!(counters.cookies_out > 1000, "{counters:?}");
}

#[test]
fn guessed_resets_and_acknowledgments_hit_nothing() {
    let world = under(2, |rng, _, port| {
        let kinds =
            [Flags::RST.0, Flags::RST.0 | Flags::ACK.0, Flags::ACK.0, Flags::SYN.0, Flags::FIN.0 | Flags::ACK.0];
        let flags = kinds[rng.next_u32() as usize % kinds.len()];
        let payload = if flags == Flags::ACK.0 { vec![0xee; rng.next_u32() as usize % 1400] } else { Vec::new() };
        Segment { payload, ..anywhere(rng, V4[0], port, flags) }
    });
    // Challenges are few: one for each half second at most.
    let seconds = world.now.as_ps() / Time::from_ms(500).as_ps();
    assert!(world.stacks[0].counters().frames_in < 20_000 + seconds, "{:?}", world.stacks[0].counters());
}

#[test]
fn options_of_any_kind_are_read_or_ignored() {
    under(3, |rng, _, port| {
        let mut options = vec![0; rng.next_u32() as usize % 11 * 4];
        rng.fill_bytes(&mut options);
        // Half of them begin with a kind that exists, whose length is any.
        if let Some(first) = options.first_mut().filter(|first| **first % 2 == 0) {
            *first = [0, 1, 2, 3, 4, 5, 8, 19, 28, 29, 30, 34, 254][usize::from(*first) % 13];
        }
        let source = if rng.next_u32() % 2 == 0 { V4[0] } else { ATTACKER };
        let flags = rng.next_u32() as u8 & !Flags::RST.0;
        Segment { options, ..anywhere(rng, source, port, flags) }
    });
}

/// Opens a connection of its own, and then overlaps, shrinks windows, acknowledges what was not sent, and goes silent.
#[test]
fn a_peer_that_lies_harms_its_own_connection_only() {
    let mut numbers = None;
    under(4, |rng, world, _| {
        let Some((next, ack)) = numbers else {
            numbers = answer_to(world, 999).map(|header| (header.ack.0, header.seq.0.wrapping_add(1)));
            let (seq, ack, flags) = numbers.map_or((7, 0, Flags::SYN.0), |(seq, ack)| (seq, ack, Flags::ACK.0));
            return Segment { seq, ack, flags, ..anywhere(rng, ATTACKER, 999, 0) };
        };
        let near = |rng: &mut Pcg64| rng.next_u32() % 4000;
        Segment {
            seq: next.wrapping_add(near(rng)).wrapping_sub(500),
            ack: ack.wrapping_add(near(rng)).wrapping_sub(3000),
            window: if rng.next_u32() % 3 == 0 { 0 } else { rng.next_u32() as u16 },
            payload: vec![rng.next_u32() as u8; near(rng) as usize % 1400],
            ..anywhere(rng, ATTACKER, 999, Flags::ACK.0)
        }
    });
    assert!(numbers.is_some(), "the connection was opened");
}

/// The header of the SYN-ACK to the attacker's port.
fn answer_to(world: &mut World, port: u16) -> Option<Header> {
    let mut headers = world.strays.iter().rev().filter_map(|frame| {
        let to: IpAddr = Ipv4Addr::new(frame[30], frame[31], frame[32], frame[33]).into();
        (to == IpAddr::from(ATTACKER)).then(|| Header::parse(frame.get(34..)?).ok()).flatten()
    });
    headers.find(|header| header.destination_port == port && header.flags.has(Flags::SYN))
}
