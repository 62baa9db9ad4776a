//! Two hosts of the project's TCP on a bad link, with the NIC's engine between each stack and the wire.

use std::collections::BTreeMap;

use nicforge_l5p::context::FlowKey;
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::{EngineConfig, Received};
use nicforge_l5p::host::HostMemory;
use nicforge_l5p::port::{Port, Reports, Segment};
use nicforge_l5p::sequence::Seq;
use nicforge_tcp::Config;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::ring::HeapBuffers;
use nicforge_tcp::stack::{Address, ConnectionId, HostConfig, Stack};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

use super::Dice;

/// What may happen to a frame, in parts of 1000, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub loss: u64,
    pub duplication: u64,
    pub corruption: u64,
    pub reordering: u64,
    pub delay: Time,
    /// Percent of frames before which the NIC evicts its contexts.
    pub evict: u32,
}

impl Link {
    pub fn clean() -> Self {
        Self { loss: 0, duplication: 0, corruption: 0, reordering: 0, delay: Time::from_us(200), evict: 0 }
    }

    pub fn lossy(loss: u64) -> Self {
        Self { loss, ..Self::clean() }
    }

    pub fn drawn(dice: &mut Dice) -> Self {
        let rates = [0, 0, 5, 20, 80];
        let mut rate = |most: u64| rates[dice.below(5) as usize].min(most);
        let (loss, duplication, corruption, reordering) = (rate(80), rate(80), rate(20), 3 * rate(80));
        let delay = Time::from_us(50 + dice.below(20_000));
        Self { loss, duplication, corruption, reordering, delay, evict: 30 }
    }
}

/// The layer-5 protocol of one end.
pub trait End {
    /// The protocol and the memory of its messages, for the driver.
    fn parts(&mut self) -> (&dyn Layer5, &mut dyn HostMemory);
    /// The NIC asks about a place in what came in.
    fn request(&mut self, tcpsn: Seq);
    /// TCP delivers bytes in order.
    fn deliver(&mut self, bytes: &[u8], received: &Received);
    /// Does what can be done: reads messages, asks for contexts, writes messages.
    fn work(&mut self, nic: &mut Nic<'_>);
    /// Hands bytes to TCP.
    fn hand_over(&mut self, take: &mut dyn FnMut(&[u8]) -> usize);
    /// TCP's peer has everything before `tcpsn`.
    fn acknowledge(&mut self, tcpsn: Seq);
    fn answers(&mut self) -> Vec<ResyncAnswer>;
    /// Whether nothing is left to do.
    fn is_done(&self) -> bool;
}

/// What an end may do with its NIC.
pub struct Nic<'a> {
    pub port: &'a mut Port,
    pub outward: FlowKey,
    pub inward: FlowKey,
}

pub struct Side<E> {
    pub stack: Stack<HeapBuffers>,
    pub port: Port,
    pub end: Option<E>,
    pub id: Option<ConnectionId>,
    pub outward: FlowKey,
    pub inward: FlowKey,
    reports: Reports,
    answers: Vec<(Time, ResyncAnswer)>,
}

pub struct Net<E> {
    pub sides: [Side<E>; 2],
    pub now: Time,
    pub link: Link,
    pub dice: Dice,
    /// How late software answers the NIC, at most.
    pub answer_delay: Time,
    pub frames: u64,
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    steps_without_progress: u64,
}

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

impl<E: End> Net<E> {
    /// Two hosts whose NICs have room for `contexts` each, at a time of `now`.
    pub fn new(seed: u64, link: Link, config: Config, engine: EngineConfig, contexts: usize, now: Time) -> Self {
        let side = |number: u8| {
            let mac = MacAddress([2, 0, 0, 0, 0, number + 1]);
            let host = HostConfig::ethernet(mac, vec![Address::new(ADDRESSES[usize::from(number)], 24)]);
            let mut secret = [number; 16];
            secret[8..].copy_from_slice(&seed.to_le_bytes());
            Side {
                stack: Stack::new(host, config.clone(), HeapBuffers, secret),
                port: Port::new(engine, contexts),
                end: None,
                id: None,
                outward: FlowKey::default(),
                inward: FlowKey::default(),
                reports: Reports::new(Seq(0)),
                answers: Vec::new(),
            }
        };
        Self {
            sides: [side(0), side(1)],
            now,
            link,
            dice: Dice::new(seed),
            answer_delay: Time::ZERO,
            frames: 0,
            wire: BTreeMap::new(),
            steps_without_progress: 0,
        }
    }

