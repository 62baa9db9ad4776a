//! Context queues: how applications and the fast path tell each other what changed (paper 3.3.1).
//!
//! Entries have 32 bytes and their type in the last word, written last; type zero is the null descriptor. A producer
//! fills a slot that holds the null descriptor, a consumer takes what is not null and writes null back. Neither reads
//! the other's index, so one doorbell, lost or doubled, harms nothing: the next one shows all entries.
//!
//! | byte | ARX: fast path to application | ATX: application to fast path |
//! | --- | --- | --- |
//! | 0 | opaque (64 bits): the application's word for the flow | rx_bump: bytes read |
//! | 4 | | tx_bump: bytes written |
//! | 8 | rx_bump: bytes that arrived | flow: number of the connection |
//! | 12 | tx_bump: bytes of the transmit ring that are free again | group: flow-group |
//! | 14 | | bump_seq: counts entries of the flow |
//! | 16 | flags | flags |
//! | 28 | type | type |

mod entry;
mod ring;
#[cfg(test)]
mod tests;

pub use entry::{ENTRY_LEN, Entry, EntryError, FromApplication, ToApplication};
pub use ring::{Consumer, Producer, Slots};
