//! Dialogues: retransmission, SACK, ECN (RFC 6298, 5681, 6582, 2018, 2883, 8985, 3168, 8257, 5682).

mod dialogue;

use dialogue::{Dialogue, say};
use nicforge_tcp::Config;
use nicforge_tcp::config::EcnMode;
use nicforge_tcp::congestion::Algorithm;
use nicforge_tcp::segment::{Ecn, Flags};
use nicforge_units::Time;

fn reno() -> Config {
    Config { timestamps: false, algorithm: Algorithm::Reno, ..Config::default() }
}

/// Round trips of 20 ms.
fn with_sack() -> Dialogue {
    far(say("S", 0, 0, 0).mss(1000).sack_ok())
}

fn without_sack() -> Dialogue {
    far(say("S", 0, 0, 0).mss(1000))
}

fn far(syn: dialogue::Say) -> Dialogue {
    let mut d = Dialogue::new(reno()).listen(8);
    d.rtt = Time::from_ms(20);
    d.opens(syn)
}

fn window(d: &Dialogue) -> u32 {
    let info = d.connection().info(d.now);
    u32::from_ne_bytes(info[80..84].try_into().unwrap())
}

#[test]
fn timeouts_double_and_the_window_falls_to_one_segment() {
    let mut d = Dialogue::opened(reno());
    d.write(3000);
    let mut times = Vec::new();
    d.wait_ms(10_000);
    while let Some(heard) = d.hear() {
        if heard.seq == 1 {
            times.push(d.ms(&heard));
        }
    }
    assert_eq!(times, [0, 200, 600, 1400, 3000, 6200], "the handshake took no time, so the least timeout holds");
    assert_eq!(window(&d), 1);
    d.send(say("A", 1, 0, 1001));
    d.expect("A", 1001, 1000, 1);
}

#[test]
fn three_duplicates_send_one_segment_again_and_partial_acknowledgments_the_next() {
    let mut d = without_sack();
    d.write(10_000);
    for at in 0..10 {
        assert_eq!(d.hear().map(|heard| heard.seq), Some(1 + at * 1000));
    }
    d.wait_ms(50);
    d.send(say("A", 1, 0, 1));
    d.send(say("A", 1, 0, 1));
    d.silence();
    d.send(say("A", 1, 0, 1));
    d.expect("A", 1, 1000, 1);
    assert_eq!(d.connection().counters().fast_recoveries, 1);
    d.send(say("A", 1, 0, 3001));
    d.silence();
    // As much is in flight as the reduced window allows; the next departure makes room.
    d.send(say("A", 1, 0, 3001));
    d.expect("A", 3001, 1000, 1);
    d.send(say("A", 1, 0, 10_001));
    assert_eq!(d.connection().counters().retransmitted, 2);
    assert!(window(&d) <= 7, "{}", window(&d));
}

#[test]
fn a_fin_is_no_duplicate_acknowledgment() {
    let mut d = without_sack();
    d.write(5000);
    while d.hear().is_some() {}
    d.wait_ms(50);
    d.send(say("A", 1, 0, 1));
    d.send(say("A", 1, 0, 1));
    d.silence();
    d.send(say("FA", 1, 0, 1));
    d.wait_ms(50);
    d.expect("A", 5001, 0, 2);
    d.silence();
    d.send(say("A", 2, 0, 1));
    d.expect("A", 1, 1000, 2);
}

#[test]
fn limited_transmit_sends_new_data_for_the_first_duplicates() {
    let mut d = without_sack();
    d.write(15_000);
    while d.hear().is_some() {}
    d.wait_ms(20);
    d.send(say("A", 1, 0, 1));
    d.expect("A", 10_001, 1000, 1);
    d.wait_ms(2);
    d.send(say("A", 1, 0, 1));
    d.expect("A", 11_001, 1000, 1);
}

#[test]
fn sack_reports_the_most_recent_block_first_and_duplicates_before_all() {
    let mut d = with_sack();
    d.send(say("A", 2001, 1000, 1));
    assert_eq!(d.expect("A", 1, 0, 1).sack, [(2001, 3001)]);
    d.send(say("A", 4001, 1000, 1));
    assert_eq!(d.expect("A", 1, 0, 1).sack, [(4001, 5001), (2001, 3001)]);
    d.send(say("A", 3001, 1000, 1));
    assert_eq!(d.expect("A", 1, 0, 1).sack, [(2001, 5001)]);
    d.send(say("A", 2501, 100, 1));
    assert_eq!(d.expect("A", 1, 0, 1).sack, [(2501, 2601), (2001, 5001)]);
    d.send(say("A", 1, 2000, 1));
    assert!(d.expect("A", 1, 0, 5001).sack.is_empty());
    d.send(say("A", 1, 500, 1));
    assert_eq!(d.expect("A", 1, 0, 5001).sack, [(1, 501)]);
}

