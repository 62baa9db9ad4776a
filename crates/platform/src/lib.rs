//! The two contracts of Nicforge and the grounds that implement them.
//!
//! ```text
//!        NIC half of an interface            driver half, applications
//!                 │ Dma                                 │ Cpu
//!                 ▼                                     ▼
//!        ┌──────────────── one memory, addressed by Addr ──────────────┐
//!        │ sim: virtual time over caches, DRAM, PCIe   (sim/)          │
//!        │ live: shared memory and threads             (live/)         │
//!        └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`Cpu`] is all that software on a core can do; [`Dma`] is all that a device can do to
//! its host. Code written against them does not know on which ground it runs.

mod address;
mod bytes;
mod cpu;
mod dma;
mod flat;
mod forward;
#[cfg(target_os = "linux")]
pub mod live;
pub mod sim;

pub use address::{Addr, AddressSpace, CONTROL_BYTES, NicmemRange, Owner, SpaceError};
pub use bytemuck::{self, Pod};
pub use bytes::HostBytes;
pub use cpu::{Cpu, Part, Register};
pub use dma::{Dma, Run, Vector};
pub use flat::FlatCpu;
// What `forward_cpu` names.
#[doc(hidden)]
pub use nicforge_units::{Cycles, Time};
