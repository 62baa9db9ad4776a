//! Where a target's blocks are, and who answers the commands that move none.

use super::wire::{COMMAND_BYTES, Opcode, Status};

/// Where blocks are.
pub trait BlockStore {
    /// Bytes of a block.
    fn block_bytes(&self) -> u32;
    /// Number of blocks.
    fn blocks(&self) -> u64;
    /// Reads whole blocks. The range was checked.
    ///
    /// # Errors
    ///
    /// The status that the host gets.
    fn read(&mut self, lba: u64, into: &mut [u8]) -> Result<(), Status>;
    /// Writes whole blocks. The range was checked.
    ///
    /// # Errors
    ///
    /// The status that the host gets.
    fn write(&mut self, lba: u64, bytes: &[u8]) -> Result<(), Status>;
    /// Makes what was written durable.
    ///
    /// # Errors
    ///
    /// The status that the host gets.
    fn flush(&mut self) -> Result<(), Status> {
        Ok(())
    }
    /// Answers a fabrics or admin command, which came with `data`; `None` for a command that moves blocks. A store
    /// without a controller lets every host connect.
    fn command(&mut self, command: &[u8; COMMAND_BYTES], _data: &[u8]) -> Option<Reply> {
        (Opcode::of(command[0]) == Some(Opcode::Fabrics)).then(Reply::default)
    }
}

/// The answer to a fabrics or admin command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command has ended.
    Done {
        /// How it ended.
        status: Status,
        /// Its result besides data.
        result: u64,
    },
    /// The command succeeded and returns data.
    Data(Vec<u8>),
    /// The command stays open: it asks for an event that has not happened.
    Held,
}

impl Default for Reply {
    fn default() -> Self {
        Self::Done { status: Status::SUCCESS, result: 0 }
    }
}

impl From<Status> for Reply {
    fn from(status: Status) -> Self {
        Self::Done { status, result: 0 }
    }
}

/// A store in memory.
pub struct MemoryStore {
    block_bytes: u32,
    bytes: Vec<u8>,
}

impl MemoryStore {
    /// `blocks` blocks of zeros.
    pub fn new(block_bytes: u32, blocks: usize) -> Self {
        Self { block_bytes, bytes: vec![0; blocks * block_bytes as usize] }
    }

    /// The whole content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl BlockStore for MemoryStore {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn blocks(&self) -> u64 {
        self.bytes.len() as u64 / u64::from(self.block_bytes)
    }

    fn read(&mut self, lba: u64, into: &mut [u8]) -> Result<(), Status> {
        let at = (lba * u64::from(self.block_bytes)) as usize;
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        Ok(())
    }

    fn write(&mut self, lba: u64, bytes: &[u8]) -> Result<(), Status> {
        let at = (lba * u64::from(self.block_bytes)) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}
