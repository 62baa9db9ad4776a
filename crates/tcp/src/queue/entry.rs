//! Layouts of entries.

use thiserror::Error;

/// Length of an entry in bytes.
pub const ENTRY_LEN: usize = 32;

const TYPE: usize = 28;
const FLAGS: usize = 16;
/// The null descriptor.
const NULL: u32 = 0;
const ARX: u32 = 1;
const ATX: u32 = 2;
const PEER_CLOSED: u32 = 1;
const NO_MORE_DATA: u32 = 1;

/// An entry as it lies in memory.
pub type Bytes = [u8; ENTRY_LEN];

/// An ARX entry: the fast path tells an application what arrived and what was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToApplication {
    /// The application's word for the flow.
    pub opaque: u64,
    /// Bytes that arrived in order.
    pub rx_bump: u32,
    /// Bytes of the transmit ring that are free again.
    pub tx_bump: u32,
    /// The peer sends no more.
    pub peer_closed: bool,
}

/// An ATX entry: an application tells the fast path what it read and wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FromApplication {
    /// Bytes read.
    pub rx_bump: u32,
    /// Bytes written.
    pub tx_bump: u32,
    /// Number of the connection.
    pub flow: u32,
    /// Its flow-group.
    pub group: u16,
    /// Counts the entries of the flow.
    pub bump_seq: u16,
    /// The application writes no more: a FIN follows the data.
    pub no_more_data: bool,
}

/// Why bytes are not the entry that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EntryError {
    /// A type that does not belong into this queue.
    #[error("entry of type {0} in a queue of another type")]
    Type(u32),
    /// Flags that do not exist.
    #[error("entry with unknown flags {0:#x}")]
    Flags(u32),
}

/// What queues carry.
pub trait Entry: Sized + Copy {
    /// Writes the entry; the type is its last word.
    fn encode(&self) -> Bytes;
    /// Reads an entry; nothing for the null descriptor.
    fn decode(bytes: &Bytes) -> Result<Option<Self>, EntryError>;
}

fn word(bytes: &Bytes, at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put(bytes: &mut Bytes, at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn check(bytes: &Bytes, kind: u32, known: u32) -> Result<Option<u32>, EntryError> {
    match word(bytes, TYPE) {
        NULL => Ok(None),
        found if found != kind => Err(EntryError::Type(found)),
        _ if word(bytes, FLAGS) & !known != 0 => Err(EntryError::Flags(word(bytes, FLAGS))),
        _ => Ok(Some(word(bytes, FLAGS))),
    }
}

impl Entry for ToApplication {
    fn encode(&self) -> Bytes {
        let mut bytes = [0; ENTRY_LEN];
        put(&mut bytes, 0, &self.opaque.to_le_bytes());
        put(&mut bytes, 8, &self.rx_bump.to_le_bytes());
        put(&mut bytes, 12, &self.tx_bump.to_le_bytes());
        put(&mut bytes, FLAGS, &(if self.peer_closed { PEER_CLOSED } else { 0 }).to_le_bytes());
        put(&mut bytes, TYPE, &ARX.to_le_bytes());
        bytes
    }

    fn decode(bytes: &Bytes) -> Result<Option<ToApplication>, EntryError> {
        let Some(flags) = check(bytes, ARX, PEER_CLOSED)? else { return Ok(None) };
        Ok(Some(ToApplication {
            opaque: u64::from(word(bytes, 0)) | u64::from(word(bytes, 4)) << 32,
            rx_bump: word(bytes, 8),
            tx_bump: word(bytes, 12),
            peer_closed: flags & PEER_CLOSED != 0,
        }))
    }
}

impl Entry for FromApplication {
    fn encode(&self) -> Bytes {
        let mut bytes = [0; ENTRY_LEN];
        put(&mut bytes, 0, &self.rx_bump.to_le_bytes());
        put(&mut bytes, 4, &self.tx_bump.to_le_bytes());
        put(&mut bytes, 8, &self.flow.to_le_bytes());
        put(&mut bytes, 12, &self.group.to_le_bytes());
        put(&mut bytes, 14, &self.bump_seq.to_le_bytes());
        put(&mut bytes, FLAGS, &(if self.no_more_data { NO_MORE_DATA } else { 0 }).to_le_bytes());
        put(&mut bytes, TYPE, &ATX.to_le_bytes());
        bytes
    }

    fn decode(bytes: &Bytes) -> Result<Option<FromApplication>, EntryError> {
        let Some(flags) = check(bytes, ATX, NO_MORE_DATA)? else { return Ok(None) };
        let group = word(bytes, 12);
        Ok(Some(FromApplication {
            rx_bump: word(bytes, 0),
            tx_bump: word(bytes, 4),
            flow: word(bytes, 8),
            group: group as u16,
            bump_seq: (group >> 16) as u16,
            no_more_data: flags & NO_MORE_DATA != 0,
        }))
    }
}

/// The null descriptor.
pub(super) const fn null() -> Bytes {
    [0; ENTRY_LEN]
}

/// Whether a slot is free.
pub(super) fn is_null(bytes: &Bytes) -> bool {
    word(bytes, TYPE) == NULL
}
