//! Which queue frames go to.

use nicforge_platform::{AddressSpace, Cpu};

use super::*;
use crate::mock::MockHost;

fn host() -> MockHost {
    MockHost::new(&AddressSpace::default())
}

/// A rule of ranges.
fn ranges(first_address: u32, addresses: u32, first_port: u16, share: u32) -> PortRule {
    PortRule { first_address, addresses, ports: PortQueues::Ranges { first_port, share } }
}

const ENTRIES: u32 = INDIRECTION_ENTRIES as u32;

#[test]
fn each_set_has_queues_of_its_own() {
    let mut steering = Steering::new(6, 2);
    for (set, first) in [(0, 0), (1, 3), (0, 0)] {
        assert!(steering.write_register(0, set));
        assert_eq!(u64::from(steering.active()), set);
        let queues: Vec<u16> = (0..4).map(|hash| steering.queue(hash)).collect();
        assert_eq!(queues, [first, first + 1, first + 2, first]);
    }
}

#[test]
fn an_entry_of_either_table_can_be_changed() {
    let mut steering = Steering::new(4, 2);
    assert!(steering.write_register(1 + 7, 0));
    assert!(steering.write_register(1 + ENTRIES + 7, 1));
    assert_eq!(steering.queue(7), 0);
    assert!(steering.write_register(0, 1));
    assert_eq!((steering.queue(7), steering.queue(9)), (1, 3));
}

#[test]
fn sets_and_queues_that_there_are_not_change_nothing() {
    let mut steering = Steering::new(4, 2);
    let before = steering.clone();
    for value in [4, 5, 1 << 16, (1 << 16) + 1, u64::MAX] {
        assert!(!steering.write_register(0, value));
        assert!(!steering.write_register(1, value));
        assert!(!steering.write_register(ENTRIES + 1, value));
    }
    for register in [1 + 2 * ENTRIES, 1 << 20, u32::MAX] {
        assert!(!steering.write_register(register, 0));
    }
    assert!(!steering.write_register(0, 2));
    assert_eq!(steering, before);
}

/// An IPv4 frame to 10.0.0.9 with protocol and L4 bytes.
fn frame(protocol: u8, l4: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 20 + l4.len() as u8, 0, 0, 0, 0, 64, protocol]);
    frame.extend([0, 0, 192, 0, 2, 1, 10, 0, 0, 9]);
    frame.extend(l4);
    frame
}

fn steered(steering: &mut Steering, frame: &[u8]) -> u16 {
    let summary = nicforge_wire::parse_frame(frame).unwrap();
    steering.queue_of(&mut host(), frame, &summary, &Toeplitz::default(), 3)
}

/// What a host behind a balancer sent to a client, and a router on the way could not send on.
#[test]
fn an_error_goes_to_the_queue_of_the_flow_that_it_quotes() {
    let by_addresses = Steering::new(16, 1);
    let mut steering = by_addresses.clone();
    steering.follow_flows();
    let rss = Toeplitz::default();
    let queue_of = |steering: &Steering, frame: &[u8]| {
        let mut steering = steering.clone();
        let summary = nicforge_wire::parse_frame(frame).unwrap();
        steering.queue_of(&mut host(), frame, &summary, &rss, rss.hash(&summary))
    };
    let turned = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        for byte in 0..4 {
            frame.swap(26 + byte, 30 + byte);
        }
        frame
    };
    let mut apart = 0;
    for port in 0..200u16 {
        let [high, low] = port.to_be_bytes();
        let asks = frame(17, &[high, low, 0, 53, 0, 8, 0, 0]);
        let answers = turned(&frame(17, &[0, 53, high, low, 0, 8, 0, 0]));
        let error = frame(1, &[&[3, 4, 0, 0, 0, 0, 0, 0], &answers[14..]].concat());
        let queue = queue_of(&steering, &asks);
        assert_eq!(queue_of(&steering, &error), queue);
        apart += u32::from(queue_of(&by_addresses, &error) != queue);
        // As fragments are steered after their first one, which has ports.
        let first = fragment(answers, 7, 0, true);
        let error = frame(1, &[&[11, 1, 0, 0, 0, 0, 0, 0], &first[14..]].concat());
        assert_eq!(queue_of(&steering, &error), queue);
    }
    assert!(apart > 100, "{apart} of 200 would have gone elsewhere");
    // An echo is known by its addresses.
    let asks = frame(1, &[8, 0, 0, 0, 0, 7, 0, 1]);
    let answers = turned(&frame(1, &[0, 0, 0, 0, 0, 7, 0, 1]));
    let error = frame(1, &[&[11, 0, 0, 0, 0, 0, 0, 0], &answers[14..]].concat());
    assert_eq!(queue_of(&steering, &error), queue_of(&steering, &asks));
    // Cut short, it is as any other.
    let mut cut = error.clone();
    cut.truncate(14 + 20 + 8 + 19);
    cut[17] = 20 + 8 + 19;
    queue_of(&steering, &cut);
}

