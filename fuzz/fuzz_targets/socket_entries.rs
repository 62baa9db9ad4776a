//! Sockets: see `crates/sockets/tests/exercise`.
#![no_main]

#[path = "../../crates/sockets/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::entries(data));
