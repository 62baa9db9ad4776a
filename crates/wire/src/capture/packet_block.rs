//! The packet block of early pcapng files, which newer ones have no more but readers should still know
//! (draft-ietf-opsawg-pcapng, appendix A):
//!
//! ```text
//! interface (2), drops (2), time high (4), time low (4), captured bytes (4), original bytes (4), the bytes, options
//! ```

/// Its type.
pub(super) const PACKET_BLOCK: u32 = 2;

/// What one says.
pub(super) struct PacketBlock<'a> {
    pub(super) interface: u16,
    /// In the interface's units.
    pub(super) time: u64,
    pub(super) original_len: u32,
    pub(super) bytes: &'a [u8],
}

/// Reads one from the `contents` of its block; `None` if it claims more than it has.
pub(super) fn packet_block(contents: &[u8], big_endian: bool) -> Option<PacketBlock<'_>> {
    let word = |at: usize| {
        let bytes = contents.get(at..)?.first_chunk()?;
        Some(if big_endian { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) })
    };
    let first = word(0)?;
    let interface = if big_endian { first >> 16 } else { first };
    let captured = word(12)? as usize;
    Some(PacketBlock {
        interface: interface as u16,
        time: u64::from(word(4)?) << 32 | u64::from(word(8)?),
        original_len: word(16)?,
        bytes: contents.get(20..)?.get(..captured)?,
    })
}
