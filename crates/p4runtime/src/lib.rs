//! P4Runtime 1.4 over gRPC: controllers read and write the tables of a P4 program that runs on the NIC, send and get
//! packets, and put other programs in its place.
//!
//! ```text
//!  controller ══ gRPC ══ service.rs ─► arbitration.rs: who may write
//!                            │  ▲
//!                            │  └── packets.rs, digests.rs ◄─┐
//!                            ▼                              │
//!     control.rs, read.rs: entries, objects, profiles ─► flexnic::Shared ◄─ packet path
//!                            info.rs, ids.rs, types.rs: P4Info
//! ```

mod arbitration;
mod control;
mod device;
mod digests;
mod direct;
mod entries;
mod ids;
mod info;
mod objects;
mod packets;
mod profiles;
mod protection;
mod read;
mod refusal;
mod server;
mod service;
mod text;
mod types;
mod values;
mod wire;

pub use device::Loaded;
pub use direct::Direct;
pub use info::Info;
pub use server::{Listen, ListenError, Running, serve};
pub use service::{Inject, Options, Service};
pub use text::{TextError, from_text, to_text};

/// Messages and services of the protocol, generated from `proto/`.
#[allow(missing_docs, clippy::all, rustdoc::all, reason = "generated; the specification says what each field means")]
pub mod proto {
    /// P4Runtime.
    pub mod p4 {
        /// The service and its messages.
        pub mod v1 {
            tonic::include_proto!("p4.v1");
        }
        /// What a program offers.
        pub mod config {
            /// P4Info.
            pub mod v1 {
                tonic::include_proto!("p4.config.v1");
            }
        }
    }
    /// Canonical errors.
    pub mod google {
        /// Status.
        pub mod rpc {
            tonic::include_proto!("google.rpc");
        }
    }
}
