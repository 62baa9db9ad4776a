//! The checksum against published vectors, and its edge cases.

mod common;

use common::{hex, shared_toml};
use nicforge_wire::{IpAddresses, checksum};
use toml::Table;

fn number(row: &Table, key: &str) -> u16 {
    u16::try_from(row[key].as_integer().unwrap()).unwrap()
}

fn text<'a>(row: &'a Table, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}

fn rows<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a Table> {
    table[key].as_array().unwrap().iter().map(|row| row.as_table().unwrap())
}

#[test]
fn published_vectors() {
    let Some(vectors) = shared_toml("vectors/internet_checksum.toml") else {
        return;
    };
    for row in rows(&vectors, "buffer") {
        let data = hex(text(row, "data"));
        assert_eq!(checksum::sum(&data), number(row, "sum"), "{row}");
        assert_eq!(checksum::checksum(&data), number(row, "checksum"), "{row}");
    }
    for row in rows(&vectors, "update") {
        let [before, old, new] = ["checksum", "old", "new"].map(|key| number(row, key));
        assert_eq!(checksum::update16(before, old, new), number(row, "result"), "{row}");
    }
    for row in rows(&vectors, "packet") {
        let protocol = number(row, "protocol") as u8;
        let addresses = match text(row, "src").parse() {
            Ok(source) => IpAddresses::V4 { source, destination: text(row, "dst").parse().unwrap() },
            Err(_) => IpAddresses::V6 {
                source: text(row, "src").parse().unwrap(),
                destination: text(row, "dst").parse().unwrap(),
            },
        };
        let mut segment = hex(text(row, "segment"));
        let field = match protocol {
            6 => 16,
            17 => 6,
            _ => 2,
        };
        let carried = u16::from_be_bytes([segment[field], segment[field + 1]]);
        assert_eq!(carried, number(row, "carried"));
        segment[field..field + 2].fill(0);
        let mut total = checksum::pseudo_header(&addresses, protocol, segment.len() as u32);
        total.add(&segment);
        assert_eq!(total.checksum(), number(row, "expected"), "{row}");
    }
}

#[test]
fn pieces_of_odd_length_sum_as_the_whole() {
    let data: Vec<u8> = (0..=255).cycle().take(1501).collect();
    for cut in [1, 2, 7, 750, 1499] {
        let mut total = checksum::Accumulator::new();
        total.add(&data[..cut]);
        total.add(&data[cut..]);
        assert_eq!(total.sum(), checksum::sum(&data));
    }
}

#[test]
fn udp_never_sends_zero() {
    assert_eq!(checksum::nonzero(0), 0xffff);
    assert_eq!(checksum::nonzero(0x1234), 0x1234);
}
