//! Dialogues: handshakes, refusals, resets, cookies, ICMP (RFC 9293, 5961, 4987, 5927, 1191, 6528, 6056, 6691).

mod dialogue;

use dialogue::{Dialogue, say};
use nicforge_tcp::Config;
use nicforge_tcp::conn::{ConnectionError, State};
use nicforge_units::Time;

fn plain() -> Config {
    Config { timestamps: false, ..Config::default() }
}

#[test]
fn a_passive_open_agrees_on_what_both_offer() {
    let mut d = Dialogue::new(Config::default()).listen(4);
    d.send(say("S", 0, 0, 0).mss(1000).sack_ok().ts(7, 0).scale(5));
    let syn_ack = d.expect("SA", 0, 0, 1);
    assert_eq!((syn_ack.options.mss, syn_ack.options.sack_permitted), (Some(1460), true));
    assert_eq!(syn_ack.options.timestamps.map(|clock| clock.echo), Some(7));
    d.send(say("A", 1, 0, 1).win(100).ts(8, syn_ack.options.timestamps.unwrap().value));
    d.accept();
    let agreed = d.connection().agreed();
    assert!(agreed.sack && agreed.timestamps && agreed.window_scaling);
    assert_eq!(d.connection().flow.protocol.remote_win, 100 << 5);
    assert_eq!(d.connection().segment_size(), 1000 - 12);
}

#[test]
fn a_peer_without_mss_option_gets_segments_of_536_bytes() {
    let mut d = Dialogue::opened_by(plain(), say("S", 0, 0, 0));
    d.write(600);
    d.expect("A", 1, 536, 1);
    assert!(!d.connection().agreed().window_scaling);
}

#[test]
fn an_active_open_retries_with_doubled_timeouts_and_gives_up() {
    let mut d = Dialogue::new(Config { syn_retries: 3, ..plain() });
    d.connect();
    let mut times = Vec::new();
    d.wait_ms(60_000);
    while let Some(heard) = d.hear() {
        assert_eq!((heard.flags, heard.seq), (dialogue::flags("S"), 0));
        times.push(d.ms(&heard));
    }
    assert_eq!(times, [0, 1000, 3000, 7000]);
    assert_eq!(d.connection().error(), Some(ConnectionError::TimedOut));
}

/// As TAS does it: half of the timeout less or more, by chance.
#[test]
fn a_spread_handshake_repeats_around_its_timeouts() {
    let mut d = Dialogue::new(Config { syn_retries: 3, handshake_spread: true, ..plain() });
    d.connect();
    let mut times = Vec::new();
    d.wait_ms(60_000);
    while let Some(heard) = d.hear() {
        times.push(d.ms(&heard));
    }
    assert_eq!((times.len(), times[0]), (4, 0));
    for (pair, usual) in times.windows(2).zip([1000, 2000, 4000]) {
        let waited = pair[1] - pair[0];
        assert!(waited >= usual / 2 && waited <= usual * 3 / 2 && waited != usual, "{times:?}");
    }
}

#[test]
fn an_active_open_completes_and_a_wrong_acknowledgment_is_reset() {
    let mut d = Dialogue::new(plain());
    d.connect();
    d.expect("S", 0, 0, 0);
    d.send(say("SA", 0, 0, 9));
    d.expect("R", 9, 0, 0);
    d.send(say("SA", 0, 0, 1).mss(1200));
    d.expect("A", 1, 0, 1);
    assert_eq!(d.connection().state(), State::Established);
}

#[test]
fn a_reset_refuses_an_open_only_when_it_acknowledges_the_syn() {
    let mut d = Dialogue::new(plain());
    d.connect();
    d.send(say("R", 0, 0, 0));
    assert_eq!(d.connection().state(), State::SynSent);
    d.send(say("RA", 0, 0, 1));
    assert_eq!(d.connection().error(), Some(ConnectionError::Refused));
}

#[test]
fn crossing_syns_open_one_connection() {
    let mut d = Dialogue::new(plain());
    d.connect();
    d.expect("S", 0, 0, 0);
    d.send(say("S", 0, 0, 0).mss(1000));
    d.expect("SA", 0, 0, 1);
    d.send(say("A", 1, 0, 1));
    assert_eq!(d.connection().state(), State::Established);
    d.write(10);
    d.expect("PA", 1, 10, 1);
}

#[test]
fn a_closed_port_answers_with_reset_and_never_a_reset() {
    let mut d = Dialogue::new(plain());
    d.send(say("S", 0, 0, 0));
    d.expect("RA", 0u32.wrapping_sub(d.iss.0), 0, 1);
    d.send(say("A", 7, 0, 9));
    let heard = d.hear().unwrap();
    assert_eq!((heard.flags, heard.seq), (dialogue::flags("R"), 9));
    d.send(say("R", 7, 0, 9));
    d.silence();
}

