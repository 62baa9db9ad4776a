//! TLS of programs whose TCP is the kernel's own: the NIC works on a stream that it does not terminate, and that its
//! driver does not send either.
//!
//! ```text
//!  program ── records without tags ──► the kernel's TCP ── frames ──► TAP ─► NIC: tags, ciphertext ─► wire
//!     └── keys, records (message map) ────────────────────────────────────► driver ┘
//! ```
//!
//! Transmit only: a socket of the kernel has no place for the NIC's report of what it decrypted.
//!
//! | file | part |
//! | --- | --- |
//! | message.rs | what a program's library says to the driver |
//! | program.rs | the library's half: `TCP_ULP`, `TLS_TX`, records in place of bytes |
//! | flow.rs | a connection in the driver: its records, until they are acknowledged |
//! | nic.rs | the NIC between TAP and wire |
//! | place.rs | where a connection of the kernel is: addresses, next sequence number |

pub mod message;
pub mod nic;
pub mod program;

mod flow;
mod place;
