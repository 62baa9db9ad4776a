//! Traffic and partitions for application `ids` with its made-up rules.
//!
//!     cargo run -p nicforge-apps --example ids -- trace scenarios/captures/ids.pcap
//!     cargo run -p nicforge-apps --example ids -- partition scenarios/captures/ids.pcap > examples/p4/flexnic/ids.toml

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use nicforge_apps::ids::{IdsOptions, Ports, RULES_SEED, Rule, greedy, letter, made_port, rules_of};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureReader, write_file};
use nicforge_wire::parse_frame;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Packets of the capture, and the part of it that the partition is made from.
const PACKETS: u64 = 700;
const TRAINING: u64 = 350;
/// Payloads have 64 bytes and fewer than so many more. Frames then have 530 bytes on average, as those of f-c3 (440 Mbit/s, 103.7
/// thousand/s).
const PAYLOAD_SPREAD_BYTES: u32 = 825;
/// Share of a text's pieces that begin as a rule. An estimate, near its end: with 100 % a packet makes no more accesses of the
/// last-level cache, and f-c3 has 553 where these rules make 221.
const RULE_PIECES_PERCENT: u32 = 90;
/// Cores of the paper's experiment.
const CORES: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["trace", file] => trace(Path::new(file)),
        ["partition", file] => partition(Path::new(file)),
        _ => Err("use: trace FILE, or partition FILE".into()),
    }
}

/// One packet in three goes to a service, one comes from it, one is of neither; services by Zipf. Some have a pattern of a rule.
fn trace(file: &Path) -> Result<(), Box<dyn Error>> {
    let options = IdsOptions::default();
    let rules = rules_of(&options)?;
    let mut random = Pcg64::seed_from_u64(RULES_SEED + 1);
    let zipf = nicforge_wire::traffic::Zipf::new(options.ids_services.into(), 0.7);
    write_file(file, |writer| {
        for number in 0..PACKETS {
            let service = made_port(zipf.draw(&mut random) as u32);
            let client = 1024 + (random.next_u32() % 60_000) as u16;
            let (source, destination) = match random.next_u32() % 5 {
                0 | 1 => (client, service),
                2 | 3 => (service, client),
                _ => (client, client ^ 0x5555 | 0x8000),
            };
            let length = 64 + random.next_u32() % PAYLOAD_SPREAD_BYTES;
            let of_packet = |ports| [Ports::Any, Ports::From(source), Ports::To(destination)].contains(&ports);
            let fitting: Vec<&Rule> = rules.iter().filter(|rule| of_packet(rule.ports)).collect();
            let mut payload = text(&mut random, &fitting, length as usize);
            if random.next_u32() % 20 == 0 {
                let rule = fitting[random.next_u32() as usize % fitting.len()];
                payload[8..8 + rule.pattern.len()].copy_from_slice(&rule.pattern);
            }
            let hosts = (random.next_u32(), random.next_u32());
            writer.write(Time::from_us(number), &frame(hosts, (source, destination), &payload))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Text that shares words with `rules`, as that of protocols does: pieces that begin as one of them, and letters.
fn text(random: &mut Pcg64, rules: &[&Rule], length: usize) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < length {
        if random.next_u32() % 100 < RULE_PIECES_PERCENT {
            let pattern = &rules[random.next_u32() as usize % rules.len()].pattern;
            text.extend(&pattern[..pattern.len() - 1 - random.next_u32() as usize % 4]);
        } else {
            text.extend((0..8).map(|_| letter(random.next_u32())));
        }
    }
    text.truncate(length);
    text
}

fn frame(hosts: (u32, u32), ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((40 + payload.len() as u16).to_be_bytes());
    frame.extend([
        0,
        1,
        0x40,
        0,
        64,
        6,
        0,
        0,
        10,
        1,
        hosts.0 as u8,
        (hosts.0 >> 8) as u8,
        10,
        2,
        hosts.1 as u8,
        (hosts.1 >> 8) as u8,
    ]);
    frame.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    if let Ok(summary) = parse_frame(&frame) {
        nicforge_wire::checksum::fill(&mut frame, &summary, true, true);
    }
    frame
}

/// Weighs flow groups by the bytes that are scanned for them in the first part of a capture, and writes the entries of groups.p4.
fn partition(file: &Path) -> Result<(), Box<dyn Error>> {
    let rules = rules_of(&IdsOptions::default())?;
    let known = |ports: Ports| rules.iter().any(|rule| rule.ports == ports);
    let mut weights: BTreeMap<(Option<u16>, Option<u16>), u64> = BTreeMap::new();
    let mut reader = CaptureReader::open(file)?;
    for _ in 0..TRAINING {
        let Some(record) = reader.next_record()? else { break };
        let Ok(summary) = parse_frame(record.bytes) else { continue };
        let payload = u64::from(summary.l3_end) - summary.headers_end(record.bytes) as u64;
        let from = Some(summary.source_port).filter(|port| known(Ports::From(*port)));
        let to = Some(summary.destination_port).filter(|port| known(Ports::To(*port)));
        let scans = 1 + u64::from(from.is_some()) + u64::from(to.is_some());
        *weights.entry((from, to)).or_default() += scans * payload;
    }
    // The hash of a packet spreads it over all cores if no group of a port fits.
    weights.remove(&(None, None));
    let cores = greedy(&weights.values().copied().collect::<Vec<_>>(), CORES);
    println!(
        "# Flow groups of application ids and the cores that the greedy partition gave them (groups.p4); all other packets by their"
    );
    println!("# hash. Written by: cargo run -p nicforge-apps --example ids -- partition scenarios/captures/ids.pcap");
    for ((from, to), core) in weights.keys().zip(cores) {
        let key = |port: &Option<u16>| port.map_or("\"_\"".to_owned(), |port| format!("\"{port} &&& 0xffff\""));
        let priority = u8::from(from.is_some()) + u8::from(to.is_some());
        println!("\n[[entry]]\ntable = \"groups\"");
        println!("match = {{ \"hdr.ports.src\" = {}, \"hdr.ports.dst\" = {} }}", key(from), key(to));
        println!("action = \"to_core\"\ndata = {{ queue = {core} }}\npriority = {priority}");
    }
    for hash in 0..CORES {
        println!(
            "\n[[entry]]\ntable = \"spread\"\nmatch = {{ hash = {hash} }}\naction = \"to_core\"\ndata = {{ queue = {hash} }}"
        );
    }
    Ok(())
}
