//! L3 forwarding of 64-byte packets on one core, and look-ups and updates of large tables.
//!
//! Times are of the processor, so that a loaded machine does not change them; `--quick` runs a tenth.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use nicforge_flexnic::p4::tables::{Entry, EntryAction, Target, Update};
use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program, entries, ir::ActionCall, ir::Match};

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns runs a second.
fn measure(what: &str, count: u64, mut run: impl FnMut(u64)) -> f64 {
    let start = processor_time();
    for number in 0..count {
        run(number);
    }
    let each = (processor_time() - start).as_secs_f64() / count as f64;
    println!("{what:<48} {:>10.1} ns  {:>8.2} M/s", each * 1e9, 1e-6 / each);
    1.0 / each
}

fn frame(destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0u8; 64];
    packet[12] = 8;
    packet[14..30].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, 1]);
    packet[30..34].copy_from_slice(&destination);
    let mut sum: u32 = (0..10).map(|at| u32::from(packet[14 + 2 * at]) << 8 | u32::from(packet[15 + 2 * at])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}

fn entry(keys: Vec<Match>, priority: i64, call: ActionCall) -> Entry {
    Entry { keys, priority, action: EntryAction::Call(call), is_const: false, hits: (0, 0), meter: Default::default() }
}

/// A number that looks random and is the same in every run.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn routes(pipeline: &mut Pipeline, table: usize, count: u64) {
    measure("insert of a route (100 000 in all)", count, |number| {
        let call = ActionCall { action: 0, data: vec![vec![1 + number % 2]] };
        let key = Match::Lpm(vec![scatter(number) & 0xffff_ff00], 24);
        // Two prefixes may be the same; the second one is refused.
        let _ = pipeline.update(vec![Target { table, update: Update::Insert(entry(vec![key], 0, call)) }]);
    });
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let scale = if quick { 10 } else { 1 };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4");
    let start = Instant::now();
    let program = match Program::compile(&root.join("router.p4"), &Options::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{errors}"),
    };
    println!("front end: {:?}", start.elapsed());
    let text = std::fs::read_to_string(root.join("routes.toml")).expect("the example ships with the crate");
    for engine in [Engine::Compiled, Engine::Interpreter] {
        let start = Instant::now();
        let mut pipeline = program.pipeline(engine, 1).expect("the machine has an engine");
        println!("{engine:?}: program to first packet in {:?}", start.elapsed());
        entries::load(&mut pipeline, &text).expect("the example's entries fit");
        let packet = frame([10, 1, 2, 3]);
        let count = if engine == Engine::Compiled { 4_000_000 } else { 40_000 } / scale;
        measure(&format!("{engine:?}: router, 64 B"), count, |_| {
            pipeline.process_with(&packet, 0, &mut |output| {
                black_box(output.packet);
            });
        });
        if engine == Engine::Compiled {
            let table = pipeline.table_named("routes").expect("the program has it");
            routes(&mut pipeline, table, 100_000);
            let packets: Vec<Vec<u8>> =
                (0..4096).map(|number| frame((scatter(number * 7) as u32).to_be_bytes())).collect();
            measure("Compiled: router, 64 B, 100 000 routes", count, |number| {
                pipeline.process_with(&packets[number as usize % packets.len()], 0, &mut |output| {
                    black_box(output.packet);
                });
            });
        }
    }
    ternary(scale);
    beside_traffic(&program, &text, scale);
    bmv2(scale);
}

/// 10 000 changes a second between the packets of one core.
fn beside_traffic(program: &Program, text: &str, scale: u64) {
    let mut pipeline = program.pipeline(Engine::Compiled, 1).expect("the machine has an engine");
    entries::load(&mut pipeline, text).expect("the example's entries fit");
    let table = pipeline.table_named("routes").expect("the program has it");
    let packet = frame([10, 1, 2, 3]);
    // At 4 M packets a second a change every 400 packets.
    measure("Compiled: router, 64 B, a change every 400 packets", 4_000_000 / scale, |number| {
        if number % 400 == 0 {
            let key = Match::Lpm(vec![scatter(number / 800) & 0xffff_ff00], 24);
            let call = ActionCall { action: 0, data: vec![vec![1]] };
            let entry = entry(vec![key], 0, call);
            let update = if number % 800 == 0 { Update::Insert(entry) } else { Update::Delete(entry) };
            // Prefixes that are there twice do not count.
            let _ = pipeline.update(vec![Target { table, update }]);
        }
        pipeline.process_with(&packet, 0, &mut |output| {
            black_box(output.packet);
        });
    });
}

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

