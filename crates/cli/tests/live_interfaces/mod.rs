//! The interfaces that live runs have.

use nicforge_interfaces::registry;

/// Every receive interface but the one that needs a core to play its NIC, which live runs have not.
pub fn interfaces() -> Vec<&'static str> {
    let names = registry::names().into_iter();
    names.filter(|name| *name != "emulated").collect()
}
