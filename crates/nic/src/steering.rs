//! Steering: which queue a frame goes to, by its RSS hash.
//!
//! A receive half may have several sets of queues, each with an indirection table of its own; one
//! register selects the set in use (shRing, section 5.1.5: "two sets of RSS tables"). A table
//! never names a queue that the half does not have.

use nicforge_wire::rss::{INDIRECTION_ENTRIES, IndirectionTable};

/// The indirection tables of a NIC, of which one is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    tables: Vec<IndirectionTable>,
    active: usize,
    queues: u16,
}

impl Steering {
    /// Tables for `sets` sets of equally many of the `queues` queues (at least 1 of each): set `s`
    /// has those after set `s - 1`, over which its table spreads frames. The first is in use.
    pub fn new(queues: u16, sets: u16) -> Steering {
        let sets = sets.max(1);
        let each = queues / sets;
        let table = |set: u16| IndirectionTable::spread(set * each..(set + 1) * each);
        Steering {
            tables: (0..sets).map(table).collect(),
            active: 0,
            queues,
        }
    }

    /// The queue of a frame with this hash.
    #[inline]
    pub fn queue(&self, hash: u32) -> u16 {
        self.tables[self.active].queue(hash)
    }

    /// The set in use.
    pub fn active(&self) -> u16 {
        self.active as u16
    }

    /// A write of steering register `register`: 0 selects the set in use, `1 + 128 * set + entry`
    /// names the queue of an entry. `false` when there is no such register, set or queue; then
    /// nothing changes.
    pub fn write_register(&mut self, register: u32, value: u64) -> bool {
        let Some(slot) = register.checked_sub(1) else {
            let known = value < self.tables.len() as u64;
            if known {
                self.active = value as usize;
            }
            return known;
        };
        let entries = INDIRECTION_ENTRIES as u32;
        match self.tables.get_mut((slot / entries) as usize) {
            Some(table) if value < u64::from(self.queues) => {
                table.set((slot % entries) as usize, value as u16);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: u32 = INDIRECTION_ENTRIES as u32;

    #[test]
    fn each_set_has_queues_of_its_own() {
        let mut steering = Steering::new(6, 2);
        for (set, first) in [(0, 0), (1, 3), (0, 0)] {
            assert!(steering.write_register(0, set));
            assert_eq!(u64::from(steering.active()), set);
            let queues: Vec<u16> = (0..4).map(|hash| steering.queue(hash)).collect();
            assert_eq!(queues, [first, first + 1, first + 2, first]);
        }
    }

    #[test]
    fn an_entry_of_either_table_can_be_changed() {
        let mut steering = Steering::new(4, 2);
        assert!(steering.write_register(1 + 7, 0));
        assert!(steering.write_register(1 + ENTRIES + 7, 1));
        assert_eq!(steering.queue(7), 0);
        assert!(steering.write_register(0, 1));
        assert_eq!((steering.queue(7), steering.queue(9)), (1, 3));
    }

    #[test]
    fn sets_and_queues_that_there_are_not_change_nothing() {
        let mut steering = Steering::new(4, 2);
        let before = steering.clone();
        for value in [4, 5, 1 << 16, (1 << 16) + 1, u64::MAX] {
            assert!(!steering.write_register(0, value));
            assert!(!steering.write_register(1, value));
            assert!(!steering.write_register(ENTRIES + 1, value));
        }
        for register in [1 + 2 * ENTRIES, 1 << 20, u32::MAX] {
            assert!(!steering.write_register(register, 0));
        }
        assert!(!steering.write_register(0, 2));
        assert_eq!(steering, before);
    }
}
