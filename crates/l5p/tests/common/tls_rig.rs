//! The two ends of TLS.

use nicforge_l5p::context::{ContextId, Start, State};
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::{FlatMemory, HostBuffers};
use nicforge_l5p::protocol::ProtocolId;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{Cipher, ContentType, Version};
use nicforge_l5p::tls::writer::RecordWriter;

use super::{Dice, Rig, Step, oracle};

/// The handshake message of a key update.
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];

pub struct TlsRig {
    keys: TlsKeys,
    /// Keys of the epochs to come, as the receiver will learn them.
    coming: Vec<TlsKeys>,
    first: TlsKeys,
    start: Start,
    writer: RecordWriter,
    pub reader: RecordReader,
    sent: Vec<(ContentType, Vec<u8>)>,
    got: usize,
    largest: usize,
    must_rekey: bool,
    has_rekeyed: bool,
    generation: u32,
    /// Percent of records that carry something else than data.
    pub control: u32,
}

pub fn keys(version: Version, cipher: Cipher, generation: u8) -> TlsKeys {
    let mut keys = TlsKeys { version, cipher, key: [generation.wrapping_mul(29) ^ 0x42; 32], iv: [generation; 12] };
    (0..32).for_each(|place| keys.key[place] = keys.key[place].wrapping_add(place as u8));
    if cipher == Cipher::Aes128Gcm {
        keys.key[16..].fill(0);
    }
    keys
}

impl TlsRig {
    pub fn new(version: Version, cipher: Cipher, tcpsn: u32, largest: usize) -> Self {
        let start = Start { tcpsn: Seq(tcpsn), number: 0 };
        let keys = keys(version, cipher, 0);
        Self {
            writer: RecordWriter::new(&keys, start),
            reader: RecordReader::new(&keys, start, ContextId(0)),
            first: keys.clone(),
            keys,
            coming: Vec::new(),
            start,
            sent: Vec::new(),
            got: 0,
            largest,
            must_rekey: false,
            has_rekeyed: false,
            generation: 0,
            control: 0,
        }
    }

    fn content(&mut self, dice: &mut Dice) -> (ContentType, Vec<u8>) {
        if !dice.percent(self.control) {
            let bytes = dice.range(0, self.largest);
            let mut data = dice.bytes(bytes);
            if data.len() > 40 && dice.percent(30) {
                // A header of a record inside data.
                let at = dice.range(0, data.len() - 5);
                data[at..at + 5].copy_from_slice(&[23, 3, 3, 0, 40]);
            }
            return (ContentType::DATA, data);
        }
        match dice.below(3) {
            0 => (ContentType::ALERT, vec![1, 90]),
            1 => (ContentType::HANDSHAKE, vec![4, 0, 0, 2, 9, 9]),
            _ if self.keys.version == Version::Tls13 => {
                self.must_rekey = true;
                self.coming.push(keys(self.keys.version, self.keys.cipher, self.keys.iv[0] + 1));
                (ContentType::HANDSHAKE, KEY_UPDATE.to_vec())
            }
            _ => (ContentType::DATA, Vec::new()),
        }
    }
}

impl Rig for TlsRig {
    fn protocol(&self) -> ProtocolId {
        registry::find("tls").unwrap()
    }

    fn state(&self) -> State {
        self.first.state()
    }

    fn start(&self) -> Start {
        self.start
    }

    fn next(&mut self, memory: &mut FlatMemory, dice: &mut Dice) -> Step {
        if self.must_rekey {
            self.must_rekey = false;
            let keys = keys(self.keys.version, self.keys.cipher, self.keys.iv[0] + 1);
            self.keys = keys;
            self.has_rekeyed = true;
            let start = self.writer.rekey(&self.keys);
            return Step::Rekey { start, state: self.keys.state() };
        }
        let number = self.writer.boundary().number;
        if dice.percent(self.control / 4)
            && let Some(piece) = self.writer.middlebox_ccs(memory)
        {
            self.sent.push((ContentType::CHANGE_CIPHER_SPEC, vec![1]));
            return Step::Message { pieces: vec![piece], number, truth: vec![20, 3, 3, 0, 1, 1] };
        }
        let (content, data) = self.content(dice);
        let padding = if dice.percent(20) { dice.range(0, 100) } else { 0 };
        let placed = memory.place(&data);
        let pieces = self.writer.write(memory, content, placed, padding).unwrap();
        let mut truth: Vec<u8> = pieces.iter().flat_map(|piece| memory.view(*piece).unwrap()).copied().collect();
        oracle::seal(&self.keys, number, &mut truth);
        self.sent.push((content, data));
        Step::Message { pieces, number, truth }
    }

    fn sender(&self) -> &dyn Layer5 {
        &self.writer
    }

    fn acknowledge(&mut self, tcpsn: Seq) {
        self.writer.acknowledge(tcpsn);
    }

    fn request(&mut self, tcpsn: Seq) {
        self.reader.l5o_resync_rx_req(tcpsn);
    }

    fn deliver(&mut self, payload: &[u8], received: &Received) -> Option<(Start, State)> {
        self.reader.push(payload, received);
        let mut new = None;
        while let Some(record) = self.reader.read().unwrap() {
            let (content, data) = &self.sent[self.got];
            assert!(record.content == *content && record.data == *data, "record {}", self.got);
            self.got += 1;
            if record.changes_key {
                let keys = self.coming.remove(0);
                self.generation += 1;
                new = Some((self.reader.rekey(&keys, ContextId(self.generation)), keys.state()));
            }
        }
        new
    }

    fn answers(&mut self) -> Vec<ResyncAnswer> {
        self.reader.take_answers()
    }

    // Between the update and the new context the NIC has the old key.
    fn may_fail(&self) -> bool {
        self.has_rekeyed
    }

    fn delivered(&self) -> u64 {
        self.got as u64
    }
}
