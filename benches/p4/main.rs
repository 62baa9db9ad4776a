//! P4 programs on one core, in memory, beside peers in the same run.
//!
//! `cargo bench -p nicforge-p4stage --bench p4 [-- --quick]`. Times are of the processor, so that others on the machine
//! count only as far as they spoil its caches. `--quick` runs a tenth. docs/p4.md says how to build the peers.

mod bmv2;
mod nic;
mod swx;
mod tables;

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use nicforge_flexnic::p4::ir::{ActionCall, Match};
use nicforge_flexnic::p4::tables::{Entry, EntryAction};
use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program, entries};

/// Longest time from a program's text to its first packet that users should see.
const FIRST_PACKET: Duration = Duration::from_millis(100);

/// Where the examples are.
pub fn examples() -> String {
    format!("{}/../../examples/p4", env!("CARGO_MANIFEST_DIR"))
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Prints a line.
pub fn row(what: &str, rate: f64) {
    println!("{what:<50} {:>9.1} ns  {:>7.2} M/s", 1e9 / rate, rate / 1e6);
}

/// Runs `run` so often, and prints and returns how often a second.
pub fn measure(what: &str, count: u64, mut run: impl FnMut(u64)) -> f64 {
    let start = thread_time();
    for number in 0..count {
        run(number);
    }
    let rate = count as f64 / (thread_time() - start).as_secs_f64();
    row(what, rate);
    rate
}

/// A UDP frame of 64 bytes.
pub fn frame(destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0u8; 64];
    packet[12] = 8;
    packet[14..30].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 0, 1]);
    packet[30..34].copy_from_slice(&destination);
    // Ports 1000 and 80, and no checksum, as UDP over IPv4 allows.
    packet[34..42].copy_from_slice(&[3, 0xe8, 0, 80, 0, 30, 0, 0]);
    let mut sum: u32 = (0..10).map(|at| u32::from(packet[14 + 2 * at]) << 8 | u32::from(packet[15 + 2 * at])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}

/// An entry of one action.
pub fn entry(keys: Vec<Match>, priority: i64, call: ActionCall) -> Entry {
    Entry { keys, priority, action: EntryAction::Call(call), is_const: false, hits: (0, 0), meter: Default::default() }
}

/// A number that looks random and is the same in every run.
pub fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Compiles a text.
pub fn compile(name: &str, text: &str) -> Program {
    Program::compile_text(name, text, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The example's router with its entries.
pub fn router(engine: Engine) -> Pipeline {
    let folder = examples();
    let program = Program::compile(&Path::new(&folder).join("router.p4"), &Options::default());
    let program = program.unwrap_or_else(|errors| panic!("{errors}"));
    let mut pipeline = program.pipeline(engine, 1).expect("the machine has an engine");
    let text = std::fs::read_to_string(Path::new(&folder).join("routes.toml")).expect("the example is there");
    entries::load(&mut pipeline, &text).expect("the example's entries fit");
    pipeline
}

/// The router with each engine; returns what compiled code forwards in a second.
fn engines(scale: u64) -> f64 {
    let packet = frame([10, 1, 2, 3]);
    let mut compiled = 0.0;
    for (engine, name, count) in
        [(Engine::Interpreter, "interpreter", 40_000), (Engine::Compiled, "compiled", 4_000_000)]
    {
        let start = Instant::now();
        let mut pipeline = router(engine);
        assert_eq!(pipeline.process(&packet, 0).len(), 1, "the packet is forwarded");
        let took = start.elapsed();
        let judged = if took < FIRST_PACKET { "below" } else { "above" };
        println!("{name}: program to first packet in {took:.1?}, {judged} {FIRST_PACKET:?}");
        compiled = measure(&format!("{name}: router, 64 B"), count / scale, |_| {
            pipeline.process_with(&packet, 0, &mut |output| {
                black_box(output.packet);
            });
        });
    }
    compiled
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let scale = if quick { 10 } else { 1 };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load of the machine before: {}", load.trim());
    let compiled = engines(scale);
    nic::forward(scale);
    swx::compare(compiled);
    bmv2::compare(compiled, scale);
    tables::prefixes(scale);
    tables::ternary(scale);
    tables::beside_traffic(scale);
}
