//! Random driver programs: whatever they do in whatever order, no packet is lost, doubled or
//! changed, and nothing hangs.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::sinic::registers::{command, tx_done};

mod steps;

use steps::{Content, FLAGS, Packet, Step, step};

/// Room that each virtual NIC has in memory, for receiving and for sending.
const ROOM: u64 = 2048;
const RECEIVE_AT: u64 = 4096;
const SEND_AT: u64 = RECEIVE_AT + 256 * ROOM;

/// What a driver knows of one virtual NIC.
#[derive(Clone, Debug, Default)]
struct Vnic {
    /// A receive copy of so many bytes is on.
    asked: Option<u64>,
    /// Bytes of its packet so far, and how many are to come, if it has one.
    packet: Vec<u8>,
    left: Option<u64>,
    /// What RxDone said of it.
    flags: u64,
    /// What is to leave of the packet that it sends, and the parts that are still to be written.
    sends: Vec<u8>,
    checksum: bool,
    parts: VecDeque<u64>,
    sent: u64,
}

struct Program {
    bench: Bench,
    vnics: Vec<Vnic>,
    /// Frames that came into the FIFO, by number, and what RxDone must say of them.
    inside: BTreeMap<u32, (Vec<u8>, u64)>,
    arrived: u32,
    /// The number of the last packet received, where there is but one register set.
    last: Option<u32>,
    /// Packets given to the device, by virtual NIC, oldest first.
    sending: Vec<VecDeque<Vec<u8>>>,
    numbers: u32,
    /// What Config has besides enables.
    config: u64,
    /// Virtual NICs that the program uses: few, so that each does several things.
    uses: u16,
}

impl Program {
    fn new(vnics: Option<usize>, uses: u16) -> Program {
        let options = Options { vnics, ..sinic() };
        let mut bench = Bench::on(&options);
        bench.write(Tag::IntrMask, 0, 0x1ff);
        Program {
            bench,
            vnics: vec![Vnic::default(); options.sets()],
            inside: BTreeMap::new(),
            arrived: 0,
            last: None,
            sending: vec![VecDeque::new(); options.sets()],
            numbers: 0,
            config: options.config(),
            uses: uses.min(options.sets() as u16),
        }
    }

    fn enable(&mut self, interrupt: bool, transmit: bool) {
        let bits = [(config::INT_EN, interrupt), (config::TX_EN, transmit)];
        let on = bits.iter().filter(|(_, on)| *on).map(|(bit, _)| bit.mask());
        let always = self.config | config::RX_EN.mask();
        let value = on.fold(always, |all, bit| all | bit);
        self.bench.write(Tag::Config, 0, value);
    }

    fn step(&mut self, step: &Step) {
        // Spread over all sets, the last of them included.
        let sets = self.vnics.len() as u16;
        let of = |vnic: u16| sets - 1 - vnic % self.uses * (sets / self.uses);
        match step {
            Step::Arrive(content, len) => self.arrive(*content, *len),
            Step::Post(vnic, len) => self.post(of(*vnic), *len),
            Step::Look(vnic, wait) => self.look(of(*vnic), *wait),
            Step::Send(vnic, packet, wait) => self.send(of(*vnic), Some(packet), *wait),
            Step::Pass(ns) => self.bench.pass(Time::from_ns(*ns)),
            Step::ReadStatus => {
                self.bench.read(Tag::IntrStatus, 0);
            }
            Step::Mask(bits) => self.bench.write(Tag::IntrMask, 0, *bits),
            Step::Enable(interrupt, transmit) => self.enable(*interrupt, *transmit),
            Step::Reset => self.reset(),
        }
    }

    fn arrive(&mut self, content: Content, len: usize) {
        let frame = content.frame(self.arrived, len.max(content.least()));
        match self.bench.arrive(&frame) {
            Ok(()) => {
                let what = (frame, content.flags());
                self.inside.insert(self.arrived, what);
            }
            Err(cause) => assert_eq!(cause, DropCause::FIFO_FULL),
        }
        self.arrived += 1;
    }

    fn post(&mut self, vnic: u16, len: u64) {
        let state = &mut self.vnics[usize::from(vnic)];
        if state.asked.is_some() {
            return;
        }
        state.asked = Some(len);
        let at = RECEIVE_AT + u64::from(vnic) * ROOM;
        self.bench.write(Tag::RxData, vnic, post_receive(at, len));
    }

