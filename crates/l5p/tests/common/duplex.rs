//! A host and a target with a NIC each, and a wire between them that loses, repeats and reorders.

use std::collections::VecDeque;

use nicforge_l5p::context::{Context, ContextId, FlowKey, Start};
use nicforge_l5p::driver::{Layer5, ResyncAnswer, TxDriver};
use nicforge_l5p::engine::{Create, Engine, EngineConfig, Executed, Received};
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::connection::NicAction;
use nicforge_l5p::nvme::connection::{Connection, ConnectionError};
use nicforge_l5p::nvme::initiator::{Initiator, InitiatorConfig};
use nicforge_l5p::nvme::pdu::Digests;
use nicforge_l5p::nvme::store::MemoryStore;
use nicforge_l5p::nvme::target::{Target, TargetConfig};
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;

use super::tcp::Reassembly;
use super::{Dice, Faults};

/// The protocol of one side.
pub trait End {
    fn connection(&mut self) -> &mut Connection;
    fn next_action(&mut self) -> Option<NicAction>;
    fn work(&mut self, memory: &mut FlatMemory) -> Result<(), ConnectionError>;
}

impl End for Initiator {
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn next_action(&mut self) -> Option<NicAction> {
        Initiator::next_action(self)
    }

    fn work(&mut self, memory: &mut FlatMemory) -> Result<(), ConnectionError> {
        Initiator::work(self, memory)
    }
}

impl End for Target<MemoryStore> {
    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn next_action(&mut self) -> Option<NicAction> {
        Target::next_action(self)
    }

    fn work(&mut self, memory: &mut FlatMemory) -> Result<(), ConnectionError> {
        Target::work(self, memory)
    }
}

pub struct Side<E: End> {
    pub end: E,
    pub memory: FlatMemory,
    pub nic: Engine,
    pub rx: Option<Context>,
    tx: Option<(Context, TxDriver)>,
    base: Seq,
    plain: Vec<u8>,
    /// The stream as the wire saw it first.
    pub wire: Vec<u8>,
    sent: usize,
    acked: usize,
    tcp: Reassembly,
    answers: VecDeque<ResyncAnswer>,
    /// Flips a bit of each n-th packet that leaves, behind the NIC.
    pub damage: Option<u64>,
    packets: u64,
}

impl<E: End> Side<E> {
    pub fn new(end: E, memory: FlatMemory, config: EngineConfig, base: Seq, peer: Seq) -> Self {
        Self {
            end,
            memory,
            nic: Engine::new(config),
            rx: None,
            tx: None,
            base,
            plain: Vec::new(),
            wire: Vec::new(),
            sent: 0,
            acked: 0,
            tcp: Reassembly::new(peer),
            answers: VecDeque::new(),
            damage: None,
            packets: 0,
        }
    }

    fn create(&mut self, direction: Direction, start: Start, digests: Digests) -> Context {
        let protocol = registry::find("nvme_tcp").unwrap();
        let (id, flow) = (ContextId(direction as u32), FlowKey::default());
        let create = Create { id, flow, protocol, direction, start, state: NvmeState::state(digests) };
        self.nic.create(create).unwrap()
    }

    fn act(&mut self) {
        while let Some(action) = self.end.next_action() {
            match action {
                NicAction::Offload { transmit, receive, digests } => {
                    let context = self.create(Direction::Transmit, transmit, digests);
                    self.tx = Some((context, TxDriver::new(transmit, NvmeState::state(digests), 1500)));
                    self.rx = Some(self.create(Direction::Receive, receive, digests));
                }
                NicAction::Add(id, state) => self.nic.add_rr_state(self.rx.as_ref().unwrap(), id, state).unwrap(),
                NicAction::Delete(id) => assert!(self.nic.del_rr_state(self.rx.as_ref().unwrap(), id)),
            }
        }
        while let Some(piece) = self.end.connection().next_output() {
            self.plain.extend_from_slice(self.memory.view(piece).unwrap());
        }
    }

