//! Records of TLS 1.3, encrypted and decrypted by a core or by the NIC.

use nicforge_l5p::context::{ContextId, FlowKey, Start, State};
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::reader::{ReaderCounters, RecordReader};
use nicforge_l5p::tls::record::{Cipher, ContentType, HEADER_BYTES, RecordHeader, TAG_BYTES, Version};
use nicforge_l5p::tls::software::SoftwareTls;
use nicforge_platform::Cpu;
use nicforge_platform::sim::SimCpu;

use super::{Damaged, RecordCosts, cycles};

/// Bytes of a record that are not content: header, inner type, tag.
pub const OVERHEAD_BYTES: u32 = (HEADER_BYTES + 1 + TAG_BYTES) as u32;

/// Both directions of a connection.
pub struct TlsLayer {
    sealing: SoftwareTls,
    reader: RecordReader,
}

/// The keys of a direction: they follow from its ports, so that both ends have them.
pub(super) fn keys_of(flow: &FlowKey) -> TlsKeys {
    let mut key = [0; 32];
    let ports = flow.ports.map(u16::to_le_bytes);
    key[..4].copy_from_slice(ports.as_flattened());
    TlsKeys { version: Version::Tls13, cipher: Cipher::Aes128Gcm, key, iv: [ports[0][0]; 12] }
}

/// The state that a context of `flow` begins with.
pub fn state_of(flow: &FlowKey) -> State {
    keys_of(flow).state()
}

impl TlsLayer {
    /// From this end to the other go records of `outward`; those that come begin at `receive`.
    pub fn new(outward: &FlowKey, receive: Start, context: ContextId) -> TlsLayer {
        TlsLayer {
            sealing: SoftwareTls::new(&keys_of(outward)),
            reader: RecordReader::new(&keys_of(&outward.reverse()), receive, context),
        }
    }

    /// A record around the `content` bytes that `fill` writes, with an empty tag.
    pub fn frame(content: u32, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let payload_bytes = (content + OVERHEAD_BYTES) as usize - HEADER_BYTES;
        let header = RecordHeader { content: ContentType::DATA, payload_bytes };
        let mut record = header.to_bytes().to_vec();
        record.resize(HEADER_BYTES + payload_bytes, 0);
        let data_end = HEADER_BYTES + content as usize;
        fill(&mut record[HEADER_BYTES..data_end]);
        record[data_end] = ContentType::DATA.0;
        record
    }

    /// The core encrypts record `number`.
    pub fn seal(&mut self, cpu: &mut SimCpu, costs: &RecordCosts, number: u64, record: &mut [u8]) {
        self.sealing.seal(number, record);
        cpu.work(cycles(costs.encrypt, record.len() as u64));
    }

    /// Bytes that TCP delivers, with the NIC's report.
    pub fn push(&mut self, bytes: &[u8], received: &Received) {
        self.reader.push(bytes, received);
    }

    /// The content of the next record that is whole.
    pub fn read(&mut self, cpu: &mut SimCpu, costs: &RecordCosts) -> Result<Option<Vec<u8>>, Damaged> {
        let before = self.reader.counters();
        let Some(record) = self.reader.read().map_err(|_| Damaged)? else { return Ok(None) };
        let after = self.reader.counters();
        if after.offloaded == before.offloaded {
            let again = after.encrypted_again_bytes - before.encrypted_again_bytes;
            cpu.work(cycles(costs.encrypt, again));
            cpu.work(cycles(costs.decrypt, record.data.len() as u64));
        }
        Ok(Some(record.data))
    }

    /// How records came.
    pub fn counters(&self) -> ReaderCounters {
        self.reader.counters()
    }

    /// The NIC asks whether a record begins there.
    pub fn asked(&mut self, tcpsn: Seq) {
        self.reader.l5o_resync_rx_req(tcpsn);
    }

    /// Answers for the NIC.
    pub fn take_answers(&mut self) -> Vec<ResyncAnswer> {
        self.reader.take_answers()
    }
}
