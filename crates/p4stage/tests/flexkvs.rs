//! FlexKVS over the custom DMA interface answers as it does without help from the NIC.

mod kvs;

use kvs::{GET, Request, SET, Server, key};
use proptest::prelude::*;

/// A request of a client that asks for all kinds of things.
fn request() -> impl Strategy<Value = Request> {
    let plain = (0u8..2, 0u32..20, 0usize..900).prop_map(|(opcode, number, len)| match opcode {
        0 => Request::get(&key(number)),
        _ => Request::set(&key(number), &vec![len as u8; len]),
    });
    // Deletes, adds, quiet forms, unknown opcodes, keys of other lengths, an expiry, a CAS, lengths that do not fit.
    let odd = (0u8..0x20, 0u32..20, 1usize..60, 0u8..6).prop_map(|(opcode, number, len, wrong)| {
        let mut request = Request::get(&key(number)[..len.min(32)]);
        request.opcode = opcode;
        match wrong {
            0 => request.extras = vec![1, 2, 3, 4, 0, 0, 0, 9],
            1 => request.cas = 7,
            2 => request.body_off = 3,
            3 => request.datagrams = 2,
            4 => request = Request::set(&key(number), &vec![wrong; len]).quiet(opcode),
            5 => request.spoilt = Some((len * 7, number as u8 + 1)),
            _ => {}
        }
        request
    });
    prop_oneof![4 => plain, 1 => odd]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn it_answers_as_without_help(requests in prop::collection::vec(request(), 1..200), together in 1usize..8) {
        let (mut plain, mut helped) = (Server::plain(64), Server::helped(64));
        for requests in requests.chunks(together) {
            let (one, other) = (plain.ask_all(requests), helped.ask_all(requests));
            prop_assert_eq!(one, other, "{:?}", requests);
        }
        prop_assert_eq!(plain.counter("stores"), helped.counter("stores"));
        prop_assert_eq!(plain.counter("get_hits"), helped.counter("get_hits"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Keys move between two cores while requests come; clients see no difference.
    #[test]
    fn keys_are_repartitioned_while_it_runs(
        steps in prop::collection::vec((request(), prop::option::of(any::<u32>())), 1..120),
    ) {
        let (mut plain, mut helped) = (Server::plain(64), Server::helped_on(2, 64));
        helped.partition(1 << 31);
        (0..20).step_by(3).for_each(|number| helped.read_by_all(number));
        for (request, last) in steps {
            if let Some(last) = last {
                helped.partition(last.min(u32::MAX - 1));
            }
            prop_assert_eq!(plain.ask(&request), helped.ask(&request), "{:?}", request);
        }
    }
}

/// Of a key that all cores read, GETs stay where RSS brings their client; SETs go to the key's core (CREW).
#[test]
fn all_cores_read_a_key_and_one_writes_it() {
    let mut server = Server::helped_on(2, 64);
    server.read_by_all(1);
    let mut at_each = |last: u32, request: &Request| {
        server.partition(last);
        let before = [0, 1].map(|core| server.counter_of(core, "messages"));
        server.ask(request).expect("a reply");
        [0, 1].map(|core| server.counter_of(core, "messages") - before[core])
    };
    let (all_to_first, all_to_second) = (u32::MAX - 1, 0);
    let set = Request::set(&key(1), b"value");
    assert_eq!([at_each(all_to_first, &set), at_each(all_to_second, &set)], [[1, 0], [0, 1]]);
    let (own, other) = (Request::get(&key(1)), Request::get(&key(2)));
    assert_eq!(at_each(all_to_first, &own), at_each(all_to_second, &own), "its client's core");
    assert_eq!([at_each(all_to_first, &other), at_each(all_to_second, &other)], [[1, 0], [0, 1]]);
}

#[test]
fn the_nic_takes_headers_off_and_writes_the_log() {
    let mut server = Server::helped(64);
    let stored = server.ask(&Request::set(&key(1), b"a value")).expect("a reply");
    assert_eq!(stored[8 + 6..8 + 8], [0, 0], "stored");
    let got = server.ask(&Request::get(&key(1))).expect("a reply");
    assert_eq!(&got[8 + 24..], [&[0xde, 0xad, 0xbe, 0xef][..], b"a value"].concat());
    assert_eq!(server.counter("messages"), 2);
    // An item of 24 + 32 + 7 bytes and a message with its entry; a message with its entry.
    assert_eq!(server.dma("dma_writes"), 3 + 2);
    assert_eq!(server.dma("dma_written_bytes"), 63 + 40 + 64 + 64 + 64);
    assert_eq!(server.dma("dma_refused"), 0);
}

/// Segments follow each other, fill up, are compacted and come back to the NIC.
#[test]
fn segments_go_round() {
    let (mut plain, mut helped) = (Server::plain(16), Server::helped(16));
    for round in 0..60_000u32 {
        let request = Request::set(&key(round % 50), &[round as u8; 1000]);
        assert_eq!(plain.ask(&request), helped.ask(&request), "{round}");
    }
    for number in 0..50 {
        assert_eq!(plain.ask(&Request::get(&key(number))), helped.ask(&Request::get(&key(number))));
    }
    assert_eq!(helped.counter("messages"), 60_050, "the NIC always had a segment");
}

/// A full log has its answer, and what was stored stays.
#[test]
fn a_full_log_refuses_new_pairs_and_keeps_old_ones() {
    let mut server = Server::helped(10);
    let mut stored = 0;
    let status = |reply: Vec<u8>| u16::from_be_bytes([reply[14], reply[15]]);
    while status(server.ask(&Request::set(&key(stored), &[7; 1200])).expect("a reply")) == 0 {
        stored += 1;
    }
    assert!(stored > 5000, "{stored} pairs");
    assert_eq!(status(server.ask(&Request::set(&key(stored), &[7; 1200])).expect("a reply")), 0x82);
    for number in 0..stored {
        assert_eq!(status(server.ask(&Request::get(&key(number))).expect("a reply")), 0, "{number}");
    }
}

/// A full queue drops requests and counts them; a SET that was dropped took no room in the log.
#[test]
fn a_full_queue_drops_whole_requests() {
    let mut server = Server::helped(64);
    let requests: Vec<_> = (0..100).map(|number| Request::set(&key(number), &[number as u8; 100])).collect();
    let replies = server.ask_all(&requests);
    assert_eq!(replies.iter().flatten().count(), kvs::ENTRIES);
    assert_eq!(server.dropped("no_descriptor"), 100 - kvs::ENTRIES as u64);
    assert_eq!(server.dma("dma_writes"), 3 * kvs::ENTRIES as u64);
    let hits = (0..100).filter(|number| {
        let reply = server.ask(&Request::get(&key(*number))).expect("a reply");
        reply[14..16] == [0, 0]
    });
    assert_eq!(hits.count(), kvs::ENTRIES);
}

/// Software that registers memory which is not the log's harms nobody: the NIC writes nothing and counts.
#[test]
fn addresses_outside_of_registered_memory_are_refused() {
    let mut server = Server::helped(64);
    let before = server.memory();
    for (slot, address) in [0x40u64, 1 << 40, u64::MAX << 6].into_iter().enumerate() {
        server.write_register(1 + slot as u32, address | 1);
    }
    let requests: Vec<_> = (0..5).map(|number| Request::set(&key(number), &[1; 100])).collect();
    assert_eq!(server.ask_all(&requests), vec![None; 5]);
    assert_eq!(server.dropped("dma_outside"), 5);
    assert_eq!(server.dma("dma_refused"), 5);
    assert!(before == server.memory(), "something was written");
    // Other requests are served as ever.
    let reply = server.ask(&Request::get(&key(1))).expect("a reply");
    assert_eq!(reply[14..16], [0, 1]);
    assert_eq!((GET, SET), (0, 1));
}

/// A core that frees no entry loses its own requests, whole and counted; the other's clients notice nothing.
#[test]
fn a_core_that_stops_harms_no_other() {
    let mut server = Server::helped_on(2, 64);
    server.partition(1 << 31);
    let of_first = |number: &u32| nicforge_apps::flexkvs::crc32(&key(*number)) <= 1 << 31;
    let (first, second): (Vec<u32>, Vec<u32>) = (0..200).partition(of_first);
    server.stop(1);
    for &number in &second {
        assert_eq!(server.ask(&Request::set(&key(number), b"lost")), None);
    }
    assert_eq!(server.dropped("no_descriptor"), second.len() as u64 - kvs::ENTRIES as u64);
    for &number in &first {
        let stored = server.ask(&Request::set(&key(number), b"kept")).expect("a reply");
        assert_eq!(stored[14..16], [0, 0], "{number}");
        let got = server.ask(&Request::get(&key(number))).expect("a reply");
        assert!(got.ends_with(b"kept"), "{number}");
    }
}

/// Tails that jump, of either queue, change nothing.
#[test]
fn a_tail_that_jumps_harms_nobody() {
    let mut server = Server::helped_on(2, 64);
    server.partition(1 << 31);
    for (round, value) in [0, 1 << 20, u64::MAX, 1 << 63, 7].into_iter().enumerate() {
        for queue in 0..2 {
            server.write_register(queue, value);
        }
        assert_eq!(server.refused_writes(), 2 * (round as u64 + 1), "{value:#x}");
        for number in 0..20 {
            let stored = server.ask(&Request::set(&key(number), &[round as u8; 50])).expect("a reply");
            assert_eq!(stored[14..16], [0, 0], "{number} after {value:#x}");
        }
    }
}
