//! Software that comes and goes: the emulating core fills the physical rings itself, and writes down who
//! has which buffer.

use nicforge_nic::{DropCause, Ledger, Pool, PoolCache};
use nicforge_platform::{self as platform, AddressSpace, Cpu, Register};
use nicforge_units::Time;

use super::super::{played, played_by_cores};
use super::setup;
use crate::suite::{Bench, Flat, Ground, Setup, build};
use crate::{Halves, Plan};

/// Two cores behind a NIC that a third plays, and the ledger of their buffers. No ring has any yet.
fn built(emulates: &'static str) -> (Bench<Flat>, Ledger) {
    let setup = Setup { cache: 4, bx_per_ax: 4, ..setup(emulates) };
    let mut ledger = None;
    let with_ledger = |plan: &Plan, space: &mut AddressSpace| -> Halves<platform::Flat> {
        let plan = Plan { emulator_fills: true, ..plan.clone() };
        let mut built = build("emulated", &plan, space).unwrap();
        let kept = *ledger.insert(Ledger::new(space, plan.pool));
        played::<platform::Flat>(&mut *built.nic).unwrap().keep_book(kept, &plan);
        built
    };
    let mut bench: Bench<Flat> = Bench::built("emulated", &setup, with_ledger);
    let ledger = ledger.unwrap();
    let caches = std::mem::take(&mut bench.caches).into_iter().enumerate();
    let caches = caches.map(|(number, cache)| cache.with_ledger(ledger, number));
    bench.caches = caches.collect();
    (bench, ledger)
}

/// The same whose physical rings are full of buffers of the emulating core's.
fn down(emulates: &'static str) -> (Bench<Flat>, Ledger) {
    let (mut bench, ledger) = built(emulates);
    bench.fill_physical();
    claim(&mut bench);
    (bench, ledger)
}

fn claim(bench: &mut Bench<Flat>) {
    let half = played::<platform::Flat>(&mut *bench.nic).unwrap();
    bench.ground.play(|way| half.claim(way));
}

/// Each core frees what it has: who frees what another's packets lie in gives it to the pool first.
fn release(bench: &mut Bench<Flat>) {
    while let Some((packet, _)) = bench.hands.last() {
        let queue = packet.rss_hash as usize % 2;
        bench.release(bench.hands.len() - 1, queue);
    }
}

/// Buffers that are in some place, if `lent` are in others' hands than drivers count.
fn found(bench: &mut Bench<Flat>, lent: i64) -> u64 {
    let stacks: usize = bench.caches.iter().map(PoolCache::len).sum();
    let held: i64 = bench.drivers.iter().map(|driver| driver.buffers_held()).sum();
    let held = held + lent + stacks as i64;
    let shared = Pool::available(&bench.pool, &mut *bench.ground.core(0));
    (shared + bench.nic.holds()).wrapping_add_signed(held)
}

/// What these registers held is forgotten.
fn forget(ground: &mut Flat, registers: Vec<u32>) {
    for index in registers {
        let register = Register { device: 0, index };
        ground.core(0).mmio_write(register, 0);
    }
    ground.register_writes();
}

#[test]
fn a_core_that_fills_its_rings_itself_loses_nothing() {
    for emulates in played_by_cores() {
        let (mut bench, ledger) = down(emulates);
        bench.start();
        for number in 0..600u32 {
            bench.send(number % 5, 60 + number as usize).unwrap();
            if number % 8 == 7 {
                bench.pass(Time::from_us(5));
                for queue in 0..2 {
                    assert!(bench.poll(queue, 32) > 0, "{emulates}");
                    release(&mut bench);
                }
            }
        }
        assert_eq!(bench.taken, 600, "{emulates}");
        assert_eq!(found(&mut bench, 0), bench.buffers() as u64, "{emulates}");
        // What is written down of the emulating core is what lies in physical rings.
        let buffers = (0..bench.pool.count() as u64).map(|number| bench.pool.buffer(number));
        let core = &mut *bench.ground.core(2);
        let its_own = buffers.filter(|&mbuf| ledger.holder(core, mbuf) == Some(Ledger::mark(2)));
        assert_eq!(its_own.count() as u64, bench.nic.holds(), "{emulates}");
    }
}

/// Core 0 gives the NIC a buffer of core 1's: a frame that would go there is dropped, and core 0 blamed.
#[test]
fn a_buffer_that_is_anothers_is_none() {
    for emulates in ["priv_ring", "rx_bisect"] {
        let (mut bench, _) = down(emulates);
        bench.start();
        let mbuf = bench.caches[1].take(&mut *bench.ground.core(1)).unwrap();
        bench.caches[0].give(&mut *bench.ground.core(0), mbuf);
        // It comes behind the fifteen that are in the ring already.
        for _ in 0..16 {
            bench.send(0, 60).unwrap();
            bench.pass(Time::from_us(5));
            assert_eq!(bench.poll(0, 32), 1, "{emulates}");
            release(&mut bench);
        }
        bench.emulator_rests = true;
        bench.send(0, 60).unwrap();
        let step = bench.emulate_once().unwrap();
        let causes: Vec<_> = step.lost.iter().map(|lost| lost.cause).collect();
        assert_eq!(causes, [DropCause::BAD_DESCRIPTOR], "{emulates}");
        assert_eq!(step.blamed.first(), Some(&(0..1)), "{emulates}");
    }
}

