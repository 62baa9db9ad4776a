//! Options that several interfaces have.

use nicforge_options::{Allowed, options};

options! {
    /// A receive ring.
    pub struct RxRing {
        /// Entries of each receive ring: one per queue, or per `sharing` queues.
        rx_entries: usize = 1024, "entries", Allowed::PowerOfTwo(2, 65536),
            source "rxBisect paper, section 6: default ring size";
    }
}
