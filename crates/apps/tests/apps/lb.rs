//! `lb` on built frames. Judged by etherparse.

use std::collections::BTreeMap;

use nicforge_apps::lb::State;
use nicforge_apps::{AppConfig, PortMap};
use nicforge_units::Time;

use crate::support::{
    Bench, address, answer, decode, echo, icmp_sum_is_right, ip_packet, one_hop_on, tcp, udp, unreachable,
};

fn config() -> AppConfig {
    AppConfig::new("lb", PortMap::one_armed(1)).with("table_entries", 1000)
}

fn flow(port: u16) -> Vec<u8> {
    tcp(("192.0.2.1", port), ("203.0.113.1", 80), "A", b"request")
}

#[test]
fn new_flows_go_round_robin_and_known_ones_stay() {
    let mut bench = Bench::new(&config());
    let mut servers = BTreeMap::new();
    for port in 1..=320 {
        let out = bench.forward(0, &flow(port));
        let seen = decode(&out).unwrap();
        assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
        assert_eq!(seen.source, (address("192.0.2.1"), port));
        assert_eq!((seen.destination.1, seen.ttl), (80, 63));
        servers.insert(port, (seen.destination.0, out[..6].to_vec()));
    }
    let mut load: BTreeMap<_, u32> = BTreeMap::new();
    for server in servers.values() {
        *load.entry(server.clone()).or_default() += 1;
    }
    assert_eq!(load.len(), 32);
    assert!(load.values().all(|&flows| flows == 10));
    for (port, server) in servers.iter().rev() {
        let out = bench.forward(0, &flow(*port));
        assert_eq!((decode(&out).unwrap().destination.0, out[..6].to_vec()), *server);
    }
}

/// Consistent hashing: another core, and this one after the flow has expired, choose the same server.
#[test]
fn a_lost_worker_or_an_expired_flow_keeps_its_server() {
    let config = config().with("lb_choice", "consistent");
    let (mut first, mut second) = (Bench::on_core(&config, 0, 2), Bench::on_core(&config, 1, 2));
    let mut load: BTreeMap<_, u32> = BTreeMap::new();
    let to = |out: Vec<u8>| decode(&out).unwrap().destination.0;
    for port in 1..=400 {
        let server = to(first.forward(0, &flow(port)));
        assert_eq!(to(second.forward(0, &flow(port))), server);
        *load.entry(server).or_default() += 1;
    }
    assert!(load.len() >= 30 && load.values().all(|&flows| flows < 40), "{load:?}");
    first.set_now(Time::from_ms(301_000));
    for port in (1..=400).rev() {
        assert_eq!(to(first.forward(0, &flow(port))), to(second.forward(0, &flow(port))));
    }
    assert!(first.counter("flows_expired") > 300);
}

#[test]
fn a_full_table_drops_new_flows_until_old_ones_expire() {
    let mut config = config();
    config.values.set("table_entries", 50);
    let mut bench = Bench::new(&config);
    for port in 1..=50 {
        bench.forward(0, &flow(port));
    }
    assert_eq!(bench.drop(0, &flow(51)), "table_full");
    bench.forward(0, &flow(50));
    bench.set_now(Time::from_ms(301_000));
    bench.forward(0, &flow(51));
    assert!(bench.counter("flows_expired") > 0);
}

#[test]
fn only_the_service_is_balanced_when_there_is_one() {
    let mut config = config();
    config.values.set("service", "203.0.113.1");
    let mut bench = Bench::new(&config);
    bench.forward(0, &flow(1));
    let other = udp(("192.0.2.1", 1), ("203.0.113.2", 80), b"x");
    assert_eq!(bench.drop(0, &other), "not_the_service");
}

#[test]
fn answers_come_from_the_service_and_open_no_flow() {
    let mut config = config();
    config.values.set("service", "203.0.113.1");
    config.values.set("servers", 2);
    let mut bench = Bench::new(&config);
    let asked = bench.forward(0, &flow(7));
    let seen = decode(&bench.forward(0, &answer(&asked, b"reply"))).unwrap();
    assert_eq!(seen.source, (address("203.0.113.1"), 80));
    assert_eq!(seen.destination, (address("192.0.2.1"), 7));
    assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
    assert_eq!(bench.counter("flows"), 1);
    // 10.200.0.1 and .2 are servers, .3 is none.
    let stranger = udp(("10.200.0.3", 1), ("192.0.2.1", 80), b"x");
    assert_eq!(bench.drop(0, &stranger), "not_the_service");
}

#[test]
fn an_error_reaches_the_server_of_its_flow_with_the_servers_own_packet_quoted() {
    let mut bench = Bench::new(&config());
    const CLIENT: (&str, u16) = ("192.0.2.1", 7);
    type Reply = fn(&str) -> Vec<u8>;
    let exchanges: [(Vec<u8>, Reply); 3] = [
        (flow(7), |from| tcp((from, 80), CLIENT, "A", b"reply")),
        (udp(CLIENT, ("203.0.113.1", 53), b"x"), |from| udp((from, 53), CLIENT, b"reply")),
        (echo(CLIENT.0, "203.0.113.1", 9, false), |from| echo(from, CLIENT.0, 9, true)),
    ];
    for (asked, reply) in exchanges {
        let out = bench.forward(0, &asked);
        let server = decode(&out).unwrap().destination.0.to_string();
        // What the server sends back, and as the client and its routers see it.
        let [sent, seen] = [server.as_str(), "203.0.113.1"].map(reply);
        for quoted in [28, 200] {
            let about = |to: &str, packet: &[u8]| unreachable("198.51.100.1", to, ip_packet(packet), quoted);
            let back = bench.forward(0, &about("203.0.113.1", &seen));
            assert!(icmp_sum_is_right(&back));
            let direct = one_hop_on(&about(&server, &sent));
            assert_eq!(ip_packet(&back), ip_packet(&direct));
            // To the server's own Ethernet address.
            assert_eq!(back[..6], out[..6]);
        }
    }
    assert_eq!(bench.counter("flows"), 3);
}

