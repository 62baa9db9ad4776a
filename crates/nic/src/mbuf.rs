//! The shape of a packet buffer: metadata, headroom, data. Sizes as in DPDK, whose drivers the
//! papers measured (rte_mbuf: two lines of metadata, 128 B headroom, 2 KiB data room, and the
//! mempool's object header of one line).

use nicforge_platform::Addr;

/// Metadata in front of each buffer: two cache lines.
pub const METADATA_BYTES: u64 = 128;
/// Where the metadata says which buffer is chained to this one: in its second line, as DPDK has it.
pub const NEXT_OFFSET: u64 = 72;
/// Where the metadata says which word counts the packets that refer to shared memory, as this one
/// does (`rte_mbuf_ext_shared_info` of DPDK).
pub const REFERENCES_OFFSET: u64 = 80;
/// Room for headers in front of a received frame.
pub const HEADROOM_BYTES: u64 = 128;
/// Room for the frame.
pub const DATA_BYTES: u64 = 2048;
/// Room that a buffer on nicmem has there.
pub const PAYLOAD_BYTES: u64 = DATA_BYTES;
/// The mempool's own header of each object.
pub const OBJECT_HEADER_BYTES: u64 = 64;
/// From one buffer to the next: an odd number of lines, so that buffers spread over all sets.
pub const MBUF_STRIDE_BYTES: u64 =
    METADATA_BYTES + HEADROOM_BYTES + DATA_BYTES + OBJECT_HEADER_BYTES;

const _: () = assert!(MBUF_STRIDE_BYTES / 64 % 2 == 1);

/// Where a received frame begins in the buffer whose metadata is at `mbuf`.
pub const fn data_of(mbuf: Addr) -> Addr {
    Addr(mbuf.0 + METADATA_BYTES + HEADROOM_BYTES)
}

/// Bytes of frame that a buffer has room for.
pub const fn mbuf_room() -> u32 {
    DATA_BYTES as u32
}
