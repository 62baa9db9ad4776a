//! The fuzz targets' functions on changed seeds for a second each; `NICFORGE_P4_FUZZ_SECONDS` sets how long.

mod exercise;

use std::time::{Duration, Instant};

use nicforge_flexnic::p4::{Options, Program};
use nicforge_p4runtime::Info;
use nicforge_p4runtime::proto::p4::v1 as p4;
use prost::Message;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Changes a seed in some places: bytes, pieces of it, and pieces of another one.
fn change(seeds: &[Vec<u8>], random: &mut Pcg64) -> Vec<u8> {
    let below = |random: &mut Pcg64, most: usize| random.next_u32() as usize % most.max(1);
    let mut bytes = seeds[below(random, seeds.len())].clone();
    for _ in 0..1 + below(random, 6) {
        let at = below(random, bytes.len());
        let to = (at + 1 + below(random, 24)).min(bytes.len());
        match below(random, 6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << below(random, 8),
            1 if !bytes.is_empty() => bytes[at] = random.next_u32() as u8,
            2 => drop(bytes.drain(at.min(to)..to)),
            3 => {
                let piece = bytes.get(at..to).unwrap_or(&[]).to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len());
                let until = (from + 1 + below(random, 60)).min(other.len());
                let piece = other.get(from..until).unwrap_or(&[]).to_vec();
                bytes.splice(at..to.min(at + 8).max(at), piece);
            }
        }
    }
    bytes
}

fn run(name: &str, target: fn(&[u8]), seeds: &[Vec<u8>]) {
    let seconds = std::env::var("NICFORGE_P4_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let seed = std::env::var("NICFORGE_P4_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (start, mut random, mut count) = (Instant::now(), Pcg64::seed_from_u64(seed), 0);
    seeds.iter().for_each(|seed| target(seed));
    while start.elapsed() < Duration::from_secs(seconds) {
        let bytes = change(seeds, &mut random);
        let begin = Instant::now();
        if let Err(panic) = std::panic::catch_unwind(|| target(&bytes)) {
            println!("{name}, seed {seed}, input {count}: {:?}", String::from_utf8_lossy(&bytes));
            std::panic::resume_unwind(panic);
        }
        // On a loaded machine a program may take seconds, a hang takes for ever.
        assert!(begin.elapsed() < Duration::from_secs(120), "{name}, input {count} takes too long");
        count += 1;
    }
    println!("{name}: {count} inputs");
}

fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn programs() {
    run("programs", exercise::front_end, &texts(&exercise::PROGRAMS));
}

#[test]
fn packet_tests() {
    let seeds = [
        include_str!("../../flexnic/tests/p4/parsers.stf"),
        include_str!("../../flexnic/tests/p4/tables.stf"),
        include_str!("../../flexnic/tests/p4/copies.stf"),
        "add route dst:0x0a000000/8 forward(port:3, dst:1)\npacket 0 000102030405 020000000009 0800\nexpect 3 *\n",
        "add acl 1 hdr.ipv4.src:0x0a******** hdr.ipv4.ttl:1->5 drop()\nsetdefault route drop()\n",
    ];
    run("packet tests", exercise::packet_test, &texts(&seeds));
}

#[test]
fn packets() {
    let frame = |kind: u8| {
        let mut bytes = vec![kind, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes.extend([10, 0, 0, 1, 10, 1, 2, 3]);
        bytes.extend(0..30);
        bytes
    };
    run("packets", exercise::packets, &(0..5).map(frame).collect::<Vec<_>>());
}

#[test]
fn messages() {
    let program = Program::compile_text("seed.p4", exercise::PROGRAMS[0], &Options::default()).unwrap();
    let info = Info::new(&program).message;
    let mut seeds = Vec::new();
    let mut put = |kind: u8, message: Vec<u8>| {
        let mut bytes = message;
        bytes.resize(bytes.len().div_ceil(4) * 4, 0);
        let mut seed = vec![kind, (bytes.len() / 4).min(255) as u8];
        seed.extend(bytes);
        seeds.push(seed);
    };
    let mut entity = |entity: p4::entity::Entity| {
        let entity = p4::Entity { entity: Some(entity) };
        put(1, entity.encode_to_vec());
        for kind in 1..4 {
            put(4 * kind, p4::Update { r#type: i32::from(kind), entity: Some(entity.clone()) }.encode_to_vec());
        }
    };
    let lpm = p4::field_match::FieldMatchType::Lpm(p4::field_match::Lpm { value: vec![10, 0, 0, 0], prefix_len: 8 });
    for table in &info.tables {
        let action = p4::Action { action_id: table.action_refs[0].id, params: Vec::new() };
        entity(p4::entity::Entity::TableEntry(p4::TableEntry {
            table_id: table.preamble.as_ref().unwrap().id,
            r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: Some(lpm.clone()) }],
            action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
            ..Default::default()
        }));
    }
    let index = Some(p4::Index { index: 1 });
    let counter_id = info.counters[0].preamble.as_ref().unwrap().id;
    entity(p4::entity::Entity::CounterEntry(p4::CounterEntry { counter_id, index, data: None }));
    let register_id = info.registers[0].preamble.as_ref().unwrap().id;
    entity(p4::entity::Entity::RegisterEntry(p4::RegisterEntry { register_id, index, data: None }));
    let packet =
        p4::PacketOut { payload: vec![1; 40], metadata: vec![p4::PacketMetadata { metadata_id: 1, value: vec![3] }] };
    let packet = p4::stream_message_request::Update::Packet(packet);
    put(2, p4::StreamMessageRequest { update: Some(packet) }.encode_to_vec());
    let text = "#include <v1model.p4>\nheader h_t { bit<8> a; }".as_bytes().to_vec();
    let config = p4::ForwardingPipelineConfig { p4_device_config: text, ..Default::default() };
    put(7, config.encode_to_vec());
    run("messages", exercise::messages, &seeds);
}
