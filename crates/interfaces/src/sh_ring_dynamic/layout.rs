//! What is where: nothing but the memory of both sets.
//!
//! With *n* cores, queues 0 to *n* - 1 are the private set, *n* to 2*n* - 1 the shared one, in the
//! same order. Receive registers 0 to *n* - 1 are the doorbells of private rings, from *n* on those
//! of shared rings. The set in use is selected by the NIC's steering register.

/// The private set's number.
pub const PRIVATE: u16 = 0;
/// The shared set's number.
pub const SHARED: u16 = 1;
/// The sets by number.
pub const SETS: &[&str] = &["private", "shared"];
