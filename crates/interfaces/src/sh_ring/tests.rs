//! Tests of what is special to shared rings; the shared suite covers the rest.

use nicforge_nic::{DropCause, Pool};
use nicforge_platform::{self as platform, AddressSpace, Cpu, Dma, Part};
use nicforge_units::{Cycles, Time};

use crate::InterfaceError;
use crate::suite::{Bench, Flat, Ground, Setup, Sim, build};

const VARIANTS: [&str; 3] = ["sh_ring", "sh_ring_list", "sh_ring_batched_list"];
const FULL: Result<(), DropCause> = Err(DropCause::NO_DESCRIPTOR);

fn setup() -> Setup {
    Setup { spare: 256, ..Setup::default() }
}

/// A frame of `flow` comes, and core 0 takes what there is for it.
fn send_to_core_0<G: Ground>(bench: &mut Bench<G>, flow: u32) -> Result<(), DropCause> {
    let outcome = bench.send(flow, 60);
    bench.pass(Time::from_us(2));
    bench.poll(0, 32);
    bench.release_all();
    outcome
}

/// Three frames in four are for core 0; core 1 never polls.
fn core_1_stops<G: Ground>(interface: &'static str) -> Bench<G> {
    let mut bench: Bench<G> = Bench::new(interface, &setup());
    for number in 0..512 {
        let _ = send_to_core_0(&mut bench, u32::from(number % 4 == 3));
    }
    bench
}

#[test]
fn a_core_that_stops_stops_the_others() {
    for interface in VARIANTS {
        let mut bench: Bench<Sim> = core_1_stops(interface);
        for _ in 0..100 {
            assert_eq!(send_to_core_0(&mut bench, 0), FULL, "{interface}");
        }
        // It goes on, and so do they.
        while bench.poll(1, 32) > 0 {
            bench.release_all();
        }
        assert_eq!(send_to_core_0(&mut bench, 0), Ok(()), "{interface}");
        bench.audit();
    }
    let mut bench: Bench<Sim> = core_1_stops("priv_ring");
    assert_eq!(send_to_core_0(&mut bench, 0), Ok(()));
}

#[test]
fn one_packet_left_behind_blocks_an_array_but_not_a_list() {
    for interface in VARIANTS {
        let mut bench: Bench<Flat> = Bench::new(interface, &setup());
        bench.send(1, 60).unwrap();
        let frames = (0..1_000).filter(|_| send_to_core_0(&mut bench, 0).is_ok());
        let delivered = frames.count();
        match interface {
            "sh_ring" => assert_eq!(delivered, 63),
            _ => assert_eq!(delivered, 1_000, "{interface}"),
        }
    }
}

#[test]
fn cores_of_another_ring_do_not_notice() {
    for interface in VARIANTS {
        let setup = Setup { queues: 4, sharing: 2, ..setup() };
        let mut bench: Bench<Flat> = Bench::new(interface, &setup);
        while bench.send(1, 60).is_ok() {}
        assert_eq!(bench.send(0, 60), FULL, "{interface}");
        for _ in 0..100 {
            bench.send(2, 60).unwrap();
            bench.send(3, 60).unwrap();
            while bench.poll(2, 32) + bench.poll(3, 32) > 0 {
                bench.release_all();
            }
        }
        bench.audit();
    }
}

#[test]
fn an_array_goes_back_in_order_and_a_list_as_it_comes() {
    for (interface, after_core_0) in [("sh_ring", 64), ("sh_ring_list", 65)] {
        let mut bench: Bench<Flat> = Bench::new(interface, &setup());
        assert_eq!(bench.rung.last(), Some(&(0, 64)), "{interface}");
        bench.send(1, 60).unwrap();
        bench.send(0, 60).unwrap();
        bench.poll(0, 32);
        assert_eq!(bench.rung.last(), Some(&(0, after_core_0)), "{interface}");
        bench.poll(1, 32);
        assert_eq!(bench.rung.last(), Some(&(0, 66)), "{interface}");
    }
}

#[test]
fn a_batched_descriptor_goes_back_when_all_its_packets_are_taken() {
    for list_batch in [2, 4] {
        let setup = Setup { list_batch, ..setup() };
        let mut bench: Bench<Flat> = Bench::new("sh_ring_batched_list", &setup);
        let rung = bench.rung.len();
        for _ in 1..list_batch {
            send_to_core_0(&mut bench, 0).unwrap();
        }
        assert_eq!(bench.rung.len(), rung);
        send_to_core_0(&mut bench, 0).unwrap();
        let descriptors = 64 / list_batch as u64;
        assert_eq!(bench.rung[rung..], [(0, descriptors + 1)]);
        bench.audit();
    }
}

