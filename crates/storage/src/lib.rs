//! Blocks over NVMe/TCP: a target and a host on the project's TCP, behind a port. The NIC fills and checks digests and places
//! data; what it cannot do, software does.
//!
//! | file | what |
//! | --- | --- |
//! | link.rs | stack, NIC and wire, and the connections over them |
//! | flow.rs | one connection: bytes between stack and layer 5 |
//! | target.rs | a target that serves a file |
//! | image.rs | the file |
//! | disk.rs | a host's disk whose blocks are on a target |

pub mod disk;
pub mod flow;
pub mod image;
pub mod link;
pub mod target;
