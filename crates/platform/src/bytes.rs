//! A host's memory: zeroed bytes, in large pages where that pays.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Zeroed bytes. Untouched pages cost nothing.
#[derive(Debug)]
pub struct HostBytes {
    map: MmapMut,
    /// A map cannot be empty, memory can.
    len: usize,
}

impl HostBytes {
    /// `len` zeroed bytes. As with a `Vec`, the process ends when there is no memory for them.
    pub fn zeroed(len: u64) -> HostBytes {
        let layout = || Layout::array::<u8>(len as usize).unwrap_or(Layout::new::<u8>());
        HostBytes::try_zeroed(len).unwrap_or_else(|_| handle_alloc_error(layout()))
    }

    /// The same for a caller who can do without.
    ///
    /// # Errors
    /// What the system says that has no memory for them.
    pub fn try_zeroed(len: u64) -> std::io::Result<HostBytes> {
        let len = usize::try_from(len).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        let map = MmapMut::map_anon(len.max(1))?;
        Ok(HostBytes { map, len })
    }

    /// Asks for large pages. The packets and tables of a run are spread over more memory than a
    /// translation cache covers with pages of 4 KiB; what is small or soon gone does without.
    pub fn use_large_pages(&self) {
        // Only a wish: without large pages everything is right, and slower.
        #[cfg(target_os = "linux")]
        let _ = self.map.advise(memmap2::Advice::HugePage);
    }
}

impl Default for HostBytes {
    fn default() -> HostBytes {
        HostBytes::zeroed(0)
    }
}

impl Clone for HostBytes {
    fn clone(&self) -> HostBytes {
        let mut copy = HostBytes::zeroed(self.len as u64);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for HostBytes {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.map[..self.len]
    }
}

impl DerefMut for HostBytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.map[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_to_be_had_is_an_error() {
        assert!(HostBytes::try_zeroed(1 << 60).is_err());
        assert_eq!(HostBytes::try_zeroed(5).unwrap()[..], [0; 5]);
    }

    #[test]
    fn memory_is_zeroed_and_may_be_empty() {
        assert!(HostBytes::zeroed(0).is_empty());
        let mut bytes = HostBytes::zeroed(10_000);
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes[9_999] = 7;
        assert_eq!(bytes.clone()[9_999], 7);
    }
}
