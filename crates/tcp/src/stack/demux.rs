//! Deadlines of everything that waits, in one heap with lazy removal.

use std::cmp::Ordering;

use nicforge_units::Time;

/// Whose deadline it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    Connection(u32),
    /// A half-open connection, by the number of its SYN.
    Request(u64),
    Neighbours,
}

/// A deadline; the earliest is the greatest, as the heap wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub at: Time,
    pub owner: Owner,
}

impl Ord for Deadline {
    fn cmp(&self, other: &Deadline) -> Ordering {
        (other.at, other.owner).cmp(&(self.at, self.owner))
    }
}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Deadline) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
