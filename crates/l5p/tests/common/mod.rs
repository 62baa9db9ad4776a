//! A wire between two NICs that loses, repeats and reorders packets, with TCP at both ends as far as offloads see it:
//! sequence numbers, retransmission in any pieces, in-order delivery. An oracle knows the whole stream.

pub mod capture;
pub mod dice;
pub mod duplex;
pub mod network;
pub mod nvme_end;
pub mod oracle;
pub mod rigs;
pub mod schedule;
pub mod storage;
pub mod tcp;
pub mod tls_end;
pub mod tls_rig;

use std::collections::VecDeque;

use nicforge_l5p::context::{Context, ContextId, FlowKey, Mode, Start, State};
use nicforge_l5p::driver::{Layer5, ResyncAnswer, TxDriver};
use nicforge_l5p::engine::{Create, Engine, EngineConfig, Executed, Outcome, Received};
use nicforge_l5p::host::{FlatMemory, Piece};
use nicforge_l5p::protocol::{Direction, ProtocolId};
use nicforge_l5p::sequence::Seq;

pub use dice::{Dice, Faults, drawn, quiet, seeds};
use tcp::Reassembly;

/// What the sender's protocol does next.
pub enum Step {
    /// A message: its pieces as software prepared them, and its bytes as the wire must see them.
    Message { pieces: Vec<Piece>, number: u64, truth: Vec<u8> },
    /// New keys from here on.
    Rekey { start: Start, state: State },
}

/// The layer-5 protocol of both ends, with what is special about it in a test.
pub trait Rig {
    fn protocol(&self) -> ProtocolId;
    fn state(&self) -> State;
    fn start(&self) -> Start;
    fn next(&mut self, memory: &mut FlatMemory, dice: &mut Dice) -> Step;
    fn sender(&self) -> &dyn Layer5;
    fn acknowledge(&mut self, tcpsn: Seq);
    fn request(&mut self, tcpsn: Seq);
    /// In-order payload; panics at content that is wrong. Returns a new receive context when keys changed.
    fn deliver(&mut self, payload: &[u8], received: &Received) -> Option<(Start, State)>;
    fn answers(&mut self) -> Vec<ResyncAnswer>;
    /// Messages that were delivered.
    fn delivered(&self) -> u64;
    /// Whether the NIC may meet genuine messages that fail.
    fn may_fail(&self) -> bool {
        false
    }
    /// Whether an end gave the connection up with an error.
    fn is_broken(&self) -> bool {
        false
    }
    /// Whether a packet that was processed shows what it must show.
    fn check_processed(&self, _plain: &[u8], _received: &[u8]) {}
}

pub struct World<R: Rig> {
    pub rig: R,
    pub dice: Dice,
    pub faults: Faults,
    pub memory: FlatMemory,
    pub tx: Engine,
    pub rx: Engine,
    pub tx_context: Context,
    pub rx_context: Context,
    pub driver: TxDriver,
    base: Seq,
    plain: Vec<u8>,
    truth: Vec<u8>,
    /// Offset, number of each message, and the epoch's count.
    starts: Vec<(usize, u64)>,
    sent: usize,
    acked: usize,
    wire: VecDeque<(Seq, Vec<u8>)>,
    pub tcp: Reassembly,
    answers: VecDeque<(u64, ResyncAnswer)>,
    now: u64,
    pub packets_processed: u64,
    pub packets: u64,
}

impl<R: Rig> World<R> {
    pub fn new(rig: R, seed: u64, faults: Faults) -> Self {
        let config = EngineConfig { proves_resync: faults.confirms_false, ..EngineConfig::default() };
        let (mut tx, mut rx) = (Engine::default(), Engine::new(config));
        let create = |direction| Create {
            id: ContextId(0),
            flow: FlowKey::default(),
            protocol: rig.protocol(),
            direction,
            start: rig.start(),
            state: rig.state(),
        };
        let tx_context = tx.create(create(Direction::Transmit)).unwrap();
        let rx_context = rx.create(create(Direction::Receive)).unwrap();
        let base = rig.start().tcpsn;
        Self {
            driver: TxDriver::new(rig.start(), rig.state(), 1500),
            tcp: Reassembly::new(base),
            dice: Dice::new(seed),
            memory: FlatMemory::default(),
            rig,
            faults,
            tx,
            rx,
            tx_context,
            rx_context,
            base,
            plain: Vec::new(),
            truth: Vec::new(),
            starts: Vec::new(),
            sent: 0,
            acked: 0,
            wire: VecDeque::new(),
            answers: VecDeque::new(),
            now: 0,
            packets_processed: 0,
            packets: 0,
        }
    }

