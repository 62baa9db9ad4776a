//! Stages on a NIC's packet path, and the registry that builds them by name on any ground.
//!
//! | folder | what it does |
//! | --- | --- |
//! | hairpin/ | forwards packets of known flows without software |
//! | l5p/ | autonomous offloads: TLS, NVMe/TCP and iSCSI in TCP streams that software runs |
//! | fragments.rs | holds fragments until the first one of their packet has come |
//! | tcpdump.rs, trace.rs, limits.rs | copies of frames, what happened to connections, bounds for them |
//! | suite.rs | tests that every stage passes |
//! | responder/ | answers for a live port's own addresses (ARP, neighbour discovery, echo), and follows its next hop |
//!
//! What a stage is: `nicforge_nic::stage`. How to write one: docs/stages.md.

pub mod fragments;
pub mod hairpin;
pub mod l5p;
pub mod limits;
mod registry;
pub mod responder;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod tcpdump;
pub mod trace;

pub use registry::{
    Build, BuiltStage, KnownFlow, KnownFlows, StageEntry, StageError, StageGround, StageKind, StagePlan, Stages, Start,
};

/// The code of docs/stages.md compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stages.md")]
struct Documentation;
