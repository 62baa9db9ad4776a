//! A host's memory: zeroed bytes, in large pages where that pays.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Zeroed bytes. Pages that nobody touches cost nothing.
#[derive(Debug)]
pub struct HostBytes {
    map: MmapMut,
    /// A map cannot be empty, memory can.
    len: usize,
}

impl HostBytes {
    /// `len` zeroed bytes. As with a `Vec`, the process ends when there is no memory for them.
    pub fn zeroed(len: u64) -> HostBytes {
        let len = len as usize;
        let Ok(map) = MmapMut::map_anon(len.max(1)) else {
            handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()));
        };
        HostBytes { map, len }
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
    fn memory_is_zeroed_and_may_be_empty() {
        assert!(HostBytes::zeroed(0).is_empty());
        let mut bytes = HostBytes::zeroed(10_000);
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes[9_999] = 7;
        assert_eq!(bytes.clone()[9_999], 7);
    }
}
