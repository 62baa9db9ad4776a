//! A small protocol that has every property and nothing else: for tests and as a pattern for new protocols.
//!
//! A message is magic `A5 5A`, two bytes that stay free, the length (32 bits, little-endian), data, and a check of
//! four bytes. Data is scrambled with a stream that depends on key, message number and place; the check is a hash over
//! the scrambled data. Neither protects anything.

pub mod driver;

use bytemuck::{Pod, Zeroable};

use crate::context::State;
use crate::protocol::{Action, Direction, Header, MessagePiece, Properties, Protocol, Verdict, Work};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 8;
/// Bytes of the check.
pub const CHECK_BYTES: usize = 4;
/// The longest message.
pub const MESSAGE_BYTES_MAX: u32 = 1 << 20;
const MAGIC: [u8; 2] = [0xa5, 0x5a];

/// The protocol.
pub struct Toy;

/// What a context holds of it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ToyState {
    key: u64,
    hash: u32,
    difference: u32,
}

impl ToyState {
    /// What a context gets at `l5o_create`.
    pub fn state(key: u64) -> State {
        State::of(Self { key, hash: 0, difference: 0 })
    }
}

/// A message as software prepares it: plain data and an empty check.
pub fn prepare(data: &[u8]) -> Vec<u8> {
    let length = (HEADER_BYTES + data.len() + CHECK_BYTES) as u32;
    let mut message = MAGIC.to_vec();
    message.extend_from_slice(&[0; 2]);
    message.extend_from_slice(&length.to_le_bytes());
    message.extend_from_slice(data);
    message.extend_from_slice(&[0; CHECK_BYTES]);
    message
}

/// A message as the peer wants it, made in one go from a [prepared](prepare) one: the oracle of tests.
pub fn seal(key: u64, number: u64, message: &mut [u8]) {
    let check_at = message.len() - CHECK_BYTES;
    let mut hash = number as u32;
    for (place, byte) in message[HEADER_BYTES..check_at].iter_mut().enumerate() {
        *byte ^= stream(key, number, place as u32);
        hash = mix(hash, *byte);
    }
    message[check_at..].copy_from_slice(&hash.to_le_bytes());
}

fn stream(key: u64, number: u64, place: u32) -> u8 {
    let word = (key ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(u64::from(place / 8));
    let word = (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word >> (8 * (place % 8))) as u8
}

fn mix(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

impl Protocol for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn properties(&self) -> Properties {
        Properties {
            size_preserving: true,
            incremental: true,
            state_bytes: size_of::<ToyState>(),
            header_bytes: HEADER_BYTES,
            magic_bits: 16,
        }
    }

    fn parse(&self, _state: &State, bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let [a, b, _, _, length @ ..] = *bytes;
        let length = u32::from_le_bytes(length);
        let fits = [a, b] == MAGIC && ((HEADER_BYTES + CHECK_BYTES) as u32..=MESSAGE_BYTES_MAX).contains(&length);
        fits.then_some(Header { length, is_numbered: true })
    }

    fn begin(&self, work: &mut Work<'_>, _length: u32) {
        let number = work.number;
        let toy: &mut ToyState = work.state.view_mut();
        toy.hash = number as u32;
        toy.difference = 0;
    }

    fn advance(&self, work: &mut Work<'_>, piece: MessagePiece<'_>) {
        let (number, direction) = (work.number, work.direction);
        let toy: &mut ToyState = work.state.view_mut();
        let check_at = piece.length - CHECK_BYTES as u32;
        for (byte, at) in piece.bytes.iter_mut().zip(piece.at..) {
            if at < check_at {
                let key = stream(toy.key, number, at - HEADER_BYTES as u32);
                let scrambled = if direction == Direction::Transmit { *byte ^ key } else { *byte };
                toy.hash = mix(toy.hash, scrambled);
                if piece.action != Action::Absorb {
                    *byte ^= key;
                }
                continue;
            }
            let made = toy.hash.to_le_bytes()[(at - check_at) as usize];
            match (piece.action, direction) {
                (Action::Undo, _) => {}
                (_, Direction::Transmit) => *byte = made,
                (_, Direction::Receive) => toy.difference |= u32::from(made ^ *byte),
            }
        }
    }

    fn finish(&self, work: &mut Work<'_>, _length: u32) -> Verdict {
        let toy: &ToyState = work.state.view();
        if toy.difference == 0 { Verdict::Passed } else { Verdict::Lost }
    }
}
