//! Every limit is met, counted under its name, and left behind.

use super::frames::frame_len_max;
use super::{Bench, Ground, Setup, build, for_all, names};
use crate::InterfaceError;
use nicforge_nic::{DropCause, Pool};
use nicforge_platform as platform;
use nicforge_platform::AddressSpace;
use nicforge_units::Time;

for_all! {
    a_full_ring_drops_and_recovers,
    without_buffers_nothing_is_lost,
    an_oversized_frame_costs_no_entry,
    large_buffers_hold_jumbo_frames,
    a_queue_without_buffers_drops,
    the_largest_rings_hold_what_arrives,
}

const ENTRIES: usize = 16;

fn setup() -> Setup {
    Setup { queues: 1, rx_entries: ENTRIES, spare: 32, cache: 4, ..Setup::default() }
}

/// Sends until a frame is dropped; returns how many were not.
fn fill<G: Ground>(bench: &mut Bench<G>) -> usize {
    let mut delivered = 0;
    loop {
        bench.pass(Time::from_us(2));
        match bench.send(0, 60) {
            Ok(()) => delivered += 1,
            Err(cause) => {
                assert_eq!(cause, DropCause::NO_DESCRIPTOR, "{}", bench.interface);
                return delivered;
            }
        }
        assert!(delivered <= 4 * ENTRIES, "{}: never full", bench.interface);
    }
}

fn a_full_ring_drops_and_recovers<G: Ground>(interface: &'static str) {
    let mut bench: Bench<G> = Bench::new(interface, &setup());
    for round in 1..=20 {
        let room = fill(&mut bench);
        assert!(room >= ENTRIES, "{interface}: {room} of {ENTRIES} entries in round {round}");
        let waiting = bench.nic.waiting(0);
        assert_eq!(waiting.entries, waiting.of, "{interface}: a full ring waits for software");
        bench.drain();
        assert_eq!(bench.nic.waiting(0).entries, 0, "{interface}: an empty one does not");
    }
    assert_eq!(bench.drops.causes(), [("no_descriptor", 20)], "{interface}");
    bench.audit();
}

/// The core keeps all that it gets, until there are no more buffers: then frames wait in their entries, or those are
/// empty and further frames are dropped. Either way all goes on when buffers come back.
fn without_buffers_nothing_is_lost<G: Ground>(interface: &'static str) {
    let capacity = fill(&mut Bench::<G>::new(interface, &setup()));
    let mut bench: Bench<G> = Bench::new(interface, &setup());
    let mut idle = 0;
    while idle < 3 {
        fill(&mut bench);
        bench.pass(Time::from_us(10));
        idle = if bench.poll(0, 32) == 0 { idle + 1 } else { 0 };
    }
    let kept = bench.hands.len();
    assert_eq!(bench.send(0, 60), Err(DropCause::NO_DESCRIPTOR), "{interface}");
    // One buffer back, at most one frame out or one more in.
    bench.release(0, 0);
    assert!(bench.poll(0, 32) <= 1, "{interface}");
    assert!(bench.hands.len() <= kept, "{interface}");
    bench.release_all();
    bench.drain();
    assert_eq!(fill(&mut bench), capacity, "{interface}: as good as new");
    bench.audit();
}

fn an_oversized_frame_costs_no_entry<G: Ground>(interface: &'static str) {
    let capacity = fill(&mut Bench::<G>::new(interface, &setup()));
    let mut bench: Bench<G> = Bench::new(interface, &setup());
    for len in [frame_len_max() + 1, 9_600, 65_535, 1 << 20] {
        assert_eq!(bench.send(0, len), Err(DropCause::OVERSIZED), "{interface}: {len} bytes");
        bench.send(0, frame_len_max()).unwrap();
    }
    for _ in 0..3 * ENTRIES {
        assert_eq!(bench.send(0, 9_600), Err(DropCause::OVERSIZED), "{interface}");
    }
    assert_eq!(fill(&mut bench), capacity - 4, "{interface}: entries were lost");
    bench.audit();
}

/// An MTU of 9000 bytes: what fits arrives whole, also between short frames; one byte more is too
/// much.
fn large_buffers_hold_jumbo_frames<G: Ground>(interface: &'static str) {
    const ROOM: usize = 9_216;
    let setup = Setup { room: ROOM, ..setup() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    for _ in 0..3 * ENTRIES {
        for len in [9_018, 60, ROOM, 2_049] {
            bench.send(0, len).unwrap();
            let oversized = bench.send(0, ROOM + 1);
            assert_eq!(oversized, Err(DropCause::OVERSIZED), "{interface}");
        }
        bench.pass(Time::from_us(2));
        bench.drain();
    }
    bench.audit();
}

/// Before its driver started a queue has nowhere to put a frame.
fn a_queue_without_buffers_drops<G: Ground>(interface: &'static str) {
    let mut bench: Bench<G> = Bench::down(interface, &setup());
    assert_eq!(bench.send(0, 60), Err(DropCause::NO_DESCRIPTOR), "{interface}");
    assert_eq!(bench.poll(0, 32), 0, "{interface}");
    bench.start();
    bench.send(0, 60).unwrap();
    bench.audit();
}

/// The most entries that a scenario can ask for. Few frames: going around takes too long.
fn the_largest_rings_hold_what_arrives<G: Ground>(interface: &'static str) {
    let setup = Setup { rx_entries: 1 << 16, room: 128, ..Setup::default() };
    let mut bench: Bench<G> = Bench::new(interface, &setup);
    for set in 0..bench.nic.sets().len() as u16 {
        bench.switch(set);
        for number in 0..40 {
            bench.send(number % 3, 60 + number as usize).unwrap();
        }
        bench.poll(0, 8);
        bench.release_all();
    }
    // Every frame and every buffer is counted after each step of these.
    bench.drain();
    assert_eq!(bench.taken, bench.sent, "{interface}");
    assert!(bench.nic.waiting(0).of >= 1 << 16, "{interface}");
}

#[test]
fn impossible_ring_sizes_are_refused() {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 4);
    for interface in names() {
        for rx_entries in [0, 1, 3, 1_000, 1 << 30, 1 << 63, usize::MAX] {
            let setup = Setup { rx_entries, ..setup() };
            let error = build::<platform::Flat>(interface, &setup.plan(pool), &mut space).unwrap_err();
            let refused = matches!(error, InterfaceError::RingSize { .. });
            assert!(refused, "{interface}: {rx_entries}: {error}");
        }
        let rings_too_large = Setup { queues: 4, rx_entries: 1 << 20, ..setup() };
        let error = build::<platform::Flat>(interface, &rings_too_large.plan(pool), &mut space);
        assert!(matches!(error, Err(InterfaceError::Space(_))), "{interface}");
    }
}

#[test]
fn an_unknown_interface_is_named_in_the_error() {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 4);
    let error = build::<platform::Flat>("pirv_ring", &setup().plan(pool), &mut space).unwrap_err();
    assert!(error.to_string().contains("\"pirv_ring\""), "{error}");
}
