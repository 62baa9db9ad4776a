//! The interfaces that live runs have.

use nicforge_interfaces::Interfaces;

/// Every receive interface.
pub fn interfaces() -> Vec<&'static str> {
    Interfaces::shipped().of_rings()
}