#[test]
fn errors_about_unknown_flows_are_dropped_by_name_and_open_none() {
    let mut bench = Bench::new(&config());
    let other = tcp(("203.0.113.1", 80), ("192.0.2.1", 7), "A", b"reply");
    let error = |quoted| unreachable("198.51.100.1", "203.0.113.1", ip_packet(&other), quoted);
    assert_eq!(bench.drop(0, &error(200)), "icmp_error_no_flow");
    assert_eq!(bench.drop(0, &error(20)), "icmp_error_malformed");
    bench.forward(0, &flow(7));
    bench.forward(0, &error(200));
    bench.set_now(Time::from_ms(301_000));
    assert_eq!(bench.drop(0, &error(200)), "icmp_error_no_flow");
    assert_eq!(bench.counter("flows_opened"), 1);
}

#[test]
fn a_servers_error_quotes_what_the_client_sent() {
    let mut config = config();
    config.values.set("service", "203.0.113.1");
    let mut bench = Bench::new(&config);
    let asked = flow(7);
    let out = bench.forward(0, &asked);
    let server = decode(&out).unwrap().destination.0.to_string();
    let error = unreachable(&server, "192.0.2.1", ip_packet(&out), 200);
    let back = bench.forward(0, &error);
    assert!(icmp_sum_is_right(&back));
    let direct = unreachable("203.0.113.1", "192.0.2.1", ip_packet(&one_hop_on(&asked)), 200);
    assert_eq!(ip_packet(&back), ip_packet(&one_hop_on(&direct)));
    for split in 42..=90 {
        let (_, in_two) = bench.send_split(0, &error, split);
        assert_eq!(in_two, back, "split at {split}");
    }
}

#[test]
fn packets_without_ports_stick_by_addresses_and_fragments_are_dropped() {
    let mut bench = Bench::new(&config());
    let mut ping = |identifier| {
        let out = bench.forward(0, &echo("192.0.2.1", "203.0.113.1", identifier, false));
        let seen = decode(&out).unwrap();
        assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
        seen.destination
    };
    assert_eq!(ping(1), ping(2));
    let mut fragment = flow(1);
    fragment[20] = 0x20;
    assert_eq!(bench.drop(0, &fragment), "fragment");
    let mut arp = [0u8; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(bench.drop(0, &arp), "not_ipv4");
}

#[test]
fn all_fragments_of_a_packet_go_to_the_server_of_its_flow() {
    let mut config = config();
    config.values.set("service", "203.0.113.1");
    let mut bench = Bench::new(&config);
    // Another flow before it, so that the server is not the first one.
    bench.forward(0, &flow(6));
    let expected = bench.forward(0, &flow(7));
    let [first, later] = crate::support::fragments(&flow(7), 24, 5);
    assert_eq!(bench.drop(0, &later), "fragment_unknown");
    let [first, later] = [bench.forward(0, &first), bench.forward(0, &later)];
    for piece in [&first, &later] {
        assert!(decode(piece).unwrap().l3_right);
        assert_eq!((&piece[..12], &piece[26..34]), (&expected[..12], &expected[26..34]));
    }
    assert_eq!([&first[34..], &later[34..]].concat(), expected[34..]);
    let reply = answer(&expected, &[8; 100]);
    for piece in crate::support::fragments(&reply, 48, 6) {
        let seen = decode(&bench.forward(0, &piece)).unwrap();
        assert_eq!(seen.source.0, address("203.0.113.1"));
    }
}

/// Weights say how new flows are shared; flows of a server that goes down go to others, and those of one that only gets no
/// new flows stay.
#[test]
fn new_flows_are_shared_by_weight_and_leave_servers_that_are_down() {
    for choice in ["round_robin", "consistent"] {
        let config = config().with("lb_choice", choice).with("servers", 4);
        let states = |weights: [u32; 4], down: usize| {
            let state = |(server, weight)| State { weight, down: server == down };
            weights.into_iter().enumerate().map(state).collect::<Vec<_>>()
        };
        config.servers.set(states([1, 3, 0, 4], 9));
        let mut bench = Bench::new(&config);
        let mut to = |port: u16| decode(&bench.forward(0, &flow(port))).unwrap().destination.0.octets()[3] - 1;
        let first: Vec<u8> = (1..=400).map(&mut to).collect();
        let load = [0, 1, 2, 3].map(|server| first.iter().filter(|&&at| at == server).count());
        let fair = [50, 150, 0, 200];
        let slack = if choice == "consistent" { 40 } else { 4 };
        assert!(load.iter().zip(fair).all(|(&is, should)| is.abs_diff(should) <= slack), "{choice}: {load:?}");
        // Server 1 drains, server 3 is down.
        config.servers.set(states([1, 0, 2, 0], 3));
        let then: Vec<u8> = (1..=400).map(&mut to).collect();
        for (before, after) in first.iter().zip(&then) {
            assert!(if *before == 3 { [0, 2].contains(after) } else { before == after }, "{choice}: {before} {after}");
        }
        assert!((401..=440).map(&mut to).all(|server| [0, 2].contains(&server)), "{choice}");
        assert_eq!(bench.counter("flows_moved"), load[3] as u64);
        config.servers.set(states([0; 4], 9));
        assert_eq!(bench.drop(0, &flow(9000)), "no_server");
    }
}
