//! `nat` on fragments and ICMP errors. Judged by etherparse.

use nicforge_apps::{AppConfig, PortMap, Verdict};
use nicforge_nic::{PortId, RxFlags};

use crate::support::{
    Bench, address, answer, decode, fragments, icmp_sum_is_right, ip_packet, one_hop_on, tcp, udp, unreachable,
};

const CLIENT: (&str, u16) = ("10.0.0.1", 1234);
const SERVER: (&str, u16) = ("192.0.2.1", 53);
const ROUTER: &str = "203.0.113.7";

fn bench() -> Bench {
    Bench::new(&AppConfig::new("nat", PortMap::paired(2)).with("table_entries", 100))
}

#[test]
fn both_fragments_are_translated_and_the_whole_is_right() {
    let mut bench = bench();
    let whole = udp(CLIENT, SERVER, &[9; 100]);
    let expected = bench.forward(0, &whole);
    let [first, later] = fragments(&whole, 48, 5);
    assert_eq!(bench.drop(0, &later), "fragment_unknown");
    let first = bench.forward(0, &first);
    let later = bench.forward(0, &later);
    let (a, b) = (decode(&first).unwrap(), decode(&later).unwrap());
    assert!(a.l3_right && b.l3_right);
    assert_eq!(b.source.0, address("198.19.0.0"));
    // Put together, the L4 bytes are those of the unfragmented packet's translation.
    assert_eq!([&first[34..], &later[34..]].concat(), expected[34..]);

    let reply = answer(&expected, &[8; 100]);
    let [first, later] = fragments(&reply, 48, 6);
    let back = [bench.forward(1, &first), bench.forward(1, &later)];
    assert_eq!(decode(&back[1]).unwrap().destination.0, address(CLIENT.0));
    let direct = udp(SERVER, CLIENT, &[8; 100]);
    assert_eq!([&back[0][34..], &back[1][34..]].concat(), direct[34..]);
}

/// Two hosts that use the same identification for the same server are behind one address.
#[test]
fn identifications_of_two_hosts_stay_apart_behind_one_address() {
    let mut bench = bench();
    let ids = |frame: &[u8]| u16::from_be_bytes([frame[18], frame[19]]);
    let mut sent = Vec::new();
    for host in ["10.0.0.1", "10.0.0.2"] {
        let [first, later] = fragments(&udp((host, 1234), SERVER, &[9; 100]), 48, 5);
        sent.push([bench.forward(0, &first), bench.forward(0, &later)]);
    }
    let [[a, a_later], [b, b_later]] = sent.try_into().unwrap();
    assert_eq!((ids(&a), ids(&b)), (ids(&a_later), ids(&b_later)));
    assert_ne!(ids(&a), ids(&b));
    for frame in [a, a_later, b, b_later] {
        assert!(decode(&frame).unwrap().l3_right);
    }
    // What may not be cut keeps its identification, which means nothing.
    let mut whole = udp(CLIENT, SERVER, b"x");
    whole[18..20].copy_from_slice(&[1, 2]);
    assert_eq!(ids(&bench.forward(0, &whole)), 0x0102);
}

/// RFC 5508, section 7 and REQ-3: redirects and source quench do not pass, nor do errors with wrong checksums.
#[test]
fn errors_that_no_nat_may_pass_are_dropped() {
    let mut bench = bench();
    let out = bench.forward(0, &udp(CLIENT, SERVER, b"x"));
    let external = decode(&out).unwrap().source.0.to_string();
    let sound = unreachable(ROUTER, &external, ip_packet(&out), 200);
    for message in [4, 5] {
        let mut other = sound.clone();
        other[34] = message;
        assert_eq!(bench.drop(1, &other), "icmp_message");
    }
    let mut quoted = sound.clone();
    quoted[52] ^= 1;
    assert_eq!(bench.drop(1, &quoted), "icmp_error_checksum");
    bench.flags = RxFlags::L3_GOOD.with(RxFlags::L4_BAD);
    assert_eq!(bench.drop(1, &sound), "icmp_error_checksum");
    bench.flags = RxFlags::default();
    bench.forward(1, &sound);
}

#[test]
fn a_later_fragment_does_not_wait_for_ever() {
    let mut bench = bench();
    let [first, later] = fragments(&udp(CLIENT, SERVER, &[9; 100]), 48, 5);
    bench.forward(0, &first);
    bench.set_now(nicforge_units::Time::from_ms(61_000));
    assert_eq!(bench.drop(0, &later), "fragment_unknown");
}

