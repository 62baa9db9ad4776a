//! A partition against a map of the standard library: a GET gives the latest value or nothing.

use std::collections::BTreeMap;

use nicforge_platform::{AddressSpace, Cpu, FlatCpu};
use nicforge_units::Bytes;
use nicforge_wire::headers::key_hash;
use proptest::prelude::*;

use super::store::{Partition, TooLarge, Value};

fn partition(slots: u64, log: u64) -> (Partition, FlatCpu) {
    let mut space = AddressSpace::default();
    let partition = Partition::allocate(&mut space, slots, Bytes(log));
    (partition, FlatCpu::new(space.end()))
}

fn get(partition: &mut Partition, cpu: &mut FlatCpu, key: &[u8]) -> Option<Vec<u8>> {
    get_as(partition, cpu, key_hash(key), key)
}

fn get_as(partition: &mut Partition, cpu: &mut FlatCpu, hash: u64, key: &[u8]) -> Option<Vec<u8>> {
    let found = partition.get(cpu, hash, key)?;
    let value = match found {
        Value::InLog(value) => value,
        Value::Lent(lent) => lent.value,
    };
    Some(cpu.bytes(value.at, value.len as usize).to_vec())
}

/// A key whose length depends on its number, and a value whose bytes depend on the step.
fn key(number: u8) -> Vec<u8> {
    vec![number; 1 + usize::from(number % 5)]
}

fn value(step: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (step * 31 + place) as u8).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Get(u8),
    Delete(u8),
}

fn steps(keys: u8) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..keys, 0..60usize).prop_map(|(key, len)| Step::Put(key, len)),
        4 => (0..keys).prop_map(Step::Get),
        1 => (0..keys).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..500)
}

/// Runs the steps on both; says how many GETs found nothing although the map has a value.
fn compare(partition: &mut Partition, cpu: &mut FlatCpu, steps: &[Step], hash: impl Fn(&[u8]) -> u64) -> u32 {
    let mut map: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    let mut lost = 0;
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(of, len) => {
                let (key, value) = (key(of), value(number, len));
                if partition.put(cpu, hash(&key), &key, &value).is_ok() {
                    let found = get_as(partition, cpu, hash(&key), &key);
                    assert_eq!(found, Some(value.clone()), "just stored");
                    map.insert(of, value);
                }
            }
            Step::Get(of) => {
                let key = key(of);
                match get_as(partition, cpu, hash(&key), &key) {
                    Some(found) => {
                        assert_eq!(Some(&found), map.get(&of), "step {number}");
                    }
                    None => lost += u32::from(map.contains_key(&of)),
                }
            }
            Step::Delete(of) => {
                let key = key(of);
                let was_there = partition.delete(cpu, hash(&key), &key);
                assert!(map.remove(&of).is_some() || !was_there);
            }
        }
    }
    lost
}

proptest! {
    /// Few buckets and a log of a few items: slots are pushed out and the log wraps all the time.
    #[test]
    fn never_a_wrong_value(slots in 1..40u64, log in 8..2_000u64, steps in steps(50)) {
        let (mut partition, mut cpu) = partition(slots, log);
        compare(&mut partition, &mut cpu, &steps, key_hash);
    }

    /// All keys have one hash, so that only the comparison of keys tells them apart.
    #[test]
    fn never_a_wrong_value_with_equal_hashes(log in 100..2_000u64, steps in steps(12)) {
        let (mut partition, mut cpu) = partition(64, log);
        compare(&mut partition, &mut cpu, &steps, |_| 0x1234_5678_9abc_def0);
    }

    /// Positions end within the run: everything is forgotten once, and nothing is wrong.
    #[test]
    fn never_a_wrong_value_when_positions_end(left in 0..400u64, steps in steps(20)) {
        let (mut partition, mut cpu) = partition(64, 1_000);
        partition.log_mut().begin_at((1 << 48) - 1 - left);
        compare(&mut partition, &mut cpu, &steps, key_hash);
    }

    /// With room for everything it is a map.
    #[test]
    fn with_room_nothing_is_lost(steps in steps(50)) {
        let (mut partition, mut cpu) = partition(50 * 64, 500 * 96);
        prop_assert_eq!(compare(&mut partition, &mut cpu, &steps, key_hash), 0);
    }
}

#[test]
fn the_log_wraps_and_forgets_the_oldest() {
    // 16 of these items fill the log.
    assert_eq!(super::item_bytes(8, 40), 16 + 8 + 40);
    assert_eq!(super::item_bytes(1, 40), 16 + 8 + 40);
    let (mut partition, mut cpu) = partition(1_000, 16 * 64);
    let key = |number: u64| number.to_be_bytes();
    for number in 0..100 {
        let value = [number as u8; 40];
        let key = key(number);
        partition.put(&mut cpu, key_hash(&key), &key, &value).unwrap();
    }
    for number in 0..100 {
        let expected = (number >= 84).then(|| vec![number as u8; 40]);
        assert_eq!(get(&mut partition, &mut cpu, &key(number)), expected);
    }
    assert_eq!(partition.log_laps(), 6);
    // In the index most of them are gone for the log only.
    assert_eq!(partition.index_evictions(), 0);
}

