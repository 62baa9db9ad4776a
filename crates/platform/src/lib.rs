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
mod ground;
mod hint;
#[cfg(target_os = "linux")]
pub mod live;
mod moment;
pub mod sim;
pub mod tracer;

pub use address::{
    Addr, AddressSpace, CONTROL_BYTES, NicmemRange, Owner, PAGE_BYTES, PagedRange, Registered, SpaceError,
};
pub use bytemuck::{self, Pod};
pub use bytes::HostBytes;
pub use cpu::{Atomic, CopyLoop, Cpu, Part, Register, copy, entry, write_entry};
pub use dma::{Dma, Gathered, Run, Vector, copy_ahead, publish_entry};
pub use flat::{Calls, FlatCpu, FlatDma};
#[cfg(target_os = "linux")]
pub use ground::Live;
pub use ground::{Flat, Ground, Sim};
pub use hint::{Completions, Hint};
pub use moment::{BurstMoment, Moment, PacketKey};
pub use sim::ahead::expect;
// What `forward_cpu` names.
#[doc(hidden)]
pub use nicforge_units::{Cycles, Time};
