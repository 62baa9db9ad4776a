//! Dialogues: data, windows, acknowledgments, closing (RFC 9293, 1122, 7323, 1337, 6191, 6429, 6093, 5482).

mod dialogue;

use dialogue::{Dialogue, say};
use nicforge_tcp::Config;
use nicforge_tcp::conn::{ConnectionError, State};
use nicforge_units::Time;

fn plain() -> Config {
    Config { timestamps: false, ..Config::default() }
}

/// Uses up the acknowledgments that go out at once in the beginning; the next number is returned.
fn settle(d: &mut Dialogue) -> u32 {
    let mut seq = 1;
    for _ in 0..40 {
        d.send(say("A", seq, 1000, 1));
        seq += 1000;
        d.read(1000);
    }
    while d.hear().is_some() {}
    d.wait_ms(100);
    while d.hear().is_some() {}
    seq
}

#[test]
fn acknowledgments_are_delayed_but_not_beyond_two_segments() {
    let mut d = Dialogue::opened(plain());
    let seq = settle(&mut d);
    let start = d.now;
    d.send(say("A", seq, 1000, 1));
    d.silence();
    d.wait_ms(100);
    let ack = d.expect("A", 1, 0, seq + 1000);
    let delay = ack.at.saturating_sub(start);
    assert!(delay >= Time::from_ms(20) && delay <= Time::from_ms(200), "{delay}");
    d.read(4000);
    while d.hear().is_some() {}
    d.send(say("A", seq + 1000, 1000, 1));
    d.send(say("A", seq + 2000, 1000, 1));
    d.expect("A", 1, 0, seq + 3000);
}

#[test]
fn small_writes_wait_for_the_acknowledgment_unless_told_otherwise() {
    let mut d = Dialogue::opened(plain());
    d.write(100);
    d.expect("PA", 1, 100, 1);
    d.write(100);
    d.write(100);
    d.silence();
    d.send(say("A", 1, 0, 101));
    d.expect("PA", 101, 200, 1);
    d.change(|connection| connection.set_no_delay(true));
    d.write(10);
    d.expect("PA", 301, 10, 1);
}

#[test]
fn a_closed_window_is_probed_with_growing_pauses_and_never_given_up_while_answered() {
    let mut d = Dialogue::opened(plain());
    d.send(say("A", 1, 0, 1).win(0));
    d.write(100);
    d.silence();
    let mut last = Time::ZERO;
    let mut pauses = Vec::new();
    for _ in 0..20 {
        d.wait_ms(130_000);
        while let Some(heard) = d.hear() {
            assert_eq!((heard.seq, heard.len), (0, 0), "a probe has an old number");
            pauses.push(heard.at.saturating_sub(last));
            last = heard.at;
            d.send(say("A", 1, 0, 1).win(0));
        }
    }
    assert_eq!(d.connection().state(), State::Established);
    assert!(pauses.len() > 20 && pauses[5] > pauses[2], "{pauses:?}");
    d.send(say("A", 1, 0, 1).win(500));
    d.expect("PA", 1, 100, 1);
}

#[test]
fn a_window_opens_in_large_steps_only() {
    let mut config = plain();
    config.receive.default = 16_000;
    let mut d = Dialogue::opened(config);
    let mut seq = 1;
    while d.connection().flow.protocol.rx_avail >= 1000 {
        d.send(say("A", seq, 1000, 1));
        seq += 1000;
    }
    d.wait_ms(300);
    while d.hear().is_some() {}
    d.read(10);
    d.silence();
    d.read(7000);
    let update = d.expect("A", 1, 0, seq);
    assert!(update.window >= 4000, "{}", update.window);
}