    /// Connects side 0 to side 1. Returns where the streams out of both begin.
    pub fn connect(&mut self) -> [Seq; 2] {
        // A connection that fails to open says nothing about offloads.
        let link = self.link;
        self.link = Link { delay: link.delay, ..Link::clean() };
        let tuning = Tuning::new(self.sides[1].stack.config());
        let listener = self.sides[1].stack.listen(None, 443, 4, tuning.clone(), false).unwrap();
        let client = self.sides[0].stack.connect((None, 0), (ADDRESSES[1].into(), 443), tuning, self.now).unwrap();
        self.sides[0].id = Some(client);
        let server = loop {
            assert!(self.step(), "no connection");
            if let Some(server) = self.sides[1].stack.accept(listener) {
                break server;
            }
        };
        self.link = link;
        self.sides[1].id = Some(server);
        for side in &mut self.sides {
            let tuple = side.stack.tuple(side.id.unwrap()).unwrap();
            side.outward =
                FlowKey::between((tuple.local, tuple.local_port).into(), (tuple.remote, tuple.remote_port).into());
            side.inward = side.outward.reverse();
            side.reports = Reports::new(Seq(side.stack.connection(side.id.unwrap()).unwrap().expected().0));
        }
        [0, 1].map(|side| Seq(self.connection(side).next().0))
    }

    pub fn connection(&self, side: usize) -> &nicforge_tcp::conn::Connection {
        self.sides[side].stack.connection(self.sides[side].id.unwrap()).unwrap()
    }

    /// Sends plain bytes one way before any offload, and reads them.
    pub fn plain(&mut self, from: usize, bytes: usize) {
        let data = vec![0x16; bytes];
        let mut got = 0;
        let now = self.now;
        let id = self.sides[from].id.unwrap();
        assert_eq!(self.sides[from].stack.send(id, &data, false, now).unwrap(), bytes);
        while got < bytes {
            assert!(self.step(), "plain bytes get lost");
            let side = &mut self.sides[1 - from];
            let mut out = vec![0; bytes];
            let more = side.stack.recv(side.id.unwrap(), &mut out, self.now).unwrap();
            side.reports.take(more);
            got += more;
        }
    }

    /// Runs until both ends are done.
    pub fn run(&mut self) {
        loop {
            (0..2).for_each(|side| self.pump(side));
            if self.sides.iter().all(|side| side.end.as_ref().is_none_or(End::is_done)) {
                return;
            }
            assert!(self.step(), "nothing moves at {}: {}", self.now, self.state());
        }
    }

    /// Lets an end work with its stack and its NIC.
    fn pump(&mut self, number: usize) {
        let now = self.now;
        let late = Time::from_ps(self.dice.below(self.answer_delay.as_ps() + 1));
        let side = &mut self.sides[number];
        let (Some(end), Some(id)) = (side.end.as_mut(), side.id) else { return };
        let mut out = vec![0; 1 << 16];
        loop {
            let bytes = side.stack.recv(id, &mut out, now).unwrap();
            if bytes == 0 {
                break;
            }
            self.steps_without_progress = 0;
            let mut at = 0;
            for stretch in side.reports.take(bytes) {
                end.deliver(&out[at..at + stretch.bytes], &stretch.received);
                at += stretch.bytes;
            }
        }
        let una = Seq(side.stack.connection(id).unwrap().una().0);
        end.acknowledge(una);
        side.port.acknowledge(&side.outward, una);
        end.work(&mut Nic { port: &mut side.port, outward: side.outward, inward: side.inward });
        end.hand_over(&mut |bytes| side.stack.send(id, bytes, false, now).unwrap());
        side.answers.extend(end.answers().into_iter().map(|answer| (now + late, answer)));
        while side.answers.first().is_some_and(|(due, _)| *due <= now) {
            let (_, answer) = side.answers.remove(0);
            side.port.answer(&side.inward, answer, now);
        }
    }

    fn flush(&mut self) {
        let mut out = [0; 2048];
        for from in 0..2 {
            while let Some(len) = self.sides[from].stack.transmit(self.now, &mut out) {
                let mut frames = Vec::new();
                if self.dice.percent(self.link.evict) {
                    self.sides[from].port.evict();
                }
                let side = &mut self.sides[from];
                match (side.port.leaving(&out[..len]), &mut side.end) {
                    (Some(segment), Some(end)) => {
                        let (layer5, memory) = end.parts();
                        side.port.send(&out[..len], &segment, layer5, memory, |frame| frames.push(frame.to_vec()));
                    }
                    _ => frames.push(out[..len].to_vec()),
                }
                frames.into_iter().for_each(|frame| self.put(from, frame));
            }
        }
    }