    fn look(&mut self, vnic: u16, wait: bool) {
        let tag = if wait { Tag::RxWait } else { Tag::RxDone };
        let done = self.bench.read(tag, vnic);
        let state = &mut self.vnics[usize::from(vnic)];
        let Some(asked) = state.asked else {
            return;
        };
        if !is_complete(done) {
            assert!(rx_done::BUSY.is_set(done), "posted, and not done");
            return;
        }
        state.asked = None;
        let says = rx_done::COPY_LEN.get(done);
        let more = rx_done::MORE.is_set(done);
        let copied = if more { asked } else { says };
        let flags = done & FLAGS;
        if let Some(left) = state.left {
            assert_eq!(left, copied + if more { says } else { 0 });
            assert_eq!(flags, state.flags, "another packet");
        }
        state.flags = flags;
        state.left = more.then_some(says);
        let at = RECEIVE_AT + u64::from(vnic) * ROOM;
        let bytes = &self.bench.memory.bytes[at as usize..][..copied as usize];
        state.packet.extend_from_slice(bytes);
        if !more {
            let packet = std::mem::take(&mut state.packet);
            self.received(packet, flags);
        }
    }

    fn received(&mut self, packet: Vec<u8>, flags: u64) {
        let number = u32::from_be_bytes(packet[..4].try_into().unwrap());
        let expected = self.inside.remove(&number);
        assert_eq!(expected, Some((packet, flags)), "lost, doubled or changed");
        if self.vnics.len() == 1 {
            assert!(self.last < Some(number), "in the order of arrival");
        }
        self.last = Some(number);
    }

    /// The next part of the packet that `vnic` has begun, else the first of `packet`.
    fn send(&mut self, vnic: u16, packet: Option<&Packet>, wait: bool) {
        let tag = if wait { Tag::TxWait } else { Tag::TxDone };
        if tx_done::BUSY.is_set(self.bench.read(tag, vnic)) {
            return;
        }
        let at = SEND_AT + u64::from(vnic) * ROOM;
        let state = &mut self.vnics[usize::from(vnic)];
        if let Some(packet) = packet
            && state.parts.is_empty()
        {
            let (content, checksum) = (packet.content, packet.checksum);
            let asked: u64 = packet.parts.iter().sum();
            let len = content.least().max(asked as usize);
            state.parts = packet.parts.iter().copied().collect();
            state.parts[0] += len as u64 - asked;
            state.sent = 0;
            state.checksum = checksum;
            let place = &mut self.bench.memory.bytes[at as usize..][..len];
            place.copy_from_slice(&content.frame(self.numbers, len));
            let leaves = if checksum { content.completed() } else { content };
            state.sends = leaves.frame(self.numbers, len);
            self.numbers += 1;
        }
        if let Some(part) = state.parts.pop_front() {
            let more = !state.parts.is_empty();
            let from = at + state.sent;
            state.sent += part;
            if !more {
                self.sending[usize::from(vnic)].push_back(state.sends.clone());
            }
            let checksum = tx_data::CHECKSUM.of(state.checksum.into());
            let value = post_transmit(from, part, more) | checksum;
            self.bench.write(Tag::TxData, vnic, value);
        }
    }

    /// What left the device was to leave.
    fn take_sent(&mut self) {
        for packet in self.bench.sent() {
            let from = self.sending.iter_mut().find(|queue| queue.front() == Some(&packet));
            assert!(from.is_some(), "made up, doubled or out of order");
            from.unwrap().pop_front();
        }
    }

    fn reset_packets(&self) -> u64 {
        let counters = self.bench.nic.counters();
        let found = counters.iter().find(|(name, _)| *name == "reset_packets");
        found.map_or(0, |&(_, count)| count)
    }