#[test]
fn an_old_clock_is_refused_and_acknowledged() {
    let mut d = Dialogue::opened_by(Config::default(), say("S", 0, 0, 0).mss(1000).ts(1000, 0));
    d.send(say("A", 1, 100, 1).ts(1010, 1));
    d.expect("A", 1, 0, 101);
    d.send(say("A", 101, 100, 1).ts(900, 1));
    let ack = d.expect("A", 1, 0, 101);
    assert_eq!(ack.options.timestamps.map(|clock| clock.echo), Some(1010));
    assert_eq!((d.connection().counters().paws_drops, d.read(1000)), (1, 100));
    d.wait(Time::from_ms(25 * 24 * 3600 * 1000));
    d.send(say("A", 101, 100, 1).ts(900, 1));
    assert_eq!(d.read(1000), 100, "after 24 days the clock may have wrapped");
}

#[test]
fn out_of_window_and_overlapping_data_keeps_the_stream() {
    let mut d = Dialogue::opened(plain());
    d.send(say("A", 201, 100, 1));
    d.send(say("A", 151, 100, 1));
    d.send(say("A", 1, 180, 1));
    assert_eq!(d.connection().expected() - nicforge_tcp::Seq(dialogue::PEER_ISS), 301);
    let mut out = [0; 400];
    let len = d.stack.recv(d.id.unwrap(), &mut out, d.now).unwrap();
    assert_eq!(len, 300);
    assert!(out[..300].iter().enumerate().all(|(at, byte)| *byte == (at + 1) as u8));
    d.send(say("A", 10_000_000, 100, 1));
    assert_eq!(d.read(400), 0);
    assert_eq!(d.connection().counters().outside_window, 1);
}

#[test]
fn we_close_first_and_wait_until_old_segments_have_died() {
    let mut d = Dialogue::opened(plain());
    d.shut_write();
    d.expect("FA", 1, 0, 1);
    assert_eq!(d.connection().state(), State::FinWait1);
    d.send(say("A", 1, 0, 2));
    assert_eq!(d.connection().state(), State::FinWait2);
    d.send(say("A", 1, 50, 2));
    d.expect("A", 2, 0, 51);
    assert_eq!(d.read(100), 50);
    d.send(say("FA", 51, 0, 2));
    d.expect("A", 2, 0, 52);
    assert_eq!(d.connection().state(), State::TimeWait);
    d.send(say("R", 52, 0, 0));
    assert_eq!(d.connection().state(), State::TimeWait, "RFC 1337");
    d.wait_ms(50_000);
    d.send(say("FA", 51, 0, 2));
    d.expect("A", 2, 0, 52);
    d.wait_ms(50_000);
    assert_eq!(d.connection().state(), State::TimeWait, "the FIN began it anew");
    d.wait_ms(10_001);
    assert_eq!(d.connection().state(), State::Closed);
}

#[test]
fn the_peer_closes_first() {
    let mut d = Dialogue::opened(plain());
    d.send(say("FPA", 1, 30, 1));
    d.wait_ms(200);
    d.expect("A", 1, 0, 32);
    assert_eq!((d.connection().state(), d.read(100)), (State::CloseWait, 30));
    d.write(5);
    d.expect("PA", 1, 5, 32);
    d.shut_write();
    d.expect("FA", 6, 0, 32);
    d.send(say("A", 32, 0, 7));
    assert_eq!(d.connection().state(), State::Closed);
    assert_eq!(d.connection().error(), None);
}

#[test]
fn both_close_at_once() {
    let mut d = Dialogue::opened(plain());
    d.shut_write();
    d.expect("FA", 1, 0, 1);
    d.send(say("FA", 1, 0, 1));
    d.expect("A", 2, 0, 2);
    assert_eq!(d.connection().state(), State::Closing);
    d.send(say("A", 2, 0, 2));
    assert_eq!(d.connection().state(), State::TimeWait);
}

#[test]
fn a_fin_out_of_order_waits_for_the_gap() {
    let mut d = Dialogue::opened(plain());
    d.send(say("FA", 101, 50, 1));
    assert_eq!(d.connection().state(), State::Established);
    while d.hear().is_some() {}
    d.send(say("A", 1, 100, 1));
    assert_eq!((d.connection().state(), d.read(500)), (State::CloseWait, 150));
}

