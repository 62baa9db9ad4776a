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

fn measure(what: &str, count: u64, mut run: impl FnMut(u64)) {
    let start = processor_time();
    for number in 0..count {
        run(number);
    }
    let each = (processor_time() - start).as_secs_f64() / count as f64;
    println!("{what:<48} {:>10.1} ns  {:>8.2} M/s", each * 1e9, 1e-6 / each);
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
