//! Hashes and checksums of the architectures.

use super::bits::{self, BitString};
use super::ir::HashKind;

/// The hash of a sequence of bits. A sequence that does not fill its last byte is filled with zeroes.
pub(crate) fn hash(kind: HashKind, data: &BitString) -> u64 {
    match kind {
        HashKind::Crc32 => u64::from(crc(&data.bytes, 0xedb8_8320, 0xffff_ffff, 0xffff_ffff)),
        HashKind::Crc16 => u64::from(crc(&data.bytes, 0xa001, 0, 0)),
        // Not random on purpose: the same packet gives the same result.
        HashKind::Random => u64::from(crc(&data.bytes, 0x82f6_3b78, 0xffff_ffff, 0)),
        HashKind::Identity => {
            let take = data.bits.min(64) as u32;
            bits::read(&data.bytes, data.bits - take as usize, take)
        }
        HashKind::Checksum16 => u64::from(checksum16(&data.bytes)),
        HashKind::Xor16 => u64::from(words16(&data.bytes).fold(0, |sum, word| sum ^ word)),
    }
}

/// Reflected CRC of at most 32 bits.
fn crc(bytes: &[u8], polynomial: u32, start: u32, finish: u32) -> u32 {
    let mut state = start;
    for byte in bytes {
        state ^= u32::from(*byte);
        for _ in 0..8 {
            state = if state & 1 == 1 { (state >> 1) ^ polynomial } else { state >> 1 };
        }
    }
    state ^ finish
}

fn words16(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
}

/// Internet checksum (RFC 1071).
pub(crate) fn checksum16(bytes: &[u8]) -> u16 {
    !fold(words16(bytes).map(u64::from).sum())
}

/// A sum of 16-bit words in ones' complement.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The ones' complement sum of data.
pub(crate) fn ones_sum(bytes: &[u8]) -> u16 {
    fold(words16(bytes).map(u64::from).sum())
}

/// `base + hash % max`, as v1model's `hash` defines its result; a `max` of 0 gives `base`.
pub(crate) fn in_range(hash: u64, base: u64, max: u64) -> u64 {
    if max == 0 { base } else { base.wrapping_add(hash % max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> BitString {
        BitString { bytes: bytes.to_vec(), bits: bytes.len() * 8 }
    }

    #[test]
    fn check_values_of_the_catalogue() {
        assert_eq!(hash(HashKind::Crc32, &of(b"123456789")), 0xcbf4_3926);
        assert_eq!(hash(HashKind::Crc16, &of(b"123456789")), 0xbb3d);
    }

    #[test]
    fn checksum_of_a_header_with_its_checksum_is_zero() {
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(checksum16(&header), 0);
    }
}
