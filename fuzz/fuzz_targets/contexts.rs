//! Packets, descriptors and answers against contexts of every layer-5 protocol.
#![no_main]

#[path = "../../crates/l5p/tests/common/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::packets(data));
