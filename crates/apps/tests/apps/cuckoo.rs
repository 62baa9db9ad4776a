//! The cuckoo table against a map of the standard library.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use nicforge_apps::tables::{Cuckoo, Entry, TableFull, mix};
use nicforge_platform::{AddressSpace, FlatCpu};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Word {
    key: u64,
    value: u64,
    in_use: u64,
    unused: [u64; 5],
}

impl Word {
    fn new(key: u64, value: u64) -> Word {
        Word { key, value, in_use: 1, unused: [0; 5] }
    }
}

impl Entry for Word {
    type Key = u64;
    fn key(&self) -> u64 {
        self.key
    }
    fn hash(key: &u64) -> u64 {
        // The SAME keys share two buckets and a signature.
        if SAME.contains(key) { mix(0) } else { mix(*key) }
    }
    fn in_use(&self) -> bool {
        self.in_use != 0
    }
}

const SAME: std::ops::Range<u64> = 1000..1020;

fn table(capacity: u32) -> (Cuckoo<Word>, FlatCpu) {
    let mut space = AddressSpace::default();
    let table = Cuckoo::allocate(&mut space, capacity);
    (table, FlatCpu::new(space.end()))
}

proptest! {
    #[test]
    fn behaves_as_a_map(
        capacity in 1u32..60,
        steps in prop::collection::vec((0u64..1020, any::<u64>(), 0u8..3), 1..400),
    ) {
        let (mut table, mut cpu) = table(capacity);
        let mut map: BTreeMap<u64, u64> = BTreeMap::new();
        for (key, value, action) in steps {
            // Few keys, so that they meet again.
            let key = if key < 1000 { key % 80 } else { key };
            let found = table.find(&mut cpu, &key);
            prop_assert_eq!(found.map(|(_, word)| word.value), map.get(&key).copied());
            match (action, found) {
                (0, Some((number, _))) => {
                    table.remove(&mut cpu, number);
                    table.remove(&mut cpu, number);
                    map.remove(&key);
                }
                (_, None) => match table.insert(&mut cpu, &Word::new(key, value)) {
                    Ok(number) => {
                        prop_assert_eq!(table.load(&mut cpu, number).key, key);
                        map.insert(key, value);
                    }
                    // Only when full, or when equal hashes fill both buckets.
                    Err(TableFull) => prop_assert!(map.len() >= 16 || map.len() as u32 == capacity),
                },
                _ => {}
            }
            prop_assert_eq!(table.len() as usize, map.len());
        }
        for (key, value) in &map {
            prop_assert_eq!(table.find(&mut cpu, key).map(|(_, word)| word.value), Some(*value));
        }
    }
}

#[test]
fn fills_to_capacity_by_moving_entries() {
    // 7782 entries are 95 % of 1024 buckets: most inserts at the end need chains of moves.
    let capacity = 7782;
    let (mut table, mut cpu) = table(capacity);
    let key = |n: u64| n << 16;
    for n in 0..u64::from(capacity) {
        table.insert(&mut cpu, &Word::new(key(n), n)).unwrap();
    }
    for n in 0..u64::from(capacity) {
        assert_eq!(table.find(&mut cpu, &key(n)).unwrap().1.value, n);
    }
    assert_eq!(table.insert(&mut cpu, &Word::new(1, 1)), Err(TableFull), "one more than the capacity");
}

#[test]
fn equal_hashes_fill_two_buckets_and_no_more() {
    let (mut table, mut cpu) = table(1000);
    let results: Vec<bool> = (1000..1020).map(|key| table.insert(&mut cpu, &Word::new(key, key)).is_ok()).collect();
    assert_eq!(results.iter().filter(|&&done| done).count(), 16);
    assert!(results[..16].iter().all(|&done| done));
    // Nothing was lost on the way, and room can be made again.
    for key in 1000..1016 {
        assert_eq!(table.find(&mut cpu, &key).unwrap().1.value, key);
    }
    let (number, _) = table.find(&mut cpu, &1003).unwrap();
    table.remove(&mut cpu, number);
    assert!(table.find(&mut cpu, &1003).is_none());
    assert!(table.insert(&mut cpu, &Word::new(1019, 7)).is_ok());
}

#[test]
fn the_hand_visits_every_entry_in_turn() {
    let (mut table, mut cpu) = table(8);
    assert!(table.sweep(&mut cpu).is_none());
    for key in 1..=4 {
        table.insert(&mut cpu, &Word::new(key, key)).unwrap();
    }
    table.remove(&mut cpu, 2);
    let seen: Vec<Option<u64>> = (0..8).map(|_| table.sweep(&mut cpu).map(|(_, word)| word.key)).collect();
    let round = [Some(1), Some(2), None, Some(4)];
    assert_eq!(seen, [round, round].concat());
}