    fn send(&mut self, dice: &mut Dice, faults: &Faults, peer_has: usize, wire: &mut VecDeque<(Seq, Vec<u8>)>) {
        self.act();
        self.acked = peer_has;
        let tcpsn = self.base.plus(peer_has);
        self.end.connection().acknowledge(tcpsn);
        if let Some((_, driver)) = &mut self.tx {
            driver.acknowledge(tcpsn);
        }
        let is_new = self.sent < self.plain.len() && self.sent < self.acked + 40 * faults.mss;
        let is_spurious = self.acked < self.sent && dice.percent(faults.spurious);
        if !is_new && !is_spurious && (self.acked == self.sent || !wire.is_empty()) {
            return;
        }
        let from = if is_new && !is_spurious { self.sent } else { dice.range(self.acked, self.sent - 1) };
        let from = if !is_new && !is_spurious { self.acked } else { from };
        let bytes = if dice.percent(70) { faults.mss } else { dice.range(1, faults.mss) };
        let end = if from == self.sent { self.plain.len() } else { self.sent };
        let bytes = bytes.min(end - from);
        let payload = self.plain[from..from + bytes].to_vec();
        for (seq, payload) in self.through_nic(self.base.plus(from), payload) {
            let at = seq.since(self.base) as u32 as usize;
            if at == self.wire.len() {
                self.wire.extend_from_slice(&payload);
            }
            assert!(self.wire[at..at + payload.len()] == payload, "sent again as it was sent first");
            self.sent = self.sent.max(at + payload.len());
            if dice.percent(faults.duplicate) {
                wire.push_back((seq, payload.clone()));
            }
            self.packets += 1;
            let mut payload = payload;
            if self.damage.is_some_and(|every| self.packets.is_multiple_of(every)) {
                let at = dice.below(payload.len() as u64) as usize;
                payload[at] ^= 1;
            }
            if !dice.percent(faults.loss) {
                wire.push_back((seq, payload));
            }
        }
    }

    fn through_nic(&mut self, seq: Seq, payload: Vec<u8>) -> Vec<(Seq, Vec<u8>)> {
        let Some((context, driver)) = &mut self.tx else {
            return vec![(seq, payload)];
        };
        let mut sent = Vec::new();
        for descriptor in driver.send(self.end.connection(), seq, &payload) {
            if let Executed::Sent { seq, payload } = self.nic.execute(context, &mut self.memory, descriptor).unwrap() {
                sent.push((seq, payload));
            }
        }
        sent
    }

    fn receive(
        &mut self,
        dice: &mut Dice,
        faults: &Faults,
        wire: &mut VecDeque<(Seq, Vec<u8>)>,
    ) -> Result<(), ConnectionError> {
        let place = if dice.percent(faults.reorder) { dice.below(wire.len() as u64) as usize } else { 0 };
        let Some((seq, mut payload)) = wire.remove(place) else {
            return Ok(());
        };
        let received = match &mut self.rx {
            Some(context) => {
                *context = Context::from_bytes(&context.to_bytes());
                self.nic.receive(context, &mut self.memory, seq, &mut payload)
            }
            None => Received::without_context(),
        };
        if let Some(tcpsn) = received.resync {
            self.end.connection().l5o_resync_rx_req(tcpsn);
        }
        for (payload, received) in self.tcp.push(seq, payload, received) {
            self.end.connection().push(&payload, &received);
        }
        self.end.work(&mut self.memory)?;
        self.answers.extend(self.end.connection().take_answers());
        if dice.percent(50)
            && let (Some(answer), Some(context)) = (self.answers.pop_front(), &mut self.rx)
        {
            self.nic.resync_response(context, answer.tcpsn, answer.number);
        }
        self.act();
        Ok(())
    }

    pub fn is_idle(&self) -> bool {
        self.acked == self.plain.len()
    }
}

pub struct Pair {
    pub host: Side<Initiator>,
    pub target: Side<Target<MemoryStore>>,
    pub dice: Dice,
    pub faults: Faults,
    to_host: VecDeque<(Seq, Vec<u8>)>,
    to_target: VecDeque<(Seq, Vec<u8>)>,
}

impl Pair {
    pub fn new(seed: u64, faults: Faults, host: InitiatorConfig, target: TargetConfig, nic: EngineConfig) -> Self {
        let (a, b) = (Seq(u32::MAX - 3000), Seq(77));
        let mut memory = FlatMemory::default();
        let initiator = Initiator::new(host, a, b, &mut memory).unwrap();
        let store = MemoryStore::new(host.block_bytes, 4096);
        Self {
            host: Side::new(initiator, memory, nic, a, b),
            target: Side::new(Target::new(target, store, b, a), FlatMemory::default(), nic, b, a),
            dice: Dice::new(seed),
            faults,
            to_host: VecDeque::new(),
            to_target: VecDeque::new(),
        }
    }

    pub fn step(&mut self) -> Result<(), ConnectionError> {
        let Self { host, target, dice, faults, to_host, to_target } = self;
        host.send(dice, faults, target.tcp.delivered(), to_target);
        target.receive(dice, faults, to_target)?;
        target.send(dice, faults, host.tcp.delivered(), to_host);
        host.receive(dice, faults, to_host)
    }
}
