//! `kvs` on whole frames: replies judged by etherparse, requests of any shape.

use nicforge_apps::{AppConfig, PortMap, Verdict};
use nicforge_nic::{PortId, RxFlags};
use nicforge_wire::headers::{KVS_HEADER_LEN, KVS_PORT, KvsOperation, KvsStatus, KvsView, key_hash, partition_of};
use proptest::prelude::*;

use crate::support::{Bench, address, app, decode, fill_checksums, tcp, udp, udp6};

const CLIENT: (&str, u16) = ("192.0.2.1", 50_000);
const SERVER: (&str, u16) = ("203.0.113.1", KVS_PORT);

fn config() -> AppConfig {
    app("kvs", PortMap::one_armed(2)).with("kvs_index_slots", 1_000)
}

/// The UDP payload of a request.
fn request(operation: KvsOperation, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; KVS_HEADER_LEN];
    let mut view = KvsView::new(&mut bytes[..]).unwrap();
    view.set_operation(operation);
    view.set_lengths(key.len() as u16, value.len() as u16);
    view.set_hash(key_hash(key));
    view.set_tag(77);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes
}

fn frame(operation: KvsOperation, key: &[u8], value: &[u8]) -> Vec<u8> {
    udp(CLIENT, SERVER, &request(operation, key, value))
}

/// Sends a request in at port 1; gives status and value of the reply, all else of it checked.
fn ask(bench: &mut Bench, frame: &[u8], split: usize) -> (KvsStatus, Vec<u8>) {
    let (verdict, mut out) = bench.send_split(1, frame, split);
    fill_checksums(&mut out, bench.offload);
    assert_eq!(verdict, Verdict::Transmit(PortId(1)));
    assert_eq!((&out[..6], &out[6..12]), (&frame[6..12], &frame[..6]));
    let seen = decode(&out).unwrap();
    assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
    assert_eq!(seen.source, (address(SERVER.0), SERVER.1));
    assert_eq!(seen.destination, (address(CLIENT.0), CLIENT.1));
    assert_eq!(seen.ttl, 64);
    let sliced = etherparse::SlicedPacket::from_ethernet(&out).unwrap();
    let Some(etherparse::TransportSlice::Udp(udp)) = sliced.transport else {
        panic!("not UDP");
    };
    status_and_value(udp.payload(), &frame[42..])
}

fn status_and_value(reply: &[u8], request: &[u8]) -> (KvsStatus, Vec<u8>) {
    let view = KvsView::new(reply).unwrap();
    let asked = KvsView::new(request).unwrap();
    assert_eq!(view.operation(), asked.operation());
    assert_eq!((view.hash(), view.tag()), (asked.hash(), asked.tag()));
    let value = &reply[KVS_HEADER_LEN..];
    assert_eq!((view.key_len(), usize::from(view.value_len())), (0, value.len()));
    (view.status().unwrap(), value.to_vec())
}

const WHOLE: usize = usize::MAX;

#[test]
fn a_value_is_read_back_until_it_is_deleted() {
    use KvsOperation::{Delete, Get, Put};
    let mut bench = Bench::new(&config());
    let (value, none) = (vec![7; 1024], vec![]);
    let mut step = |operation, value: &[u8]| ask(&mut bench, &frame(operation, b"key", value), WHOLE);
    assert_eq!(step(Get, &[]), (KvsStatus::Missing, none.clone()));
    assert_eq!(step(Put, &value), (KvsStatus::Done, none.clone()));
    assert_eq!(step(Get, &[]), (KvsStatus::Done, value));
    assert_eq!(step(Put, b""), (KvsStatus::Done, none.clone()));
    assert_eq!(step(Get, &[]), (KvsStatus::Done, none.clone()));
    assert_eq!(step(Delete, &[]), (KvsStatus::Done, none.clone()));
    assert_eq!(step(Delete, &[]), (KvsStatus::Missing, none.clone()));
    assert_eq!(step(Get, &[]), (KvsStatus::Missing, none));
    let counts = ["gets", "get_hits", "puts", "deletes"].map(|name| bench.counter(name));
    assert_eq!(counts, [4, 2, 2, 2]);
}

#[test]
fn requests_may_lie_in_two_buffers() {
    let mut bench = Bench::new(&config());
    let put = frame(KvsOperation::Put, b"a long key", b"and its value");
    let get = frame(KvsOperation::Get, b"a long key", b"");
    // Behind UDP, within the header, behind it, within the key, at the value, within it.
    for split in [42, 50, 66, 70, 76, 80] {
        assert_eq!(ask(&mut bench, &put, split), (KvsStatus::Done, vec![]));
        let expected = (KvsStatus::Done, b"and its value".to_vec());
        assert_eq!(ask(&mut bench, &get, split.min(70)), expected);
    }
}