#[test]
fn a_batched_descriptor_has_two_or_four_buffers() {
    for list_batch in [0, 1, 3, 8] {
        let setup = Setup { list_batch, ..setup() };
        let mut space = AddressSpace::default();
        let plan = setup.plan(Pool::new(&mut space, 256));
        let refused = build::<platform::Flat>("sh_ring_batched_list", &plan, &mut space);
        assert!(matches!(refused, Err(InterfaceError::ListBatch(batch)) if batch == list_batch), "{list_batch}");
    }
}

/// Both cores get every second packet of a full ring; core 1 gives all of its back first.
fn fill_and_swap<G: Ground>(bench: &mut Bench<G>) -> Time {
    let began = bench.ground.device().now();
    for number in 0..64 {
        bench.send(number % 2, 1_500).unwrap();
    }
    let took = bench.ground.device().now() - began;
    bench.pass(Time::from_us(100));
    for core in [1, 0] {
        assert_eq!(bench.poll(core, 32), 32, "{}", bench.interface);
        bench.pass(Time::from_us(100));
    }
    bench.release_all();
    took
}

#[test]
fn a_list_out_of_array_order_takes_a_read_for_each_descriptor() {
    for (interface, expected) in VARIANTS.into_iter().zip([2, 64, 16]) {
        let mut bench: Bench<Flat> = Bench::new(interface, &setup());
        let at_start = bench.ground.device.calls.reads_ahead;
        fill_and_swap(&mut bench);
        let in_order = bench.ground.device.calls.reads_ahead;
        assert!(in_order - at_start < 6, "{interface}: {at_start} to {in_order}");
        fill_and_swap(&mut bench);
        let reads = bench.ground.device.calls.reads_ahead - in_order;
        assert!(reads.abs_diff(expected) <= 2, "{interface}: {reads} reads");
    }
}

#[test]
fn each_of_these_reads_waits_for_the_one_before() {
    let times = VARIANTS.map(|interface| {
        let mut bench: Bench<Sim> = Bench::new(interface, &setup());
        bench.pass(Time::from_us(100));
        fill_and_swap(&mut bench);
        fill_and_swap(&mut bench)
    });
    let [array, list, batched] = times;
    // The link takes 64 ps for each byte of 64 frames; a read's round trip is 900 ns.
    let link = Time::from_ps(64 * 64 * (1_500 + 6 * 24 + 64 + 24));
    let round_trip = Time::from_ns(900);
    assert!(array < link + round_trip, "{array}");
    assert!(list > round_trip * 60, "{list}");
    assert!(batched < list && batched > array, "{batched}");
}

/// What a poll for `count` packets, all that there are, spends on locks and atomics.
fn sync_of(bench: &mut Bench<Sim>, count: usize) -> Time {
    (0..count).for_each(|_| bench.send(0, 60).unwrap());
    bench.pass(Time::from_us(100));
    let before = bench.ground.worked(0, Part::Sync);
    assert_eq!(bench.poll(0, 64), count);
    bench.release_all();
    bench.ground.worked(0, Part::Sync) - before
}

/// Listing 5.1 sets and clears bits of a word by one atomic each, however many.
#[test]
fn bits_of_one_word_take_one_atomic() {
    let setup = Setup { queues: 1, rx_entries: 128, ..setup() };
    let mut bench: Bench<Sim> = Bench::new("sh_ring", &setup);
    // 20 cycles at 2 GHz each.
    let atomics = |count: u64| Time::from_ns(10 * count);
    for (packets, words) in [(1, 1), (63, 1), (64, 1), (32, 1), (64, 2), (1, 1), (64, 2)] {
        // The lock is one more.
        let expected = atomics(1 + 2 * words);
        assert_eq!(sync_of(&mut bench, packets), expected, "{packets} packets");
    }
}

#[test]
fn a_doorbell_may_say_what_the_ring_holds_and_no_more() {
    for interface in VARIANTS {
        let mut bench: Bench<Flat> = Bench::new(interface, &setup());
        let &(register, full) = bench.rung.last().unwrap();
        assert!(!bench.write_register(register, full + 1), "{interface}");
        // The NIC uses one up.
        bench.send(0, 60).unwrap();
        assert!(!bench.write_register(register, full + 2), "{interface}");
        assert!(bench.write_register(register, full + 1), "{interface}");
    }
}

/// Time of a core's poll for four packets: all of it, and locks and atomics without waiting for memory.
struct Poll {
    all: Time,
    sync: Time,
}