#[test]
fn a_rule_finds_the_queue_of_what_comes_back() {
    let mut steering = Steering::new(4, 1);
    // Ports from 1000: 100 for each queue.
    steering.set_rule(ranges(0x0a00_0008, 2, 1000, 100));
    let udp = |port: u16| {
        let [high, low] = port.to_be_bytes();
        frame(17, &[0, 53, high, low, 0, 8, 0, 0])
    };
    // Queue 3 is that of the hash, for ports of nobody.
    for (port, queue) in [(1000, 0), (1099, 0), (1100, 1), (1399, 3), (1400, 3), (999, 3)] {
        assert_eq!(steered(&mut steering, &udp(port)), queue, "port {port}");
    }
    let [high, low] = 1250u16.to_be_bytes();
    let echo = frame(1, &[0, 0, 0, 0, high, low, 0, 1]);
    assert_eq!(steered(&mut steering, &echo), 2);
    let quoted = &frame(17, &[high, low, 0, 53, 0, 8, 0, 0])[14..];
    let error = frame(1, &[&[3, 3, 0, 0, 0, 0, 0, 0], quoted].concat());
    assert_eq!(steered(&mut steering, &error), 2);
    let mut cut = error.clone();
    cut.truncate(error.len() - 9);
    cut[17] -= 9;
    assert_eq!(steered(&mut steering, &cut), 3, "too little is quoted");
    let mut other = udp(1250);
    other[33] = 10;
    assert_eq!(steered(&mut steering, &other), 3, "10.0.0.10 has no rule");
}

/// `frame` as a fragment of packet `identification`, of which more follow or not.
fn fragment(mut frame: Vec<u8>, identification: u8, offset: u8, more: bool) -> Vec<u8> {
    frame[19] = identification;
    frame[20] = if more { 0x20 } else { 0 };
    frame[21] = offset;
    frame
}

#[test]
fn later_fragments_follow_the_first_one() {
    let mut steering = Steering::new(8, 2);
    steering.set_rule(ranges(0x0a00_0008, 2, 1000, 100));
    steering.follow_flows();
    let first = |port: u16, identification| {
        let [high, low] = port.to_be_bytes();
        let udp = frame(17, &[0, 53, high, low, 0, 8, 0, 0]);
        fragment(udp, identification, 0, true)
    };
    let later = |identification, more| fragment(frame(17, &[9; 16]), identification, 1, more);
    // Queue 3 is that of the hash: nobody knows the packet yet.
    assert_eq!(steered(&mut steering, &later(7, true)), 3);
    assert_eq!(steered(&mut steering, &first(1250, 7)), 2);
    assert_eq!(steered(&mut steering, &first(1150, 8)), 1);
    for _ in 0..2 {
        assert_eq!(steered(&mut steering, &later(7, true)), 2);
        assert_eq!(steered(&mut steering, &later(8, false)), 1);
    }
    assert_eq!(steered(&mut steering, &later(9, false)), 3);
    let mut other = later(7, false);
    other[23] = 6;
    assert_eq!(steered(&mut steering, &other), 3, "another protocol's");
    // The same core's queue, of the other set.
    assert!(steering.write_register(0, 1));
    assert_eq!(steered(&mut steering, &later(7, false)), 4 + 2);
    // As the rule has it, and back again.
    assert_eq!(steered(&mut steering, &first(1150, 10)), 4 + 1);
    assert_eq!(steered(&mut steering, &later(10, true)), 4 + 1);
    assert!(steering.write_register(0, 0));
    assert_eq!(steered(&mut steering, &later(10, false)), 1);
}

