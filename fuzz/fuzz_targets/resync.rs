//! Answers of software to resync requests, right and wrong.
#![no_main]

#[path = "../../crates/l5p/tests/common/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::resync(data));
