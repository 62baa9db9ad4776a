//! Byte rings for payload, which the caller provides.
//!
//! A stream's byte lies at `position % size`, so that out-of-order data goes to its final place at once and a NIC can
//! write it there by DMA.

/// Memory that holds one direction of one stream.
pub trait ByteRing {
    /// Size in bytes.
    fn size(&self) -> u32;
    /// Copies `bytes` to `at`, around the end where needed. `bytes` is not longer than the ring.
    fn write(&mut self, at: u32, bytes: &[u8]);
    /// Copies from `at` into `out`, around the end where needed. `out` is not longer than the ring.
    fn read(&self, at: u32, out: &mut [u8]);
}

/// Where rings come from: the heap, a shared region, the memory of a NIC.
pub trait Buffers {
    /// What holds a ring's bytes.
    type Ring: ByteRing;
    /// A ring of `size` bytes, or nothing when memory is short.
    fn ring(&mut self, size: u32) -> Option<Self::Ring>;
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> ByteRing for T {
    fn size(&self) -> u32 {
        self.as_ref().len() as u32
    }

    #[inline]
    fn write(&mut self, at: u32, bytes: &[u8]) {
        let memory = self.as_mut();
        let at = at as usize;
        let first = bytes.len().min(memory.len() - at);
        memory[at..at + first].copy_from_slice(&bytes[..first]);
        memory[..bytes.len() - first].copy_from_slice(&bytes[first..]);
    }

    #[inline]
    fn read(&self, at: u32, out: &mut [u8]) {
        let memory = self.as_ref();
        let at = at as usize;
        let first = out.len().min(memory.len() - at);
        out[..first].copy_from_slice(&memory[at..at + first]);
        let rest = out.len() - first;
        out[first..].copy_from_slice(&memory[..rest]);
    }
}

/// Rings on the heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapBuffers;

impl Buffers for HeapBuffers {
    type Ring = Box<[u8]>;

    fn ring(&mut self, size: u32) -> Option<Box<[u8]>> {
        Some(vec![0; size as usize].into_boxed_slice())
    }
}

/// `at + bytes` on a ring of `size`; both are below or equal to `size`.
#[inline]
pub(crate) fn advance(at: u32, bytes: u32, size: u32) -> u32 {
    let next = u64::from(at) + u64::from(bytes);
    if next >= u64::from(size) { (next - u64::from(size)) as u32 } else { next as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_around_the_end() {
        let mut ring = vec![0u8; 8];
        ByteRing::write(&mut ring, 6, &[1, 2, 3, 4]);
        assert_eq!(ring, [3, 4, 0, 0, 0, 0, 1, 2]);
        let mut out = [0; 4];
        ByteRing::read(&ring, 6, &mut out);
        assert_eq!(out, [1, 2, 3, 4]);
        assert_eq!(advance(6, 2, 8), 0);
        assert_eq!(advance(6, 8, 8), 6);
    }
}