    fn put(&mut self, from: usize, mut frame: Vec<u8>) {
        self.frames += 1;
        let link = self.link;
        let mut chance = |of_1000| self.dice.below(1000) < of_1000;
        if chance(link.loss) {
            return;
        }
        let (is_corrupted, is_late) = (chance(link.corruption), chance(link.reordering));
        let copies = if chance(link.duplication) { 2 } else { 1 };
        if is_corrupted && frame[12..14] != [8, 6] {
            let at = self.dice.range(14, frame.len() - 1);
            frame[at] ^= 1 << self.dice.below(8);
        }
        for copy in 0..copies {
            let late = if is_late || copy > 0 { self.dice.below(3 * link.delay.as_ps()) } else { 0 };
            let at = self.now + link.delay + Time::from_ps(late);
            self.wire.insert((at, self.frames * 2 + copy), (1 - from, frame.clone()));
        }
    }

    fn receive(&mut self, to: usize, mut frame: Vec<u8>) {
        if self.dice.percent(self.link.evict) {
            self.sides[to].port.evict();
        }
        let (side, now) = (&mut self.sides[to], self.now);
        let met = match &mut side.end {
            Some(end) => side.port.receive(&mut frame, end.parts().1, now),
            None => None,
        };
        let (segment, received) = match met {
            Some((segment, received)) => (Some(segment), received),
            None => (Segment::find(&frame), Received::without_context()),
        };
        side.stack.receive(&frame, now);
        if let (Some(arrival), Some(segment)) = (side.stack.arrival(), segment) {
            let seq = segment.seq.plus(arrival.placement.skip as usize);
            side.reports.note(seq, arrival.placement.len as usize, &received);
        }
        if let (Some(tcpsn), Some(end)) = (received.resync, &mut side.end) {
            end.request(tcpsn);
        }
    }

    fn state(&self) -> String {
        let connections = self.sides.iter().map(|side| side.id.and_then(|id| side.stack.connection(id)));
        let states =
            connections.map(|connection| connection.map(|c| (c.state(), c.error(), c.readable(), c.writable())));
        let counted = self
            .sides
            .each_ref()
            .map(|side| side.port.named_counters().into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>());
        format!("{:?} {counted:?}", states.collect::<Vec<_>>())
    }

    /// Goes to the next thing that happens; tells whether there was one.
    pub fn step(&mut self) -> bool {
        self.steps_without_progress += 1;
        assert!(self.steps_without_progress < 5_000, "no end at {}: {}", self.now, self.state());
        self.flush();
        let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
        let timers = self.sides.iter().filter_map(|side| side.stack.poll_at());
        let answers = self.sides.iter().filter_map(|side| side.answers.first().map(|(due, _)| *due));
        let Some(next) = arrival.into_iter().chain(timers).chain(answers).min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, frame) = entry.remove();
            self.receive(to, frame);
            self.pump(to);
            self.flush();
        }
        (0..2).for_each(|side| self.sides[side].stack.on_timer(self.now));
        self.flush();
        true
    }
}

/// A time at which the initial sequence number of side `side` lies `before` bytes before the wrap.
pub fn time_of_wrap(seed: u64, side: usize, before: u32) -> Time {
    struct Nobody;
    impl End for Nobody {
        fn parts(&mut self) -> (&dyn Layer5, &mut dyn HostMemory) {
            unreachable!("nothing is sent")
        }
        fn request(&mut self, _: Seq) {}
        fn deliver(&mut self, _: &[u8], _: &Received) {}
        fn work(&mut self, _: &mut Nic<'_>) {}
        fn hand_over(&mut self, _: &mut dyn FnMut(&[u8]) -> usize) {}
        fn acknowledge(&mut self, _: Seq) {}
        fn answers(&mut self) -> Vec<ResyncAnswer> {
            Vec::new()
        }
        fn is_done(&self) -> bool {
            true
        }
    }
    let begin = Time::from_ms(1);
    let config = EngineConfig::default();
    let mut net = Net::<Nobody>::new(seed, Link::clean(), Config::default(), config, 0, begin);
    let start = net.connect()[side];
    // The initial sequence number counts up every 4 microseconds.
    begin + Time::from_us(4 * u64::from(0u32.wrapping_sub(before).wrapping_sub(start.0)))
}
