//! The per-flow context of the NIC: 208 bytes that say how to go on with the next byte of a flow's one direction.
//!
//! A context is a plain value. The device may write it back to host memory and fetch it again between any two
//! packets; nothing else about a flow outlives a packet. Expanded keys are kept beside it ([`crate::keys`]), for
//! speed only.
//!
//! | offset | field | bytes | what |
//! | --- | --- | --- | --- |
//! | 0 | `addresses` | 32 | source and destination, IPv6 or IPv4-mapped |
//! | 32 | `ports` | 4 | source and destination |
//! | 36 | `id` | 4 | the context's number, which transmit descriptors carry |
//! | 40 | `number` | 8 | number of the current message, or of the next one at a boundary |
//! | 48 | `tcpsn` | 4 | the sequence number that goes on |
//! | 52 | `length` | 4 | length of the current message, header included |
//! | 56 | `offset` | 4 | bytes of the current message before `tcpsn` |
//! | 60 | `resync` | 4 | sequence number that software was asked to confirm |
//! | 64 | `tracked` | 4 | numbered messages seen since the one at `resync` |
//! | 68 | `header` | 8 | the current message's first bytes; while searching, the last bytes seen |
//! | 76 | `mode` | 1 | offloading, searching or tracking |
//! | 77 | `protocol` | 1 | which layer-5 protocol |
//! | 78 | `direction` | 1 | transmit or receive |
//! | 79 | `flags` | 1 | see [`Flags`] |
//! | 80 | `state` | 128 | the protocol's own: static (keys, options) and dynamic (digest so far) |

use bytemuck::{Pod, Zeroable};
use zeroize::Zeroize;

use crate::protocol::{Direction, ProtocolId};
use crate::sequence::Seq;

/// Size of a context (the paper, section 3.5.5).
pub const CONTEXT_BYTES: usize = 208;
/// Bytes of it that belong to the layer-5 protocol.
pub const STATE_BYTES: usize = 128;
/// Most bytes of a message that a protocol may need to show magic pattern and length.
pub const HEADER_BYTES_MAX: usize = 8;

/// A flow as the NIC recognises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowKey {
    /// Source and destination address; IPv4 addresses are mapped into IPv6.
    pub addresses: [[u8; 16]; 2],
    /// Source and destination port.
    pub ports: [u16; 2],
}

/// Number of a context; transmit descriptors carry it, so that the NIC need not look the flow up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct ContextId(pub u32);

/// What a context does with the next packet (figure 3.6 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The packet at `tcpsn` is processed.
    Offloading,
    /// Payload is searched for a magic pattern.
    Searching,
    /// A pattern was found and software was asked; lengths lead from header to header.
    Tracking,
}

/// Small facts about the current message, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Flags(u8);

impl Flags {
    const NUMBERED: u8 = 1;
    const FENCE: u8 = 2;
    const UNPROVEN: u8 = 4;

    /// Whether the current message takes a number (a TLS 1.3 `change_cipher_spec` does not).
    pub fn is_numbered(self) -> bool {
        self.0 & Self::NUMBERED != 0
    }

    /// Whether parameters were written and the fence after them has not come yet.
    pub fn awaits_fence(self) -> bool {
        self.0 & Self::FENCE != 0
    }

    /// Whether the context's place comes from software and no message has passed its checks since.
    pub fn is_unproven(self) -> bool {
        self.0 & Self::UNPROVEN != 0
    }

    pub(crate) fn set_unproven(&mut self, on: bool) {
        self.set(Self::UNPROVEN, on);
    }

    pub(crate) fn set_numbered(&mut self, on: bool) {
        self.set(Self::NUMBERED, on);
    }

    pub(crate) fn set_awaits_fence(&mut self, on: bool) {
        self.set(Self::FENCE, on);
    }

    fn set(&mut self, bit: u8, on: bool) {
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }
}

/// The protocol's part of a context, which the protocol sees as a plain struct of its own.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct State([u64; STATE_BYTES / 8]);

impl State {
    /// A state that holds `value` and zeros behind it.
    pub fn of<T: Pod>(value: T) -> Self {
        let mut state = Self::zeroed();
        *state.view_mut() = value;
        state
    }

    /// Its bytes, keys included.
    pub fn to_bytes(&self) -> [u8; STATE_BYTES] {
        bytemuck::cast(self.0)
    }