/// A reply is a packet of its own, whatever way its request came.
#[test]
fn replies_have_all_hops() {
    let mut bench = Bench::new(&config());
    let mut get = frame(KvsOperation::Get, b"key", b"");
    get[22] = 1;
    assert_eq!(ask(&mut bench, &get, WHOLE).0, KvsStatus::Missing);
}

/// As many cores as have a bucket and 1 KiB of log each.
#[test]
fn sizes_are_those_of_all_cores() {
    const CORES: u16 = 1024;
    let config = app("kvs", PortMap::one_armed(1)).with("kvs_index_slots", u64::from(CORES) * 8);
    let mut bench = Bench::on_core(&config, 2, usize::from(CORES));
    let own = |number: &u64| partition_of(key_hash(&number.to_be_bytes()), CORES) == 2;
    let mut put = |number: u64, value: &[u8]| {
        let put = frame(KvsOperation::Put, &number.to_be_bytes(), value);
        ask(&mut bench, &put, WHOLE).0
    };
    let numbers: Vec<u64> = (0..).filter(own).take(11).collect();
    for number in &numbers {
        assert_eq!(put(*number, b"v"), KvsStatus::Done);
    }
    // 16 bytes of header, 8 of key.
    assert_eq!(put(numbers[10], &[1; 1000]), KvsStatus::Done);
    assert_eq!(put(numbers[10], &[1; 1001]), KvsStatus::TooLarge);
    assert_eq!(bench.counter("index_evictions"), 3);
}

#[test]
fn another_partitions_key_is_answered_and_counted() {
    // Two ports: eight cores are four partitions on each of two NICs.
    for core in 0..8 {
        let mut bench = Bench::on_core(&config(), core, 8);
        for number in 0..40u64 {
            let key = number.to_be_bytes();
            let own = usize::from(partition_of(key_hash(&key), 4)) == core % 4;
            let (status, _) = ask(&mut bench, &frame(KvsOperation::Put, &key, b"v"), WHOLE);
            let expected = [KvsStatus::Misdirected, KvsStatus::Done][usize::from(own)];
            assert_eq!(status, expected);
        }
        assert_eq!(bench.counter("misdirected") + bench.counter("puts"), 40);
        assert!(bench.counter("misdirected") > 0 && bench.counter("puts") > 0);
    }
}

#[test]
fn malformed_requests_are_dropped_by_cause() {
    let mut bench = Bench::new(&config());
    let good = request(KvsOperation::Put, b"key", b"value");
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        udp(CLIENT, SERVER, &bytes)
    };
    let bad = [
        changed(0, 2), // version
        changed(1, 0), // operation
        changed(1, 4),
        changed(1, 1), // a GET with a value
        changed(2, 1), // a reply's status
        changed(3, 1), // padding
        changed(5, 0), // no key
        changed(5, 4), // longer than the datagram
        changed(7, 4), // shorter than the datagram
        udp(CLIENT, SERVER, &good[..KVS_HEADER_LEN - 1]),
        udp(CLIENT, SERVER, b""),
    ];
    for frame in bad {
        assert_eq!(bench.drop(0, &frame), "bad_request");
    }
    let whole = udp(CLIENT, SERVER, &good);
    let mut fragment = whole.clone();
    fragment[20] = 0x20;
    assert_eq!(bench.drop(0, &fragment), "fragment");
    // Loose source routing (RFC 791, section 3.1) that goes on to 198.51.100.1.
    let route = [131, 7, 4, 198, 51, 100, 1, 0];
    let mut routed = [&whole[..34], &route, &whole[34..]].concat();
    routed[14] += 2;
    routed[17] += 8;
    assert_eq!(bench.drop(0, &routed), "not_a_request");
    let other = udp(CLIENT, (SERVER.0, KVS_PORT + 1), &good);
    assert_eq!(bench.drop(0, &other), "not_the_service");
    assert_eq!(bench.drop(0, &tcp(CLIENT, SERVER, "A", &good)), "not_a_request");
    assert_eq!(bench.drop(0, &[0; 60]), "not_a_request");
    assert_eq!(bench.drop(0, &whole[..60]), "ip_length_beyond_frame");
    for flags in [RxFlags::L3_BAD, RxFlags::L4_BAD] {
        bench.flags = flags;
        assert_eq!(bench.drop(0, &whole), "bad_checksum");
    }
    assert_eq!(bench.counter("puts"), 0);
}

