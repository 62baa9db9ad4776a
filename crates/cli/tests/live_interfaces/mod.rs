//! The interfaces that live runs have.

use nicforge_interfaces::registry;

/// Every receive interface.
pub fn interfaces() -> Vec<&'static str> {
    registry::names()
}
