//! How the NIC gets at descriptors: ahead of need in an array, one after the other in a list.

use nicforge_nic::{Arriving, DropCause, Pool, PortId, ReceiveHalf, Recoverable, RxFlags, completion_ring, mbuf_room};
use nicforge_platform::{Addr, AddressSpace, Dma, Owner};
use nicforge_units::{Bytes, Time};

use super::Feed;
use crate::Plan;
use crate::sh_ring::layout::{Order, Ring, SLOTS_MAX};
use crate::sh_ring::nic::{NicHalf, Queue};
use crate::suite::{Bench, Flat, Ground, Setup, Sim, build};

/// A read's round trip on the sim ground of tests.
const ROUND_TRIP: Time = Time::from_ns(900);

fn send<G: Ground>(nic: &mut NicHalf, ground: &mut G, queue: u16) -> Result<(), DropCause> {
    let arriving = Arriving {
        mark: 0,
        bytes: &[0; 60],
        head: 60,
        headers: 54,
        stamp: Time::ZERO,
        rss_hash: 0,
        flags: RxFlags::default(),
        segment: 0,
        port: PortId(0),
        queue,
    };
    nic.receive(&mut *ground.device(), &arriving)
}

/// Two cores share a list of 8, of which core 1 wrote the second half: its descriptor 5 names one
/// that there is not.
#[test]
fn where_a_list_leads_out_of_its_ring_it_ends_and_who_wrote_that_is_blamed() {
    for (slots, out) in [1, 4].into_iter().flat_map(|slots| {
        let count = 8 + 1;
        [count, count + 1, 1 << 16, u32::MAX].map(|out| (slots, out))
    }) {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 8 * slots as usize);
        let ring = Ring::new(&mut space, Order::List, 8 * slots, slots, 0).with_room(mbuf_room());
        let queues = (0..2).map(|core| {
            let (writer, _) = completion_ring(&mut space, 64, Owner(core)).unwrap();
            Queue::new(0, writer)
        });
        let queues = queues.collect();
        let mut nic = NicHalf::new(queues, vec![Feed::new(ring, 512)], pool);
        let mut ground = Flat::new(&space, 2);
        for index in 0..8 {
            let mbufs: [Addr; SLOTS_MAX] = std::array::from_fn(|slot| {
                let number = index * slots + slot as u64 % slots;
                pool.buffer(number)
            });
            let next = if index == 5 { out } else { index as u32 + 1 };
            let signed = ring.signed_by(index / 4);
            signed.store(ground.core(0), index, mbufs, next);
        }
        assert!(nic.write_register(&mut *ground.device(), 0, 8));
        let what = format!("{slots} slots, {out}");
        for _ in 0..6 * slots {
            assert_eq!(send(&mut nic, &mut ground, 0), Ok(()), "{what}");
        }
        for queue in [0, 1, 0, 1] {
            let outcome = send(&mut nic, &mut ground, queue);
            assert_eq!(outcome, Err(DropCause::BAD_DESCRIPTOR), "{what}");
            assert_eq!(nic.blamed(queue), 1..2, "{what}");
        }
    }
}

/// A NIC that reads one descriptor at a time.
fn one_by_one(interface: &'static str) -> Bench<Sim> {
    let setup = Setup { spare: 256, ..Setup::default() };
    let mut bench = Bench::built(interface, &setup, |plan, space| {
        let plan = Plan { descriptor_read: Bytes(16), ..plan.clone() };
        build(interface, &plan, space).unwrap()
    });
    bench.start();
    bench
}

/// How long a NIC takes to put 32 short frames into an empty ring.
fn time_of_32(interface: &'static str) -> Time {
    let mut bench = one_by_one(interface);
    bench.pass(Time::from_us(100));
    let began = bench.ground.device().now();
    for _ in 0..32 {
        bench.send(0, 60).unwrap();
    }
    bench.ground.device().now() - began
}

#[test]
fn the_next_descriptor_of_an_array_is_read_while_the_last_is_on_its_way() {
    let [array, list] = ["sh_ring", "sh_ring_list"].map(time_of_32);
    assert!(array < ROUND_TRIP * 17 && list > ROUND_TRIP * 29, "{array} and {list}");
}

#[test]
fn a_frame_waits_for_its_descriptor() {
    for interface in ["sh_ring", "sh_ring_list"] {
        let mut bench = one_by_one(interface);
        let began = bench.ground.device().now();
        bench.send(0, 60).unwrap();
        let took = bench.ground.device().now() - began;
        assert!(took >= ROUND_TRIP, "{interface}: {took}");
    }
}