    /// What is inside is lost and counted, and the device is as after power-on.
    fn reset(&mut self) {
        for vnic in 0..self.vnics.len() as u16 {
            self.look(vnic, false);
        }
        self.take_sent();
        let begun = self.vnics.iter().filter(|vnic| !vnic.parts.is_empty());
        let whole: usize = self.sending.iter().map(VecDeque::len).sum();
        let lost = (self.inside.len() + whole + begun.count()) as u64;
        let before = self.reset_packets();
        self.bench.write(Tag::Command, 0, command::RESET.mask());
        assert_eq!(self.reset_packets() - before, lost, "lost, and not counted");
        assert_eq!(self.bench.nic.frames_inside(), 0);
        // Nothing of them may come later.
        self.inside.clear();
        self.vnics.fill(Vnic::default());
        self.sending.fill(VecDeque::new());
        let refused = self.bench.arrive(&frame(self.arrived, 60));
        assert_eq!(refused, Err(crate::sinic::RX_DISABLED));
        self.arrived += 1;
        self.bench.write(Tag::IntrMask, 0, 0x1ff);
        self.enable(true, true);
    }

    /// Finishes what is begun; then nothing is left inside.
    fn finish(mut self) {
        self.enable(true, true);
        let mut rounds = 0;
        while self.bench.nic.frames_inside() > 0 || self.vnics.iter().any(|vnic| !vnic.parts.is_empty()) {
            for vnic in 0..self.vnics.len() as u16 {
                let begun = self.vnics[usize::from(vnic)].left.is_some();
                if begun || rx_done::PACKETS.get(self.bench.read(Tag::RxDone, vnic)) > 0 {
                    self.post(vnic, 1514);
                }
                self.look(vnic, true);
                if !self.vnics[usize::from(vnic)].parts.is_empty() {
                    self.send(vnic, None, true);
                }
            }
            self.bench.pass(Time::from_us(20));
            rounds += 1;
            assert!(rounds < 1000, "the program never ends");
        }
        for vnic in 0..self.vnics.len() as u16 {
            self.look(vnic, false);
        }
        assert!(self.inside.is_empty(), "{:?} never came out", self.inside.keys());
        self.take_sent();
        assert!(self.sending.iter().all(VecDeque::is_empty), "never sent");
        assert_eq!(self.bench.misuses(), []);
    }
}

fn vnics() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(None), Just(Some(1)), Just(Some(256)), (2usize..9).prop_map(Some), (1usize..257).prop_map(Some),]
}

proptest! {
    #![proptest_config(ProptestConfig {
        // A failure is the same on every machine.
        rng_seed: RngSeed::Fixed(6),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn programs_lose_double_and_change_nothing(
        vnics in vnics(),
        uses in prop_oneof![1u16..6, Just(256)],
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut program = Program::new(vnics, uses);
        for step in &steps {
            program.step(step);
        }
        program.finish();
    }

    #[test]
    fn no_register_access_harms_the_device(
        vnics in vnics(),
        accesses in prop::collection::vec(
            (any::<bool>(), 0u32..0x1_0200, prop_oneof![Just(4u32), Just(8), 0u32..20],
             prop_oneof![any::<u64>(), 0u64..64, (0u64..(1 << 21)).prop_map(|at| 100 << 40 | at)]),
            0..200,
        ),
    ) {
        let mut bench = Bench::on(&Options { vnics, ..sinic() });
        for (number, &(write, offset, bytes, value)) in accesses.iter().enumerate() {
            // Half of them at registers.
            let offset = if offset % 2 == 0 { offset & !3 } else { offset };
            if write { bench.write_at(offset, bytes, value) } else {
                    bench.read_at(offset, bytes);
                }
            if number % 3 == 0 {
                let _ = bench.arrive(&frame(number as u32, 100));
            }
            bench.pass(Time::from_ns(value % 1000));
        }
        // Whatever was done, a reset brings a working device back.
        bench.write(Tag::Command, 0, command::RESET.mask());
        bench.pass(Time::from_ms(1));
        bench.sent();
        let options = Options { vnics, ..sinic() };
        bench.write(Tag::Config, 0, options.config() | 7);
        bench.arrive(&frame(7, 100)).unwrap();
        bench.write(Tag::RxData, 0, post_receive(RECEIVE_AT, 1514));
        prop_assert!(is_complete(bench.read(Tag::RxWait, 0)));
        prop_assert_eq!(bench.bytes(RECEIVE_AT, 100), frame(7, 100));
        bench.write(Tag::TxData, 0, post_transmit(RECEIVE_AT, 100, false));
        bench.pass(Time::from_us(1));
        prop_assert_eq!(bench.sent(), vec![frame(7, 100)]);
    }
}
