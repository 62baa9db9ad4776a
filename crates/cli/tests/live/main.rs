//! The live ground as its users meet it: gateways between hosts, programs over the project's TCP, workers that come and go,
//! and what a run refuses.
//!
//! All of it is one binary, so that tests that wait do so beside each other. Most need root, and network namespaces; some
//! need a program. Each says in a line what it skips.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../wire/tests/common/skip.rs"]
mod skip;
mod support;

mod absent;
mod attach;
mod bridge;
mod card;
mod dashboard;
mod flexkvs;
mod garbage;
mod gateway;
mod guest;
mod hops;
mod kill;
mod ktls;
mod manners;
mod neighbours;
mod nvme;
mod p4;
mod packetdrill;
mod path_mtu;
mod peers;
mod ports;
mod refusals;
mod soak;
mod stun;
mod tcp;
mod traffic;
mod workers;
