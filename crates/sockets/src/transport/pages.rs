//! Payload rings that take memory where bytes were written: a connection that waits costs a page each way, not its
//! whole buffers.

use nicforge_tcp::ring::{Buffers, ByteRing};

const PAGE: usize = 4096;

/// A ring whose pages are allocated when they are first written.
#[derive(Debug)]
pub struct PagedRing {
    size: u32,
    pages: Box<[Option<Box<[u8; PAGE]>>]>,
}

impl PagedRing {
    /// Splits `len` bytes from `at` on, around the end, into page, offset and length.
    fn parts(&self, at: u32, len: usize) -> impl Iterator<Item = Part> + use<> {
        let size = self.size as usize;
        let (mut at, mut done) = (at as usize % size.max(1), 0);
        std::iter::from_fn(move || {
            if done == len {
                return None;
            }
            let part = (PAGE - at % PAGE).min(size - at).min(len - done);
            let next = Part { page: at / PAGE, offset: at % PAGE, done, len: part };
            at = if at + part == size { 0 } else { at + part };
            done += part;
            Some(next)
        })
    }
}

/// A run of bytes within a page, and how many came before it.
struct Part {
    page: usize,
    offset: usize,
    done: usize,
    len: usize,
}

impl ByteRing for PagedRing {
    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn write(&mut self, at: u32, bytes: &[u8]) {
        for Part { page, offset, done, len } in self.parts(at, bytes.len()) {
            let page = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]));
            page[offset..offset + len].copy_from_slice(&bytes[done..done + len]);
        }
    }

    #[inline]
    fn read(&self, at: u32, out: &mut [u8]) {
        for Part { page, offset, done, len } in self.parts(at, out.len()) {
            let out = &mut out[done..done + len];
            match &self.pages[page] {
                Some(page) => out.copy_from_slice(&page[offset..offset + len]),
                None => out.fill(0),
            }
        }
    }
}

/// Rings of pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagedBuffers;

impl Buffers for PagedBuffers {
    type Ring = PagedRing;

    fn ring(&mut self, size: u32) -> Option<PagedRing> {
        let pages = (size as usize).div_ceil(PAGE);
        Some(PagedRing { size, pages: (0..pages).map(|_| None).collect() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_of_pages_is_a_ring(
            size in 1u32..20_000,
            steps in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u8>()), 1..30),
        ) {
            let mut flat = vec![0u8; size as usize];
            let mut paged = PagedBuffers.ring(size).unwrap();
            prop_assert_eq!(paged.size(), size);
            for (at, len, first) in steps {
                let (at, len) = (at % size, (len % (size + 1)) as usize);
                let bytes: Vec<u8> = (0..len).map(|n| first.wrapping_add(n as u8)).collect();
                ByteRing::write(&mut flat, at, &bytes);
                paged.write(at, &bytes);
                let (mut expected, mut got) = (vec![0; len], vec![0; len]);
                let from = (at + len as u32 / 2) % size;
                ByteRing::read(&flat, from, &mut expected);
                paged.read(from, &mut got);
                prop_assert!(expected == got);
            }
        }
    }

    #[test]
    fn a_ring_takes_pages_where_bytes_are() {
        let mut ring = PagedBuffers.ring(65_536).unwrap();
        ring.write(4090, &[7; 10]);
        assert_eq!(ring.pages.iter().filter(|page| page.is_some()).count(), 2);
    }
}
