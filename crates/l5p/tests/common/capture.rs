//! Captures beside the project: TCP flows out of files, and key logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nicforge_l5p::sequence::Seq;
use nicforge_wire::capture::CaptureReader;
use nicforge_wire::headers::TcpView;
use nicforge_wire::parse_frame;

/// A file of the shared data; `None`, with a line, when it is not here.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    println!("skipped: ../shared/data/{path} is not beside the project");
    None
}

/// One direction of a connection.
#[derive(Default)]
pub struct Half {
    /// Packets with payload in the order of the capture.
    pub packets: Vec<(Seq, Vec<u8>)>,
    /// Sequence number of the first byte.
    pub first: Seq,
    /// The bytes in order, as far as the capture has them.
    pub stream: Vec<u8>,
}

/// A connection: the side that sent first, and the other.
pub struct Connection {
    pub client: Half,
    pub server: Half,
}

type End = (String, u16);

pub fn connections(path: &Path) -> Vec<Connection> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut halves: BTreeMap<(End, End), (usize, Half, Option<Seq>)> = BTreeMap::new();
    let mut order = 0;
    while let Some(record) = reader.next_record().unwrap() {
        let frame = record.bytes;
        let Ok(summary) = parse_frame(frame) else {
            continue;
        };
        if summary.protocol != 6 || !summary.has_l4_header {
            continue;
        }
        let l4 = &frame[summary.l4_offset as usize..summary.l3_end as usize];
        let Ok(tcp) = TcpView::new(l4) else {
            continue;
        };
        let addresses = format!("{:?}", summary.addresses);
        let (source, destination) = addresses.split_once(", destination").expect("two addresses");
        let clean =
            |text: &str| text.chars().filter(|c| c.is_ascii_hexdigit() || ".:".contains(*c)).collect::<String>();
        let (source, destination) = (clean(source.split_once("source").unwrap().1), clean(destination));
        let key = ((source, tcp.source_port()), (destination, tcp.destination_port()));
        let payload = l4[tcp.header_len()..].to_vec();
        order += 1;
        let entry = halves.entry(key).or_insert_with(|| (order, Half::default(), None));
        let is_syn = l4[13] & 2 != 0;
        let seq = Seq(tcp.sequence());
        if is_syn && entry.2.is_some_and(|first| first != seq.plus(1)) {
            // The ports again: a connection of its own, which these tests leave alone.
            continue;
        }
        if is_syn {
            entry.2 = Some(seq.plus(1));
        }
        if !payload.is_empty() {
            entry.2.get_or_insert(seq);
            entry.1.packets.push((seq, payload));
        }
    }
    let mut connections = Vec::new();
    let mut keys: Vec<_> = halves.iter().map(|(key, half)| (half.0, key.clone())).collect();
    keys.sort();
    for (_, key) in keys {
        let Some((_, client, first)) = halves.remove(&key) else {
            continue;
        };
        let server = halves.remove(&(key.1.clone(), key.0.clone()));
        let (_, server, server_first) = server.unwrap_or_default();
        connections.push(Connection { client: assemble(client, first), server: assemble(server, server_first) });
    }
    connections
}

fn assemble(mut half: Half, first: Option<Seq>) -> Half {
    half.first = first.unwrap_or_default();
    let first = half.first;
    half.packets.retain(|(seq, _)| seq.since(first) >= 0);
    let mut pieces: Vec<(usize, &Vec<u8>)> =
        half.packets.iter().map(|(seq, payload)| (seq.since(first) as usize, payload)).collect();
    pieces.sort_by_key(|(at, _)| *at);
    let mut stream: Vec<u8> = Vec::new();
    for (at, payload) in pieces {
        if at <= stream.len() && at + payload.len() > stream.len() {
            let skip = stream.len() - at;
            stream.extend_from_slice(&payload[skip..]);
        }
    }
    half.stream = stream;
    half
}

/// A key log: label and client random to secret.
pub fn key_log(path: &Path) -> BTreeMap<(String, Vec<u8>), Vec<u8>> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let label = words.next().filter(|label| !label.starts_with('#'))?;
        Some(((label.to_string(), hex(words.next()?)), hex(words.next()?)))
    });
    lines.collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
