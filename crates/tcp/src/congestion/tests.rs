use nicforge_units::Time;

use super::*;
use crate::seq::Seq;

fn ack(now_ms: u64, acked: u32, marked: bool) -> Ack {
    Ack {
        now: Time::from_ms(now_ms),
        acked,
        acked_bytes: acked * 1000,
        marked,
        rtt_us: Some(1000),
        smoothed_us: 1000,
        least_us: 1000,
        in_flight: 10,
        next: Seq(now_ms as u32 * 1000 + 1000),
        una: Seq(now_ms as u32 * 1000),
        mss: 1000,
    }
}

#[test]
fn names_find_their_algorithms() {
    for algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::named(algorithm.name()), Some(algorithm));
        assert_eq!(algorithm.start().name(), algorithm.name());
    }
    assert_eq!(Algorithm::named("bbr"), None);
}

#[test]
fn reno_doubles_per_round_trip_and_then_adds_one() {
    let mut window = Window::new(10);
    Reno.grow(&mut window, &ack(1, 10, false));
    assert_eq!(window.size, 20);
    window.threshold = Reno.threshold(&window, Trouble::Recovery);
    window.size = window.threshold;
    assert_eq!(window.size, 10);
    for _ in 0..10 {
        Reno.grow(&mut window, &ack(2, 1, false));
    }
    assert_eq!(window.size, 11);
}

#[test]
fn cubic_reduces_by_three_tenths_and_comes_back_to_where_it_was() {
    let mut cubic = Cubic::default();
    let mut window = Window::new(100);
    window.threshold = cubic.threshold(&window, Trouble::Recovery);
    window.size = window.threshold;
    assert_eq!(window.size, 70);
    for ms in 0..10_000 {
        cubic.grow(&mut window, &ack(ms, 10, false));
        if window.size >= 100 {
            // K = cbrt(W (1 - beta) / C) = cbrt(100 * 0.3 / 0.4) = 4.2 s; the Reno-friendly region may be faster.
            assert!(ms > 10, "{ms}");
            return;
        }
    }
    panic!("the window is {} after ten seconds", window.size);
}

#[test]
fn dctcp_reduces_by_half_the_fraction_of_marks() {
    for (marked_of_10, least, most) in [(10, 490, 510), (5, 700, 800), (0, 990, 1000)] {
        let mut dctcp = Dctcp::default();
        let mut window = Window::new(1000);
        for round in 1..200 {
            for part in 0..10 {
                dctcp.observe(
                    &mut window,
                    &Ack { una: Seq(round * 1000), ..ack(u64::from(round), 1, part < marked_of_10) },
                );
            }
        }
        assert_eq!(dctcp.threshold(&window, Trouble::Recovery), window.size / 2, "a loss halves");
        let threshold = dctcp.threshold(&window, Trouble::Marked);
        assert!((least..=most).contains(&threshold), "{marked_of_10} of 10 marked: {threshold}");
    }
}

#[test]
fn timely_speeds_up_below_the_low_threshold_and_slows_down_above_the_high_one() {
    let mut timely = Timely::default();
    let mut window = Window::new(10);
    let start = timely.rate().unwrap_or(0);
    for _ in 0..100 {
        timely.observe(&mut window, &Ack { rtt_us: Some(20), ..ack(1, 1, false) });
    }
    let fast = timely.rate().unwrap_or(0);
    assert!(fast > 50 * start, "{start} {fast}");
    for _ in 0..100 {
        timely.observe(&mut window, &Ack { rtt_us: Some(1000), ..ack(1, 1, false) });
    }
    assert!(timely.rate().unwrap_or(0) < fast / 10);
}
