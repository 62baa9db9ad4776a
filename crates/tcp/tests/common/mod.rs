//! Two stacks on a link in virtual time, with faults drawn from a seed.
#![allow(dead_code)]

use std::collections::BTreeMap;

use nicforge_tcp::Config;
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::stack::{Address, ConnectionId, HostConfig, ListenerId, Stack};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// What may happen to a frame, in parts of 1000.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: u32,
    pub duplication: u32,
    pub corruption: u32,
    /// Frames that take longer, by up to four times the delay.
    pub reordering: u32,
    /// One way delay.
    pub delay: Time,
    /// Frames that carry ECT and are marked.
    pub marking: u32,
}

impl Faults {
    pub fn clean(delay: Time) -> Faults {
        Faults { delay, ..Faults::default() }
    }
}

pub struct World {
    pub stacks: [Stack<HeapBuffers>; 2],
    pub now: Time,
    pub faults: Faults,
    pub frames: u64,
    pub lost: u64,
    /// Segments that the fast paths took.
    pub predicted: u64,
    /// Frames to hosts that are neither.
    pub strays: Vec<Vec<u8>>,
    listener: Option<ListenerId>,
    steps: u64,
    rng: Pcg64,
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    order: u64,
}

pub const V4: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

pub fn v6(host: usize) -> std::net::Ipv6Addr {
    std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host as u16 + 1)
}

pub fn host(number: u8) -> HostConfig {
    let mac = MacAddress([2, 0, 0, 0, 0, number + 1]);
    let addresses = vec![Address::new(V4[usize::from(number)], 24), Address::new(v6(usize::from(number)), 64)];
    HostConfig::ethernet(mac, addresses)
}

impl World {
    pub fn new(configs: [Config; 2], faults: Faults, seed: u64) -> World {
        let [first, second] = configs;
        let stack = |number: u8, config| {
            let mut secret = [number; 16];
            secret[8..].copy_from_slice(&seed.to_le_bytes());
            Stack::new(host(number), config, HeapBuffers, secret)
        };
        World {
            stacks: [stack(0, first), stack(1, second)],
            now: Time::from_ms(1),
            faults,
            frames: 0,
            lost: 0,
            predicted: 0,
            strays: Vec::new(),
            listener: None,
            steps: 0,
            rng: Pcg64::seed_from_u64(seed),
            wire: BTreeMap::new(),
            order: 0,
        }
    }

    fn chance(&mut self, of_1000: u32) -> bool {
        of_1000 > 0 && self.rng.next_u32() % 1000 < of_1000
    }

    fn put(&mut self, from: usize, mut frame: Vec<u8>) {
        self.frames += 1;
        if frame[0] & 1 == 0 && frame[..6] != host(1 - from as u8).mac.0 {
            self.strays.push(frame);
            return;
        }
        if self.chance(self.faults.loss) {
            self.lost += 1;
            return;
        }
        // A link's own check finds what is wrong in its header; ARP has no check of its own.
        if frame[12..14] != [8, 6] && self.chance(self.faults.corruption) {
            let at = 14 + self.rng.next_u32() as usize % (frame.len() - 14);
            frame[at] ^= 1 << (self.rng.next_u32() % 8);
        }
        if frame[12..14] == [8, 0] && frame[15] & 3 == 2 && self.chance(self.faults.marking) {
            frame[15] |= 3;
            let sum = nicforge_wire::checksum::update16(u16::from_be_bytes([frame[24], frame[25]]), 2, 3);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        let copies = if self.chance(self.faults.duplication) { 2 } else { 1 };
        for _ in 0..copies {
            let mut delay = self.faults.delay;
            if self.chance(self.faults.reordering) {
                delay = delay + Time::from_ps(self.rng.next_u64() % (4 * delay.as_ps().max(1)));
            }
            self.order += 1;
            self.wire.insert((self.now + delay, self.order), (1 - from, frame.clone()));
        }
    }

    /// Sends what both stacks have to send now.
    pub fn flush(&mut self) {
        let mut out = [0; 2048];
        let most = self.frames + 20_000;
        for from in 0..2 {
            while let Some(len) = self.stacks[from].transmit(self.now, &mut out) {
                assert!(
                    self.frames < most,
                    "stack {from} sends without end at {}: {:02x?}",
                    self.now,
                    &out[..len.min(80)]
                );
                self.put(from, out[..len].to_vec());
            }
        }
    }

    /// Goes to the next thing that happens, not beyond `until`. Returns whether there was one.
    pub fn step(&mut self, until: Time) -> bool {
        self.steps += 1;
        assert!(self.steps < 3_000_000, "3 million steps at {}", self.now);
        self.flush();
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let timers = self.stacks.iter().filter_map(|stack| stack.poll_at());
        let Some(next) = arrival.into_iter().chain(timers).min().filter(|next| *next <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, frame) = entry.remove();
            self.stacks[to].receive(&frame, self.now);
            self.flush();
        }
        for stack in &mut self.stacks {
            stack.on_timer(self.now);
        }
        self.flush();
        true
    }

