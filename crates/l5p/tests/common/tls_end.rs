//! An end of a TLS connection over the project's TCP: sends records at random, checks what it gets.

use nicforge_l5p::context::{ContextId, Start};
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::HostMemory;
use nicforge_l5p::port::Offload;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::sender::RecordSender;

use super::Dice;
use super::network::{End, Nic};
use super::tls_rig::keys;

const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];

pub struct TlsEnd {
    version: Version,
    cipher: Cipher,
    pub sender: RecordSender,
    pub reader: RecordReader,
    /// Chance of what this end sends, and the same chance again for what it must get.
    outward: Content,
    inward: Content,
    /// Records that are to be sent and to come in all.
    pub goals: [u64; 2],
    sent: u64,
    pub got: u64,
    generations: [u8; 2],
    has_contexts: bool,
    must_rekey: bool,
    /// Number of the record before which the NIC loses contexts.
    pub upset_at: Option<u64>,
}

/// Draws records; two with the same seed draw the same.
struct Content {
    dice: Dice,
    largest: usize,
    control: u32,
    /// Whether each record is as large as it may be.
    is_bulk: bool,
}

impl Content {
    fn next(&mut self, version: Version) -> (ContentType, Vec<u8>, usize) {
        let dice = &mut self.dice;
        if self.is_bulk {
            return (ContentType::DATA, dice.bytes(self.largest), 0);
        }
        let padding = if dice.percent(20) && version == Version::Tls13 { dice.range(0, 100) } else { 0 };
        if !dice.percent(self.control) {
            let bytes = dice.range(0, self.largest);
            let mut data = dice.bytes(bytes);
            if data.len() > 40 && dice.percent(30) {
                let at = dice.range(0, data.len() - 5);
                data[at..at + 5].copy_from_slice(&[23, 3, 3, 0, 40]);
            }
            return (ContentType::DATA, data, padding);
        }
        match dice.below(3) {
            0 => (ContentType::ALERT, vec![1, 90], padding),
            1 => (ContentType::HANDSHAKE, vec![4, 0, 0, 2, 9, 9], padding),
            _ if version == Version::Tls13 => (ContentType::HANDSHAKE, KEY_UPDATE.to_vec(), padding),
            _ => (ContentType::DATA, Vec::new(), padding),
        }
    }
}

impl TlsEnd {
    /// `starts`: where the streams out of and into this end begin. `seeds`: of what it sends and gets.
    pub fn new(
        version: Version,
        cipher: Cipher,
        starts: [Seq; 2],
        seeds: [u64; 2],
        largest: usize,
        control: u32,
    ) -> Self {
        let content = |seed| Content { dice: Dice::new(seed), largest, control, is_bulk: false };
        let keys = keys(version, cipher, 0);
        let [outward, inward] = starts.map(|tcpsn| Start { tcpsn, number: 0 });
        Self {
            version,
            cipher,
            sender: RecordSender::new(&keys, outward),
            reader: RecordReader::new(&keys, inward, ContextId(u32::MAX)),
            outward: content(seeds[0]),
            inward: content(seeds[1]),
            goals: [0; 2],
            sent: 0,
            got: 0,
            generations: [0; 2],
            has_contexts: false,
            must_rekey: false,
            upset_at: None,
        }
    }

    fn offload(&self, flow: nicforge_l5p::context::FlowKey, start: Start, generation: u8) -> Offload {
        let state = keys(self.version, self.cipher, generation).state();
        Offload { flow, protocol: registry::find("tls").unwrap(), start, state }
    }

    fn begin(&mut self, nic: &mut Nic<'_>) {
        self.has_contexts = true;
        let transmit = self.offload(nic.outward, self.sender.boundary(), 0);
        nic.port.offload_transmit(&transmit).unwrap();
        let receive = self.offload(nic.inward, self.reader.boundary(), 0);
        if let Some(id) = nic.port.offload_receive(&receive).unwrap() {
            self.reader.attach(id);
        }
    }

    /// The device restarts, or gives contexts up; a few records later the host asks for new ones.
    fn upset(&mut self, nic: &mut Nic<'_>) {
        if self.upset_at == Some(self.sent) {
            match self.sent % 3 {
                0 => nic.port.restart(),
                1 => nic.port.fall_back(&nic.outward),
                _ => nic.port.destroy_receive(&nic.inward),
            }
        }
        if self.upset_at.is_some_and(|at| self.sent == at + 4) {
            self.upset_at = None;
            nic.port.return_to_nic(&nic.outward);
            let receive = self.offload(nic.inward, self.reader.boundary(), self.generations[1]);
            if let Some(id) = nic.port.offload_receive(&receive).unwrap() {
                self.reader.attach(id);
            }
        }
    }
}

