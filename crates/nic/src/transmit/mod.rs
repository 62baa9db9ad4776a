//! Transmit rings, shared by all interfaces: descriptor layout, the NIC's engine, the driver.

mod driver;
mod engine;
mod gather;
mod guard;
mod layout;
#[cfg(test)]
mod tests;

pub use driver::{TransmitDriver, TxFull};
pub use engine::{Departure, Egress, TransmitCounters, TransmitEngine};
pub use guard::BAD_TX_DESCRIPTOR;
pub use layout::{INLINE_BYTES, TX_DESCRIPTOR_BYTES, TxDescriptor, TxRing};
