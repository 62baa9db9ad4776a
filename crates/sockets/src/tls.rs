//! Kernel TLS as programs know it: keys by `setsockopt(SOL_TLS, …)`, and how plaintext lies in the rings afterwards.
//!
//! A ring of a socket whose direction is encrypted carries pieces of records: the record's type, the piece's length (two
//! bytes, little-endian), the piece. The service makes records of what it takes and pieces of the records it gets. A piece
//! of type [`FAILED`] is the last: its length is an error, and nothing follows it.

use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::{Cipher, PLAINTEXT_BYTES_MAX, Version};
use rustix::io::Errno;

/// `SOL_TLS`.
pub const SOL_TLS: i32 = 282;
/// `TLS_TX`.
pub const TLS_TX: i32 = 1;
/// `TLS_RX`.
pub const TLS_RX: i32 = 2;
/// Control message with the type of a record to send.
pub const TLS_SET_RECORD_TYPE: i32 = 1;
/// Control message with the type of a record that came.
pub const TLS_GET_RECORD_TYPE: i32 = 2;

/// Bytes before each piece in a ring.
pub const PIECE_HEADER: usize = 3;
/// Most bytes of a piece: a record's content.
pub const PIECE_MOST: usize = PLAINTEXT_BYTES_MAX;

/// Type of the piece behind which there are none, because what came is no record: its length is the error's number.
pub const FAILED: u8 = 0;

/// Longest structure that a program gives.
pub const CRYPTO_INFO_MOST: usize = 56;

/// What a program gives for one direction (`struct tls12_crypto_info_…` of linux/tls.h).
pub struct CryptoInfo {
    /// Version, cipher, key, nonce.
    pub keys: TlsKeys,
    /// Number of the next record.
    pub number: u64,
}

impl CryptoInfo {
    /// Reads the structure.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a version, cipher or length that the NIC does not offload, as Linux answers.
    pub fn parse(bytes: &[u8]) -> Result<CryptoInfo, Errno> {
        let word = |at: usize| bytes.get(at..at + 2).map(|word| u16::from_ne_bytes([word[0], word[1]]));
        let version = match word(0) {
            Some(0x0303) => Version::Tls12,
            Some(0x0304) => Version::Tls13,
            _ => return Err(Errno::INVAL),
        };
        let (cipher, iv_bytes, salt_bytes) = match word(2) {
            Some(51) => (Cipher::Aes128Gcm, 8, 4),
            Some(52) => (Cipher::Aes256Gcm, 8, 4),
            Some(54) => (Cipher::ChaCha20Poly1305, 12, 0),
            _ => return Err(Errno::INVAL),
        };
        let lengths = [iv_bytes, cipher.key_bytes(), salt_bytes, 8];
        if bytes.len() != 4 + lengths.iter().sum::<usize>() {
            return Err(Errno::INVAL);
        }
        let (iv, rest) = bytes[4..].split_at(iv_bytes);
        let (key, rest) = rest.split_at(cipher.key_bytes());
        let (salt, number) = rest.split_at(salt_bytes);
        let mut keys = TlsKeys { version, cipher, key: [0; 32], iv: [0; 12] };
        keys.key[..key.len()].copy_from_slice(key);
        keys.iv[..salt_bytes].copy_from_slice(salt);
        // The rest of TLS 1.2's nonce stands in each record.
        if version == Version::Tls13 || salt_bytes == 0 {
            keys.iv[salt_bytes..].copy_from_slice(iv);
        }
        let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Ok(CryptoInfo { keys, number })
    }
}

/// The header of a piece.
pub fn piece_header(kind: u8, bytes: usize) -> [u8; PIECE_HEADER] {
    let [low, high] = (bytes as u16).to_le_bytes();
    [kind, low, high]
}

/// Type and length out of a piece's header.
pub fn parse_piece_header(header: [u8; PIECE_HEADER]) -> (u8, usize) {
    (header[0], usize::from(u16::from_le_bytes([header[1], header[2]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_of_linux_are_read() {
        let mut info = vec![0x04, 0x03, 51, 0];
        info.extend(1..=8);
        info.extend([0x11; 16]);
        info.extend([0xa, 0xb, 0xc, 0xd]);
        info.extend([0, 0, 0, 0, 0, 0, 1, 2]);
        let parsed = CryptoInfo::parse(&info).unwrap();
        assert_eq!(parsed.number, 258);
        assert_eq!(parsed.keys.iv, [0xa, 0xb, 0xc, 0xd, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(parsed.keys.key[..17], [&[0x11; 16][..], &[0]].concat());
        info[0] = 3;
        assert_eq!(CryptoInfo::parse(&info).unwrap().keys.iv[4..], [0; 8]);
        info[2] = 53;
        assert!(CryptoInfo::parse(&info).is_err());
        info[2] = 52;
        assert!(CryptoInfo::parse(&info).is_err(), "too short for a key of 256 bits");
        assert!(CryptoInfo::parse(&[]).is_err());
    }
}
