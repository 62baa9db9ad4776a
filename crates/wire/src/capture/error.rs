//! What can be wrong with a capture: problems that end the reading, and oddities that are counted.

use std::path::PathBuf;

use thiserror::Error;

/// Why a capture could not be read to its end.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file could not be opened.
    #[error("cannot open capture {}: {source}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The contents are not what a capture should hold.
    #[error("{problem}; read {records} records, stopped at byte {offset}")]
    Broken {
        /// What is wrong.
        problem: CaptureProblem,
        /// Records read before, skipped ones included.
        records: u64,
        /// Where in the file the broken part begins, in bytes.
        offset: u64,
    },
}

/// What is wrong with the contents of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CaptureProblem {
    /// No pcap or pcapng header at the beginning.
    #[error(
        "not a pcap or pcapng file (unpack it first if it is packed with anything but gzip), or its header is cut off"
    )]
    NotACapture,
    /// A format version that nobody defined.
    #[error("capture format version {major}.{minor} is not supported (pcap: 2.x, pcapng: 1.x)")]
    UnsupportedVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// Frames of a kind that cannot be made into Ethernet frames.
    #[error(
        "link type {0} is not supported (Ethernet 1, null 0, loop 108, raw IP 12, 14, 101, \
         228 and 229, Linux cooked 113 and 276 are)"
    )]
    UnsupportedLinkType(i32),
    /// The file ends within its first record.
    #[error("the file ends within a record")]
    Truncated,
    /// A record or block claims more bytes than any capture program writes.
    #[error("a record or block claims more than {RECORD_BYTES_MAX} bytes", RECORD_BYTES_MAX = super::RECORD_BYTES_MAX)]
    RecordTooLong,
    /// Fields of a block contradict each other.
    #[error("a block is malformed")]
    Malformed,
    /// A time stamp in units that are no part of a second that anybody measures.
    #[error("an interface counts time in units that are absurd (if_tsresol)")]
    TimeUnit,
    /// A checksum that is longer than any is.
    #[error("an interface says that frames end with an FCS of {0} bytes, which is absurd (pcapng: if_fcslen, in bits)")]
    FcsLength(u32),
    /// A pcapng packet names an interface that was not described.
    #[error("a packet names interface {0}, which was not described")]
    UnknownInterface(u32),
    /// More interfaces than any capture has.
    #[error("more than {INTERFACES_MAX} interfaces are described", INTERFACES_MAX = super::reader::INTERFACES_MAX)]
    TooManyInterfaces,
    /// The system refused to read on.
    #[error("reading failed")]
    ReadFailed,
}

/// Oddities that were skipped or mended, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipCounts {
    /// Skipped: records without bytes.
    pub zero_length: u64,
    /// Skipped: records that hold more bytes than they say the packet had.
    pub longer_than_original: u64,
    /// Skipped: packets of a link type other than Ethernet that have no Ethernet form.
    pub no_ethernet_form: u64,
    /// Skipped: pcapng packets of interfaces with a link type that is not read.
    pub other_link_type: u64,
    /// Skipped: the last record, of which the file has the beginning only.
    pub cut_off: u64,
    /// Skipped: pcapng blocks of unknown kinds.
    pub unknown_blocks: u64,
    /// Yielded: records that hold fewer bytes than the packet had.
    pub captured_short: u64,
    /// Yielded at the time of the record before: they have none of their own.
    pub without_time: u64,
    /// Yielded at the time of the record before: time went back.
    pub time_went_back: u64,
    /// Yielded at the latest time there is: more than 106 days after the first record.
    pub time_out_of_range: u64,
    /// Yielded at the end of its second: the fraction said a second or more.
    pub fraction_out_of_range: u64,
}

impl SkipCounts {
    /// Records that were not yielded.
    pub fn skipped(&self) -> u64 {
        self.zero_length + self.longer_than_original + self.no_ethernet_form + self.other_link_type + self.cut_off
    }
}
