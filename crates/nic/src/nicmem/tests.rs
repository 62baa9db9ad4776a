use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::*;

const US: Application = Application(1);
const THEM: Application = Application(2);

fn nicmem(capacity: u64) -> Nicmem {
    Nicmem::new(&mut AddressSpace::default(), 0, capacity)
}

#[test]
fn running_out_is_refused_with_what_is_left() {
    let mut nicmem = nicmem(4096);
    let first = nicmem.alloc_nicmem(US, 3000).unwrap();
    assert_eq!(first.len, 3008, "whole lines");
    let error = nicmem.alloc_nicmem(US, 2000).unwrap_err();
    let (wanted, largest, capacity) = (2000, 4096 - 3008, 4096);
    let expected = NicmemError::OutOfNicmem { wanted, largest, capacity };
    assert_eq!(error, expected);
    nicmem.dealloc_nicmem(US, first.at).unwrap();
    nicmem.alloc_nicmem(US, 4096).unwrap();
    assert_eq!(nicmem.available(), 0);
    assert_eq!(nicmem.refused().causes(), [("out_of_nicmem", 1)]);
    for wanted in [0, u64::MAX] {
        nicmem.alloc_nicmem(US, wanted).unwrap_err();
    }
}

#[test]
fn without_any_memory_everything_is_refused() {
    let mut nicmem = nicmem(0);
    nicmem.alloc_nicmem(US, 1).unwrap_err();
    let keys = nicmem.keys();
    assert!(!keys.overlaps(Addr(0), Addr(u64::MAX)));
    assert_eq!(keys.check(US, Key(1 << 10), Addr(64), 1), Err(Refusal::ForeignKey));
}

#[test]
fn double_and_foreign_frees_change_nothing() {
    let mut nicmem = nicmem(4096);
    let ours = nicmem.alloc_nicmem(US, 1024).unwrap();
    let at = ours.at;
    assert_eq!(nicmem.dealloc_nicmem(THEM, at), Err(NicmemError::ForeignKey(at)));
    assert_eq!(nicmem.dealloc_nicmem(US, at + 64), Err(NicmemError::NeverAllocated(at + 64)));
    assert_eq!(nicmem.keys().check(US, ours.key, at, 1024), Ok(()));
    nicmem.dealloc_nicmem(US, at).unwrap();
    assert_eq!(nicmem.dealloc_nicmem(US, at), Err(NicmemError::DoubleFree(at)));
    assert_eq!(nicmem.available(), 4096);
    let causes = [("foreign_key", 1), ("never_allocated", 1), ("double_free", 1)];
    assert_eq!(nicmem.refused().causes(), causes);
}

#[test]
fn a_key_is_good_for_its_holder_its_bytes_and_its_time() {
    let mut nicmem = nicmem(4096);
    let keys = nicmem.keys();
    let ours = nicmem.alloc_nicmem(US, 1024).unwrap();
    let theirs = nicmem.alloc_nicmem(THEM, 1024).unwrap();
    assert_eq!(keys.check(US, ours.key, ours.at + 1000, 24), Ok(()));
    let check = |key, at, len| keys.check(US, key, at, len).unwrap_err();
    assert_eq!(check(ours.key, ours.at + 1000, 25), Refusal::OutOfBounds);
    assert_eq!(check(ours.key, theirs.at, 1), Refusal::OutOfBounds);
    assert_eq!(check(ours.key, Addr(u64::MAX), 2), Refusal::OutOfBounds);
    assert_eq!(check(theirs.key, theirs.at, 1), Refusal::ForeignKey);
    assert_eq!(check(Key(u32::MAX), ours.at, 1), Refusal::ForeignKey);
    nicmem.dealloc_nicmem(US, ours.at).unwrap();
    assert_eq!(check(ours.key, ours.at, 1), Refusal::UseAfterFree);
    // Whoever has the memory now, the old key stays worth nothing.
    let again = nicmem.alloc_nicmem(US, 1024).unwrap();
    assert_eq!(again.at, ours.at);
    assert_eq!(check(ours.key, ours.at, 1), Refusal::UseAfterFree);
    assert_eq!(keys.check(US, again.key, again.at, 1), Ok(()));
}

#[test]
fn keys_run_out_before_memory_of_many_pieces() {
    let mut nicmem = nicmem(1 << 20);
    let mut pieces = Vec::new();
    let error = loop {
        match nicmem.alloc_nicmem(US, 64) {
            Ok(piece) => pieces.push(piece.at),
            Err(error) => break error,
        }
    };
    assert_eq!(error, NicmemError::OutOfKeys);
    nicmem.dealloc_nicmem(US, pieces[7]).unwrap();
    assert_eq!(nicmem.alloc_nicmem(US, 64).map(|piece| piece.at), Ok(pieces[7]));
}

/// Whatever is taken and given back: pieces never overlap, and nothing is lost.
#[test]
fn pieces_never_overlap() {
    let mut random = Pcg64::seed_from_u64(4);
    let mut nicmem = nicmem(16 << 10);
    let mut held: Vec<Allocation> = Vec::new();
    let apart = |a: &Allocation, b: &Allocation| a.at.0 + a.len <= b.at.0 || b.at.0 + b.len <= a.at.0;
    for _ in 0..5_000 {
        if random.next_u32().is_multiple_of(2) {
            let len = 1 + random.next_u64() % 3_000;
            if let Ok(new) = nicmem.alloc_nicmem(US, len) {
                assert!(new.len >= len && held.iter().all(|old| apart(old, &new)));
                held.push(new);
            }
        } else if !held.is_empty() {
            let old = held.swap_remove(random.next_u32() as usize % held.len());
            nicmem.dealloc_nicmem(US, old.at).unwrap();
            let stale = nicmem.keys().check(US, old.key, old.at, 1);
            assert_eq!(stale, Err(Refusal::UseAfterFree));
        }
        let taken: u64 = held.iter().map(|piece| piece.len).sum();
        assert_eq!(taken + nicmem.available(), nicmem.capacity());
    }
    for piece in held {
        nicmem.dealloc_nicmem(US, piece.at).unwrap();
    }
    // Free pieces that touch have become one.
    nicmem.alloc_nicmem(US, 16 << 10).unwrap();
}
