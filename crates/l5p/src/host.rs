//! Host memory as the NIC reaches it: by DMA, at addresses that software handed out.

/// An access that software allowed at an address where there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no host memory at {address:#x} for {bytes} bytes; register the buffer before its address reaches the NIC")]
pub struct HostFault {
    /// The first address of the access.
    pub address: u64,
    /// Its length.
    pub bytes: usize,
}

/// The memory of the host. The device's stage implements it over its `Dma`, tests over a `Vec`.
pub trait HostMemory {
    /// Reads `into.len()` bytes: the prefix of a message whose tail is sent again.
    ///
    /// # Errors
    ///
    /// [`HostFault`] when part of the range is not host memory.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), HostFault>;

    /// Writes payload straight to its destination buffer (direct placement).
    ///
    /// # Errors
    ///
    /// [`HostFault`] when part of the range is not host memory.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), HostFault>;
}

/// Host memory that a driver half may take buffers from, for headers and trailers that it makes.
pub trait HostBuffers {
    /// Stores `bytes` and tells where they are. They stay there until the message that they belong to is acknowledged.
    fn place(&mut self, bytes: &[u8]) -> Piece;
}

/// A piece of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Piece {
    /// Where it begins.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u32,
}

/// Host memory as one array that begins at address 0: for tests, benchmarks and examples.
#[derive(Clone, Debug, Default)]
pub struct FlatMemory {
    bytes: Vec<u8>,
    /// Bytes that were read by DMA.
    pub read_bytes: u64,
    /// Bytes that were written by DMA.
    pub written_bytes: u64,
}

impl FlatMemory {
    /// What lies in `piece`, as software sees it.
    ///
    /// # Errors
    ///
    /// [`HostFault`] when part of the piece was never placed.
    pub fn view(&self, piece: Piece) -> Result<&[u8], HostFault> {
        let range = self.range(piece.address, piece.bytes as usize)?;
        Ok(&self.bytes[range])
    }

    fn range(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, HostFault> {
        let fault = HostFault { address, bytes };
        let begin = usize::try_from(address).map_err(|_| fault)?;
        let end = begin.checked_add(bytes).filter(|end| *end <= self.bytes.len()).ok_or(fault)?;
        Ok(begin..end)
    }
}

impl HostBuffers for FlatMemory {
    fn place(&mut self, bytes: &[u8]) -> Piece {
        let piece = Piece { address: self.bytes.len() as u64, bytes: bytes.len() as u32 };
        self.bytes.extend_from_slice(bytes);
        piece
    }
}

impl HostMemory for FlatMemory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), HostFault> {
        let range = self.range(address, into.len())?;
        into.copy_from_slice(&self.bytes[range]);
        self.read_bytes += into.len() as u64;
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), HostFault> {
        let range = self.range(address, bytes.len())?;
        self.bytes[range].copy_from_slice(bytes);
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }
}
