//! The few commands and status codes that a block device needs (NVM Express base specification 1.4).

/// Bytes of a command.
pub const COMMAND_BYTES: usize = 64;
/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 16;

/// Bytes of data that `connect` carries (NVMe over Fabrics 1.1, 3.3).
const CONNECT_BYTES: usize = 1024;
/// Longest qualified name.
const NAME_BYTES_MAX: usize = 223;

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Make written data durable.
    Flush = 0x00,
    /// Write blocks.
    Write = 0x01,
    /// Read blocks.
    Read = 0x02,
    /// A fabrics command; here only `connect`.
    Fabrics = 0x7f,
}

/// Status of a completion: code type in bits 8 to 10, code in bits 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    /// The command succeeded.
    pub const SUCCESS: Self = Self(0);
    /// The opcode is not known.
    pub const INVALID_OPCODE: Self = Self(0x01);
    /// A field is not allowed.
    pub const INVALID_FIELD: Self = Self(0x02);
    /// Data did not arrive as it was sent.
    pub const TRANSFER_ERROR: Self = Self(0x04);
    /// There is no such namespace.
    pub const INVALID_NAMESPACE: Self = Self(0x0b);
    /// The blocks do not exist.
    pub const LBA_OUT_OF_RANGE: Self = Self(0x80);
    /// On the host's side: a data digest was wrong (transient transport error).
    pub const TRANSIENT_TRANSPORT: Self = Self(0x22);
    /// The command came before `connect`, or before the controller was enabled.
    pub const SEQUENCE_ERROR: Self = Self(0x0c);
    /// A fabrics `connect` names something that is not there.
    pub const CONNECT_INVALID: Self = Self(0x182);
    /// The namespace cannot be written.
    pub const WRITE_PROTECTED: Self = Self(0x20);
    /// The store could not write.
    pub const WRITE_FAULT: Self = Self(0x280);
    /// The store could not read.
    pub const READ_ERROR: Self = Self(0x281);
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The opcode as it came.
    pub opcode: u8,
    /// Command identifier.
    pub id: u16,
    /// First block.
    pub lba: u64,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of data, either way.
    pub data_bytes: u32,
    /// Whether the data to write is in the capsule.
    pub is_in_capsule: bool,
}

impl Command {
    /// Writes the command. The data pointer says whether data is in the capsule (offset) or is transferred (transport).
    pub fn to_bytes(self) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        bytes[0] = self.opcode;
        bytes[1] = 0x40;
        bytes[2..4].copy_from_slice(&self.id.to_le_bytes());
        bytes[4] = 1;
        bytes[32..36].copy_from_slice(&self.data_bytes.to_le_bytes());
        bytes[39] = if self.is_in_capsule { 0x01 } else { 0x5a };
        bytes[40..48].copy_from_slice(&self.lba.to_le_bytes());
        let blocks = self.blocks.saturating_sub(1) as u16;
        bytes[48..50].copy_from_slice(&blocks.to_le_bytes());
        bytes
    }

    /// Reads a command.
    pub fn parse(bytes: &[u8; COMMAND_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            opcode: bytes[0],
            id: u16::from_le_bytes([bytes[2], bytes[3]]),
            lba: u64::from(word(40)) | u64::from(word(44)) << 32,
            blocks: u32::from(word(48) as u16) + 1,
            data_bytes: word(32),
            is_in_capsule: bytes[39] == 0x01,
        }
    }
}

/// Which queue of which controller a connection is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePlace {
    /// The subsystem's qualified name.
    pub subsystem: String,
    /// The host's qualified name.
    pub host: String,
    /// The controller that an admin queue's `connect` returned; 0xffff asks for one.
    pub controller: u16,
    /// Number of the queue; 0 is the admin queue.
    pub number: u16,
}

impl QueuePlace {
    /// The data of `connect` (NVMe over Fabrics 1.1, 3.3).
    pub(super) fn data(&self) -> [u8; CONNECT_BYTES] {
        let mut data = [0; CONNECT_BYTES];
        data[16..18].copy_from_slice(&self.controller.to_le_bytes());
        for (at, name) in [(256, &self.subsystem), (512, &self.host)] {
            let bytes = name.len().min(NAME_BYTES_MAX);
            data[at..at + bytes].copy_from_slice(&name.as_bytes()[..bytes]);
            // Who the host is, whatever its name: the identifier follows from it.
            for (place, byte) in self.host.bytes().enumerate() {
                data[place % 16] = data[place % 16].rotate_left(3) ^ byte;
            }
        }
        data
    }
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's result besides data: bytes 0 to 7.
    pub result: u64,
    /// Command identifier.
    pub id: u16,
    /// How it ended.
    pub status: Status,
}

impl Completion {
    /// Writes the completion.
    pub fn to_bytes(self) -> [u8; COMPLETION_BYTES] {
        let mut bytes = [0; COMPLETION_BYTES];
        bytes[..8].copy_from_slice(&self.result.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.id.to_le_bytes());
        bytes[14..16].copy_from_slice(&(self.status.0 << 1).to_le_bytes());
        bytes
    }

    /// Reads a completion.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; COMPLETION_BYTES] = bytes.first_chunk()?;
        let status = Status(u16::from_le_bytes([bytes[14], bytes[15]]) >> 1);
        let result = u64::from_le_bytes(*bytes.first_chunk()?);
        Some(Self { result, id: u16::from_le_bytes([bytes[12], bytes[13]]), status })
    }
}
