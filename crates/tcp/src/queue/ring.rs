//! A ring of entries in memory that two parties share.

use std::marker::PhantomData;

use super::entry::{Bytes, Entry, EntryError, is_null, null};

/// Memory that holds the slots. A write makes the last word visible last, a read sees it first: what shared memory and
/// DMA provide, and what a slice has for nothing.
pub trait Slots {
    /// Number of slots.
    fn len(&self) -> u32;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The bytes of a slot.
    fn read(&self, slot: u32) -> Bytes;
    /// Replaces the bytes of a slot.
    fn write(&mut self, slot: u32, bytes: &Bytes);
}

impl<T: AsRef<[Bytes]> + AsMut<[Bytes]>> Slots for T {
    fn len(&self) -> u32 {
        self.as_ref().len() as u32
    }

    fn read(&self, slot: u32) -> Bytes {
        self.as_ref()[slot as usize]
    }

    fn write(&mut self, slot: u32, bytes: &Bytes) {
        self.as_mut()[slot as usize] = *bytes;
    }
}

/// The side that fills slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct Producer<E> {
    next: u32,
    entries: PhantomData<E>,
}

/// The side that empties slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consumer<E> {
    next: u32,
    entries: PhantomData<E>,
}

impl<E: Entry> Producer<E> {
    /// At the first slot.
    pub const fn new() -> Producer<E> {
        Producer { next: 0, entries: PhantomData }
    }

    /// Puts an entry into the next slot; returns whether that was free.
    pub fn push(&mut self, slots: &mut impl Slots, entry: &E) -> bool {
        if slots.is_empty() || !is_null(&slots.read(self.next)) {
            return false;
        }
        slots.write(self.next, &entry.encode());
        self.next = (self.next + 1) % slots.len();
        true
    }

    /// Whether an entry may be put in.
    pub fn has_room(&self, slots: &impl Slots) -> bool {
        !slots.is_empty() && is_null(&slots.read(self.next))
    }
}

impl<E: Entry> Consumer<E> {
    /// At the first slot.
    pub const fn new() -> Consumer<E> {
        Consumer { next: 0, entries: PhantomData }
    }

    /// Takes the next entry and frees its slot. What is no entry is freed, too, and reported: the other side is at
    /// fault, and the queue goes on.
    pub fn pop(&mut self, slots: &mut impl Slots) -> Result<Option<E>, EntryError> {
        if slots.is_empty() {
            return Ok(None);
        }
        let bytes = slots.read(self.next);
        if is_null(&bytes) {
            return Ok(None);
        }
        slots.write(self.next, &null());
        self.next = (self.next + 1) % slots.len();
        E::decode(&bytes)
    }
}
