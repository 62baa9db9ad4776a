//! Live runs without privilege: between capture files and over cables in memory, with threads of their own.
#![cfg(target_os = "linux")]

mod captures;
#[path = "../common/garbage.rs"]
mod common_garbage;
mod follow;
mod garbage;
mod kvs;
mod pacing;
#[path = "../../../wire/tests/common/skip.rs"]
mod skip;
