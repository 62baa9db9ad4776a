//! Arbitrary bytes as a scenario file, a machine file, a live run's file and `--set` arguments.
#![no_main]

#[path = "../../crates/lab/tests/common/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::scenarios(data));
