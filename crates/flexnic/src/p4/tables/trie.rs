//! Longest prefix match on at most 64 bits: a trie with a stride of 16 bits, then of 8 bits each.
//!
//! Every slot knows the longest prefix that covers it, so a look-up of an IPv4 address reads at most three slots.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::WordHasher;

/// A slot: a child, or the prefix that covers it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Number of the child node; 0 is none, as the root is nobody's child.
    child: u32,
    /// Number of the entry plus one; 0 is none.
    entry: u32,
    /// Bits of the prefix.
    length: u8,
}

const EMPTY: Slot = Slot { child: 0, entry: 0, length: 0 };

#[derive(Debug)]
pub(super) struct Trie {
    width: u32,
    root: Vec<Slot>,
    nodes: Vec<[Slot; 256]>,
    free: Vec<u32>,
    /// Entry of each prefix, for changes.
    prefixes: HashMap<(u64, u32), u32, BuildHasherDefault<WordHasher>>,
}

impl Trie {
    pub fn new(width: u32) -> Trie {
        Trie { width, root: vec![EMPTY; 1 << 16], nodes: Vec::new(), free: Vec::new(), prefixes: HashMap::default() }
    }

    /// Keys are aligned to the left, so that narrow ones use the same levels.
    fn align(&self, value: u64) -> u64 {
        if self.width == 0 { 0 } else { value << (64 - self.width) }
    }

    #[inline]
    pub fn find(&self, value: u64) -> Option<usize> {
        let value = self.align(value);
        let mut slot = &self.root[(value >> 48) as usize];
        let mut rest = value << 16;
        while slot.child != 0 {
            slot = &self.nodes[slot.child as usize - 1][(rest >> 56) as usize];
            rest <<= 8;
        }
        (slot.entry as usize).checked_sub(1)
    }

    pub fn insert(&mut self, value: u64, length: u32, number: usize) {
        let value = self.align(value);
        self.prefixes.insert((value, length), number as u32 + 1);
        self.cover(value, length, Slot { child: 0, entry: number as u32 + 1, length: length as u8 }, None);
    }

    pub fn remove(&mut self, value: u64, length: u32) {
        let value = self.align(value);
        self.prefixes.remove(&(value, length));
        // The longest of the shorter prefixes covers the slots now.
        let shorter = (0..length).rev().find_map(|shorter| {
            let entry = self.prefixes.get(&(value & mask(shorter), shorter))?;
            Some(Slot { child: 0, entry: *entry, length: shorter as u8 })
        });
        self.cover(value, length, shorter.unwrap_or(EMPTY), Some(length as u8));
    }

    /// Puts `with` into all slots of a prefix that a longer one does not cover; with `only`, into those of that length.
    fn cover(&mut self, value: u64, length: u32, with: Slot, only: Option<u8>) {
        if length <= 16 {
            let first = (value >> 48) as usize;
            for at in first..first + (1 << (16 - length)) {
                let child = replace(&mut self.root[at], with, only);
                self.cover_below(child, with, only);
            }
            return;
        }
        let (mut node, mut end) = (self.child_of_root((value >> 48) as usize), 24);
        while end < length {
            node = self.child_of(node, (value >> (64 - end) & 0xff) as usize);
            end += 8;
        }
        let first = (value >> (64 - end) & 0xff) as usize;
        for at in first..first + (1 << (end - length)) {
            let child = replace(&mut self.nodes[node][at], with, only);
            self.cover_below(child, with, only);
        }
    }

    fn cover_below(&mut self, child: u32, with: Slot, only: Option<u8>) {
        let Some(node) = (child as usize).checked_sub(1) else { return };
        for at in 0..256 {
            let inner = replace(&mut self.nodes[node][at], with, only);
            self.cover_below(inner, with, only);
        }
    }

    fn child_of_root(&mut self, at: usize) -> usize {
        if self.root[at].child == 0 {
            self.root[at].child = self.new_node(self.root[at]);
        }
        self.root[at].child as usize - 1
    }

    fn child_of(&mut self, node: usize, at: usize) -> usize {
        if self.nodes[node][at].child == 0 {
            let child = self.new_node(self.nodes[node][at]);
            self.nodes[node][at].child = child;
        }
        self.nodes[node][at].child as usize - 1
    }

    fn new_node(&mut self, covered: Slot) -> u32 {
        let fresh = [Slot { child: 0, ..covered }; 256];
        if let Some(number) = self.free.pop() {
            self.nodes[number as usize - 1] = fresh;
            return number;
        }
        self.nodes.push(fresh);
        self.nodes.len() as u32
    }
}

/// Replaces what covers a slot and returns its child.
fn replace(slot: &mut Slot, with: Slot, only: Option<u8>) -> u32 {
    let covered = match only {
        None => slot.entry == 0 || slot.length <= with.length,
        Some(length) => slot.entry != 0 && slot.length == length,
    };
    if covered {
        *slot = Slot { child: slot.child, ..with };
    }
    slot.child
}

fn mask(length: u32) -> u64 {
    if length == 0 { 0 } else { u64::MAX << (64 - length) }
}
