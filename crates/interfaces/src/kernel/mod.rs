//! What a NIC and the network stack of a kernel are to each other: registers, interrupts, a
//! driver that is interrupted and then polls (integrated_nic, sections 2.3 and 6.1.1).
//!
//! ```text
//!   wire ─► receive ─┐                 ┌── interrupt() ─► poll(budget) ─► Received ─► stack
//!                    KernelNic ══════ KernelDriver
//!   wire ◄─ Port ◄───┘  registers, DMA └── transmit() ◄────────────────── Sending ◄── stack
//! ```
//!
//! These interfaces differ from those of [`crate::registry`] in that software reads registers,
//! is interrupted instead of polling for ever, and may leave a packet's payload in the NIC. One
//! folder each, a line each in [`registry`](mod@registry).

mod contract;
pub mod conventional;
mod frame;
mod lock;
mod port;
pub mod registry;

pub use contract::{Advice, Between, Deferred, KernelDriver, KernelNic, KernelPlan, Received, Sending, TransmitBusy};
pub use frame::{Findings, Frame};
pub use lock::SharedLock;
pub use port::Port;
pub use registry::{AnyKernelDriver, AnyKernelNic};
