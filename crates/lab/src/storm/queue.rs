//! Queues of tuples in memory that threads of a machine share: many fill one, one empties it. Whether an entry is full its
//! first word says, the tuple's task.

use nicforge_platform::{Addr, AddressSpace, Atomic, Cpu, Owner, SpaceError};
use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::tuple::{TUPLE_BYTES, Tuple};

/// Bytes of an entry: the tuple, when it came to the machine, and what fills the line.
const ENTRY_BYTES: u64 = (TUPLE_BYTES as u64 + 8).next_multiple_of(CACHE_LINE_BYTES);
const CAME_AT: u64 = ENTRY_BYTES - 8;
/// Bytes of the word that says so.
const FLAG_BYTES: usize = 8;

/// Where a queue lies: what those who fill it need.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: Addr,
    entries: u64,
    /// The position that is filled next, which whoever fills it reserves.
    next: Addr,
}

impl Place {
    /// Room for a queue whose entries wake `consumer`.
    pub fn new(space: &mut AddressSpace, entries: u64, consumer: Owner) -> Result<Place, SpaceError> {
        let next = space.data(CACHE_LINE_BYTES, CACHE_LINE_BYTES);
        Ok(Place { at: space.control(entries * ENTRY_BYTES, consumer)?, entries, next })
    }

    fn entry(&self, position: u64) -> Addr {
        self.at + (position % self.entries) * ENTRY_BYTES
    }

    /// Puts `tuple` in, which came to the machine at `came`; false if the queue is full.
    pub fn push<C: Cpu>(&self, cpu: &mut C, tuple: &Tuple, came: Time) -> bool {
        let next: u64 = cpu.load(self.next);
        let entry = self.entry(next);
        if cpu.acquire(entry) != 0 {
            return false;
        }
        cpu.atomic(self.next, Atomic::Add(1));
        let (flag, rest) = tuple.0.split_at(FLAG_BYTES);
        cpu.store(entry + CAME_AT, came.as_ps());
        cpu.bytes_mut(entry + FLAG_BYTES as u64, rest.len()).copy_from_slice(rest);
        let flag = flag.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        cpu.release(entry, flag);
        true
    }
}

/// The side that empties a queue.
#[derive(Debug)]
pub struct Receiver {
    place: Place,
    tail: u64,
}

impl Receiver {
    /// At the first entry.
    pub fn new(place: Place) -> Receiver {
        Receiver { place, tail: 0 }
    }

    /// Takes the next tuple, with when it came to the machine.
    pub fn pop<C: Cpu>(&mut self, cpu: &mut C) -> Option<(Tuple, Time)> {
        let entry = self.place.entry(self.tail);
        let flag = cpu.acquire(entry);
        if flag == 0 {
            return None;
        }
        let mut tuple = Tuple::default();
        let (first, rest) = tuple.0.split_at_mut(FLAG_BYTES);
        first.copy_from_slice(&flag.to_le_bytes());
        rest.copy_from_slice(cpu.bytes(entry + FLAG_BYTES as u64, rest.len()));
        let came = Time::from_ps(cpu.load(entry + CAME_AT));
        // Whoever frees an entry wakes nobody.
        cpu.store(entry, 0u64);
        self.tail += 1;
        Some((tuple, came))
    }
}

#[cfg(test)]
mod tests {
    use nicforge_platform::FlatCpu;

    use super::super::tuple::name_of;
    use super::*;

    #[test]
    fn tuples_come_out_in_order_and_a_full_queue_takes_none() {
        let mut space = AddressSpace::default();
        let place = Place::new(&mut space, 4, Owner::NOBODY).unwrap();
        let mut cpu = FlatCpu::new(space.end());
        let mut receiver = Receiver::new(place);
        let tuple = |number: u32| Tuple::new(number, 2, Time::ZERO, &[(name_of(number.into()), number)]);
        for round in 0..3 {
            let numbers = round * 4 + 1..round * 4 + 5;
            for number in numbers.clone() {
                assert!(place.push(&mut cpu, &tuple(number), Time::from_us(number.into())));
            }
            assert!(!place.push(&mut cpu, &tuple(99), Time::ZERO));
            for number in numbers {
                assert_eq!(receiver.pop(&mut cpu), Some((tuple(number), Time::from_us(number.into()))));
            }
            assert_eq!(receiver.pop(&mut cpu), None);
        }
    }
}
