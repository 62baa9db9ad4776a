//! Bytes of a peer against the NVMe/TCP host and target.
#![no_main]

#[path = "../../crates/l5p/tests/common/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::pdus(data));
