//! Who gets a place in memory of the NIC, and when it is free again.

use nicforge_apps::kvs::Kvs;

use super::{Bench, VALUE_BYTES};

impl Bench {
    /// So many GETs, each sent before the next one; how many were sent from memory of the NIC.
    fn ask(&mut self, key: u8, times: u32) -> u64 {
        let before = self.counter("hot_lent");
        for _ in 0..times {
            self.get(key);
            self.drain();
        }
        assert!(self.expected.is_empty());
        self.counter("hot_lent") - before
    }

    fn make_hot(&mut self, key: u8) {
        let store = self.app.downcast::<Kvs>().unwrap();
        store.preload_hot(&mut self.device.memory, &[key; 16]);
    }
}

/// Given hot items have their places before the first request, and no other item gets one.
#[test]
fn given_items_stay_the_hot_ones() {
    let mut bench = Bench::of(2, "given");
    for key in [0, 1] {
        bench.put(key, VALUE_BYTES);
    }
    bench.make_hot(0);
    assert_eq!((bench.ask(0, 3), bench.ask(1, 40)), (3, 0));
    assert_eq!((bench.counter("hot_moved_in"), bench.counter("hot_moved_out")), (1, 0));
    // A PUT makes the place stale, and the next GET copies the new value there.
    bench.put(0, VALUE_BYTES);
    assert_eq!((bench.ask(0, 2), bench.counter("hot_refreshed")), (2, 1));
}

#[test]
fn a_place_is_for_whom_more_is_asked() {
    let mut bench = Bench::new(1);
    for key in [0, 1] {
        bench.put(key, VALUE_BYTES);
    }
    // The tenth request halves what was counted before it: 9 / 2 + 3.
    assert_eq!(bench.ask(0, 12), 12);
    assert_eq!(bench.ask(1, 6), 0);
    // The twentieth request leaves the other one 3 of its 7.
    assert_eq!(bench.ask(1, 2), 1);
    assert_eq!(bench.counter("hot_moved_out"), 1);
}

#[test]
fn a_rarely_asked_item_displaces_no_other() {
    let mut bench = Bench::new(1);
    for key in [0, 1] {
        bench.put(key, VALUE_BYTES);
    }
    assert_eq!(bench.ask(0, 1), 1);
    assert_eq!(bench.ask(1, 3), 0);
    assert_eq!(bench.ask(1, 1), 1);
}

#[test]
fn an_item_that_was_written_elsewhere_is_hot_again() {
    let mut bench = Bench::new(1);
    bench.put(0, 30);
    assert_eq!(bench.ask(0, 1), 1);
    // Too long for its item, so that there is another one, and the place is nobody's.
    bench.put(0, VALUE_BYTES);
    bench.drain();
    assert_eq!(bench.ask(0, 2), 0);
    assert_eq!(bench.ask(0, 2), 2);
    assert_eq!(bench.counter("hot_moved_out"), 0);
}

#[test]
fn a_deleted_item_frees_its_place_at_once() {
    let mut bench = Bench::new(1);
    bench.put(0, VALUE_BYTES);
    assert_eq!(bench.ask(0, 5), 5);
    bench.delete(0);
    bench.put(1, VALUE_BYTES);
    bench.drain();
    assert_eq!(bench.ask(1, 4), 1);
    assert_eq!(bench.counter("hot_moved_out"), 0);
}

/// Where a hot item was may be the middle of another one's value.
#[test]
fn the_place_of_what_the_log_has_overwritten_is_free() {
    // 16 bytes of header, 16 of key: items of 40 and 232 bytes, of which so many fit the log of 1 MiB.
    const FIT: usize = ((1 << 20) - 40 - 232) / 232;
    let mut bench = Bench::new(1);
    bench.put(5, 8);
    bench.put(0, VALUE_BYTES);
    assert_eq!(bench.ask(0, 1), 1);
    // A key that is stored already would keep its place.
    for _ in 0..FIT {
        bench.put(1, VALUE_BYTES);
        bench.delete(1);
        bench.drain();
    }
    bench.put(3, VALUE_BYTES);
    bench.values.remove(&0);
    bench.drain();
    assert_eq!(bench.ask(0, 1), 0);
    // Key 3 lies over what was key 5's item and the beginning of key 0's.
    assert_eq!(bench.ask(3, 4), 1);
    assert_eq!(bench.counter("hot_moved_out"), 0);
}
