//! What connections carry: bytes that follow from the connection, the direction and the place in the
//! stream, so that a byte of another stream, or out of its place, is noticed.

use std::sync::LazyLock;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Bytes of a stream that stand together in [`TABLE`]; each block begins anywhere there.
const BLOCK_BYTES: u64 = 4096;
/// Where all content is taken from.
const TABLE_BYTES: u64 = 1 << 18;

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut table = vec![0; TABLE_BYTES as usize];
    Pcg64::seed_from_u64(0).fill_bytes(&mut table);
    table
});

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The connection's number, which is the same at both ends.
    pub connection: usize,
    /// Whether the end that opened the connection sends.
    pub from_opener: bool,
}

impl Way {
    /// Fills `bytes` with what stands from place `place` of the stream on.
    pub fn fill(self, place: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let there = self.run(place + done as u64, bytes.len() - done);
            bytes[done..done + there.len()].copy_from_slice(there);
            done += there.len();
        }
    }

    /// Whether `bytes` are what stands there.
    pub fn is(self, place: u64, bytes: &[u8]) -> bool {
        let mut done = 0;
        while done < bytes.len() {
            let there = self.run(place + done as u64, bytes.len() - done);
            if bytes[done..done + there.len()] != *there {
                return false;
            }
            done += there.len();
        }
        true
    }

    /// Up to `len` bytes from `place` on, at least one.
    fn run(self, place: u64, len: usize) -> &'static [u8] {
        let (block, inside) = (place / BLOCK_BYTES, place % BLOCK_BYTES);
        let way = (self.connection as u64) << 1 | u64::from(self.from_opener);
        // The finalizer of SplitMix64: neighbours begin far apart.
        let mut mixed = block.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ way.rotate_right(20);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let begin = (mixed % (TABLE_BYTES - BLOCK_BYTES) + inside) as usize;
        let len = len.min((BLOCK_BYTES - inside) as usize);
        &TABLE[begin..begin + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_of_another_stream_or_out_of_its_place_is_noticed() {
        let way = |connection, from_opener| Way { connection, from_opener };
        let mut bytes = [0; 1460];
        for place in [0, 77, 4000, 16_380, 1 << 40] {
            way(3, true).fill(place, &mut bytes);
            assert!(way(3, true).is(place, &bytes), "{place}");
            assert!(way(3, true).is(place + 60, &bytes[60..]), "{place}");
            assert!(!way(3, false).is(place, &bytes), "{place}: direction");
            assert!(!way(4, true).is(place, &bytes), "{place}: connection");
            // A gap of any size, also of a call's or a message's.
            for gap in [1, 48, 300, 1460, 4096, 8240, 16_384, 65_536, 1 << 20] {
                assert!(!way(3, true).is(place + gap, &bytes), "{place}, gap {gap}");
            }
            bytes[1459] ^= 1;
            assert!(!way(3, true).is(place, &bytes), "{place}: one bit");
        }
    }
}
