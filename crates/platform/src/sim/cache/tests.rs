use super::*;
use nicforge_units::{Bytes, Time};

fn config(sets: u64, ways: usize) -> CacheConfig {
    CacheConfig { size: Bytes(sets * ways as u64 * CACHE_LINE_BYTES), ways, hit: Time::ZERO }
}

fn cache(sets: u64, ways: usize) -> Cache {
    Cache::new(&config(sets, ways))
}

#[test]
fn the_least_recently_used_line_makes_room() {
    let mut cache = cache(1, 4);
    for line in 0..4 {
        assert_eq!(cache.fill(line, false, false), None);
    }
    assert!(cache.hit(0, false).is_some());
    assert_eq!(cache.fill(4, false, false).map(|e| e.line), Some(1));
    assert!(cache.holds(0) && !cache.holds(1));
}

#[test]
fn a_cyclic_walk_over_capacity_never_hits_and_within_always_does() {
    for (lines, expected) in [(64u64, 64), (80, 0)] {
        let mut cache = cache(16, 4);
        for line in 0..lines {
            cache.fill(line, false, false);
        }
        let hits = (0..lines)
            .filter(|&line| {
                let hit = cache.hit(line, false).is_some();
                if !hit {
                    cache.fill(line, false, false);
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
        if let Some(evicted) = cache.fill(line, line % 2 == 0, false) {
            assert!(inside.remove(&evicted.line));
            assert_eq!(evicted.dirty, evicted.line % 2 == 0);
        }
    }
    assert!(inside.iter().all(|&line| cache.holds(line)));
}

#[test]
fn removal_frees_the_way_first() {
    let mut cache = cache(1, 2);
    cache.fill(1, false, false);
    cache.fill(2, false, false);
    assert!(cache.hit(2, true).is_some());
    assert_eq!(cache.remove(2), Some(true));
    assert_eq!(cache.fill(3, false, false), None);
    assert!(cache.holds(1));
}

/// Lines that share all bits of a tag that are compared at once are told apart.
#[test]
fn tags_that_differ_in_high_bits_only_are_different() {
    let mut cache = cache(4, 16);
    let line = |high: u64| 3 | 77 << 2 | high << 18;
    for high in 0..16 {
        assert!(cache.hit(line(high), false).is_none());
        cache.fill(line(high), high % 2 == 0, false);
    }
    assert!((0..16).all(|high| cache.hit(line(high), false).is_some()));
    assert_eq!(cache.remove(line(5)), Some(false));
    assert!(!cache.holds(line(5)) && cache.holds(line(4)) && cache.holds(line(6)));
    assert_eq!(cache.fill(line(5), false, false), None);
    let evicted = cache.fill(3 | 78 << 2, false, false);
    assert_eq!(evicted.map(|e| (e.line, e.dirty)), Some((line(0), true)));
    assert_eq!(Cache::lines_max(&config(4, 16)), line(15).next_power_of_two());
}

#[test]
fn a_line_is_shared_once_another_cache_gets_it() {
    let mut cache = cache(1, 2);
    cache.fill(1, false, false);
    assert_eq!(cache.hit(1, false), Some(Sharing(false)));
    assert!(cache.share(1) && !cache.share(2));
    assert_eq!(cache.hit(1, false), Some(Sharing(true)));
    cache.fill(2, false, true);
    let evicted = cache.fill(3, false, false).unwrap();
    assert!(evicted.line == 1 && evicted.shared);
    // The way's next line is another.
    assert_eq!(cache.hit(3, false), Some(Sharing(false)));
    assert_eq!(cache.hit(2, false), Some(Sharing(true)));
}
