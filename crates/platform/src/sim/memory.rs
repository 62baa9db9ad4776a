//! The bytes of a simulated host, and when published words become visible.
//!
//! Data written by a device is read only after the word that announces it was seen, so only
//! announcements need a time. They live in control memory; beside each of its words stand the
//! time from which it counts and the value before.

use nicforge_units::Time;

use crate::{Addr, AddressSpace, Owner};

/// A published word: what it was, and from when on the new value counts.
#[derive(Clone, Copy, Default)]
struct Pending {
    visible_at: Time,
    before: u64,
}

/// Host memory with time on its published words.
pub struct SimMemory {
    bytes: Vec<u8>,
    pending: Vec<Pending>,
    owners: Vec<Owner>,
    wakes: Vec<(Owner, Time)>,
}

impl SimMemory {
    /// Zeroed memory for everything that `space` handed out.
    pub fn new(space: &AddressSpace) -> SimMemory {
        SimMemory::with_bytes(space, vec![0; space.end() as usize])
    }

    /// Memory that somebody filled before the run; `bytes` holds all of `space`.
    pub fn with_bytes(space: &AddressSpace, bytes: Vec<u8>) -> SimMemory {
        assert_eq!(
            bytes.len() as u64,
            space.end(),
            "memory and address space agree"
        );
        let words = space.control_end().div_ceil(8) as usize;
        let mut owners = vec![Owner::NOBODY; space.control_end().div_ceil(64) as usize];
        for &(at, len, owner) in space.owners() {
            owners[at.line() as usize..(at + (len - 1)).line() as usize + 1].fill(owner);
        }
        SimMemory {
            bytes,
            pending: vec![Pending::default(); words],
            owners,
            wakes: Vec::new(),
        }
    }

    /// Takes all bytes out, when the run is over.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// `len` bytes at `at`.
    #[inline]
    pub fn slice(&self, at: Addr, len: usize) -> &[u8] {
        &self.bytes[at.0 as usize..][..len]
    }

    /// `len` bytes at `at`, to write.
    #[inline]
    pub fn slice_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        &mut self.bytes[at.0 as usize..][..len]
    }

    /// The word at `at`, as it is in memory now.
    #[inline]
    pub fn word(&self, at: Addr) -> u64 {
        bytemuck::pod_read_unaligned(self.slice(at, 8))
    }

    /// The word at `at` as somebody sees it at `now`: a publish counts from its time on.
    #[inline]
    pub fn word_at(&self, at: Addr, now: Time) -> u64 {
        match self.pending.get(at.0 as usize / 8) {
            Some(pending) if pending.visible_at > now => pending.before,
            _ => self.word(at),
        }
    }

    /// Writes `entry` so that its last word counts from `visible_at` on, and wakes the core
    /// that watches the line.
    #[inline]
    pub fn publish(&mut self, at: Addr, entry: &[u8], visible_at: Time) {
        let word = at + (entry.len() as u64 - 8);
        let before = self.word(word);
        if let Some(pending) = self.pending.get_mut(word.0 as usize / 8) {
            *pending = Pending { visible_at, before };
        }
        self.slice_mut(at, entry.len()).copy_from_slice(entry);
        match self.owners.get(word.line() as usize) {
            Some(&owner) if owner != Owner::NOBODY => self.wakes.push((owner, visible_at)),
            _ => {}
        }
    }

    /// Cores to wake since the last call, each with the time of the publish.
    #[inline]
    pub fn take_wakes(&mut self) -> std::vec::Drain<'_, (Owner, Time)> {
        self.wakes.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_sees_a_publish_before_its_time() {
        let mut space = AddressSpace::default();
        let ring = space.control(64, Owner(3)).unwrap();
        let mut memory = SimMemory::new(&space);
        let mut entry = [0u8; 64];
        entry[56] = 1;
        let word = ring + 56;
        memory.publish(ring, &entry, Time::from_ns(500));
        for agent_time in [Time::ZERO, Time::from_ps(499_999)] {
            assert_eq!(memory.word_at(word, agent_time), 0);
        }
        assert_eq!(memory.word_at(word, Time::from_ns(500)), 1);
        let wakes: Vec<_> = memory.take_wakes().collect();
        assert_eq!(wakes, [(Owner(3), Time::from_ns(500))]);
        assert_eq!(memory.take_wakes().count(), 0);
    }
}
