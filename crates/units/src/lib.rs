//! Units of measure as types, so that picoseconds, cycles, bytes, cache lines and
//! bits per second never mix without a named conversion.
//!
//! The lowest room of the house: it knows nothing of packets, NICs or simulation.

mod quantity;
mod rate;
mod time;

pub use quantity::{Bytes, CACHE_LINE_BYTES, Cycles, Lines};
pub use rate::{BitRate, ByteRate, Frequency};
pub use time::Time;
