//! The applications, fed frames on every ground. One program holds all of these tests: a program for each file would link everything below it again.

mod captures;
mod cuckoo;
mod flexkvs;
mod forwarders;
mod kvs;
mod kvs_hot;
mod last_hop;
mod lb;
mod nat;
mod nat_fragments_and_errors;
mod nat_mappings;
mod nat_ports;
mod nat_shares;
mod support;
mod unforwardable;
