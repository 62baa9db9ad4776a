use super::*;
use nicforge_units::{Bytes, Time};

fn cache(sets: u64, ways: usize) -> Cache {
    Cache::new(&CacheConfig {
        size: Bytes(sets * ways as u64 * CACHE_LINE_BYTES),
        ways,
        hit: Time::ZERO,
    })
}

#[test]
fn the_least_recently_used_line_makes_room() {
    let mut cache = cache(1, 4);
    for line in 0..4 {
        assert_eq!(cache.fill(line, false), None);
    }
    assert!(cache.hit(0, false));
    assert_eq!(cache.fill(4, false).map(|e| e.line), Some(1));
    assert!(cache.holds(0) && !cache.holds(1));
}

#[test]
fn a_cyclic_walk_over_capacity_never_hits_and_within_always_does() {
    for (lines, expected) in [(64u64, 64), (80, 0)] {
        let mut cache = cache(16, 4);
        for line in 0..lines {
            cache.fill(line, false);
        }
        let hits = (0..lines)
            .filter(|&line| {
                let hit = cache.hit(line, false);
                if !hit {
                    cache.fill(line, false);
                }
                hit
            })
            .count();
        assert_eq!(hits, expected, "{lines} lines over 64");
    }
}

#[test]
fn eviction_names_the_line_and_its_state() {
    let mut cache = cache(64, 2);
    let mut inside = std::collections::BTreeSet::new();
    for line in (0..4096).step_by(3) {
        inside.insert(line);
        if let Some(evicted) = cache.fill(line, line % 2 == 0) {
            assert!(inside.remove(&evicted.line));
            assert_eq!(evicted.dirty, evicted.line % 2 == 0);
        }
    }
    assert!(inside.iter().all(|&line| cache.holds(line)));
}

#[test]
fn removal_frees_the_way_first() {
    let mut cache = cache(1, 2);
    cache.fill(1, false);
    cache.fill(2, false);
    assert!(cache.hit(2, true));
    assert_eq!(cache.remove(2), Some(true));
    assert_eq!(cache.fill(3, false), None);
    assert!(cache.holds(1));
}
