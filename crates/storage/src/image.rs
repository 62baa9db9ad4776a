//! A file as a store of blocks.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nicforge_l5p::nvme::store::BlockStore;
use nicforge_l5p::nvme::wire::Status;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = 512;

/// The file cannot serve as a store.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It cannot be opened.
    #[error("opening {}: {cause}", path.display())]
    Open {
        /// Its path.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// Its length does not fit.
    #[error("{} has {bytes} bytes, which are not one or more blocks of {BLOCK_BYTES}: make it with `truncate -s 1G FILE`", path.display())]
    Length {
        /// Its path.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
}

/// The blocks of a file.
#[derive(Debug)]
pub struct Image {
    file: File,
    blocks: u64,
    is_read_only: bool,
    /// Reads and writes that the file system refused.
    pub errors: u64,
}

impl Image {
    /// The blocks of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`ImageError`].
    pub fn open(path: &Path, is_read_only: bool) -> Result<Image, ImageError> {
        let open = |cause| ImageError::Open { path: path.into(), cause };
        let file = OpenOptions::new().read(true).write(!is_read_only).open(path).map_err(open)?;
        let bytes = file.metadata().map_err(open)?.len();
        if bytes == 0 || !bytes.is_multiple_of(u64::from(BLOCK_BYTES)) {
            return Err(ImageError::Length { path: path.into(), bytes });
        }
        Ok(Image { file, blocks: bytes / u64::from(BLOCK_BYTES), is_read_only, errors: 0 })
    }

    fn note<T>(&mut self, outcome: std::io::Result<T>, status: Status) -> Result<T, Status> {
        self.errors += u64::from(outcome.is_err());
        outcome.map_err(|_| status)
    }
}

impl BlockStore for Image {
    fn block_bytes(&self) -> u32 {
        BLOCK_BYTES
    }

    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&mut self, lba: u64, into: &mut [u8]) -> Result<(), Status> {
        let outcome = self.file.read_exact_at(into, lba * u64::from(BLOCK_BYTES));
        self.note(outcome, Status::READ_ERROR)
    }

    fn write(&mut self, lba: u64, bytes: &[u8]) -> Result<(), Status> {
        if self.is_read_only {
            return Err(Status::WRITE_PROTECTED);
        }
        let outcome = self.file.write_all_at(bytes, lba * u64::from(BLOCK_BYTES));
        self.note(outcome, Status::WRITE_FAULT)
    }

    fn flush(&mut self) -> Result<(), Status> {
        let outcome = self.file.sync_data();
        self.note(outcome, Status::WRITE_FAULT)
    }
}