    /// Sends `messages` more messages and waits until all are delivered.
    pub fn run(&mut self, messages: usize) {
        let goal = self.starts.len() + messages;
        let mut stuck = 0;
        while !self.rig.is_broken() && (self.starts.len() < goal || self.tcp.delivered() < self.plain.len()) {
            let before = (self.starts.len(), self.tcp.delivered());
            self.step(goal);
            stuck = if before == (self.starts.len(), self.tcp.delivered()) { stuck + 1 } else { 0 };
            assert!(stuck < 100_000, "nothing moves: {:?}", self.rx_context);
        }
        assert!(self.rig.is_broken() || self.rig.delivered() == self.starts.len() as u64);
    }

    fn step(&mut self, goal: usize) {
        self.now += 1;
        while self.plain.len() < self.sent + 4 * self.faults.mss && self.starts.len() < goal {
            self.produce();
        }
        let window = 40 * self.faults.mss;
        let may_send = self.sent < self.plain.len() && self.sent < self.acked + window;
        if may_send && self.dice.percent(60) {
            let bytes = self.packet_bytes(self.plain.len() - self.sent);
            self.transmit(self.sent, bytes);
            self.sent += bytes;
        } else if self.sent > 0 && self.dice.percent(self.faults.spurious) {
            // Any bytes that were sent, acknowledged or not.
            let low = if self.dice.percent(20) { self.acked.saturating_sub(5000) } else { self.acked };
            if low < self.sent {
                let from = self.dice.range(low, self.sent - 1);
                let bytes = self.packet_bytes(self.sent - from);
                self.transmit(from, bytes);
            }
        }
        if self.wire.is_empty() && self.acked < self.sent && !may_send {
            let bytes = self.packet_bytes(self.sent - self.acked);
            self.transmit(self.acked, bytes);
        }
        if self.dice.percent(60) {
            self.receive();
        }
        self.give_answers();
        if self.dice.percent(50) {
            self.acked = self.tcp.delivered();
            let tcpsn = self.base.plus(self.acked);
            self.driver.acknowledge(tcpsn);
            self.rig.acknowledge(tcpsn);
        }
    }

    fn packet_bytes(&mut self, most: usize) -> usize {
        let bytes = if self.dice.percent(50) { self.faults.mss } else { self.dice.range(1, self.faults.mss) };
        bytes.min(most)
    }

    fn produce(&mut self) {
        match self.rig.next(&mut self.memory, &mut self.dice) {
            Step::Message { pieces, number, truth } => {
                self.starts.push((self.plain.len(), number));
                for piece in pieces {
                    self.plain.extend_from_slice(self.memory.view(piece).unwrap());
                }
                self.truth.extend_from_slice(&truth);
                assert_eq!(self.plain.len(), self.truth.len(), "size-preserving");
            }
            Step::Rekey { start, state } => self.driver.rekey(start, state),
        }
    }

    fn transmit(&mut self, from: usize, bytes: usize) {
        let seq = self.base.plus(from);
        let payload = self.plain[from..from + bytes].to_vec();
        let descriptors = self.driver.send(self.rig.sender(), seq, &payload);
        if descriptors.is_empty() {
            assert!(from < self.acked, "only acknowledged bytes may be dropped");
        }
        for descriptor in descriptors {
            self.evict();
            let executed = self.tx.execute(&mut self.tx_context, &mut self.memory, descriptor).unwrap();
            if let Executed::Sent { seq, payload } = executed {
                let at = seq.since(self.base) as u32 as usize;
                assert_eq!(payload, self.truth[at..at + payload.len()], "wire bytes at {at} of {from}+{bytes}");
                self.put_on_wire(seq, payload);
            }
        }
    }

    fn put_on_wire(&mut self, seq: Seq, payload: Vec<u8>) {
        if self.dice.percent(self.faults.loss) {
            return;
        }
        if self.dice.percent(self.faults.duplicate) {
            self.wire.push_back((seq, payload.clone()));
        }
        self.wire.push_back((seq, payload));
    }