/// The own rings of core 0 are empty, and what core 1 lends it is core 1's.
#[test]
fn buffers_of_another_are_borrowed_where_it_is_written_down_whose_they_are() {
    let (mut bench, _) = down("rx_bisect");
    bench.start();
    for _ in 0..16 + 8 {
        bench.send(0, 60).unwrap();
        bench.pass(Time::from_us(5));
    }
    assert_eq!(bench.recovery().lent(1, 0), 8);
    assert_eq!(bench.drops.causes(), []);
    assert_eq!(bench.poll(0, 32), 24);
}

/// What software that is gone wrote to registers, and the emulating core has not read yet, is not for whoever follows.
#[test]
fn doorbells_of_software_that_is_gone_are_gone() {
    let (mut bench, _) = down("priv_ring");
    bench.start();
    bench.emulator_rests = true;
    for index in 0..2 {
        assert_eq!(bench.recovery().rung_by(index), index as u16..index as u16 + 1);
        assert!(bench.write_register(index, 16));
    }
    for (queue, still) in [(0, true), (1, false)] {
        bench.restart(queue..queue + 1).unwrap();
        assert_eq!(played::<platform::Flat>(&mut *bench.nic).unwrap().rang(), still);
    }
}

#[test]
fn the_doorbells_of_its_rings_are_nobody_elses() {
    let (mut bench, _) = down("priv_ring");
    let doorbells = bench.rung.clone();
    assert_eq!(doorbells.len(), 2);
    for (index, value) in doorbells {
        // A ring takes what it was told before, from whoever may tell it.
        assert!(!bench.write_register(index, value));
        assert_eq!(bench.recovery().rung_by(index), 0..0);
    }
}

/// Queue 0's core dies with more frames than its rings have room for. Those that wait in a physical ring
/// do not come to whoever follows it, and their buffers are there for others.
#[test]
fn frames_for_software_that_is_gone_go_and_their_buffers_stay() {
    for emulates in played_by_cores() {
        let (mut bench, ledger) = down(emulates);
        bench.start();
        for number in 0..80 {
            bench.send_unchecked(0, 60 + number);
        }
        // Its cores have a queue in each set, and share rings in one of them.
        let firsts = (0..bench.nic.queues()).step_by(2);
        let groups = firsts.clone().map(|first| bench.recovery().together(first).len());
        let cores = groups.max().unwrap() as u16;
        let lent: i64 = (cores..2).map(|other| bench.recovery().lent(0, other)).sum();
        for first in firsts {
            let group = first..first + cores;
            let registers = bench.restart(group);
            let registers = registers.unwrap();
            assert!(!registers.is_empty(), "{emulates}");
            forget(&mut bench.ground, registers);
        }
        let gone: Vec<usize> = (0..usize::from(cores)).collect();
        // Its core may have written anything: here that some of its buffers are the emulating core's.
        for number in (0..bench.pool.count() as u64).step_by(2) {
            let (mbuf, core) = (bench.pool.buffer(number), &mut *bench.ground.core(0));
            if ledger.holder(core, mbuf) == Some(Ledger::mark(0)) {
                ledger.write(core, mbuf.0, Ledger::mark(2));
            }
        }
        claim(&mut bench);
        let back = ledger.reclaim(&mut *bench.ground.core(0), &gone, 3);
        assert!(back > 0, "{emulates}");
        let (fresh, _) = built(emulates);
        let fresh = fresh.drivers.into_iter().zip(fresh.caches).enumerate();
        for (queue, (driver, cache)) in fresh.filter(|(queue, _)| gone.contains(queue)) {
            (bench.drivers[queue], bench.caches[queue]) = (driver, cache);
            let core = &mut *bench.ground.core(queue);
            bench.drivers[queue].start(core, &mut bench.caches[queue]);
        }
        bench.ring();
        bench.pass(Time::from_us(100));
        bench.poll_unchecked(0);
        assert_eq!(bench.drivers[0].taken(), 0, "{emulates}");
        for round in 1..=50 {
            bench.send_unchecked(0, 60);
            bench.pass(Time::from_us(10));
            bench.poll_unchecked(0);
            assert_eq!(bench.drivers[0].taken(), round, "{emulates}");
        }
        assert_eq!(found(&mut bench, lent), bench.buffers() as u64, "{emulates}");
    }
}
