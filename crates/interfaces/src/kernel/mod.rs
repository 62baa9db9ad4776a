//! What a NIC and the network stack of a kernel are to each other: registers, interrupts, a
//! driver that is interrupted and then polls (integrated_nic, sections 2.3 and 6.1.1).
//!
//! ```text
//!   wire ─► receive ─┐                 ┌── interrupt() ─► poll(budget) ─► Received ─► stack
//!                    KernelNic ══════ KernelDriver
//!   wire ◄─ Port ◄───┘  registers, DMA └── transmit() ◄────────────────── Sending ◄── stack
//! ```
//!
//! Of the interfaces in [`crate::registry`], these have a MAC and a transmit path of their own: software reads
//! their registers, is interrupted instead of polling for ever, and may leave a packet's payload in the NIC.

mod contract;
pub mod conventional;
mod frame;
mod lock;
mod port;
mod slab;

pub use contract::{
    Advice, Between, Deferred, DriverState, KernelDevice, KernelDriver, KernelNic, KernelPlan, Received, Sending,
    TransmitBusy,
};
pub use frame::{Findings, Frame};
pub use lock::SharedLock;
pub use port::Port;
pub use slab::{SlabCache, Slabs};