#[test]
fn sack_repairs_exactly_the_holes() {
    let mut d = with_sack();
    d.write(10_000);
    while d.hear().is_some() {}
    d.wait_ms(20);
    d.send(say("A", 1, 0, 1).sack(1001, 2001));
    d.send(say("A", 1, 0, 1).sack(1001, 3001));
    d.send(say("A", 1, 0, 1).sack(1001, 3001).sack(4001, 10_001));
    let mut again = Vec::new();
    for _ in 0..3 {
        while let Some(heard) = d.hear() {
            again.push((heard.seq, heard.len));
        }
        d.wait_ms(5);
    }
    assert_eq!(again, [(1, 1000), (3001, 1000)]);
    d.send(say("A", 1, 0, 10_001));
    assert_eq!(d.connection().counters().timeouts, 0);
}

#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    let mut d = with_sack();
    d.write(3000);
    while d.hear().is_some() {}
    d.wait_ms(100);
    let probe = d.expect("PA", 2001, 1000, 1);
    assert_eq!(d.ms(&probe), 62, "two round trips and 2 ms");
    d.send(say("A", 1, 0, 1).sack(2001, 3001));
    d.wait_ms(10);
    d.expect("A", 1, 1000, 1);
}

#[test]
fn a_reported_duplicate_undoes_a_needless_reduction() {
    let mut d = with_sack();
    d.write(10_000);
    while d.hear().is_some() {}
    d.wait_ms(20);
    for end in [4001, 5001, 6001] {
        d.send(say("A", 1, 0, 1).sack(3001, end));
    }
    d.wait_ms(10);
    let mut again = 0;
    while d.hear().is_some() {
        again += 1;
    }
    assert!(again > 0 && window(&d) < 10);
    d.send(say("A", 1, 0, 6001));
    d.send(say("A", 1, 0, 10_001).sack(1, 1 + again * 1000));
    assert!(d.connection().counters().undone >= 1);
    assert!(window(&d) >= 10, "{}", window(&d));
}

#[test]
fn a_spurious_timeout_is_found_and_undone() {
    let mut d = with_sack();
    d.write(5000);
    while d.hear().is_some() {}
    d.wait_ms(900);
    while d.hear().is_some() {}
    assert!(d.connection().counters().timeouts >= 1);
    let low = window(&d);
    d.write(3000);
    // The originals arrive after all: the first acknowledgment covers more than what was sent again.
    d.send(say("A", 1, 0, 4001));
    d.send(say("A", 1, 0, 5001));
    assert!(window(&d) > low, "{} after {low}", window(&d));
    assert!(d.connection().counters().undone >= 1);
}

#[test]
fn marks_are_echoed_until_the_peer_has_reduced_its_window() {
    let config = Config { ecn: EcnMode::On, ..reno() };
    let mut d = Dialogue::new(config).listen(4);
    d.send(say("SEC", 0, 0, 0).mss(1000));
    d.expect("SAE", 0, 0, 1);
    d.send(say("A", 1, 0, 1));
    d.accept();
    assert!(d.connection().agreed().ecn);
    d.send(say("A", 1, 1000, 1).marked());
    d.expect("AE", 1, 0, 1001);
    d.send(say("A", 1001, 1000, 1));
    d.expect("AE", 1, 0, 2001);
    d.send(say("AC", 2001, 1000, 1));
    d.expect("A", 1, 0, 3001);
    d.write(10_000);
    for _ in 0..10 {
        let heard = d.hear().unwrap();
        assert_eq!(heard.ecn, Ecn::Capable0);
    }
    d.send(say("AE", 3001, 0, 1001));
    d.send(say("AE", 3001, 0, 2001));
    d.write(10_000);
    d.send(say("AE", 3001, 0, 8001));
    let first = d.hear().unwrap();
    assert!(first.flags.has(Flags::CWR), "{first:?}");
    while let Some(heard) = d.hear() {
        assert!(!heard.flags.has(Flags::CWR));
    }
    assert!(window(&d) <= 6, "{}", window(&d));
    assert_eq!(d.connection().counters().retransmitted, 0);
}

#[test]
fn dctcp_echoes_each_mark_and_no_more() {
    let config = Config { ecn: EcnMode::On, algorithm: Algorithm::Dctcp, timestamps: false, ..Config::default() };
    let mut d = Dialogue::new(config).listen(4);
    d.send(say("SEC", 0, 0, 0).mss(1000));
    d.expect("SAE", 0, 0, 1);
    d.send(say("A", 1, 0, 1));
    d.accept();
    for (at, marked) in [true, false, true].into_iter().enumerate() {
        let seq = 1 + 1000 * at as u32;
        let segment = say("A", seq, 1000, 1);
        d.send(if marked { segment.marked() } else { segment });
        let heard = d.hear().unwrap();
        assert_eq!(heard.flags.has(Flags::ECE), marked, "{at}");
        while d.hear().is_some() {}
    }
}

#[test]
fn sending_after_a_pause_begins_with_a_small_window() {
    let mut d = Dialogue::opened(reno());
    for round in 0..3 {
        d.write(20_000);
        let mut sent = 1;
        while sent > 0 {
            sent = 0;
            let mut last = 0;
            while let Some(heard) = d.hear() {
                (sent, last) = (sent + 1, heard.seq + heard.len);
            }
            d.wait_ms(1);
            if sent > 0 {
                d.send(say("A", 1, 0, last));
            }
        }
        assert!(window(&d) >= 10, "{round}");
    }
    let before = window(&d);
    d.wait_ms(5_000);
    d.write(100);
    assert!(before > 10 && window(&d) == 10, "{before} then {}", window(&d));
}
