use super::*;
use crate::{Application, Nicmem};
use nicforge_platform::FlatCpu;
use nicforge_units::Cycles;
use std::collections::BTreeSet;

fn pool(count: usize, size: usize) -> (FlatCpu, Pool, Vec<PoolCache>) {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, count);
    let caches = (0..2).map(|_| PoolCache::new(&mut space, pool, size, Cycles(1))).collect();
    let mut cpu = FlatCpu::new(space.end());
    pool.start(&mut cpu);
    (cpu, pool, caches)
}

#[test]
fn every_buffer_comes_once_and_then_none() {
    let (mut cpu, pool, mut caches) = pool(100, 32);
    let mut seen = BTreeSet::new();
    while let Some(mbuf) = caches[0].take(&mut cpu) {
        assert!(pool.number_of(mbuf).is_some());
        assert!(seen.insert(mbuf), "handed out twice: {mbuf:?}");
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn a_stack_drains_beyond_one_and_a_half_times_its_size() {
    let (mut cpu, pool, mut caches) = pool(200, 32);
    let taken: Vec<_> = (0..100).filter_map(|_| caches[0].take(&mut cpu)).collect();
    for (i, mbuf) in taken.into_iter().enumerate() {
        caches[1].give(&mut cpu, mbuf);
        assert!(caches[1].len() <= 48, "after {i}");
    }
    let inside = caches[0].len() + caches[1].len() + pool.available(&mut cpu) as usize;
    assert_eq!(inside, 200);
}

#[test]
fn buffers_for_other_cores_are_given_in_turn_or_at_once() {
    for order in [PoolOrder::Ring, PoolOrder::Stack] {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 1000).in_order(order);
        let mut caches = [0, 1].map(|_| PoolCache::new(&mut space, pool, 32, Cycles(1)));
        let mut cpu = FlatCpu::new(space.end());
        pool.start(&mut cpu);
        let mut seen = BTreeSet::new();
        for _ in 0..10_000 {
            let mbuf = caches[0].take(&mut cpu).unwrap();
            seen.insert(mbuf);
            caches[1].give(&mut cpu, mbuf);
        }
        match order {
            PoolOrder::Ring => assert_eq!(seen.len(), 1000),
            // Those of both stacks, and what moves at a time.
            PoolOrder::Stack => assert!(seen.len() <= 32 + 48 + 32, "{}", seen.len()),
        }
        let inside = caches[0].len() + caches[1].len() + pool.available(&mut cpu) as usize;
        assert_eq!(inside, 1000);
    }
}

#[test]
fn levels_of_cores_leave_half_of_a_small_pool() {
    let (_, large, _) = pool(8192, 4);
    assert_eq!(large.level_size(256, 16), 256);
    let (_, small, _) = pool(256, 4);
    assert_eq!(small.level_size(256, 8), 16);
}

#[test]
fn the_pool_is_last_in_first_out() {
    let (mut cpu, _, mut caches) = pool(64, 16);
    let a = caches[0].take(&mut cpu).unwrap();
    caches[0].give(&mut cpu, a);
    assert_eq!(caches[0].take(&mut cpu), Some(a));
}

#[test]
fn a_buffer_on_nicmem_goes_back_to_its_own_pool() {
    let mut space = AddressSpace::default();
    let mut nicmem = Nicmem::new(&mut space, 0, 10 * DATA_BYTES + 5);
    let memory = nicmem.alloc_nicmem(Application(0), 10 * DATA_BYTES).unwrap();
    let (host, near) = (Pool::new(&mut space, 4), Pool::over_nicmem(&mut space, memory, DATA_BYTES));
    assert_eq!((host.count(), near.count()), (4, 10));
    let near_cache = PoolCache::new(&mut space, near, 2, Cycles(1));
    let mut cache = PoolCache::new(&mut space, host, 2, Cycles(1)).with_nicmem(near_cache);
    let mut cpu = FlatCpu::new(space.end());
    host.start(&mut cpu);
    near.start(&mut cpu);
    let ours = cache.take(&mut cpu).unwrap();
    let theirs = cache.nicmem().unwrap().take(&mut cpu).unwrap();
    assert_eq!(host.payload_of(ours), None);
    let payload = near.payload_of(theirs).unwrap();
    assert!(memory.holds(payload) && memory.holds(payload + (DATA_BYTES - 1)));
    let before = cache.len();
    for mbuf in [theirs, ours] {
        cache.give(&mut cpu, mbuf);
    }
    assert_eq!(cache.len(), before + 2);
    assert_eq!(cache.nicmem().unwrap().take(&mut cpu), Some(theirs));
    assert_eq!(cache.take(&mut cpu), Some(ours));
}

#[test]
fn foreign_addresses_are_told_apart() {
    let (_, pool, _) = pool(4, 2);
    assert_eq!(pool.number_of(pool.buffer(3)), Some(3));
    assert_eq!(pool.number_of(pool.buffer(3) + 8), None);
    assert_eq!(pool.number_of(pool.buffer(4)), None);
    assert_eq!(pool.number_of(Addr(0)), None);
}

#[test]
fn every_address_is_judged_as_a_division_would() {
    for room in [64, 2048, 9216, 16 << 10] {
        let mut space = AddressSpace::default();
        let pool = Pool::with_room(&mut space, 7, room);
        let first = pool.buffer(0).0;
        let by_division = |at: u64| {
            let offset = at.checked_sub(first)?;
            let number = offset / pool.stride();
            (offset % pool.stride() == 0 && number < 7).then_some(number)
        };
        let near = first - 2 * pool.stride()..first + 9 * pool.stride();
        let far = (0..64).flat_map(|bit| [1 << bit, u64::MAX << bit, first ^ 1 << bit]);
        for at in near.chain(far) {
            assert_eq!(pool.number_of(Addr(at)), by_division(at), "{at:#x} of {room}");
        }
    }
}

/// What is left of the shared level goes to whoever asks, one by one, and not to the first of them.
#[test]
fn the_last_buffers_are_shared_out_one_by_one() {
    let (mut cpu, pool, mut caches) = pool(40, 32);
    let [first, second] = &mut caches[..] else { unreachable!() };
    assert!(first.take(&mut cpu).is_some());
    assert_eq!((first.len(), pool.available(&mut cpu)), (31, 8));
    for left in (0..8).rev() {
        assert!(second.take(&mut cpu).is_some());
        assert_eq!((second.len(), pool.available(&mut cpu)), (0, left));
    }
    assert_eq!(second.refused(), 0);
    assert_eq!(second.take(&mut cpu), None);
    assert_eq!((first.refused(), second.refused()), (0, 1));
}
