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
/// Room for the frame, where nothing else is asked for.
pub const DATA_BYTES: u64 = 2048;
/// The mempool's own header of each object.
pub const OBJECT_HEADER_BYTES: u64 = 64;
/// The most room that a buffer may be given: an IP packet of 64 KiB with its Ethernet header, which is
/// the longest segment that a stack leaves to its NIC to cut; whole lines.
pub const DATA_BYTES_MAX: u64 = 65_600;

/// The room of a buffer that shall hold frames of `wanted` bytes: whole lines.
pub const fn room_for(wanted: u64) -> u64 {
    let least = if wanted < DATA_BYTES_MAX { wanted } else { DATA_BYTES_MAX };
    least.next_multiple_of(64)
}

/// From one buffer with `room` for a frame, whole lines, to the next: an odd number of lines, so that
/// buffers spread over all sets.
pub const fn mbuf_stride(room: u64) -> u64 {
    let lines = (METADATA_BYTES + HEADROOM_BYTES + room + OBJECT_HEADER_BYTES).div_ceil(64);
    (lines | 1) * 64
}

/// Where a received frame begins in the buffer whose metadata is at `mbuf`.
pub const fn data_of(mbuf: Addr) -> Addr {
    Addr(mbuf.0 + METADATA_BYTES + HEADROOM_BYTES)
}

/// Bytes of frame that a buffer has room for, where nothing else is asked for.
pub const fn mbuf_room() -> u32 {
    DATA_BYTES as u32
}
