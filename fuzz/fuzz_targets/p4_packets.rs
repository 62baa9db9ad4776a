//! P4: see `crates/p4runtime/tests/exercise`.
#![no_main]
#![allow(dead_code, reason = "one of several functions")]

#[path = "../../crates/p4runtime/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|data: &[u8]| exercise::packets(data));
