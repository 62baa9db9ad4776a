//! Offloads under TLS and NVMe/TCP. One program holds all of these tests: a program for each file would link everything below it again.

mod captures_storage;
mod captures_tls;
mod cases;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/exercise.rs"]
mod exercise;
mod follow;
mod lies;
mod nvme_over_tcp;
mod nvme_session;
mod nvme_subsystem;
mod over_tcp;
mod pdus;
mod seeds;
mod stack;
mod swarm_tls;
mod swarm_toy;
mod tls_pieces;
mod vectors;
