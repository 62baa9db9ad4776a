//! Reordering by sequence numbers: what the GRO and the NBI's sequencers do.

use std::collections::BTreeMap;

/// Items leave in the order of their numbers, each as soon as all before it are there.
#[derive(Clone, Debug)]
pub struct Reorder<T> {
    next: u64,
    head: u64,
    early: BTreeMap<u64, T>,
    /// Items that had to wait for another.
    pub waited: u64,
}

impl<T> Default for Reorder<T> {
    fn default() -> Reorder<T> {
        Reorder { next: 0, head: 0, early: BTreeMap::new(), waited: 0 }
    }
}

impl<T> Reorder<T> {
    /// The number of the next item.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Item `number` is there.
    pub fn put(&mut self, number: u64, item: T) {
        self.waited += u64::from(number != self.head);
        self.early.insert(number, item);
    }

    /// The next item in order, if it is there.
    pub fn take(&mut self) -> Option<T> {
        let item = self.early.remove(&self.head)?;
        self.head += 1;
        Some(item)
    }

    /// Items that have a number and have not left.
    pub fn inside(&self) -> u64 {
        self.next - self.head
    }
}
