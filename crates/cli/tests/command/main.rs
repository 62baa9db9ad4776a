//! The command as its users meet it: what it prints, writes, refuses and keeps.
//!
//! All of it is one binary, so that slow tests run beside each other. Each test has a folder of its own. Tests that need
//! a decoder or files beside the repository say in a line what they skip.

#[path = "../common/mod.rs"]
mod common;
mod decoder;
mod judge;
#[path = "../../../wire/tests/common/skip.rs"]
mod skip;

mod bad_captures;
mod basics;
mod calibrate;
#[cfg(target_os = "linux")]
mod cases;
mod diff;
#[cfg(target_os = "linux")]
mod machine;
mod nat_capture;
#[cfg(target_os = "linux")]
mod nat_ports;
mod notes;
mod outputs;
mod p4;
mod paper;
mod refusals;
mod reproduce;
mod resume;
mod rss;
mod runs;
mod search;
#[cfg(target_os = "linux")]
mod sim_vs_live;
mod split_errors;
mod trace;
mod trust;
mod tutorial;
mod unfinished_checksums;
