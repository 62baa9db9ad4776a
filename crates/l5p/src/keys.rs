//! Expanded keys: key schedules and hash tables that a context's raw key stands for.
//!
//! The cache is for speed only. Losing an entry at any point costs an expansion and changes no result, so contexts
//! stay self-contained. An entry is found by its key's first byte and compared whole.

use zeroize::Zeroizing;

use crate::tls::gcm::GcmKey;

/// Entries; a power of two.
const ENTRIES: usize = 64;

struct Entry {
    key: Zeroizing<[u8; 32]>,
    bytes: usize,
    expanded: GcmKey,
}

/// Expanded AES-GCM keys, at most 64.
pub struct KeyCache {
    entries: Vec<Option<Box<Entry>>>,
    /// Keys that were expanded because they were not here.
    pub expansions: u64,
}

impl Default for KeyCache {
    fn default() -> Self {
        Self { entries: (0..ENTRIES).map(|_| None).collect(), expansions: 0 }
    }
}

impl KeyCache {
    /// The expanded form of a key of 16 or 32 bytes.
    pub(crate) fn gcm(&mut self, key: &[u8]) -> &GcmKey {
        let slot = &mut self.entries[usize::from(key[0]) % ENTRIES];
        let fits = slot.as_ref().is_some_and(|entry| entry.bytes == key.len() && entry.key[..key.len()] == *key);
        if !fits {
            self.expansions += 1;
            *slot = None;
        }
        let entry = slot.get_or_insert_with(|| {
            let mut copy = Zeroizing::new([0; 32]);
            copy[..key.len()].copy_from_slice(key);
            let expanded = match <&[u8; 16]>::try_from(key) {
                Ok(key) => GcmKey::aes128(key),
                Err(_) => GcmKey::aes256(&copy),
            };
            Box::new(Entry { key: copy, bytes: key.len(), expanded })
        });
        &entry.expanded
    }

    /// Overwrites the key if it is here: part of `l5o_destroy`.
    pub(crate) fn forget(&mut self, key: &[u8]) {
        let slot = &mut self.entries[usize::from(key[0]) % ENTRIES];
        if slot.as_ref().is_some_and(|entry| entry.bytes == key.len() && entry.key[..key.len()] == *key) {
            *slot = None;
        }
    }

    /// Keys that are here.
    pub fn len(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// Whether no key is here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