/// The stress test of bmv2, which `NICFORGE_BMV2_STRESS` names as built from its source, and the same program here.
fn bmv2(scale: u64) {
    let program = match Program::compile_text("stress", STRESS, &Options::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{errors}"),
    };
    let mut pipeline = program.pipeline(Engine::Compiled, 1).expect("the machine has an engine");
    let packets: Vec<Vec<u8>> = (0..1000u64)
        .map(|number| {
            let mut packet = vec![0u8; 512];
            packet[..6].copy_from_slice(&scatter(2 * number).to_be_bytes()[2..]);
            packet[6..12].copy_from_slice(&scatter(2 * number + 1).to_be_bytes()[2..]);
            packet[12] = 8;
            packet
        })
        .collect();
    for (number, packet) in (0u64..).zip(&packets) {
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
    let ours = measure("Compiled: bmv2's stress test LPM_match_1", 2_000_000 / scale, |number| {
        pipeline.process_with(&packets[number as usize % packets.len()], 0, &mut |output| {
            black_box(output.packet);
        });
    });
    let Some(peer) = std::env::var_os("NICFORGE_BMV2_STRESS") else {
        println!("bmv2: skipped, NICFORGE_BMV2_STRESS names no stress test (test_LPM_match_1 of its source)");
        return;
    };
    let start = processor_time_of_children();
    let repeats = 2000 / scale;
    let output = std::process::Command::new(&peer).arg(repeats.to_string()).output().expect("the peer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let each = (processor_time_of_children() - start).as_secs_f64() / (1000 * repeats) as f64;
    println!("{:<48} {:>10.1} ns  {:>8.2} M/s", "bmv2: its stress test LPM_match_1", each * 1e9, 1e-6 / each);
    println!("ratio: {:.1}", ours * each);
}

/// Processor time of processes that have ended.
fn processor_time_of_children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux tells");
    let after = text.rsplit(')').next().expect("the name ends");
    // Fields 16 and 17 of proc(5), in ticks of 10 ms.
    let at = |number: usize| after.split_whitespace().nth(number - 3).and_then(|field| field.parse::<u64>().ok());
    Duration::from_millis((at(16).unwrap_or(0) + at(17).unwrap_or(0)) * 10)
}

const TERNARY: &str = "#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action go(bit<9> port) { s.egress_spec = port; }
    table t { key = { h.h.a: ternary; h.h.b: ternary; } actions = { go; } size = 200000; }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;";

fn ternary(scale: u64) {
    let program = match Program::compile_text("ternary", TERNARY, &Options::default()) {
        Ok(program) => program,
        Err(errors) => panic!("{errors}"),
    };
    let mut pipeline = program.pipeline(Engine::Compiled, 1).expect("the machine has an engine");
    let masks: Vec<(u64, u64)> = (0..32)
        .map(|number| (0xffff_ffff << (number % 8) & 0xffff_ffff, 0xffff_ffff << (number / 8 * 4) & 0xffff_ffff))
        .collect();
    measure("insert of a ternary entry (100 000 in all)", 100_000, |number| {
        let (mask_a, mask_b) = masks[number as usize % masks.len()];
        let (a, b) = (scatter(number) & 0xffff_ffff, scatter(number + 1_000_000) & 0xffff_ffff);
        let keys = vec![Match::Ternary(vec![a & mask_a], vec![mask_a]), Match::Ternary(vec![b & mask_b], vec![mask_b])];
        let call = ActionCall { action: 0, data: vec![vec![1]] };
        let update = Update::Insert(entry(keys, number as i64, call));
        pipeline.update(vec![Target { table: 0, update }]).expect("entries differ by their priority");
    });
    let packets: Vec<Vec<u8>> = (0..4096u64)
        .map(|number| {
            let (a, b) = (scatter(number * 13) as u32, scatter(number * 13 + 1_000_000) as u32);
            [a.to_be_bytes(), b.to_be_bytes()].concat()
        })
        .collect();
    measure("Compiled: one ternary table of 100 000, 32 masks", 1_000_000 / scale, |number| {
        pipeline.process_with(&packets[number as usize % packets.len()], 0, &mut |output| {
            black_box(output.packet);
        });
    });
}
