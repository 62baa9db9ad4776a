//! Capture files: pcap (both byte orders, microseconds and nanoseconds) and pcapng, packed with gzip or not.
//!
//! Reading goes through `pcap-parser`, whose streaming parser never allocates by what a file
//! claims; writing through `pcap-file`. What is broken ends the reading with an error that says
//! how far it came; what is odd but bounded is skipped or mended, and counted in [`SkipCounts`].
//!
//! Link types: Ethernet as it is; null/loopback, raw IP and Linux cooked become Ethernet frames
//! with made-up addresses ([`LinkType`]); interfaces with any other are left out, and a capture that has no
//! other ones is an error.

mod error;
mod file;
mod interface;
mod link;
mod packet_block;
mod reader;
mod source;
mod writer;

pub use error::{CaptureError, CaptureProblem, SkipCounts};
pub use file::{FileWriter, part_of, write_file};
pub use link::LinkType;
pub use reader::{CaptureReader, RECORD_BYTES_MAX, Record};
pub use writer::{CaptureFormat, CaptureWriteError, CaptureWriter};
