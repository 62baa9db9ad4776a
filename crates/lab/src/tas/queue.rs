//! Context queues in memory that two cores share: the layouts of `nicforge_tcp::queue`, the type in the last word,
//! which is written last.

use std::cell::RefCell;

use nicforge_platform::{Addr, AddressSpace, Cpu, Owner, Register, SpaceError};
use nicforge_tcp::queue::{Consumer, ENTRY_LEN, Entry, EntryError, Producer, Slots};

/// The last word of an entry: flags that nobody uses, and the type.
const LAST: u64 = ENTRY_LEN as u64 - 8;

/// Where a queue lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: Addr,
    entries: u32,
}

impl Place {
    /// Room for a queue whose entries wake `consumer`.
    pub fn new(space: &mut AddressSpace, entries: u32, consumer: Owner) -> Result<Place, SpaceError> {
        Ok(Place { at: space.control(u64::from(entries) * ENTRY_LEN as u64, consumer)?, entries })
    }

    /// Entries that it has.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Where the entry lies that so many came before.
    pub fn slot(&self, before: u64) -> Addr {
        self.at + before % u64::from(self.entries) * ENTRY_LEN as u64
    }
}

/// The side that fills a queue.
#[derive(Debug)]
pub struct Sender<E> {
    place: Place,
    producer: Producer<E>,
    bell: Bell,
}

/// Where a device hears how many entries were pushed or freed so far.
#[derive(Clone, Copy, Debug, Default)]
struct Bell {
    register: Option<Register>,
    count: u32,
    told: u32,
}

impl Bell {
    /// Tells the device, if there is one, and as many as `least` are new to it.
    fn ring<C: Cpu>(&mut self, cpu: &mut C, least: u32) {
        if let Some(register) = self.register
            && self.count.wrapping_sub(self.told) >= least
        {
            cpu.mmio_write(register, self.count.into());
            self.told = self.count;
        }
    }
}

/// The side that empties a queue.
#[derive(Debug)]
pub struct Receiver<E> {
    place: Place,
    consumer: Consumer<E>,
    bell: Bell,
}

impl<E: Entry> Sender<E> {
    /// At the first entry.
    pub fn new(place: Place) -> Sender<E> {
        Sender { place, producer: Producer::new(), bell: Bell::default() }
    }

    /// The same, with a device as its consumer that hears of entries by `register`.
    pub fn with_doorbell(self, register: Register) -> Sender<E> {
        Sender { bell: Bell { register: Some(register), ..self.bell }, ..self }
    }

    /// Rings the doorbell, if there is one and something was pushed since.
    pub fn ring<C: Cpu>(&mut self, cpu: &mut C) {
        self.bell.ring(cpu, 1);
    }

    /// Puts `entry` in, if there is room.
    pub fn push<C: Cpu>(&mut self, cpu: &mut C, entry: &E) -> bool {
        let pushed = self.producer.push(&mut InMemory { cpu: RefCell::new(cpu), place: self.place }, entry);
        self.bell.count = self.bell.count.wrapping_add(pushed.into());
        pushed
    }
}

impl<E: Entry> Receiver<E> {
    /// At the first entry.
    pub fn new(place: Place) -> Receiver<E> {
        Receiver { place, consumer: Consumer::new(), bell: Bell::default() }
    }

    /// The same, with a device as its producer that hears of free entries by `register`.
    pub fn with_doorbell(self, register: Register) -> Receiver<E> {
        Receiver { bell: Bell { register: Some(register), ..self.bell }, ..self }
    }

    /// Tells the device of free entries, once they are a quarter of all.
    pub fn ring<C: Cpu>(&mut self, cpu: &mut C) {
        self.bell.ring(cpu, (self.place.entries / 4).max(1));
    }

    /// Where it lies, for tests that write nonsense there.
    #[cfg(test)]
    pub fn memory(&self) -> (Addr, usize) {
        (self.place.at, self.place.entries as usize * ENTRY_LEN)
    }

    /// Takes the next entry. What is no entry is an error, and is taken, too.
    pub fn pop<C: Cpu>(&mut self, cpu: &mut C) -> Result<Option<E>, EntryError> {
        let popped = self.consumer.pop(&mut InMemory { cpu: RefCell::new(cpu), place: self.place });
        self.bell.count = self.bell.count.wrapping_add(u32::from(!matches!(popped, Ok(None))));
        popped
    }
}

/// Slots that a core accesses.
struct InMemory<'a, C> {
    cpu: RefCell<&'a mut C>,
    place: Place,
}

impl<C> InMemory<'_, C> {
    fn at(&self, slot: u32) -> Addr {
        self.place.at + u64::from(slot) * ENTRY_LEN as u64
    }
}

impl<C: Cpu> Slots for InMemory<'_, C> {
    fn len(&self) -> u32 {
        self.place.entries
    }

    fn read(&self, slot: u32) -> [u8; ENTRY_LEN] {
        let (at, mut cpu) = (self.at(slot), self.cpu.borrow_mut());
        let mut bytes = [0; ENTRY_LEN];
        let last = cpu.acquire(at + LAST);
        let first: [u64; 3] = cpu.load(at);
        for (place, word) in bytes.chunks_exact_mut(8).zip(first.into_iter().chain([last])) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn write(&mut self, slot: u32, bytes: &[u8; ENTRY_LEN]) {
        let (at, cpu) = (self.at(slot), self.cpu.get_mut());
        let word =
            |number: usize| bytes[number * 8..][..8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        if *bytes == [0; ENTRY_LEN] {
            // Whoever frees a slot wakes nobody.
            cpu.store(at + LAST, 0u64);
            return;
        }
        cpu.store(at, [word(0), word(1), word(2)]);
        cpu.release(at + LAST, word(3));
    }
}