    pub fn run_for(&mut self, time: Time) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Listens on host 1 and connects from host 0; returns both ends.
    pub fn open(&mut self, v6_too: bool) -> (ConnectionId, ConnectionId) {
        let tuning = nicforge_tcp::conn::Tuning::new(self.stacks[1].config());
        let listener = self.stacks[1].listen(None, 80, 16, tuning, false).unwrap();
        self.listener = Some(listener);
        let tuning = nicforge_tcp::conn::Tuning::new(self.stacks[0].config());
        let to = if v6_too { v6(1).into() } else { V4[1].into() };
        for _ in 0..10 {
            let client = self.stacks[0].connect((None, 0), (to, 80), tuning.clone(), self.now).unwrap();
            let until = self.now + Time::from_ms(200_000);
            while self.step(until) {
                if let Some(server) = self.stacks[1].accept(listener) {
                    return (client, server);
                }
                if self.stacks[0].connection(client).is_none_or(|connection| connection.error().is_some()) {
                    break;
                }
            }
            self.stacks[0].release(client, self.now);
        }
        panic!("no connection in ten tries: {:?}", self.stacks.each_ref().map(|stack| *stack.counters()));
    }
}

/// Byte `at` of the stream `stream`.
pub fn byte(stream: u64, at: u64) -> u8 {
    let mixed = (at ^ stream << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// One end of a transfer: what it still writes and what it has read.
pub struct End {
    pub id: ConnectionId,
    pub stack: usize,
    pub total: u64,
    pub wrote: u64,
    pub read: u64,
    pub expected: u64,
    pub shut: bool,
}

impl End {
    pub fn new(stack: usize, id: ConnectionId, total: u64, expected: u64) -> End {
        End { id, stack, total, wrote: 0, read: 0, expected, shut: false }
    }

    /// Writes and reads up to `chunk` bytes; checks every byte.
    pub fn pump(&mut self, world: &mut World, chunk: usize) {
        let now = world.now;
        let stack = &mut world.stacks[self.stack];
        if self.wrote < self.total {
            let len = chunk.min((self.total - self.wrote) as usize);
            let bytes: Vec<u8> = (0..len as u64).map(|at| byte(self.stack as u64, self.wrote + at)).collect();
            self.wrote += stack.send(self.id, &bytes, false, now).unwrap() as u64;
        } else if !self.shut {
            stack.shut_write(self.id, now);
            self.shut = true;
        }
        let mut out = vec![0; chunk];
        let len = stack.recv(self.id, &mut out, now).unwrap();
        for (at, have) in out[..len].iter().enumerate() {
            let want = byte(1 - self.stack as u64, self.read + at as u64);
            assert_eq!(*have, want, "byte {} of what stack {} reads", self.read + at as u64, self.stack);
        }
        self.read += len as u64;
        assert!(self.read <= self.expected);
    }

    pub fn is_done(&self, world: &World) -> bool {
        let closed = world.stacks[self.stack].connection(self.id).is_none_or(|connection| connection.is_read_closed());
        self.read == self.expected && self.wrote == self.total && self.shut && closed
    }
}

/// Sends `bytes` both ways over `world`; panics on a wrong byte, an error or no end in `limit`.
pub fn exchange(world: &mut World, bytes: [u64; 2], chunk: usize, limit: Time, v6_too: bool) {
    exchange_under(world, bytes, chunk, limit, v6_too, |_, _| {});
}

/// The same while something else happens in each turn, which learns the server's end.
pub fn exchange_under(
    world: &mut World,
    bytes: [u64; 2],
    chunk: usize,
    limit: Time,
    v6_too: bool,
    mut meanwhile: impl FnMut(&mut World, ConnectionId),
) {
    let (client, server) = world.open(v6_too);
    let mut ends = [End::new(0, client, bytes[0], bytes[1]), End::new(1, server, bytes[1], bytes[0])];
    let until = world.now + limit;
    loop {
        for end in &mut ends {
            end.pump(world, chunk);
        }
        meanwhile(world, server);
        if ends.iter().all(|end| end.is_done(world)) {
            break;
        }
        if !world.step(until) {
            let [a, b] = [0, 1].map(|at| format!("{:#?}", world.stacks[at].connection(ends[at].id)));
            panic!("not done: {}/{} and {}/{} bytes read\n{a}\n{b}", ends[0].read, bytes[1], ends[1].read, bytes[0]);
        }
    }
    for end in &ends {
        let error = world.stacks[end.stack].connection(end.id).and_then(|connection| connection.error());
        assert_eq!(error, None);
        let counters = world.stacks[end.stack].connection(end.id).map(|connection| *connection.counters());
        world.predicted += counters.map_or(0, |counters| counters.predicted);
        world.stacks[end.stack].release(end.id, world.now);
    }
    // Whoever else connected is let go.
    while let Some(other) = world.listener.and_then(|listener| world.stacks[1].accept(listener)) {
        world.stacks[1].release(other, world.now);
    }
    world.run_for(Time::from_ms(400_000));
    assert_eq!(world.stacks.each_ref().map(|stack| stack.connection_count()), [0, 0], "connections stay");
}
