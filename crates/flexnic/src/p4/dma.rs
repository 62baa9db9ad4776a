//! Requests to the DMA engine (ASPLOS 2016, table 1), and what a program of package FlexNIC knows of a packet.

/// Transfers of one packet, at most.
pub(crate) const TRANSFERS_MAX: usize = 16;

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Direction {
    ToMemory,
    FromMemory,
}

/// The change that a transfer makes to words in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AtomicOp {
    Add,
    Or,
    And,
}

impl AtomicOp {
    pub(crate) fn of(number: u64) -> Option<AtomicOp> {
        [None, Some(AtomicOp::Add), Some(AtomicOp::Or), Some(AtomicOp::And)][number as usize & 3]
    }
}

/// A request to the DMA engine (table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// First byte in the packet.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    /// Which way.
    pub direction: Direction,
    /// First byte in host memory.
    pub address: u64,
    /// Where the data goes: 0 and 3 as the machine has it, 1 to memory, 2 to a core's own cache.
    pub cache: u8,
    /// The core of that cache.
    pub core: u8,
    /// Its change of words in memory; a plain read or write without.
    pub atomic: Option<AtomicOp>,
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Refusal {
    QueueFull,
    TooLong,
    BadBuffer,
    NoWindow,
    Duplicate,
}

/// How FlexNIC's program ended a packet of which nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// It was for the NIC itself.
    pub is_consumed: bool,
    /// The program said why it is dropped.
    pub refusal: Option<Refusal>,
}

impl Refusal {
    pub(crate) fn of(number: u64) -> Refusal {
        match number {
            0 => Refusal::QueueFull,
            1 => Refusal::TooLong,
            2 => Refusal::BadBuffer,
            3 => Refusal::NoWindow,
            _ => Refusal::Duplicate,
        }
    }
}

/// The use of the buffer at the head of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BufferState {
    Fits,
    #[default]
    None,
    TooShort,
    Invalid,
}

/// The NIC's knowledge of a packet, as `flexnic_t` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicFields {
    /// The port that it came in by, or leaves by.
    pub port: u32,
    /// When its first bit came in, in picoseconds.
    pub stamp: u64,
    /// RSS hash.
    pub hash: u32,
    /// The checksum unit's findings.
    pub flags: u32,
    /// The queue that steering chose.
    pub queue: u16,
    /// Bytes of each frame that it stands for, or 0.
    pub segment: u16,
    /// DMA pipeline: what ingress put into it; egress: the host's.
    pub mark: u64,
    /// DMA pipeline: the entry at the queue's head.
    pub entry: u64,
    /// DMA pipeline: the buffer there.
    pub buffer: u64,
    /// DMA pipeline: what it is good for.
    pub state: BufferState,
}

/// The DMA pipeline's result for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaOutcome<'a> {
    /// The engine makes these transfers of the packet's bytes.
    Transfers(&'a [u8], &'a [Transfer]),
    /// The same, and then the packet leaves by this port.
    Reply(&'a [u8], &'a [Transfer], u32),
    /// The program refused it; what it tells the host about that is written all the same.
    Refused(Refusal, &'a [u8], &'a [Transfer]),
    /// The program dropped it, or it ended otherwise; counted.
    Gone,
}