#[test]
fn a_syn_ack_is_sent_again_until_it_is_acknowledged() {
    let mut d = Dialogue::new(plain()).listen(4);
    d.send(say("S", 0, 0, 0));
    d.expect("SA", 0, 0, 1);
    d.wait_ms(999);
    d.silence();
    d.wait_ms(2_500);
    d.expect("SA", 0, 0, 1);
    d.expect("SA", 0, 0, 1);
    d.send(say("S", 0, 0, 0));
    d.expect("SA", 0, 0, 1);
    d.send(say("A", 1, 0, 7));
    d.expect("R", 7, 0, 0);
    d.send(say("A", 1, 0, 1));
    d.accept();
}

#[test]
fn resets_must_hit_the_expected_number() {
    let mut d = Dialogue::opened(plain());
    d.send(say("R", 100_000_000, 0, 0));
    d.silence();
    d.send(say("R", 500, 0, 0));
    d.expect("A", 1, 0, 1);
    assert_eq!(d.connection().state(), State::Established);
    d.send(say("R", 1, 0, 0));
    assert_eq!((d.connection().state(), d.connection().error()), (State::Closed, Some(ConnectionError::Reset)));
}

#[test]
fn challenges_are_limited_in_rate() {
    let mut d = Dialogue::opened(plain());
    for _ in 0..5 {
        d.send(say("S", 1, 0, 0));
    }
    d.expect("A", 1, 0, 1);
    d.silence();
    d.wait_ms(500);
    d.send(say("A", 1, 0, 1000));
    d.expect("A", 1, 0, 1);
    assert_eq!(d.connection().counters().challenges, 2);
}

#[test]
fn cookies_open_connections_when_the_backlog_is_full() {
    let mut d = Dialogue::new(Config::default()).listen(1);
    d.send(say("S", 0, 0, 0).mss(1000));
    d.expect("SA", 0, 0, 1);
    d.peer_port = 40_001;
    d.send(say("S", 0, 0, 0).mss(1300).sack_ok().ts(5, 0).scale(6));
    let cookie = d.expect("SA", 0, 0, 1);
    assert_eq!(d.stack.counters().cookies_out, 1);
    d.wait_ms(100);
    d.send(say("A", 1, 0, 2).ts(6, cookie.options.timestamps.unwrap().value));
    assert_eq!(d.stack.counters().cookies_bad, 1);
    assert!(d.hear().is_some_and(|heard| heard.flags == dialogue::flags("R")));
    d.send(say("PA", 1, 10, 1).win(100).ts(6, cookie.options.timestamps.unwrap().value));
    d.accept();
    assert_eq!(d.read(100), 10);
    let agreed = d.connection().agreed();
    assert_eq!((agreed.peer_mss, agreed.sack, agreed.window_scaling), (1300, true, true));
    assert_eq!(d.connection().flow.protocol.remote_win, 100 << 6);
}

#[test]
fn without_cookies_a_full_backlog_drops() {
    let mut d = Dialogue::new(Config { syn_cookies: false, ..plain() }).listen(1);
    d.send(say("S", 0, 0, 0));
    d.expect("SA", 0, 0, 1);
    d.peer_port = 40_001;
    d.send(say("S", 0, 0, 0));
    d.silence();
    assert_eq!(d.stack.counters().backlog_full, 1);
}

#[test]
fn a_router_makes_segments_smaller_at_once() {
    let mut d = Dialogue::opened_by(plain(), say("S", 0, 0, 0).mss(1460));
    d.write(1460);
    d.expect("PA", 1, 1460, 1);
    d.icmp(3, 4, [0, 0, 0x03, 0xe8], 5_000_000);
    d.silence();
    d.icmp(3, 4, [0, 0, 0x03, 0xe8], 1);
    d.expect("A", 1, 960, 1);
    d.expect("PA", 961, 500, 1);
    d.icmp(3, 4, [0, 0, 0, 20], 1);
    assert_eq!(d.connection().segment_size(), 512, "no path is narrower");
}

#[test]
fn icmp_ends_an_opening_but_not_an_open_connection() {
    let mut d = Dialogue::new(plain());
    d.connect();
    d.expect("S", 0, 0, 0);
    d.icmp(3, 1, [0; 4], 77);
    assert_eq!(d.connection().state(), State::SynSent, "the number is outside what was sent");
    d.icmp(3, 1, [0; 4], 0);
    assert_eq!(d.connection().error(), Some(ConnectionError::HostUnreachable));
    let mut d = Dialogue::opened(plain());
    d.write(10);
    d.icmp(3, 3, [0; 4], 1);
    assert_eq!(d.connection().state(), State::Established);
}

#[test]
fn initial_numbers_and_ports_differ_by_peer_and_move_with_time() {
    let mut d = Dialogue::new(plain());
    let mut seen = Vec::new();
    for _ in 0..20 {
        d.connect();
        let syn = d.expect("S", 0, 0, 0);
        seen.push((d.iss, syn.port));
        d.wait(Time::from_us(4));
    }
    let ports: std::collections::BTreeSet<u16> = seen.iter().map(|(_, port)| *port).collect();
    assert_eq!(ports.len(), 20);
    assert!(ports.iter().all(|port| (32768..=60999).contains(port)));
    let numbers: std::collections::BTreeSet<u32> = seen.iter().map(|(iss, _)| iss.0).collect();
    assert_eq!(numbers.len(), 20);
}
