//! Frames that say who they are.

use nicforge_nic::mbuf_room;
use nicforge_units::Time;

/// A frame carries its flow and its number in front.
pub const FRAME_LEN_MIN: usize = 14;

/// The longest frame that a buffer holds.
pub fn frame_len_max() -> usize {
    mbuf_room() as usize
}

/// Frame `number`: its flow, its number, and bytes that no other frame has there.
pub fn frame(flow: u32, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len.max(FRAME_LEN_MIN)];
    bytes[..4].copy_from_slice(&flow.to_le_bytes());
    bytes[4..12].copy_from_slice(&number.to_le_bytes());
    for (index, byte) in bytes.iter_mut().enumerate().skip(12) {
        *byte = (number.wrapping_mul(167) as u8).wrapping_add(index as u8);
    }
    bytes
}

/// The number that a frame carries.
pub fn number_of(frame: &[u8]) -> u64 {
    let number = frame[4..12].try_into().expect("eight bytes");
    u64::from_le_bytes(number)
}

/// When frame `number` came in.
pub fn stamp(number: u64) -> Time {
    Time::from_ns(1 + number)
}
