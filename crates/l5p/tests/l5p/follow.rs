//! A record that the NIC decrypts by half, and a header that it misses, followed packet by packet. docs/offloads.md shows
//! what this prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use nicforge_l5p::context::{Context, ContextId, FlowKey, Mode, Start};
use nicforge_l5p::engine::{Create, Engine, Outcome, Received};
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::reader::RecordReader;
use nicforge_l5p::tls::record::{Cipher, ContentType, HEADER_BYTES, RecordHeader, TAG_BYTES, Version};
use nicforge_l5p::tls::software::SoftwareTls;

use crate::common::tls_rig::keys;

const MSS: usize = 1448;
const CONTENT: usize = 4000;
const RECORD: usize = HEADER_BYTES + CONTENT + 1 + TAG_BYTES;
const RECORDS: usize = 9;
/// Packets that are lost, and those behind which they come again: one in the middle of record 1, and the one with the
/// header of record 3.
const LOST: [(usize, usize); 2] = [(4, 6), (8, 11)];

struct Host {
    nic: Engine,
    context: Context,
    reader: RecordReader,
    /// Packets that wait for those before them.
    early: BTreeMap<usize, (Vec<u8>, Received)>,
    delivered: usize,
    text: String,
}

fn seal(number: u64) -> Vec<u8> {
    let payload_bytes = RECORD - HEADER_BYTES;
    let mut record = RecordHeader { content: ContentType::DATA, payload_bytes }.to_bytes().to_vec();
    record.resize(HEADER_BYTES + CONTENT, number as u8);
    record.push(ContentType::DATA.0);
    record.resize(RECORD, 0);
    SoftwareTls::new(&keys(Version::Tls13, Cipher::Aes128Gcm, 0)).seal(number, &mut record);
    record
}

fn mode(context: &Context) -> &'static str {
    match context.mode() {
        Mode::Offloading if context.flags().is_unproven() => "proving",
        Mode::Offloading => "offloading",
        Mode::Searching => "searching",
        Mode::Tracking => "tracking",
    }
}

impl Host {
    fn new() -> Host {
        let (mut nic, keys) = (Engine::default(), keys(Version::Tls13, Cipher::Aes128Gcm, 0));
        let start = Start { tcpsn: Seq(0), number: 0 };
        let (protocol, direction) = (registry::find("tls").unwrap(), Direction::Receive);
        let create =
            Create { id: ContextId(0), flow: FlowKey::default(), protocol, direction, start, state: keys.state() };
        let context = nic.create(create).unwrap();
        let reader = RecordReader::new(&keys, start, ContextId(0));
        let text = "| packet | bytes | record | context | what the NIC did | context then |\n\
                    | ---: | --- | --- | --- | --- | --- |\n"
            .to_owned();
        Host { nic, context, reader, early: BTreeMap::new(), delivered: 0, text }
    }

    fn packet(&mut self, number: usize, stream: &[u8], again: bool) {
        let from = number * MSS;
        let to = (from + MSS).min(stream.len());
        let mut payload = stream[from..to].to_vec();
        let before = mode(&self.context);
        let received = self.nic.receive(&mut self.context, &mut FlatMemory::default(), Seq(from as u32), &mut payload);
        let did = match (received.outcome, received.resync) {
            (_, Some(at)) => format!("nothing; asks whether a record begins at {}", at.0),
            (Outcome::Offloaded, _) => "decrypted".to_owned(),
            (Outcome::Failed, _) => "failed".to_owned(),
            (Outcome::NotOffloaded, _) => "nothing".to_owned(),
        };
        let records = (from / RECORD, (to - 1) / RECORD);
        let records =
            if records.0 == records.1 { records.0.to_string() } else { format!("{}, {}", records.0, records.1) };
        let name = if again { format!("{number} again") } else { number.to_string() };
        let after = mode(&self.context);
        writeln!(self.text, "| {name} | {from} to {to} | {records} | {before} | {did} | {after} |").unwrap();
        self.early.insert(from, (payload, received));
        self.deliver();
    }

    /// TCP delivers what is in order; software reads records, finishes them and answers the NIC.
    fn deliver(&mut self) {
        while let Some((payload, received)) = self.early.remove(&self.delivered) {
            self.delivered += payload.len();
            if let Some(at) = received.resync {
                nicforge_l5p::driver::Layer5::l5o_resync_rx_req(&mut self.reader, at);
            }
            self.reader.push(&payload, &received);
        }
        loop {
            let before = self.reader.counters();
            let Some(record) = self.reader.read().unwrap() else { break };
            assert!(record.data == [record.number as u8; CONTENT]);
            let after = self.reader.counters();
            let how = if after.offloaded > before.offloaded {
                "takes it as it is".to_owned()
            } else if after.partly_offloaded > before.partly_offloaded {
                let again = after.encrypted_again_bytes - before.encrypted_again_bytes;
                format!("encrypts {again} bytes again, then checks and decrypts all")
            } else {
                "checks and decrypts it".to_owned()
            };
            writeln!(self.text, "| | | {} | | *software reads the record: {how}* | |", record.number).unwrap();
        }
        for answer in self.reader.take_answers() {
            let before = mode(&self.context);
            self.nic.resync_response(&mut self.context, answer.tcpsn, answer.number);
            let said = answer.number.map_or("no".to_owned(), |number| format!("yes, record {number}"));
            let (at, after) = (answer.tcpsn.0, mode(&self.context));
            writeln!(self.text, "| | | | {before} | *software answers of {at}: {said}* | {after} |").unwrap();
        }
    }
}

#[test]
fn a_half_offloaded_record_is_followed_as_the_documentation_shows() {
    let stream: Vec<u8> = (0..RECORDS as u64).flat_map(seal).collect();
    let mut host = Host::new();
    for number in 0..stream.len().div_ceil(MSS) {
        if LOST.iter().all(|(lost, _)| *lost != number) {
            host.packet(number, &stream, false);
        }
        for (lost, _) in LOST.iter().filter(|(_, behind)| *behind == number) {
            host.packet(*lost, &stream, true);
        }
    }
    let counters = host.reader.counters();
    assert_eq!(host.delivered, stream.len());
    assert!(counters.partly_offloaded > 0 && counters.offloaded > 2 && host.context.mode() == Mode::Offloading);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/offloads.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&host.text), "docs/offloads.md shall show:\n{}", host.text);
}
