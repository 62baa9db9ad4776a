//! Arbitrary bytes as a frame.
#![no_main]

#[path = "../../crates/wire/tests/common/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::headers(data));