#[test]
fn an_error_from_outside_reaches_the_client_with_its_own_packet_quoted() {
    for original in [
        udp(CLIENT, SERVER, b"question"),
        tcp(CLIENT, SERVER, "A", b"question"),
        crate::support::echo(CLIENT.0, SERVER.0, 77, false),
    ] {
        // 28: as little as RFC 792 asks for; 200: everything.
        for quoted in [28, 200] {
            let mut bench = bench();
            let out = bench.forward(0, &original);
            let external = decode(&out).unwrap().source.0.to_string();
            let error = unreachable(ROUTER, &external, ip_packet(&out), quoted);
            let back = bench.forward(1, &error);
            let direct = unreachable(ROUTER, CLIENT.0, ip_packet(&one_hop_on(&original)), quoted);
            assert!(icmp_sum_is_right(&back));
            let seen = decode(&back).unwrap();
            assert_eq!(seen.source.0, address(ROUTER));
            assert_eq!(seen.destination.0, address(CLIENT.0));
            assert!(seen.l3_right);
            assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&direct)));
        }
    }
}

/// Where the NIC splits frames, behind the headers or anywhere in what is quoted, errors are translated as
/// elsewhere: by the first byte of the second part, up to behind the quoted TCP checksum.
#[test]
fn an_error_is_translated_wherever_it_is_split() {
    for original in [
        udp(CLIENT, SERVER, b"question"),
        tcp(CLIENT, SERVER, "A", b"question"),
        crate::support::echo(CLIENT.0, SERVER.0, 77, false),
    ] {
        for split in 42..=90 {
            let mut bench = bench();
            let out = bench.forward(0, &original);
            let external = decode(&out).unwrap().source.0.to_string();
            let error = unreachable(ROUTER, &external, ip_packet(&out), 200);
            let whole = bench.forward(1, &error);
            let (verdict, back) = bench.send_split(1, &error, split);
            assert_eq!(verdict, Verdict::Transmit(PortId(0)), "split at {split}");
            assert_eq!(back, whole, "split at {split}");
        }
    }
}

#[test]
fn an_error_from_inside_quotes_the_packet_that_the_server_sent() {
    let mut bench = bench();
    let out = bench.forward(0, &udp(CLIENT, SERVER, b"question"));
    let reply = answer(&out, b"answer");
    let delivered = bench.forward(1, &reply);
    let error = unreachable(CLIENT.0, SERVER.0, ip_packet(&delivered), 200);
    let back = bench.forward(0, &error);
    let external = decode(&out).unwrap().source.0.to_string();
    let direct = unreachable(&external, SERVER.0, ip_packet(&one_hop_on(&reply)), 200);
    assert!(icmp_sum_is_right(&back));
    assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&direct)));
}

/// RFC 5508, section 4.2: hosts that know each other by external endpoints only.
#[test]
fn an_error_between_two_inside_hosts_quotes_what_its_receiver_sent() {
    const OTHER: (&str, u16) = ("10.0.0.2", 4321);
    let config = AppConfig::new("nat", PortMap::paired(2))
        .with("table_entries", 100)
        .with("external_address", "198.19.0.1")
        .with("external_addresses", 1)
        .with("nat_mapping", "endpoint_independent")
        .with("nat_filtering", "endpoint_independent");
    for quoted in [28, 200] {
        let mut bench = Bench::new(&config);
        let other = decode(&bench.forward(0, &udp(OTHER, SERVER, b"x"))).unwrap().source;
        let other_text = other.0.to_string();
        let sent = udp(CLIENT, (&other_text, other.1), b"hello");
        let arrived = bench.forward(0, &sent);
        let external = decode(&arrived).unwrap().source.0.to_string();
        let back = bench.forward(0, &unreachable(OTHER.0, &external, ip_packet(&arrived), quoted));
        let direct = unreachable(&other_text, CLIENT.0, ip_packet(&one_hop_on(&sent)), quoted);
        assert!(icmp_sum_is_right(&back));
        assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&direct)), "{quoted}");
        let about_nothing = unreachable(OTHER.0, &external, ip_packet(&sent), quoted);
        assert_eq!(bench.drop(0, &about_nothing), "icmp_error_no_flow");
    }
}

#[test]
fn errors_about_nothing_are_dropped_by_name() {
    let mut bench = bench();
    let other = udp(("198.19.0.0", 2000), SERVER, b"x");
    let error = unreachable(ROUTER, "198.19.0.0", ip_packet(&other), 200);
    assert_eq!(bench.drop(1, &error), "icmp_error_no_flow");
    for quoted in [0, 10, 20, 27] {
        let error = unreachable(ROUTER, "198.19.0.0", ip_packet(&other), quoted);
        assert_eq!(bench.drop(1, &error), "icmp_error_malformed");
    }
}

#[test]
fn an_error_does_not_keep_a_flow_alive() {
    let mut bench = bench();
    let out = bench.forward(0, &udp(CLIENT, SERVER, b"x"));
    let external = decode(&out).unwrap().source.0.to_string();
    let error = unreachable(ROUTER, &external, ip_packet(&out), 200);
    bench.set_now(nicforge_units::Time::from_ms(299_000));
    bench.forward(1, &error);
    bench.set_now(nicforge_units::Time::from_ms(301_000));
    assert_eq!(bench.drop(1, &error), "icmp_error_no_flow");
}
