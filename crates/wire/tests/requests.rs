//! Requests to a key-value store: valid to an independent decoder, for the right keys, to the
//! right queues, at the right times.

use std::collections::BTreeMap;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nicforge_units::{BitRate, Time};
use nicforge_wire::headers::{
    KVS_HEADER_LEN, KVS_PORT, KVS_VERSION, KvsOperation, KvsStatus, KvsView, MAGIC_REQUEST, MEMCACHED_HEADER_LEN,
    MEMCACHED_PORT, MacAddress, MemcachedView, key_hash, memcached_opcode, partition_of,
};
use nicforge_wire::parse_frame;
use nicforge_wire::rss::{IndirectionTable, RssKey, Toeplitz};
use nicforge_wire::traffic::{
    ArrivalModel, FlowChoice, FlowSpace, Line, PairSpace, RequestConfig, RequestProtocol, Requests, TrafficSource,
};

fn config(key_bytes: u16, value_bytes: u16) -> RequestConfig {
    RequestConfig {
        protocol: RequestProtocol::Kvs,
        seed: 1,
        line: Line::ethernet(BitRate::from_gbps(100.0)),
        arrival: ArrivalModel::Constant { rate: BitRate::from_gbps(80.0) },
        clients: FlowSpace::new(1, 50).unwrap(),
        client_choice: FlowChoice::Uniform,
        pairs: PairSpace::new(1, 100, key_bytes, value_bytes).unwrap(),
        key_choice: FlowChoice::Uniform,
        put_key_choice: None,
        put_share: 0.5,
        delete_share: 0.1,
        queues: 6,
        rss_key: RssKey::default(),
        server: "10.0.0.1".parse().unwrap(),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        destination: MacAddress([2, 0, 0, 0, 0, 2]),
    }
}

fn source(config: RequestConfig) -> TrafficSource {
    TrafficSource::Requests(Box::new(Requests::new(config).unwrap()))
}

