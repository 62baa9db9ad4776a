//! Tables of applications, kept in modelled memory: every access goes through `Cpu`.
//!
//! | table | used by | lines touched by a look-up |
//! | --- | --- | --- |
//! | [`Cuckoo`] | nat, lb, counter | one or two buckets, one entry |
//! | [`Lpm`] | l3fwd, synthetic | one, and one for each 8 bits beyond the first 24 |
//! | [`PortPool`] | nat | none while fresh ports last; then one of a sequential ring |

mod cuckoo;
mod hash;
mod key;
mod lpm;
mod ports;

pub use cuckoo::{Cuckoo, Entry, TableFull};
pub use hash::{Random, hash2, mix};
pub use key::{FlowKey, Side};
pub use lpm::{Lpm, Prefix};
pub use ports::{External, PortPartition, PortPool};
