//! bmv2's stress test `LPM_match_1`, and the same program here.

use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

use nicforge_flexnic::p4::ir::{ActionCall, Match};
use nicforge_flexnic::p4::tables::{Target, Update};
use nicforge_flexnic::p4::{Engine, Pipeline};

use crate::{compile, entry, measure, row, scatter};

/// Names the stress test, built from bmv2's source.
const VARIABLE: &str = "NICFORGE_BMV2_STRESS";

/// The program of bmv2's stress test `LPM_match_1`: three tables with 48-bit prefixes, no egress.
const STRESS: &str = "#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct H { ethernet_t ethernet; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action nop() { }
    table lpm_1 { key = { h.ethernet.dst: lpm; } actions = { nop; } size = 65536; }
    table lpm_2 { key = { h.ethernet.src: lpm; } actions = { nop; } size = 65536; }
    table lpm_3 { key = { h.ethernet.src: lpm; h.ethernet.dst: exact; } actions = { nop; } size = 65536; }
    apply { lpm_1.apply(); lpm_2.apply(); lpm_3.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;";

/// Short prefixes are frequent, as in the stress test: from 4 bits on, and 8 more with 4 chances of 13.
fn prefix(seed: u64) -> u32 {
    let (mut length, mut draw) = (4, seed);
    while length <= 40 {
        draw = scatter(draw + 1);
        let more = (draw >> 20) % 13;
        if more <= 8 {
            return length + more as u32;
        }
        length += 8;
    }
    length
}

/// The program with the entries of the stress test for its packets.
fn stressed(packets: &[Vec<u8>]) -> Pipeline {
    let mut pipeline = compile("stress", STRESS).pipeline(Engine::Compiled, 1).expect("the machine has an engine");
    for (number, packet) in (0u64..).zip(packets) {
        let word = |from: usize| packet[from..from + 6].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let lpm = |value: u64, seed: u64| {
            let length = prefix(seed);
            Match::Lpm(vec![value & !0 << (48 - length)], length)
        };
        let (dst, src) = (word(0), word(6));
        let keys = [
            vec![lpm(dst, 3 * number)],
            vec![lpm(src, 3 * number + 1)],
            vec![lpm(src, 3 * number + 2), Match::Exact(vec![dst])],
        ];
        for (table, keys) in keys.into_iter().enumerate() {
            let update = Update::Insert(entry(keys, 0, ActionCall { action: 0, data: vec![] }));
            // As in the stress test, prefixes that are there twice do not count.
            let _ = pipeline.update(vec![Target { table, update }]);
        }
    }
    pipeline
}

/// Runs both; `forwarding` is what the L3 program forwards in a second.
pub fn compare(forwarding: f64, scale: u64) {
    let packets: Vec<Vec<u8>> = (0..1000u64)
        .map(|number| {
            let mut packet = vec![0u8; 512];
            packet[..6].copy_from_slice(&scatter(2 * number).to_be_bytes()[2..]);
            packet[6..12].copy_from_slice(&scatter(2 * number + 1).to_be_bytes()[2..]);
            packet[12] = 8;
            packet
        })
        .collect();
    let mut pipeline = stressed(&packets);
    let ours = measure("compiled: bmv2's stress test LPM_match_1, 512 B", 2_000_000 / scale, |number| {
        pipeline.process_with(&packets[number as usize % packets.len()], 0, &mut |output| {
            black_box(output.packet);
        });
    });
    let Some(peer) = std::env::var_os(VARIABLE) else {
        println!("bmv2: missing, {VARIABLE} names no stress test (docs/p4.md says how to build it)");
        return;
    };
    let start = of_children();
    let repeats = 2000 / scale;
    let output = Command::new(&peer).arg(repeats.to_string()).output().expect("the peer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let peers = (1000 * repeats) as f64 / (of_children() - start).as_secs_f64();
    row("bmv2: its stress test LPM_match_1, 512 B", peers);
    println!("  {:.1} x bmv2 with its program, {:.1} x with the router", ours / peers, forwarding / peers);
}

/// Processor time of processes that have ended.
fn of_children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux tells");
    let after = text.rsplit(')').next().expect("the name ends");
    // Fields 16 and 17 of proc(5), in ticks of 10 ms.
    let at = |number: usize| after.split_whitespace().nth(number - 3).and_then(|field| field.parse::<u64>().ok());
    Duration::from_millis((at(16).unwrap_or(0) + at(17).unwrap_or(0)) * 10)
}