#[test]
fn fragments_go_where_the_whole_packet_goes() {
    let mut steering = Steering::new(16, 1);
    steering.follow_flows();
    let rss = Toeplitz::default();
    let mut queue_of = |frame: &[u8]| {
        let summary = nicforge_wire::parse_frame(frame).unwrap();
        steering.queue_of(&mut host(), frame, &summary, &rss, rss.hash(&summary))
    };
    let mut queues = std::collections::BTreeSet::new();
    for port in 0..50u8 {
        let whole = frame(17, &[0, 53, 0x12, port, 0, 8, 0, 0]);
        let queue = queue_of(&whole);
        assert_eq!(queue_of(&fragment(whole.clone(), port, 0, true)), queue);
        assert_eq!(queue_of(&fragment(whole, port, 1, false)), queue);
        queues.insert(queue);
    }
    assert!(queues.len() > 8, "{queues:?}");
}

/// One inside endpoint, whatever it sends to: TCP or UDP, queries by identifier, and errors about what it received.
#[test]
fn packets_that_leave_a_network_go_by_their_source() {
    let mut steering = Steering::new(16, 1);
    steering.set_rule(ranges(0xc633_0001, 1, 1024, 4000));
    steering.follow_flows();
    steering.by_source();
    let to = |mut frame: Vec<u8>, last: u8| {
        frame[33] = last;
        frame
    };
    let mut queues = std::collections::BTreeSet::new();
    for port in 0..40u8 {
        let udp = |destination: u8| to(frame(17, &[0x12, port, 0, destination, 0, 8, 0, 0]), destination);
        let queue = steered(&mut steering, &udp(1));
        queues.insert(queue);
        for destination in 2..9 {
            assert_eq!(steered(&mut steering, &udp(destination)), queue);
        }
        assert_eq!(steered(&mut steering, &fragment(udp(3), port, 0, true)), queue);
        assert_eq!(steered(&mut steering, &fragment(udp(3), port, 1, false)), queue);
        let query = to(frame(1, &[8, 0, 0, 0, 0x12, port, 0, 1]), 5);
        assert_eq!(steered(&mut steering, &query), queue);
        // An answer to the endpoint is what it sends an error about.
        let mut answer = frame(17, &[0, 9, 0x12, port, 0, 8, 0, 0]);
        for byte in 0..4 {
            answer.swap(26 + byte, 30 + byte);
        }
        let error = to(frame(1, &[&[3, 3, 0, 0, 0, 0, 0, 0], &answer[14..]].concat()), 7);
        assert_eq!(steered(&mut steering, &error), queue);
    }
    assert!(queues.len() > 8, "{queues:?}");
}

#[test]
fn frames_of_a_queue_that_nobody_serves_are_spread_over_the_others() {
    let mut steering = Steering::new(8, 2);
    let before: Vec<u16> = (0..2048).map(|hash| steering.queue(hash)).collect();
    steering.set_away(1, true);
    steering.set_away(3, true);
    let mut moved = std::collections::BTreeSet::new();
    for (hash, &was) in (0..).zip(&before) {
        let now = steering.queue(hash);
        match was {
            1 | 3 => assert!(moved.insert(now) || [0, 2].contains(&now), "{now}"),
            _ => assert_eq!(now, was),
        }
    }
    assert_eq!(moved.into_iter().collect::<Vec<_>>(), [0, 2]);
    // Both queues of the pair are away: nobody takes their place.
    steering.set_away(0, true);
    steering.set_away(2, true);
    assert_eq!(steering.queue(1), 1);
    [0, 1, 2, 3].iter().for_each(|&queue| steering.set_away(queue, false));
    assert!((0..2048).map(|hash| steering.queue(hash)).eq(before));
}

