//! Large tables: cost of a look-up and of an update, and updates beside traffic.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nicforge_flexnic::p4::ir::{ActionCall, Match};
use nicforge_flexnic::p4::tables::{Target, Update};
use nicforge_flexnic::p4::{Engine, Shared};

use crate::{compile, entry, frame, measure, router, scatter};

/// Entries of each table.
const ENTRIES: u64 = 100_000;

/// The route with this number.
fn route(number: u64) -> Vec<Match> {
    vec![Match::Lpm(vec![scatter(number) & 0xffff_ff00], 24)]
}

fn change(table: usize, keys: Vec<Match>, priority: i64, adds: bool) -> Vec<Target> {
    let entry = entry(keys, priority, ActionCall { action: 0, data: vec![vec![1]] });
    vec![Target { table, update: if adds { Update::Insert(entry) } else { Update::Delete(entry) } }]
}

/// An lpm table of the router.
pub fn prefixes(scale: u64) {
    let mut pipeline = router(Engine::Compiled);
    let table = pipeline.table_named("routes").expect("the program has it");
    measure("lpm: insert, 100 000 entries", ENTRIES, |number| {
        // Two prefixes may be the same; the second one is refused.
        let _ = pipeline.update(change(table, route(number), 0, true));
    });
    let address = |number: u64| (scatter(number * 7) as u32).to_be_bytes();
    let packets: Vec<Vec<u8>> = (0..4096).map(|number| frame(address(number))).collect();
    measure("compiled: router, 64 B, 100 000 routes", 4_000_000 / scale, |number| {
        pipeline.process_with(&packets[number as usize % packets.len()], 0, &mut |output| {
            black_box(output.packet);
        });
    });
    measure("lpm: delete, 100 000 entries", ENTRIES, |number| {
        let _ = pipeline.update(change(table, route(number), 0, false));
    });
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

/// A table of two ternary keys, with 32 masks.
pub fn ternary(scale: u64) {
    let mut pipeline = compile("ternary", TERNARY).pipeline(Engine::Compiled, 1).expect("the machine has an engine");
    let masks: Vec<(u64, u64)> = (0..32)
        .map(|number| (0xffff_ffff << (number % 8) & 0xffff_ffff, 0xffff_ffff << (number / 8 * 4) & 0xffff_ffff))
        .collect();
    let rule = |number: u64| {
        let (mask_a, mask_b) = masks[number as usize % masks.len()];
        let (a, b) = (scatter(number) & 0xffff_ffff, scatter(number + 1_000_000) & 0xffff_ffff);
        vec![Match::Ternary(vec![a & mask_a], vec![mask_a]), Match::Ternary(vec![b & mask_b], vec![mask_b])]
    };
    measure("ternary: insert, 100 000 entries, 32 masks", ENTRIES, |number| {
        let changes = change(0, rule(number), number as i64, true);
        pipeline.update(changes).expect("entries differ by their priority");
    });
    let packets: Vec<Vec<u8>> = (0..4096u64)
        .map(|number| {
            let (a, b) = (scatter(number * 13) as u32, scatter(number * 13 + 1_000_000) as u32);
            [a.to_be_bytes(), b.to_be_bytes()].concat()
        })
        .collect();
    measure("compiled: one ternary table of 100 000", 1_000_000 / scale, |number| {
        pipeline.process_with(&packets[number as usize % packets.len()], 0, &mut |output| {
            black_box(output.packet);
        });
    });
    measure("ternary: delete, 100 000 entries, 32 masks", ENTRIES, |number| {
        let changes = change(0, rule(number), number as i64, false);
        pipeline.update(changes).expect("each is there");
    });
}

/// A controller's thread changes 10 000 entries a second, in batches of 10, while this one forwards.
pub fn beside_traffic(scale: u64) {
    let pipeline = router(Engine::Compiled);
    let table = pipeline.table_named("routes").expect("the program has it");
    let shared = Shared::new(pipeline, None);
    let packet = frame([10, 1, 2, 3]);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let updates = scope.spawn(|| {
            let (start, mut count) = (Instant::now(), 0u64);
            while !ends.load(Ordering::Acquire) {
                for number in count..count + 10 {
                    // Prefixes that are there twice do not count.
                    let _ = shared.lock().update(change(table, route(number / 2), 0, number % 2 == 0));
                }
                count += 10;
                std::thread::sleep(
                    (start + Duration::from_millis(count / 10)).saturating_duration_since(Instant::now()),
                );
            }
            count as f64 / start.elapsed().as_secs_f64()
        });
        measure("compiled: router, 64 B, beside changes", 8_000_000 / scale, |number| {
            shared.process(&packet, 0, false, number, &mut |output| {
                black_box(output.packet);
            });
        });
        ends.store(true, Ordering::Release);
        let rate = updates.join().expect("the controller ends");
        println!("  {rate:.0} changes a second");
    });
}
