//! Tables of applications, kept in modelled memory: every access goes through `Cpu`.
//!
//! | table | used by | lines touched by a look-up |
//! | --- | --- | --- |
//! | [`Cuckoo`] | nat, lb, counter | one or two buckets, one entry |
//! | [`Lpm`] | l3fwd, synthetic | one, and one for each 8 bits beyond the first 24 |
//! | [`Maglev`] | lb, for new flows | one |
//! | [`PortPool`] | nat, a port for each flow | none while fresh ports last; then one of a sequential ring |
//! | [`SharedPorts`] | nat, a port for each inside endpoint | one, while some ports in 64 are free; one for the owner |

mod cuckoo;
mod hash;
mod key;
mod lpm;
mod maglev;
mod ports;
mod shared_ports;

pub use cuckoo::{Cuckoo, Entry, LookUp, TableFull};
pub use hash::{Random, hash2, mix};
pub use key::{FlowKey, Side};
pub use lpm::{Lpm, Prefix};
pub use maglev::Maglev;
pub use ports::{External, PortPartition, PortPool};
pub use shared_ports::{CorePorts, Parity, SharedPorts, Unforeseen};
