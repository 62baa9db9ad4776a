//! Host and target of NVMe/TCP over the project's TCP: blocks at random, compared with an array.

use std::collections::{BTreeMap, VecDeque};

use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::{FlatMemory, HostBuffers, HostMemory, Piece};
use nicforge_l5p::nvme::NvmeState;
use nicforge_l5p::nvme::connection::Connection;
use nicforge_l5p::nvme::connection::NicAction;
use nicforge_l5p::nvme::initiator::Initiator;
use nicforge_l5p::nvme::store::MemoryStore;
use nicforge_l5p::nvme::target::Target;
use nicforge_l5p::nvme::wire::Status;
use nicforge_l5p::port::Offload;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;

use super::Dice;
use super::network::{End, Nic};

const BLOCK: usize = 512;
const BLOCKS: u64 = 4096;

pub enum Role {
    Host(Box<Host>),
    Target(Box<Target<MemoryStore>>),
}

pub struct Host {
    pub initiator: Initiator,
    dice: Dice,
    /// What the target must hold.
    pub model: Vec<u8>,
    reads: BTreeMap<u16, (Piece, Vec<u8>)>,
    busy: BTreeMap<u16, std::ops::Range<u64>>,
    /// Requests that are still to be made.
    pub left: usize,
    blocks_most: usize,
}

pub struct NvmeEnd {
    pub role: Role,
    pub memory: FlatMemory,
    unsent: VecDeque<Piece>,
}

impl NvmeEnd {
    pub fn host(initiator: Initiator, memory: FlatMemory, seed: u64, requests: usize, blocks_most: usize) -> Self {
        let (reads, busy) = (BTreeMap::new(), BTreeMap::new());
        let model = vec![0; BLOCKS as usize * BLOCK];
        let dice = Dice::new(seed);
        let host = Host { initiator, dice, model, reads, busy, left: requests, blocks_most };
        Self { role: Role::Host(Box::new(host)), memory, unsent: VecDeque::new() }
    }

    pub fn target(target: Target<MemoryStore>) -> Self {
        Self { role: Role::Target(Box::new(target)), memory: FlatMemory::default(), unsent: VecDeque::new() }
    }

    pub fn store() -> MemoryStore {
        MemoryStore::new(BLOCK as u32, BLOCKS as usize)
    }

    pub fn connection(&mut self) -> &mut Connection {
        match &mut self.role {
            Role::Host(host) => &mut host.initiator.connection,
            Role::Target(target) => &mut target.connection,
        }
    }

    fn act(&mut self, nic: &mut Nic<'_>, action: NicAction) {
        match action {
            NicAction::Offload { transmit, receive, digests } => {
                let protocol = registry::find("nvme_tcp").unwrap();
                let state = NvmeState::state(digests);
                let (out, inward) = (nic.outward, nic.inward);
                nic.port.offload_transmit(&Offload { flow: out, protocol, start: transmit, state }).unwrap();
                nic.port.offload_receive(&Offload { flow: inward, protocol, start: receive, state }).unwrap();
            }
            // Without a context, or room for the state, software copies.
            NicAction::Add(id, state) => {
                if let Some((engine, context)) = nic.port.inward(&nic.inward) {
                    let _ = engine.add_rr_state(context, id, state);
                }
            }
            NicAction::Delete(id) => {
                if let Some((engine, context)) = nic.port.inward(&nic.inward) {
                    engine.del_rr_state(context, id);
                }
            }
        }
    }
}

impl Host {
    fn request(&mut self, memory: &mut FlatMemory) {
        while self.left > 0 && self.initiator.is_ready() && self.initiator.open() < 8 {
            let blocks = self.dice.range(1, self.blocks_most) as u64;
            let lba = self.dice.below(BLOCKS - blocks);
            if !self.busy.values().all(|range| range.end <= lba || lba + blocks <= range.start) {
                return;
            }
            let bytes = blocks as usize * BLOCK;
            let place = lba as usize * BLOCK..lba as usize * BLOCK + bytes;
            let content = self.dice.bytes(bytes);
            let buffer = memory.place(&content);
            let is_write = self.dice.percent(50);
            let id = if is_write {
                self.model[place].copy_from_slice(&content);
                self.initiator.write(memory, lba, buffer).unwrap()
            } else {
                let id = self.initiator.read(memory, lba, buffer).unwrap();
                self.reads.insert(id, (buffer, self.model[place].to_vec()));
                id
            };
            self.busy.insert(id, lba..lba + blocks);
            self.left -= 1;
        }
    }

    fn finish(&mut self, memory: &FlatMemory) {
        while let Some(done) = self.initiator.next_done() {
            assert_eq!(done.status, Status::SUCCESS);
            self.busy.remove(&done.id);
            if let Some((buffer, want)) = self.reads.remove(&done.id) {
                assert!(memory.view(buffer).unwrap() == want, "read of command {}", done.id);
            }
        }
    }
}

impl End for NvmeEnd {
    fn parts(&mut self) -> (&dyn Layer5, &mut dyn HostMemory) {
        let connection = match &self.role {
            Role::Host(host) => &host.initiator.connection,
            Role::Target(target) => &target.connection,
        };
        (connection, &mut self.memory)
    }

    fn request(&mut self, tcpsn: Seq) {
        self.connection().l5o_resync_rx_req(tcpsn);
    }

    fn deliver(&mut self, bytes: &[u8], received: &Received) {
        self.connection().push(bytes, received);
    }

    fn work(&mut self, nic: &mut Nic<'_>) {
        match &mut self.role {
            Role::Host(host) => {
                host.initiator.work(&mut self.memory).unwrap();
                host.finish(&self.memory);
                host.request(&mut self.memory);
            }
            Role::Target(target) => target.work(&mut self.memory).unwrap(),
        }
        loop {
            let action = match &mut self.role {
                Role::Host(host) => host.initiator.next_action(),
                Role::Target(target) => target.next_action(),
            };
            let Some(action) = action else { break };
            self.act(nic, action);
        }
        while let Some(piece) = self.connection().next_output() {
            self.unsent.push_back(piece);
        }
    }

    fn hand_over(&mut self, take: &mut dyn FnMut(&[u8]) -> usize) {
        while let Some(piece) = self.unsent.front_mut() {
            let taken = take(self.memory.view(*piece).unwrap()) as u32;
            *piece = Piece { address: piece.address + u64::from(taken), bytes: piece.bytes - taken };
            if piece.bytes > 0 {
                return;
            }
            self.unsent.pop_front();
        }
    }

    fn acknowledge(&mut self, tcpsn: Seq) {
        self.connection().acknowledge(tcpsn);
    }

    fn answers(&mut self) -> Vec<ResyncAnswer> {
        self.connection().take_answers()
    }

    fn is_done(&self) -> bool {
        let is_done = match &self.role {
            Role::Host(host) => host.left == 0 && host.busy.is_empty(),
            Role::Target(_) => true,
        };
        is_done && self.unsent.is_empty()
    }
}
