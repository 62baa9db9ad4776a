//! The Toeplitz hash against Microsoft's verification suite.

mod common;

use std::net::{Ipv4Addr, Ipv6Addr};

use common::{hex, shared_toml};
use nicforge_wire::rss::{RssKey, Toeplitz};
use toml::Table;

fn number(row: &Table, key: &str) -> u32 {
    u32::try_from(row[key].as_integer().unwrap()).unwrap()
}

fn address<T: std::str::FromStr<Err: std::fmt::Debug>>(row: &Table, key: &str) -> T {
    row[key].as_str().unwrap().parse().unwrap()
}

#[test]
fn microsoft_verification_suite() {
    let Some(vectors) = shared_toml("rss_toeplitz_vectors.toml") else {
        return;
    };
    assert_eq!(hex(vectors["key"].as_str().unwrap()), RssKey::MICROSOFT.0);
    let toeplitz = Toeplitz::default();
    for row in vectors["ipv4"].as_array().unwrap() {
        let row = row.as_table().unwrap();
        let [source, destination]: [Ipv4Addr; 2] = ["src", "dst"].map(|key| address(row, key));
        let [from, to] = ["src_port", "dst_port"].map(|key| number(row, key) as u16);
        assert_eq!(toeplitz.hash_ipv4(source, destination), number(row, "hash_addr"));
        let hash = toeplitz.hash_ipv4_ports(source, destination, from, to);
        assert_eq!(hash, number(row, "hash_ports"));
    }
    for row in vectors["ipv6"].as_array().unwrap() {
        let row = row.as_table().unwrap();
        let [source, destination]: [Ipv6Addr; 2] = ["src", "dst"].map(|key| address(row, key));
        let [from, to] = ["src_port", "dst_port"].map(|key| number(row, key) as u16);
        assert_eq!(toeplitz.hash_ipv6(source, destination), number(row, "hash_addr"));
        let hash = toeplitz.hash_ipv6_ports(source, destination, from, to);
        assert_eq!(hash, number(row, "hash_ports"));
    }
}