impl End for TlsEnd {
    fn parts(&mut self) -> (&dyn Layer5, &mut dyn HostMemory) {
        self.sender.parts()
    }

    fn request(&mut self, tcpsn: Seq) {
        self.reader.l5o_resync_rx_req(tcpsn);
    }

    fn deliver(&mut self, bytes: &[u8], received: &Received) {
        self.reader.push(bytes, received);
    }

    fn work(&mut self, nic: &mut Nic<'_>) {
        if !self.has_contexts {
            self.begin(nic);
        }
        while let Some(record) = self.reader.read().unwrap() {
            let (content, data, _) = self.inward.next(self.version);
            assert!(record.content == content && record.data == data, "record {}", self.got);
            self.got += 1;
            if record.changes_key {
                self.generations[1] += 1;
                let keys = keys(self.version, self.cipher, self.generations[1]);
                let start = self.reader.rekey(&keys, nic.port.next_id());
                let offload = self.offload(nic.inward, start, self.generations[1]);
                nic.port.offload_receive(&offload).unwrap();
            }
        }
        while self.sent < self.goals[0] && self.sender.unsent_bytes() < 40_000 {
            self.upset(nic);
            if std::mem::take(&mut self.must_rekey) {
                self.generations[0] += 1;
                let keys = keys(self.version, self.cipher, self.generations[0]);
                let start = self.sender.rekey(&keys);
                nic.port.rekey_transmit(&nic.outward, start, keys.state());
            }
            let (content, data, padding) = self.outward.next(self.version);
            self.must_rekey = content == ContentType::HANDSHAKE && data == KEY_UPDATE;
            self.sender.write(content, &data, padding).unwrap();
            self.sent += 1;
        }
    }

    fn hand_over(&mut self, take: &mut dyn FnMut(&[u8]) -> usize) {
        self.sender.hand_over(take);
    }

    fn acknowledge(&mut self, tcpsn: Seq) {
        self.sender.acknowledge(tcpsn);
    }

    fn answers(&mut self) -> Vec<ResyncAnswer> {
        self.reader.take_answers()
    }

    fn is_done(&self) -> bool {
        [self.sent, self.got] == self.goals && self.sender.is_idle()
    }
}

/// A net with TLS at both ends.
pub struct TlsPair {
    pub net: super::network::Net<TlsEnd>,
    goals: [u64; 2],
}

impl TlsPair {
    pub fn new(
        mut net: super::network::Net<TlsEnd>,
        suite: (Version, Cipher),
        seed: u64,
        largest: usize,
        control: u32,
        plain_bytes: usize,
    ) -> Self {
        net.connect();
        if plain_bytes > 0 {
            (0..2).for_each(|side| net.plain(side, plain_bytes));
        }
        let starts = [0, 1].map(|side| Seq(net.connection(side).next().0));
        for side in 0..2 {
            let (out, inward) = (starts[side], starts[1 - side]);
            let seeds = [seed * 2 + side as u64, seed * 2 + 1 - side as u64];
            net.sides[side].end = Some(TlsEnd::new(suite.0, suite.1, [out, inward], seeds, largest, control));
        }
        Self { net, goals: [0; 2] }
    }

    /// Sends more records both ways and waits until all have come.
    pub fn run(&mut self, records: [u64; 2]) {
        (0..2).for_each(|side| self.goals[side] += records[side]);
        for side in 0..2 {
            self.end(side).goals = [self.goals[side], self.goals[1 - side]];
        }
        self.net.run();
    }

    pub fn end(&mut self, side: usize) -> &mut TlsEnd {
        self.net.sides[side].end.as_mut().unwrap()
    }

    /// Records are as large as they may be from now on.
    pub fn send_bulk(&mut self) {
        (0..2).for_each(|side| {
            let end = self.end(side);
            (end.outward.is_bulk, end.inward.is_bulk) = (true, true);
        });
    }

    /// Records carry data only from now on.
    pub fn send_data_only(&mut self) {
        (0..2).for_each(|side| {
            let end = self.end(side);
            (end.outward.control, end.inward.control) = (0, 0);
        });
    }
}