#[test]
fn a_later_syn_reopens_a_connection_in_time_wait() {
    for (seq, clock, reopens) in
        [(1_000_000, None, true), (0, None, false), (0, Some(900), true), (1_000_000, Some(5), false)]
    {
        let mut syn = say("S", 0, 0, 0);
        if clock.is_some() {
            syn = syn.ts(100, 0);
        }
        let config = if clock.is_some() { Config::default() } else { plain() };
        let mut d = Dialogue::opened_by(config, syn);
        let ts = |say: dialogue::Say, value| if clock.is_some() { say.ts(value, 0) } else { say };
        d.shut_write();
        d.expect("FA", 1, 0, 1);
        d.send(ts(say("FA", 1, 0, 2), 101));
        d.expect("A", 2, 0, 2);
        assert_eq!(d.connection().state(), State::TimeWait);
        d.release();
        let mut again = say("S", seq, 0, 0);
        if let Some(clock) = clock {
            again = again.ts(clock, 0);
        }
        d.send(again);
        let heard = d.hear().unwrap();
        assert_eq!(heard.flags == dialogue::flags("SA"), reopens, "{seq} {clock:?}: {heard:?}");
    }
}

#[test]
fn closing_with_unread_data_resets() {
    let mut d = Dialogue::opened(plain());
    d.send(say("A", 1, 100, 1));
    d.expect("A", 1, 0, 101);
    d.release();
    d.expect("RA", 1, 0, 101);
    assert_eq!(d.stack.connection_count(), 0);
}

#[test]
fn data_for_nobody_resets() {
    let mut d = Dialogue::opened(plain());
    d.release();
    d.expect("FA", 1, 0, 1);
    d.send(say("A", 1, 100, 2));
    d.expect("R", 2, 0, 0);
}

#[test]
fn urgent_data_stays_in_line_and_its_end_is_known() {
    let mut d = Dialogue::opened(plain());
    d.send(say("UA", 1, 100, 1).urgent(50));
    assert!(d.connection().is_urgent());
    d.expect("A", 1, 0, 101);
    assert_eq!(d.read(60), 60);
    assert!(!d.connection().is_urgent());
    d.write(10);
    d.expect("PA", 1, 10, 1 + 100);
    d.stack.send(d.id.unwrap(), &[1, 2, 3], false, d.now).unwrap();
    d.change(|connection| connection.mark_urgent());
    let heard = d.hear().unwrap();
    assert!(heard.flags.has(nicforge_tcp::segment::Flags::URG), "{heard:?}");
}

#[test]
fn unanswered_data_ends_the_connection_after_the_users_timeout() {
    let mut d = Dialogue::opened(plain());
    d.change(|connection| connection.tuning.user_timeout = Some(Time::from_ms(3_000)));
    d.write(10);
    d.wait_ms(2_500);
    assert_eq!(d.connection().state(), State::Established);
    d.wait_ms(3_000);
    assert_eq!(d.connection().error(), Some(ConnectionError::TimedOut));
}

#[test]
fn a_silent_peer_is_asked_and_given_up() {
    let mut d = Dialogue::opened(plain());
    let keep = nicforge_tcp::config::KeepAlive {
        on: true,
        idle: Time::from_ms(10_000),
        interval: Time::from_ms(1_000),
        probes: 3,
    };
    let now = d.now;
    d.change(|connection| {
        connection.tuning.keep_alive = keep;
        connection.start_keep_alive(now);
    });
    d.wait_ms(9_999);
    d.silence();
    d.wait_ms(1);
    d.expect("A", 0, 0, 1);
    d.send(say("A", 1, 0, 1));
    d.wait_ms(15_000);
    for _ in 0..3 {
        d.expect("A", 0, 0, 1);
    }
    d.expect("RA", 1, 0, 1);
    assert_eq!(d.connection().error(), Some(ConnectionError::TimedOut));
}
