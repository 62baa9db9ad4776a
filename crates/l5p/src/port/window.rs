//! Host memory for messages and buffers in flight: taken in the order of the stream, given back in the same order.

use std::collections::VecDeque;

use crate::host::{HostBuffers, HostFault, HostMemory, Piece};

/// Memory whose addresses only grow. [`release`](Self::release) gives back everything below an address, so a stream
/// of any length needs room for what is in flight only.
#[derive(Clone, Debug, Default)]
pub struct StreamMemory {
    bytes: VecDeque<u8>,
    begin: u64,
    /// Bytes that the NIC read by DMA: prefixes of messages.
    pub read_bytes: u64,
}

impl StreamMemory {
    /// Gives back what lies below `address`.
    pub fn release(&mut self, address: u64) {
        let bytes = address.saturating_sub(self.begin).min(self.bytes.len() as u64);
        self.bytes.drain(..bytes as usize);
        self.begin += bytes;
    }

    /// Gives back everything.
    pub fn release_all(&mut self) {
        self.begin += self.bytes.len() as u64;
        self.bytes.clear();
    }

    /// Bytes that are held.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies a piece as software sees it; the NIC's counter of DMA stays.
    ///
    /// # Errors
    ///
    /// [`HostFault`] when part of the piece is not held.
    pub fn view(&self, piece: Piece, into: &mut [u8]) -> Result<(), HostFault> {
        let begin = self.offset(piece.address, into.len())?;
        let (front, back) = self.bytes.as_slices();
        let from_front = front.len().saturating_sub(begin).min(into.len());
        let (head, tail) = into.split_at_mut(from_front);
        if from_front > 0 {
            head.copy_from_slice(&front[begin..begin + from_front]);
        }
        let at = (begin + from_front).saturating_sub(front.len());
        tail.copy_from_slice(&back[at..at + tail.len()]);
        Ok(())
    }

    fn offset(&self, address: u64, bytes: usize) -> Result<usize, HostFault> {
        let fault = HostFault { address, bytes };
        let begin = usize::try_from(address.checked_sub(self.begin).ok_or(fault)?).map_err(|_| fault)?;
        begin.checked_add(bytes).filter(|end| *end <= self.bytes.len()).ok_or(fault)?;
        Ok(begin)
    }
}

impl HostBuffers for StreamMemory {
    fn place(&mut self, bytes: &[u8]) -> Piece {
        let piece = Piece { address: self.begin + self.bytes.len() as u64, bytes: bytes.len() as u32 };
        self.bytes.extend(bytes);
        piece
    }
}

impl HostMemory for StreamMemory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), HostFault> {
        self.view(Piece { address, bytes: into.len() as u32 }, into)?;
        self.read_bytes += into.len() as u64;
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), HostFault> {
        let begin = self.offset(address, bytes.len())?;
        let (front, back) = self.bytes.as_mut_slices();
        let in_front = front.len().saturating_sub(begin).min(bytes.len());
        let (head, tail) = bytes.split_at(in_front);
        if in_front > 0 {
            front[begin..begin + in_front].copy_from_slice(head);
        }
        let at = (begin + in_front).saturating_sub(front.len());
        back[at..at + tail.len()].copy_from_slice(tail);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_released_is_gone_and_the_rest_stays_where_it_was() {
        let mut memory = StreamMemory::default();
        let pieces: Vec<Piece> = (0..100u8).map(|n| memory.place(&[n; 10])).collect();
        memory.release(pieces[40].address);
        let more = memory.place(&[200; 500]);
        let mut out = [0; 10];
        assert!(memory.view(pieces[39], &mut out).is_err());
        for (n, piece) in pieces.iter().enumerate().skip(40) {
            memory.view(*piece, &mut out).unwrap();
            assert_eq!(out, [n as u8; 10]);
        }
        let mut out = [0; 500];
        memory.read(more.address, &mut out).unwrap();
        assert_eq!((out, memory.read_bytes), ([200; 500], 500));
        let end = Piece { address: pieces[99].address + 5, bytes: 300 };
        memory.write(end.address, &[7; 300]).unwrap();
        let mut written = [0; 300];
        memory.view(end, &mut written).unwrap();
        assert_eq!(written, [7; 300]);
        assert!(memory.write(more.address + 1, &[0; 500]).is_err());
        assert!(memory.read(more.address + 1, &mut out).is_err());
        assert!(memory.read(u64::MAX, &mut out).is_err());
    }
}
