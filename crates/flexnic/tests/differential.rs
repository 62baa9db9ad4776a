//! Random programs and random packets give the same result in the interpreter and in compiled code.
//!
//! `NICFORGE_P4_FUZZ=COUNT` sets the number of programs, `NICFORGE_P4_FUZZ_SEED` the first seed.

mod generator {
    include!("differential/generator.rs");
}

use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Packets that each program gets.
const PACKETS: usize = 40;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_programs_agree() {
    let first = setting("NICFORGE_P4_FUZZ_SEED", 1);
    for seed in first..first + setting("NICFORGE_P4_FUZZ", 40) {
        let text = generator::program(seed);
        let program = match Program::compile_text("random.p4", &text, &Options::default()) {
            Ok(program) => program,
            Err(errors) => panic!("seed {seed}: the generator made a wrong program\n{errors}\n{text}"),
        };
        let mut reference = program.pipeline(Engine::Interpreter, seed).expect("the interpreter is always there");
        let mut compiled =
            program.pipeline(Engine::Compiled, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        compare(seed, &text, &mut reference, &mut compiled);
    }
}

fn compare(seed: u64, text: &str, reference: &mut Pipeline, compiled: &mut Pipeline) {
    let mut random = Pcg64::seed_from_u64(seed ^ 0x5eed);
    for number in 0..PACKETS {
        let length = (random.next_u32() % 80) as usize;
        let mut packet = vec![0; length];
        random.fill_bytes(&mut packet);
        if number % 2 == 0 {
            // Small values reach more branches.
            packet.iter_mut().for_each(|byte| *byte &= 3);
        }
        let (expected, found) = (reference.process(&packet, 1), compiled.process(&packet, 1));
        assert_eq!(expected, found, "seed {seed}, packet {number} {packet:02x?}\n{text}");
        assert_eq!(reference.counters(), compiled.counters(), "seed {seed}, packet {number}\n{text}");
    }
}
