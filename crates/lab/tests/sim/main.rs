//! What the lab simulates, as scenarios set it. One program holds all of these tests: a program for each file would link everything below it again.

mod by_core;
#[path = "../common"]
mod common {
    pub mod any_settings;
    pub mod exercise;
    pub mod machine;
}
mod emulated;
mod hairpin;
mod kvs;
mod nicmem;
mod outside;
mod rings;
mod routes;
mod runs;
mod scenarios;
mod search;
mod shares;
#[path = "../../../wire/tests/common/skip.rs"]
mod skip;
mod switching;
mod trace;
mod whole_systems;
