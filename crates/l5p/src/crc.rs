//! CRC-32C in pieces, over `crc-fast`: the digest of NVMe/TCP and iSCSI (RFC 3720, appendix B.4).

use crc_fast::{CrcAlgorithm, Digest};

/// The digest of no bytes yet.
pub const BEGIN: u32 = u32::MAX;

/// The state behind `bytes`.
pub fn update(state: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(state));
    digest.update(bytes);
    digest.get_state() as u32
}

/// The digest as it stands on the wire, least significant byte first.
pub fn finish(state: u32) -> [u8; 4] {
    (!state).to_le_bytes()
}

/// The digest of `bytes` as it stands on the wire.
pub fn digest(bytes: &[u8]) -> [u8; 4] {
    finish(update(BEGIN, bytes))
}