#[test]
fn a_full_bucket_loses_its_oldest_pair() {
    let (mut partition, mut cpu) = partition(1, 1 << 16);
    let key = |number: u64| number.to_be_bytes();
    for number in 0..12 {
        let key = key(number);
        partition.put(&mut cpu, key_hash(&key), &key, &key).unwrap();
    }
    assert_eq!(partition.index_evictions(), 4);
    for number in 0..12 {
        let expected = (number >= 4).then(|| key(number).to_vec());
        assert_eq!(get(&mut partition, &mut cpu, &key(number)), expected);
    }
}

/// What the log has overwritten took a slot of nobody's.
#[test]
fn a_slot_of_what_the_log_has_overwritten_is_free() {
    // Items of four words, four of them.
    let (mut partition, mut cpu) = partition(1, 4 * 32);
    for number in 0..20u64 {
        let key = number.to_be_bytes();
        partition.put(&mut cpu, key_hash(&key), &key, &key).unwrap();
    }
    assert_eq!(partition.index_evictions(), 0);
}

/// Clients may write what they like, also what looks like an item where one was.
#[test]
fn bytes_over_an_old_item_are_not_taken_for_it() {
    let (mut partition, mut cpu) = partition(8, 20 * 8);
    let mut put = |key: &[u8], value: &[u8]| {
        partition.put(&mut cpu, key_hash(key), key, value).unwrap();
    };
    let old = b"old item";
    put(b"b", &[0; 8]);
    put(old, &[1; 24]);
    put(b"f", &[0; 63]);
    // Words 0 to 6: header, key, one more, and three over the old item's header and key.
    let mut value = vec![2; 8];
    value.extend(key_hash(old).to_ne_bytes());
    value.extend([8u16, 24, 4, 0].into_iter().flat_map(u16::to_ne_bytes));
    value.extend(old);
    put(b"new item", &value);
    assert_eq!(get(&mut partition, &mut cpu, b"new item"), Some(value));
    assert_eq!(get(&mut partition, &mut cpu, old), None);
}

#[test]
fn a_value_that_fits_its_item_is_replaced_in_place() {
    let (mut partition, mut cpu) = partition(8, 1 << 12);
    let hash = key_hash(b"key");
    let place = |partition: &mut Partition, cpu: &mut FlatCpu, value: &[u8]| {
        partition.put(cpu, hash, b"key", value).unwrap();
        assert_eq!(get(partition, cpu, b"key").unwrap(), value);
        let Some(Value::InLog(found)) = partition.get(cpu, hash, b"key") else {
            panic!("nothing is hot");
        };
        found.at
    };
    // 16 + 3 + 10 bytes take four words: 3 more bytes of value are room as well.
    let first = place(&mut partition, &mut cpu, &[1; 10]);
    assert_eq!(place(&mut partition, &mut cpu, &[2; 2]), first);
    assert_eq!(place(&mut partition, &mut cpu, &[3; 13]), first);
    assert_ne!(place(&mut partition, &mut cpu, &[4; 14]), first);
}

#[test]
fn positions_begin_anew_once_they_are_used_up() {
    let (mut partition, mut cpu) = partition(64, 800);
    partition.log_mut().begin_at((1 << 48) - 1 - 200);
    for number in 0..300u64 {
        let key = number.to_be_bytes();
        partition.put(&mut cpu, key_hash(&key), &key, &key).unwrap();
        assert_eq!(get(&mut partition, &mut cpu, &key).unwrap(), key);
    }
    assert_eq!(partition.restarts(), 1);
}

/// No slot of before is in the way of what comes then.
#[test]
fn the_index_is_empty_when_positions_begin_anew() {
    let (mut partition, mut cpu) = partition(1, 800);
    partition.log_mut().begin_at((1 << 48) - 1 - 200);
    let mut put = |partition: &mut Partition, number: u64| {
        let key = number.to_be_bytes();
        partition.put(&mut cpu, key_hash(&key), &key, &key).unwrap();
    };
    let mut number = 0;
    while partition.restarts() == 0 {
        put(&mut partition, number);
        number += 1;
    }
    assert!(number > 8, "its bucket is full");
    (number..number + 7).for_each(|number| put(&mut partition, number));
    for number in number - 1..number + 7 {
        let key = number.to_be_bytes();
        assert_eq!(get(&mut partition, &mut cpu, &key).unwrap(), key);
    }
}

#[test]
fn a_value_larger_than_the_log_is_refused_and_the_old_one_stays() {
    let (mut partition, mut cpu) = partition(8, 64);
    let hash = key_hash(b"key");
    partition.put(&mut cpu, hash, b"key", b"small").unwrap();
    let large = [0; 64];
    assert_eq!(partition.put(&mut cpu, hash, b"key", &large), Err(TooLarge));
    assert_eq!(get(&mut partition, &mut cpu, b"key").unwrap(), b"small");
}
