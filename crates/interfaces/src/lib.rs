//! NIC-host interfaces: one folder each, all alike.
//!
//! `layout.rs` says what lies in memory, who writes it and who reads it; `nic.rs` is the NIC's
//! half over [`nicforge_platform::Dma`]; `driver.rs` the driver's over
//! [`nicforge_platform::Cpu`]; [`registry`] has one line per interface.
//! Every interface of rings runs through the shared tests of suite/. [`sinic`], [`v_sinic`] and
//! [`kernel::conventional`] are whole devices, driven by registers and interrupts; docs/design-notes.md says why.

pub mod describe;
pub mod emulated;
pub mod in_place;
pub mod kernel;
pub mod nm_nfv;
pub mod options;
pub mod plan;
pub mod priv_ring;
pub mod register_map;
pub mod registry;
pub mod rx_bisect;
pub mod sh_ring;
pub mod sh_ring_dynamic;
pub mod sinic;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod v_sinic;

pub use plan::{DESCRIPTOR_READ_MAX, InterfaceError, NicMemory, Plan};
pub use registry::{Build, Built, Halves, Interface, InterfaceEntry, Interfaces, KnownGround, Played, WholeNic};
