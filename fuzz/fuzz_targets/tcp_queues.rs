//! TCP: see `crates/tcp/tests/exercise`.
#![no_main]

#[path = "../../crates/tcp/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::queues(data));