/// The UDP payload, after another implementation has found headers and checksums right.
fn payload(frame: &[u8]) -> Vec<u8> {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = &packet.net else {
        panic!("not IPv4");
    };
    let Some(TransportSlice::Udp(udp)) = &packet.transport else {
        panic!("not UDP");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    assert_eq!(header.destination, [10, 0, 0, 1]);
    let udp_header = udp.to_header();
    let checksum = udp_header.calc_checksum_ipv4(&header, udp.payload());
    assert_eq!(checksum.unwrap(), udp_header.checksum);
    assert!([KVS_PORT, MEMCACHED_PORT].contains(&udp_header.destination_port));
    udp.payload().to_vec()
}

#[test]
fn puts_may_be_for_other_keys_than_gets() {
    let hot = |share| FlowChoice::Hot { flows: 10, share };
    let config =
        RequestConfig { key_choice: hot(0.0), put_key_choice: Some(hot(1.0)), delete_share: 0.0, ..config(16, 32) };
    let pairs = config.pairs;
    let mut source = source(config);
    let mut counts = BTreeMap::new();
    for _ in 0..2_000 {
        let bytes = payload(source.next().unwrap().bytes);
        let view = KvsView::new(&bytes[..]).unwrap();
        let key = &bytes[KVS_HEADER_LEN..][..16];
        let index = (0..pairs.count()).find(|&index| {
            let mut of = Vec::new();
            pairs.key(index, &mut of);
            of == key
        });
        let put = view.operation() == Some(KvsOperation::Put);
        assert_eq!(index.unwrap() < 10, put);
        *counts.entry(put).or_insert(0) += 1;
    }
    assert!(counts[&true] > 900 && counts[&false] > 900, "{counts:?}");
}

#[test]
fn every_request_is_whole_and_for_a_known_pair() {
    // Odd sizes put words of the value at odd places; 15 bytes have no room for a version.
    for (key_bytes, value_bytes) in [(8, 8), (13, 17), (128, 1024), (9, 15)] {
        let config = config(key_bytes, value_bytes);
        let pairs = config.pairs;
        let mut known = BTreeMap::new();
        for index in 0..pairs.count() {
            let mut key = Vec::new();
            pairs.key(index, &mut key);
            known.insert(key, index);
        }
        let mut source = source(config);
        for sequence in 0..2_000 {
            let bytes = payload(source.next().unwrap().bytes);
            let view = KvsView::new(&bytes[..]).unwrap();
            assert_eq!(view.version(), KVS_VERSION);
            assert_eq!(view.status(), Some(KvsStatus::Done));
            assert_eq!((view.key_len(), view.tag()), (key_bytes, sequence));
            let (key, value) = bytes[KVS_HEADER_LEN..].split_at(key_bytes.into());
            assert_eq!(view.hash(), key_hash(key));
            let mut expected = Vec::new();
            if view.operation() == Some(KvsOperation::Put) {
                pairs.value(known[key], sequence, &mut expected);
            }
            assert!(view.operation().is_some());
            assert_eq!(value, expected);
            assert_eq!(usize::from(view.value_len()), expected.len());
        }
    }
}

#[test]
fn requests_of_memcached_are_whole_and_for_a_known_pair() {
    for (key_bytes, value_bytes) in [(8, 8), (13, 17), (128, 1024)] {
        let config = RequestConfig { protocol: RequestProtocol::Memcached, ..config(key_bytes, value_bytes) };
        let pairs = config.pairs;
        let keys = (0..pairs.count()).map(|index| {
            let mut key = Vec::new();
            pairs.key(index, &mut key);
            (key, index)
        });
        let known: BTreeMap<Vec<u8>, u64> = keys.collect();
        let mut source = source(config);
        let mut ports = BTreeMap::new();
        for sequence in 0..2_000 {
            let arrival = source.next().unwrap();
            let frame = parse_frame(arrival.bytes).unwrap();
            // A client has one port.
            assert_eq!(*ports.entry(arrival.flow).or_insert(frame.source_port), frame.source_port);
            let bytes = payload(arrival.bytes);
            let view = MemcachedView::new(&bytes[..]).unwrap();
            assert_eq!((view.datagram(), view.magic()), ((0, 1), MAGIC_REQUEST));
            assert_eq!(view.body_len() as usize, bytes.len() - MEMCACHED_HEADER_LEN);
            assert_eq!(bytes[20..24], (sequence as u32).to_be_bytes());
            let (extras, rest) = bytes[MEMCACHED_HEADER_LEN..].split_at(view.extras_len().into());
            let (key, value) = rest.split_at(view.key_len().into());
            let mut expected = Vec::new();
            match view.opcode() {
                memcached_opcode::SET => pairs.value(known[key], sequence, &mut expected),
                memcached_opcode::GET | memcached_opcode::DELETE => {
                    assert!(extras.is_empty() && known.contains_key(key))
                }
                other => panic!("{other}"),
            }
            assert_eq!(value, expected);
        }
    }
}

#[test]
fn requests_reach_the_queue_of_their_partition() {
    let (rss, table) = (Toeplitz::default(), IndirectionTable::spread_over(6));
    let mut source = source(config(8, 64));
    let mut per_queue = [0; 6];
    for _ in 0..3_000 {
        let arrival = source.next().unwrap();
        let queue = table.queue(rss.hash(&parse_frame(arrival.bytes).unwrap()));
        let view = KvsView::new(&arrival.bytes[42..]).unwrap();
        assert_eq!(queue, partition_of(view.hash(), 6));
        per_queue[usize::from(queue)] += 1;
    }
    assert!(per_queue.iter().all(|&n| n > 200), "{per_queue:?}");
}

#[test]
fn mix_and_skew_are_as_asked_for() {
    let mut config = config(8, 8);
    (config.put_share, config.delete_share) = (0.8, 0.15);
    config.key_choice = FlowChoice::Zipf { s: 1.0 };
    let first = config.pairs.word(0);
    let mut source = source(config);
    let (mut puts, mut deletes, mut firsts) = (0, 0, 0);
    for _ in 0..20_000 {
        let bytes = source.next().unwrap().bytes;
        let view = KvsView::new(&bytes[42..]).unwrap();
        puts += u32::from(view.operation() == Some(KvsOperation::Put));
        deletes += u32::from(view.operation() == Some(KvsOperation::Delete));
        firsts += u32::from(bytes[42 + KVS_HEADER_LEN..][..8] == first.to_be_bytes());
    }
    assert!((15_800..16_200).contains(&puts), "{puts}");
    assert!((2_800..3_200).contains(&deletes), "{deletes}");
    // The first of 100 ranks: 1 / (1 + 1/2 + ... + 1/100) = 0.1928.
    assert!((3_600..4_100).contains(&firsts), "{firsts}");
}

/// Who asks says nothing about what is asked for.
#[test]
fn clients_and_keys_are_drawn_each_by_itself() {
    let mut config = config(8, 8);
    config.clients = FlowSpace::new(1, 2).unwrap();
    config.pairs = PairSpace::new(1, 2, 8, 8).unwrap();
    let mut source = source(config);
    let mut counts: BTreeMap<(Vec<u8>, Vec<u8>), u32> = BTreeMap::new();
    for _ in 0..4_000 {
        let bytes = source.next().unwrap().bytes;
        let (client, key) = (&bytes[26..30], &bytes[42 + KVS_HEADER_LEN..][..8]);
        *counts.entry((client.to_vec(), key.to_vec())).or_default() += 1;
    }
    let even = counts.values().all(|count| (900..1_100).contains(count));
    assert!(counts.len() == 4 && even, "{counts:?}");
}

#[test]
fn a_closed_loop_waits_for_replies() {
    let mut config = config(8, 8);
    let timeout = Time::from_us(500);
    config.arrival = ArrivalModel::PingPong { in_flight: 2, timeout };
    let mut source = source(config);
    let first = source.next().unwrap().time;
    let second = source.next().unwrap().time;
    assert_eq!(source.next_time(), first + timeout);
    assert!(source.returned(second, Time::from_us(9)));
    assert_eq!(source.next().unwrap().time, Time::from_us(9));
    // The first is never answered.
    assert_eq!(source.next().unwrap().time, first + timeout);
    assert_eq!(source.given_up(), Some(1));
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let refused = |change: fn(&mut RequestConfig)| {
        let mut config = config(8, 8);
        change(&mut config);
        Requests::new(config).unwrap_err().to_string()
    };
    assert!(refused(|c| c.put_share = 1.5).contains("share"));
    assert!(refused(|c| c.delete_share = -0.1).contains("-0.1"));
    assert!(refused(|c| c.delete_share = 0.6).contains("1.1"));
    assert!(refused(|c| c.queues = 129).contains("queues"));
    assert!(refused(|c| c.pairs = PairSpace::new(1, 1, 128, 9200).unwrap()).contains("9394"));
    assert!(refused(|c| c.key_choice = FlowChoice::Zipf { s: 11.0 }).contains("Zipf"));
}