/// Ports of 10.0.0.8 and 10.0.0.9, whose owners a table in memory says.
#[test]
fn a_table_says_who_owns_a_port_while_owners_change() {
    let mut space = AddressSpace::default();
    let owners = PortOwners { at: space.data(PortOwners::bytes(2), 64), addresses: 2 };
    let mut host = MockHost::new(&space);
    let own = |host: &mut MockHost, protocol, port, owner: u64| {
        let place = owners.place(protocol, 1, port).unwrap();
        let word: u64 = host.memory.load(place.at);
        host.memory.store(place.at, word & !(0xffff << place.shift) | owner << place.shift);
    };
    let inside = (Ipv4Addr::new(192, 168, 0, 80), 8080);
    let forwards = vec![ForwardedPort { protocol: 6, port: 80, inside }];
    let mut steering = Steering::new(4, 1);
    let ports = PortQueues::Owned(OwnedPorts { owners, first_core: 4, forwards });
    steering.set_rule(PortRule { first_address: 0x0a00_0008, addresses: 2, ports });
    steering.by_source();
    let mut queue_of = |host: &mut MockHost, frame: &[u8]| {
        let summary = nicforge_wire::parse_frame(frame).unwrap();
        steering.queue_of(host, frame, &summary, &Toeplitz::default(), 3)
    };
    let l4 = |from: u16, to: u16| [from.to_be_bytes(), to.to_be_bytes(), [0, 8], [0, 0]].concat();
    let tcp = |from: u16, to: u16| [l4(from, to), vec![0; 4], vec![0x50], vec![0; 7]].concat();
    let udp = frame(17, &l4(53, 5001));
    // Queue 3 is that of the hash, where there is no owner, or one that this NIC does not serve.
    for (owner, queue) in [(0, 3), (1, 3), (4, 3), (5, 0), (7, 2), (6, 1), (9, 3), (0xffff, 3)] {
        own(&mut host, 1, 5001, owner);
        assert_eq!(queue_of(&mut host, &udp), queue, "owner {owner}");
    }
    // Neighbours in the word, and number spaces of other protocols, are others'.
    own(&mut host, 1, 5001, 5);
    own(&mut host, 1, 5002, 6);
    own(&mut host, 2, 5001, 7);
    assert_eq!(queue_of(&mut host, &udp), 0);
    assert_eq!(queue_of(&mut host, &frame(17, &l4(53, 5002))), 1);
    assert_eq!(queue_of(&mut host, &frame(6, &tcp(80, 5001))), 3);
    for answer in [0, 14, 16, 18] {
        let [high, low] = 5001u16.to_be_bytes();
        let answer = frame(1, &[answer, 0, 0, 0, high, low, 0, 1]);
        assert_eq!(queue_of(&mut host, &answer), 2);
    }
    let error = frame(1, &[&[3, 3, 0, 0, 0, 0, 0, 0], &frame(17, &l4(5002, 53))[14..]].concat());
    assert_eq!(queue_of(&mut host, &error), 1, "as what answers the packet that it quotes");
    assert_eq!(queue_of(&mut host, &frame(17, &l4(53, 1023))), 3);
    // What is forwarded goes where its server's packets go; the second address forwards nothing.
    let with = |from: [u8; 4], to: [u8; 4], l4: Vec<u8>| {
        let mut frame = frame(6, &l4);
        frame[26..30].copy_from_slice(&from);
        frame[30..34].copy_from_slice(&to);
        frame
    };
    let out = with(inside.0.octets(), [203, 0, 113, 9], tcp(8080, 40_000));
    let sent = queue_of(&mut host, &out);
    assert_ne!(sent, 3, "the hash's queue would show nothing");
    assert_eq!(queue_of(&mut host, &with([203, 0, 113, 9], [10, 0, 0, 8], tcp(40_000, 80))), sent);
    assert_eq!(queue_of(&mut host, &with([203, 0, 113, 9], [10, 0, 0, 9], tcp(40_000, 80))), 3);
}

/// The table is read ahead: frames behind are not held up, and the frame's queue is known when it is there.
#[test]
fn a_table_takes_as_long_as_a_read_of_memory() {
    let mut space = AddressSpace::default();
    let owners = PortOwners { at: space.data(PortOwners::bytes(1), 64), addresses: 1 };
    let mut host = MockHost::new(&space);
    let mut steering = Steering::new(4, 1);
    let ports = PortQueues::Owned(OwnedPorts { owners, first_core: 0, forwards: Vec::new() });
    steering.set_rule(PortRule { first_address: 0x0a00_0009, addresses: 1, ports });
    let udp = frame(17, &[0, 53, 0x20, 0, 0, 8, 0, 0]);
    let summary = nicforge_wire::parse_frame(&udp).unwrap();
    steering.queue_of(&mut host, &udp, &summary, &Toeplitz::default(), 3);
    assert_eq!((host.now, steering.known_at()), (Time::ZERO, host.read));
}
