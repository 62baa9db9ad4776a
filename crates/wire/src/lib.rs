//! Bytes on the wire: headers, checksums, RSS, captures and traffic.
//!
//! The lowest room that knows packets. [`headers`] shows bytes as protocols have them;
//! [`parse_frame`] judges a whole frame once, as a NIC does, and says where everything is;
//! [`checksum`], [`rss`] and [`rewrite`] work on what it found; [`capture`] reads and writes files; [`traffic`]
//! makes frames and the times at which they arrive; [`link`] carries them, with the faults that a scenario asks for.
//!
//! Left out on purpose: reassembly of fragments, tunnels (the outer header counts), and link types
//! that do not carry IP.

pub mod capture;
pub mod checksum;
mod frame_error;
pub mod headers;
pub mod icmp_error;
pub mod join;
pub mod link;
pub mod neighbour;
pub mod offload;
mod packet_id;
mod parse;
mod plain;
mod quoted;
pub mod rewrite;
pub mod rss;
mod split;
pub mod traffic;
pub mod unfinished;

pub use frame_error::FrameError;
pub use packet_id::PacketId;
pub use parse::{Fragment, FrameSummary, IpAddresses, parse_frame, parse_headers, walk_headers};
pub use plain::{Plain, parse_plain};
pub use quoted::Quoted;