/// What a GET says of the longest value that there is room for in buffers of `room`, and of one that is
/// a byte longer.
fn longest_value(room: u32, longest: usize) {
    let mut bench = Bench::new(&with_room(room));
    for (len, status) in [(longest, KvsStatus::Done), (longest + 1, KvsStatus::TooLarge)] {
        let value = vec![1; len];
        let put = request(KvsOperation::Put, b"k", &value);
        // Over IPv6, where a datagram may be longer.
        let (verdict, _) = bench.send(0, &udp6(CLIENT.1, SERVER.1, &put));
        assert_eq!(verdict, Verdict::Transmit(PortId(0)));
        let get = frame(KvsOperation::Get, b"k", b"");
        let got = match status {
            KvsStatus::Done => value,
            _ => Vec::new(),
        };
        for split in [WHOLE, 66] {
            let reply = ask(&mut bench, &get, split);
            assert!(reply == (status, got.clone()), "{room}, {len}: {:?}", reply.0);
        }
    }
    let counts = ["gets", "get_hits", "too_large"].map(|name| bench.counter(name));
    assert_eq!(counts, [4, 2, 2]);
}

fn with_room(buffer_room: u32) -> AppConfig {
    let mut config = config();
    config.buffer_room = buffer_room;
    config
}

#[test]
fn a_value_too_large_for_a_reply_is_reported() {
    // 66 bytes of headers.
    longest_value(2_048, 1_982);
    longest_value(9_216, 9_150);
    // No IPv4 packet is longer: 52 of the headers are in it.
    longest_value(65_600, 65_535 - 52);
    let mut bench = Bench::new(&config());
    let huge = vec![1; 1 << 15];
    let put = frame(KvsOperation::Put, b"k", &huge);
    assert_eq!(ask(&mut bench, &put, WHOLE).0, KvsStatus::Done);
    // A log of 1 KiB on each of as many cores.
    let small = app("kvs", PortMap::one_armed(1));
    let put = frame(KvsOperation::Put, b"k", &[1; 1_010]);
    let mut bench = Bench::on_core(&small, usize::from(partition_of(key_hash(b"k"), 1024)), 1024);
    assert_eq!(ask(&mut bench, &put, WHOLE).0, KvsStatus::TooLarge);
    assert_eq!(bench.counter("too_large"), 1);
}

#[test]
fn vlan_tags_stay() {
    let mut bench = Bench::new(&config());
    let plain = frame(KvsOperation::Put, b"key", b"value");
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    let (_, expected) = bench.send(0, &plain);
    let (_, out) = bench.send(0, &tagged);
    assert_eq!(out[12..16], [0x81, 0, 0, 5]);
    assert_eq!(out[16..], expected[12..]);
}

#[test]
fn ipv6_is_served_too() {
    let mut bench = Bench::new(&config());
    for operation in [KvsOperation::Put, KvsOperation::Get] {
        let value: &[u8] = match operation {
            KvsOperation::Put => b"value",
            _ => b"",
        };
        let asked = request(operation, b"key", value);
        let (_, mut out) = bench.send(0, &udp6(CLIENT.1, SERVER.1, &asked));
        fill_checksums(&mut out, bench.offload);
        let sliced = etherparse::SlicedPacket::from_ethernet(&out).unwrap();
        let (Some(etherparse::NetSlice::Ipv6(ip)), Some(etherparse::TransportSlice::Udp(udp))) =
            (sliced.net, sliced.transport)
        else {
            panic!("not UDP over IPv6");
        };
        assert_eq!(ip.header().hop_limit(), 64);
        let (source, destination) = (ip.header().source(), ip.header().destination());
        assert_eq!((source, destination), ([2; 16], [1; 16]));
        assert_eq!((udp.source_port(), udp.destination_port()), (SERVER.1, CLIENT.1));
        let header = ip.header().to_header();
        let right = udp.to_header().calc_checksum_ipv6(&header, udp.payload());
        assert_eq!(right.unwrap(), udp.checksum());
        let (status, got) = status_and_value(udp.payload(), &asked);
        assert_eq!(status, KvsStatus::Done);
        let expected: &[u8] = [b"", b"value" as &[u8]][usize::from(value.is_empty())];
        assert_eq!(got, expected);
    }
}

proptest! {
    /// Any damage to a request gives a reply or a named drop, and the store goes on.
    #[test]
    fn damaged_requests_are_harmless(
        edits in prop::collection::vec((0..120usize, any::<u8>()), 1..6),
        len in 0..130usize,
    ) {
        let mut bench = Bench::new(&config());
        let mut damaged = frame(KvsOperation::Put, b"some key", &[9; 40]);
        for (at, byte) in edits {
            let at = at % damaged.len();
            damaged[at] = byte;
        }
        damaged.truncate(len);
        let (verdict, out) = bench.send(0, &damaged);
        match verdict {
            Verdict::Drop(_) => prop_assert_eq!(out, damaged),
            verdict => prop_assert_eq!(verdict, Verdict::Transmit(PortId(0))),
        }
        let put = frame(KvsOperation::Put, b"key", b"value");
        prop_assert_eq!(ask(&mut bench, &put, WHOLE).0, KvsStatus::Done);
        let get = frame(KvsOperation::Get, b"key", b"");
        prop_assert_eq!(ask(&mut bench, &get, WHOLE), (KvsStatus::Done, b"value".to_vec()));
    }
}
