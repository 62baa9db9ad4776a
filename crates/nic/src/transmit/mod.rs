//! Transmit rings, shared by all interfaces: descriptor layout, the NIC's engine, the driver.

mod departure;
mod driver;
mod engine;
mod gather;
mod guard;
mod layout;
#[cfg(test)]
mod tests;

pub use departure::{Bridged, Departure, Egress};
pub use driver::{TransmitDriver, TxFull};
pub use engine::{Internal, InternalQueue, TransmitCounters, TransmitEngine};
pub use guard::BAD_TX_DESCRIPTOR;
pub use layout::{INLINE_BYTES, TX_DESCRIPTOR_BYTES, TxDescriptor, TxRing};