/// Core 3's poll, `apart` and a few cycles after `others` have polled.
fn poll_after(interface: &'static str, others: usize, apart: Time, cycles: Cycles) -> Poll {
    let setup = Setup { queues: 4, ..setup() };
    let mut bench: Bench<Sim> = Bench::new(interface, &setup);
    for core in 0..4 {
        // The pool is shared too: nobody shall need it now.
        let mbuf = bench.caches[core].take(&mut *bench.ground.core(core));
        bench.caches[core].give(&mut *bench.ground.core(core), mbuf.unwrap());
    }
    bench.pass(Time::from_us(100));
    for flow in 0..4 * 4 {
        bench.send(flow, 60).unwrap();
    }
    bench.pass(Time::from_us(100));
    let mut packets = Vec::new();
    let mut poll = |bench: &mut Bench<Sim>, core: usize| {
        let mut cpu = bench.ground.core(core);
        bench.drivers[core].rx_burst(&mut *cpu, &mut bench.caches[core], &mut packets, 4);
    };
    (0..others).for_each(|core| poll(&mut bench, core));
    bench.pass(apart);
    let before = bench.ground.worked(3, Part::Sync);
    bench.ground.core(3).work(cycles);
    let began = bench.ground.core_times()[3];
    poll(&mut bench, 3);
    Poll { all: bench.ground.core_times()[3] - began, sync: bench.ground.worked(3, Part::Sync) - before }
}

#[test]
fn sharing_costs_as_much_as_there_is_contention() {
    for interface in VARIANTS {
        // The same polls, of which none meets another: what the ring asks for without waiting.
        let apart = |others| poll_after(interface, others, Time::from_us(100), Cycles(0));
        // Wherever in the others' polls it comes.
        let offsets = || (0..400).step_by(4).map(Cycles);
        let waits = [0, 1, 2, 3].map(|others| {
            let together = offsets().map(|later| poll_after(interface, others, Time::ZERO, later));
            let longest = together.map(|poll| poll.sync).max();
            longest.unwrap_or_default() - apart(others).sync
        });
        assert_eq!(waits[0], Time::ZERO, "{interface}: waited alone");
        // One other has left the lock before this core, whose lines lie in that one's L2, gets there.
        let grows = waits.is_sorted() && waits[1] < waits[3];
        assert!(grows, "{interface}: {waits:?} behind 0 to 3 others");
    }
    // Cores with rings of their own meet at the memory only.
    let [alone, together] = [0, 3].map(|others| poll_after("priv_ring", others, Time::ZERO, Cycles(0)));
    assert_eq!((alone.sync, together.sync), (Time::ZERO, Time::ZERO));
    assert!(together.all < alone.all + Time::from_ns(1), "{} and {}", alone.all, together.all);
}

#[test]
fn any_number_of_cores_shares_any_number_of_rings() {
    for interface in VARIANTS {
        for (queues, sharing) in (1..=5).flat_map(|queues| (1..=6).map(move |s| (queues, s))) {
            let setup = Setup { queues, sharing, rx_entries: 8, ..setup() };
            let mut bench: Bench<Flat> = Bench::new(interface, &setup);
            for number in 0..200 {
                let _ = bench.send(number * number % 7, 60);
                bench.poll(number as usize % queues, 32);
                bench.release_all();
            }
            bench.audit();
        }
    }
}

#[test]
fn a_ring_that_starts_short_of_buffers_gets_them_later() {
    for interface in VARIANTS {
        let mut bench: Bench<Flat> = Bench::down(interface, &Setup { queues: 1, ..setup() });
        let count = bench.pool.count();
        let cache = &mut bench.caches[0];
        let mut take = || cache.take(bench.ground.core(0)).unwrap();
        let kept: Vec<_> = (0..count - 18).map(|_| take()).collect();
        bench.drivers[0].start(bench.ground.core(0), &mut bench.caches[0]);
        bench.ring();
        let room = |bench: &mut Bench<Flat>| {
            let frames = (0..100).take_while(|_| bench.receive(0, &[0; 60]).is_ok());
            frames.count()
        };
        assert!((16..=18).contains(&room(&mut bench)), "{interface}");
        for mbuf in kept {
            bench.caches[0].give(bench.ground.core(0), mbuf);
        }
        bench.poll_unchecked(0);
        assert_eq!(room(&mut bench), 64, "{interface}");
    }
}

#[test]
fn a_ring_shared_by_nobody_is_refused() {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 4);
    for interface in VARIANTS {
        let setup = Setup { sharing: 0, ..setup() };
        let error = build::<platform::Flat>(interface, &setup.plan(pool), &mut space).unwrap_err();
        assert!(matches!(error, InterfaceError::NoSharing), "{error}");
    }
}