    fn receive(&mut self) {
        let place =
            if self.dice.percent(self.faults.reorder) { self.dice.below(self.wire.len() as u64) as usize } else { 0 };
        let Some((seq, mut payload)) = self.wire.remove(place) else {
            return;
        };
        self.evict();
        let at = seq.since(self.base) as u32 as usize;
        let received = self.rx.receive(&mut self.rx_context, &mut self.memory, seq, &mut payload);
        self.packets += 1;
        if std::env::var("NICFORGE_TRACE").is_ok() {
            println!("{at}+{} {received:?} {:?}", payload.len(), self.rx_context);
        }
        match received.outcome {
            Outcome::Offloaded => {
                self.packets_processed += 1;
                self.rig.check_processed(&self.plain[at..at + payload.len()], &payload);
            }
            _ => {
                assert_eq!(payload, self.truth[at..at + payload.len()], "a packet that is not processed is unmodified")
            }
        }
        if !self.faults.lies_numbers {
            self.check_context();
            assert!(received.outcome != Outcome::Failed || self.rig.may_fail(), "genuine messages never fail");
        }
        if let Some(tcpsn) = received.resync {
            self.rig.request(tcpsn);
        }
        for (payload, received) in self.tcp.push(seq, payload, received) {
            if let Some((start, state)) = self.rig.deliver(&payload, &received) {
                let id = ContextId(self.rx_context.id.0 + 1);
                self.rx.destroy(&mut self.rx_context);
                let (flow, direction) = (FlowKey::default(), Direction::Receive);
                let create = Create { id, flow, protocol: self.rig.protocol(), direction, start, state };
                self.rx_context = self.rx.create(create).unwrap();
                self.answers.clear();
            }
        }
        for answer in self.rig.answers() {
            let due = self.now + self.dice.below(self.faults.answer_delay + 1);
            self.answers.push_back((due, answer));
        }
    }

    fn give_answers(&mut self) {
        while self.answers.front().is_some_and(|(due, _)| *due <= self.now) {
            let (_, mut answer) = self.answers.pop_front().unwrap();
            if self.dice.percent(self.faults.lies) {
                answer.number = match self.dice.below(3) {
                    0 => None,
                    1 if self.faults.confirms_false => Some(self.dice.below(100)),
                    1 if self.faults.lies_numbers => answer.number.map(|number| number.wrapping_sub(1)),
                    2 if self.faults.lies_numbers => answer.number.map(|number| number + 1),
                    _ => None,
                };
            }
            self.rx.resync_response(&mut self.rx_context, answer.tcpsn, answer.number);
        }
    }

    /// Writes contexts back to host memory and fetches them again; forgets expanded keys.
    fn evict(&mut self) {
        if self.dice.percent(self.faults.evict) {
            self.tx_context = Context::from_bytes(&self.tx_context.to_bytes());
            self.rx_context = Context::from_bytes(&self.rx_context.to_bytes());
        }
        if self.dice.percent(self.faults.evict / 4) {
            self.tx.drop_keys();
            self.rx.drop_keys();
        }
    }

    /// An offloading context stands at a genuine message of the right number.
    fn check_context(&self) {
        let context = &self.rx_context;
        if context.mode() != Mode::Offloading || context.flags().is_unproven() {
            return;
        }
        let start = Seq(context.tcpsn.0.wrapping_sub(context.offset)).since(self.base) as u32 as usize;
        if start == self.plain.len() {
            return;
        }
        let found = self.starts.iter().find(|(at, _)| *at == start);
        let number = found.unwrap_or_else(|| panic!("no message begins at {start}: {context:?}")).1;
        assert!(number == context.number || self.is_new_epoch(start), "{context:?} at {start}, number {number}");
    }

    /// Behind a key update the old context counts on, until it is replaced.
    fn is_new_epoch(&self, start: usize) -> bool {
        self.starts.iter().any(|(at, number)| *at <= start && *at > 0 && *number == 0)
    }

    /// Without faults from here on, offloading is back after a bounded number of messages.
    pub fn check_return(&mut self, messages: usize) {
        let mss = self.faults.mss;
        self.faults = Faults { evict: 50, ..quiet(mss) };
        self.answers.iter_mut().for_each(|(due, _)| *due = 0);
        // One at a time, so that each has a packet of its own.
        (0..messages).for_each(|_| self.run(1));
        assert_eq!(self.rx_context.mode(), Mode::Offloading, "{:?}", self.rx_context);
        let (before, packets) = (self.packets_processed, self.packets);
        self.run(3);
        assert_eq!(self.packets_processed - before, self.packets - packets, "every packet is processed again");
    }
}