    /// A state out of its bytes.
    pub fn from_bytes(bytes: &[u8; STATE_BYTES]) -> Self {
        bytemuck::pod_read_unaligned(bytes)
    }

    /// The state as the protocol's struct.
    pub fn view<T: Pod>(&self) -> &T {
        const { assert!(size_of::<T>() <= STATE_BYTES && align_of::<T>() <= align_of::<u64>()) };
        bytemuck::from_bytes(&bytemuck::bytes_of(&self.0)[..size_of::<T>()])
    }

    /// The state as the protocol's struct, to change it.
    pub fn view_mut<T: Pod>(&mut self) -> &mut T {
        const { assert!(size_of::<T>() <= STATE_BYTES && align_of::<T>() <= align_of::<u64>()) };
        bytemuck::from_bytes_mut(&mut bytemuck::bytes_of_mut(&mut self.0)[..size_of::<T>()])
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may hold keys.
        f.write_str("State")
    }
}

/// What the NIC knows about one direction of a flow. See the table above.
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Context {
    addresses: [[u8; 16]; 2],
    ports: [u16; 2],
    /// The context's number.
    pub id: ContextId,
    /// Number of the current message, or of the next one at a boundary.
    pub number: u64,
    /// The sequence number that goes on.
    pub tcpsn: Seq,
    /// Length of the current message, header included; meaningless before its header is complete.
    pub length: u32,
    /// Bytes of the current message before `tcpsn`.
    pub offset: u32,
    pub(crate) resync: Seq,
    pub(crate) tracked: u32,
    pub(crate) header: [u8; HEADER_BYTES_MAX],
    mode: u8,
    protocol: ProtocolId,
    direction: u8,
    pub(crate) flags: Flags,
    /// The protocol's part.
    pub state: State,
}

const _: () = assert!(size_of::<Context>() == CONTEXT_BYTES);

impl Context {
    /// A context that offloads from `tcpsn` on, where message `number` begins.
    pub fn new(
        id: ContextId,
        flow: FlowKey,
        protocol: ProtocolId,
        direction: Direction,
        start: Start,
        state: State,
    ) -> Self {
        Self {
            addresses: flow.addresses,
            ports: flow.ports,
            id,
            number: start.number,
            tcpsn: start.tcpsn,
            direction: direction as u8,
            protocol,
            mode: Mode::Offloading as u8,
            state,
            ..Self::zeroed()
        }
    }

    /// The flow that the context belongs to.
    pub fn flow(&self) -> FlowKey {
        FlowKey { addresses: self.addresses, ports: self.ports }
    }

    /// The layer-5 protocol.
    pub fn protocol(&self) -> ProtocolId {
        self.protocol
    }

    /// Which direction of the flow.
    pub fn direction(&self) -> Direction {
        if self.direction == Direction::Transmit as u8 { Direction::Transmit } else { Direction::Receive }
    }

    /// What the context does with the next packet.
    pub fn mode(&self) -> Mode {
        match self.mode {
            0 => Mode::Offloading,
            1 => Mode::Searching,
            // A value that nobody writes counts as the state that touches no byte and waits for software.
            _ => Mode::Tracking,
        }
    }

    /// Small facts about the current message.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode as u8;
    }

    /// The bytes of the context, as they lie in host memory while it is evicted.
    pub fn to_bytes(&self) -> [u8; CONTEXT_BYTES] {
        let mut bytes = [0; CONTEXT_BYTES];
        bytes.copy_from_slice(bytemuck::bytes_of(self));
        bytes
    }

    /// A context out of host memory.
    pub fn from_bytes(bytes: &[u8; CONTEXT_BYTES]) -> Self {
        bytemuck::pod_read_unaligned(bytes)
    }

    /// Overwrites the context, keys included, with zeros: part of `l5o_destroy`.
    pub fn erase(&mut self) {
        bytemuck::bytes_of_mut(self).zeroize();
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The protocol's part holds keys.
        f.debug_struct("Context")
            .field("id", &self.id.0)
            .field("mode", &self.mode())
            .field("number", &self.number)
            .field("tcpsn", &self.tcpsn.0)
            .field("offset", &self.offset)
            .field("length", &self.length)
            .field("resync", &self.resync.0)
            .field("tracked", &self.tracked)
            .finish_non_exhaustive()
    }
}

/// Where an offload begins: a message boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Start {
    /// Sequence number of the message's first byte.
    pub tcpsn: Seq,
    /// The message's number.
    pub number: u64,
}
