//! POSIX socket calls over the service, for the preloaded library.
//!
//! Each of our sockets is one end of a Unix stream pair whose other end the service holds. The kernel's `epoll`, `poll`
//! and `select`, blocking, time-outs, signals, `dup`, `fork` and `exec` work on it as on any descriptor:
//!
//! | what the kernel shows | how |
//! | --- | --- |
//! | readable | a token from the service waits; the call that empties the receive ring takes it |
//! | not writable | tokens from the application fill its send buffer; the service takes them when the ring has room |
//! | end of stream | the service shuts its end down for writing |
//! | hang-up, error | the service closes its end, the latter with a byte unread |
//! | last close | the kernel hangs up the service's end |
//! | connections to accept | messages with descriptors, in the listener's descriptor |

pub mod accept;
pub mod address;
mod buffers;
pub mod bytes;
pub mod data;
pub mod files;
pub mod gone;
pub mod info;
pub mod link;
pub mod lock;
pub mod options;
pub mod policy;
pub mod process;
pub mod socket;
pub mod table;
pub mod tls;
