use super::*;
use nicforge_units::{Bytes, Time};

const CLEAN: LineState = LineState {
    dirty: false,
    fresh: false,
};

fn cache(sets: u64, ways: usize) -> Cache {
    let config = CacheConfig {
        size: Bytes(sets * ways as u64 * CACHE_LINE_BYTES),
        ways,
        hit: Time::ZERO,
    };
    Cache::new(&config, false)
}

#[test]
fn the_least_recently_used_line_makes_room() {
    let mut cache = cache(1, 4);
    let all = WayMask::all(4);
    for line in 0..4 {
        assert_eq!(cache.fill(line, all, CLEAN), None);
    }
    assert!(cache.hit(0).is_some());
    assert_eq!(cache.fill(4, all, CLEAN).map(|e| e.line), Some(1));
    assert!(cache.holds(0) && !cache.holds(1));
}

#[test]
fn a_fill_stays_within_its_ways() {
    let mut cache = cache(1, 11);
    for line in 0..9 {
        cache.fill(line, WayMask::all(9), CLEAN);
    }
    let io = WayMask::highest(2, 11);
    assert_eq!(io.bits, 0b110_0000_0000);
    for line in 100..110 {
        cache.fill(line, io, CLEAN);
    }
    assert!((0..9).all(|line| cache.holds(line)));
    assert_eq!((100..110).filter(|&line| cache.holds(line)).count(), 2);
}

#[test]
fn a_cyclic_walk_over_capacity_never_hits_and_within_always_does() {
    let mut cache = cache(16, 4);
    let all = WayMask::all(4);
    for (lines, expected) in [(64u64, 64), (80, 0)] {
        cache.sets.fill(EMPTY_SET);
        for line in 0..lines {
            cache.fill(line, all, CLEAN);
        }
        let hits = (0..lines)
            .filter(|&line| {
                let hit = cache.hit(line).is_some();
                if !hit {
                    cache.fill(line, all, CLEAN);
                }
                hit
            })
            .count();
        assert_eq!(hits, expected, "{lines} lines over 64");
    }
}

#[test]
fn eviction_names_the_line_and_its_state_under_a_hashed_index() {
    let config = CacheConfig {
        size: Bytes(64 * 2 * CACHE_LINE_BYTES),
        ways: 2,
        hit: Time::ZERO,
    };
    let mut cache = Cache::new(&config, true);
    let mut inside = std::collections::BTreeSet::new();
    for line in (0..4096).step_by(3) {
        let state = LineState {
            dirty: line % 2 == 0,
            fresh: line % 5 == 0,
        };
        inside.insert(line);
        if let Some(evicted) = cache.fill(line, WayMask::all(2), state) {
            assert!(inside.remove(&evicted.line));
            assert_eq!(evicted.state.dirty, evicted.line % 2 == 0);
            assert_eq!(evicted.state.fresh, evicted.line % 5 == 0);
        }
    }
    assert!(inside.iter().all(|&line| cache.holds(line)));
}

#[test]
fn a_run_says_what_it_met() {
    let mut cache = cache(8, 4);
    let io = WayMask::highest(1, 4);
    let run = cache.write_run(4, 8, io);
    assert_eq!((run.allocated, run.written_back), (8, 0));
    assert_eq!(cache.write_run(4, 8, io).allocated, 0);
    let run = cache.write_run(12, 4, io);
    assert_eq!((run.written_back, run.fresh_lost), (4, 4));
    let run = cache.read_run(4, 12);
    assert_eq!((run.missing, run.fresh), (0b1111, 8));
}

#[test]
fn removal_frees_the_way_first() {
    let mut cache = cache(1, 2);
    let all = WayMask::all(2);
    cache.fill(1, all, CLEAN);
    cache.fill(2, all, CLEAN);
    assert_eq!(cache.remove(2), Some(CLEAN));
    assert_eq!(cache.fill(3, all, CLEAN), None);
    assert!(cache.holds(1));
}

#[test]
fn a_device_read_ends_freshness_but_not_dirtiness() {
    let mut cache = cache(1, 2);
    let written = LineState {
        dirty: true,
        fresh: true,
    };
    cache.fill(1, WayMask::all(2), written);
    let fresh = |cache: &mut Cache| cache.read_run(1, 1).fresh;
    assert_eq!(fresh(&mut cache), 1);
    assert_eq!(fresh(&mut cache), 0);
    assert!(cache.hit(1).is_some_and(|state| state.dirty));
}
