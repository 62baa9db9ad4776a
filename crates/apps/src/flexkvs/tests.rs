//! The table and the log against a model.

use std::collections::HashMap;

use nicforge_platform::FlatCpu;
use proptest::prelude::*;

use super::*;

/// A store with a table so small that chains grow, and few segments.
fn store(segments: u32) -> (FlexKvs, FlatCpu) {
    let mut space = AddressSpace::default();
    let config = FlexKvsOptions { flexkvs_buckets: 4, flexkvs_log_mib: 2 * segments, ..FlexKvsOptions::default() };
    let shared = Store::allocate(&config, &mut space);
    let mut cpu = FlatCpu::new(space.end());
    let mut kvs = FlexKvs {
        table: shared.table,
        writer: Writer::new(shared.segments),
        fills: true,
        buffer_room: 2048,
        nic_log: None,
        work: Cycles(0),
        message_work: Cycles(0),
        key: Vec::new(),
        value: Vec::new(),
        flags: [0; 4],
        counts: Counts::default(),
    };
    Application::<FlatCpu>::fill_shared(&mut kvs, &mut cpu);
    (kvs, cpu)
}

fn set(kvs: &mut FlexKvs, cpu: &mut FlatCpu, key: &[u8], value: &[u8]) -> Outcome {
    (kvs.key, kvs.value) = (key.to_vec(), value.to_vec());
    let hash = lookup3(key, 0);
    let header = ItemHeader::new(hash, key.len() as u16, value.len() as u32, [0; 4], 0);
    let bucket = kvs.table.lock(cpu, hash);
    let outcome = kvs.store_locked(cpu, bucket, header, When::Always, 0, 0);
    kvs.table.unlock(cpu, bucket);
    kvs.compact(cpu);
    outcome
}

fn get(kvs: &mut FlexKvs, cpu: &mut FlatCpu, key: &[u8]) -> Option<Vec<u8>> {
    kvs.key = key.to_vec();
    (kvs.get(cpu, lookup3(key, 0)) == Outcome::Value).then(|| kvs.value.clone())
}

fn delete(kvs: &mut FlexKvs, cpu: &mut FlatCpu, key: &[u8]) -> bool {
    kvs.key = key.to_vec();
    let hash = lookup3(key, 0);
    let bucket = kvs.table.lock(cpu, hash);
    let found = kvs.table.find(cpu, bucket, hash, &kvs.key);
    if let Some(found) = &found {
        kvs.table.remove(cpu, bucket, found);
        kvs.release(cpu, found);
    }
    kvs.table.unlock(cpu, bucket);
    found.is_some()
}

/// Values that are replaced again and again fill the log many times over; compaction makes room, and nothing is lost.
#[test]
fn compaction_keeps_what_is_stored() {
    let (mut kvs, mut cpu) = store(4);
    for n in 0..50u32 {
        assert_eq!(set(&mut kvs, &mut cpu, format!("stays {n}").as_bytes(), &n.to_be_bytes()), Outcome::Done);
    }
    for round in 0..30_000u32 {
        let key = format!("changes {}", round % 100);
        assert_eq!(set(&mut kvs, &mut cpu, key.as_bytes(), &[round as u8; 1000]), Outcome::Done, "{round}");
    }
    for n in 0..50u32 {
        assert_eq!(get(&mut kvs, &mut cpu, format!("stays {n}").as_bytes()), Some(n.to_be_bytes().to_vec()));
    }
    assert!(kvs.counts.moved > 50);
}

/// An item that a GET of another core holds keeps its bytes: the log fills its segment again only after the GET releases it.
#[test]
fn an_item_that_is_held_keeps_its_bytes() {
    let (mut kvs, mut cpu) = store(4);
    set(&mut kvs, &mut cpu, b"held", &[7; 1000]);
    let hash = lookup3(b"held", 0);
    let bucket = kvs.table.lock(&mut cpu, hash);
    let found = kvs.table.find(&mut cpu, bucket, hash, b"held").unwrap();
    kvs.table.hold(&mut cpu, found.item);
    kvs.table.unlock(&mut cpu, bucket);
    let fill = |kvs: &mut FlexKvs, cpu: &mut FlatCpu| -> usize {
        let keys = (0..10_000u32).map(|round| format!("changes {}", round % 100));
        keys.take_while(|key| set(kvs, cpu, key.as_bytes(), &[1; 1000]) == Outcome::Done).count()
    };
    set(&mut kvs, &mut cpu, b"held", &[8; 1000]);
    assert!(fill(&mut kvs, &mut cpu) < 10_000, "the segment is not free");
    assert_eq!(cpu.bytes(found.value.at, 1000), [7; 1000]);
    kvs.release(&mut cpu, &found);
    kvs.compact(&mut cpu);
    assert_eq!(fill(&mut kvs, &mut cpu), 10_000);
    assert_eq!(get(&mut kvs, &mut cpu, b"held"), Some(vec![8; 1000]));
}

#[test]
fn a_full_log_refuses_new_pairs_and_keeps_old_ones() {
    let (mut kvs, mut cpu) = store(1);
    let mut stored = 0u32;
    while set(&mut kvs, &mut cpu, &stored.to_be_bytes(), &[7; 5000]) == Outcome::Done {
        stored += 1;
    }
    assert!(stored > 400);
    for n in 0..stored {
        assert_eq!(get(&mut kvs, &mut cpu, &n.to_be_bytes()), Some(vec![7; 5000]));
    }
    assert_eq!(kvs.counts.out_of_memory, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// The store answers as a map does, whatever chains and compaction do.
    #[test]
    fn it_answers_as_a_map(steps in prop::collection::vec((0u8..3, 0u16..60, 0usize..3000), 1..600)) {
        let (mut kvs, mut cpu) = store(3);
        let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        for (operation, key, len) in steps {
            let key = format!("key number {key}").into_bytes();
            match operation {
                0 => prop_assert_eq!(get(&mut kvs, &mut cpu, &key), model.get(&key).cloned()),
                1 => {
                    let value = vec![len as u8; len];
                    if set(&mut kvs, &mut cpu, &key, &value) == Outcome::Done {
                        model.insert(key, value);
                    }
                }
                _ => prop_assert_eq!(delete(&mut kvs, &mut cpu, &key), model.remove(&key).is_some()),
            }
        }
        for (key, value) in &model {
            prop_assert_eq!(get(&mut kvs, &mut cpu, key), Some(value.clone()));
        }
    }
}
