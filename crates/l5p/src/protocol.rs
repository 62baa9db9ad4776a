//! What a layer-5 protocol must be and do so that the engine can offload it.
//!
//! A protocol is a folder with an implementation of [`Protocol`], a driver half, and a line in
//! [`crate::registry`]. The engine knows TCP sequence numbers and message boundaries; the protocol knows what a
//! message's bytes mean. It sees a message as pieces, cut anywhere, each once and in order.

use crate::context::{ContextId, HEADER_BYTES_MAX, STATE_BYTES, State};
use crate::host::HostMemory;
use crate::keys::KeyCache;
use crate::placement::Placements;

/// Number of a protocol: its place in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct ProtocolId(pub u8);

/// Direction of a flow, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The host sends.
    Transmit = 0,
    /// The host receives.
    Receive = 1,
}

/// The properties of table 3.2 in the paper. The registry refuses a protocol that lacks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The operation adds and removes no byte.
    pub size_preserving: bool,
    /// The operation can stop and go on at any byte.
    pub incremental: bool,
    /// Bytes of state, whatever the message's length.
    pub state_bytes: usize,
    /// Bytes of a message, from its first, that show the magic pattern and the length; 0 when messages show none.
    pub header_bytes: usize,
    /// Bits of these bytes that have a known value in a genuine header: how seldom chance imitates one.
    pub magic_bits: u32,
}

/// A property that a protocol lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// TCP would have to know of bytes that come and go on the NIC.
    #[error("the operation changes the message's size: TCP could not be left where it is")]
    Size,
    /// The NIC would have to hold packets back.
    #[error("the operation cannot stop at any byte: the NIC would have to buffer packets")]
    Increments,
    /// The state does not fit into a context.
    #[error("{0} bytes of state do not fit into a context, which has {STATE_BYTES} for them")]
    State(usize),
    /// The NIC could not find a message again.
    #[error(
        "magic pattern and length must stand in the first 1 to {HEADER_BYTES_MAX} bytes and fix at least 8 bits; \
         {bytes} bytes fix {bits}"
    )]
    Magic {
        /// Bytes of header.
        bytes: usize,
        /// Bits of known value.
        bits: u32,
    },
}

impl Properties {
    /// Fewest bits that a magic pattern must fix.
    pub const MAGIC_BITS_MIN: u32 = 8;

    /// Whether the engine can offload a protocol of these properties.
    ///
    /// # Errors
    ///
    /// The first property that is missing.
    pub fn check(&self) -> Result<(), Unfit> {
        if !self.size_preserving {
            return Err(Unfit::Size);
        }
        if !self.incremental {
            return Err(Unfit::Increments);
        }
        if self.state_bytes > STATE_BYTES {
            return Err(Unfit::State(self.state_bytes));
        }
        if !(1..=HEADER_BYTES_MAX).contains(&self.header_bytes) || self.magic_bits < Self::MAGIC_BITS_MIN {
            return Err(Unfit::Magic { bytes: self.header_bytes, bits: self.magic_bits });
        }
        Ok(())
    }
}

/// What a genuine header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the message in bytes, header included; never less than the header.
    pub length: u32,
    /// Whether the message takes a number.
    pub is_numbered: bool,
}

/// What is done with a piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Process the piece in place.
    Transform,
    /// Bring the state past the piece and leave its bytes alone: the packet goes up as it came.
    Absorb,
    /// Give a transformed piece its bytes back, because its packet failed. The state's digest means nothing.
    Undo,
}

/// A piece of a message and where it lies in it.
#[derive(Debug)]
pub struct MessagePiece<'a> {
    /// What to do.
    pub action: Action,
    /// Offset of the first byte in the message.
    pub at: u32,
    /// Length of the message.
    pub length: u32,
    /// The bytes; [`Action::Absorb`] must leave them as they are.
    pub bytes: &'a mut [u8],
}

/// What the engine lends a protocol for one call.
pub struct Work<'a> {
    /// The protocol's part of the context.
    pub state: &'a mut State,
    /// The context that the message belongs to.
    pub context: ContextId,
    /// Direction of the flow.
    pub direction: Direction,
    /// Number of the message.
    pub number: u64,
    /// Its first bytes, as many as [`Properties::header_bytes`] says.
    pub header: [u8; HEADER_BYTES_MAX],
    /// Expanded keys.
    pub keys: &'a mut KeyCache,
    /// Request-response states (`l5o_add_rr_state`).
    pub placements: &'a Placements,
    /// Host memory.
    pub host: &'a mut dyn HostMemory,
    /// Payload bytes that the protocol wrote to their destination in this packet.
    pub placed_bytes: u32,
    /// Payload bytes in this packet that had a destination and were not written there.
    pub unplaced_bytes: u32,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every check passed.
    Passed,
    /// A check failed; the next message is where the length says.
    Failed,
    /// A check failed in a way that puts key, number or framing in doubt; the engine searches anew.
    Lost,
}

/// Reads a header and refuses a length that does not hold it.
pub(crate) fn parse_header(protocol: &dyn Protocol, state: &State, bytes: &[u8]) -> Option<Header> {
    let header = protocol.parse(state, bytes)?;
    (header.length as usize >= protocol.properties().header_bytes).then_some(header)
}

/// The operations of a layer-5 protocol on the NIC.
pub trait Protocol: Sync {
    /// Name as in counters: `tls`, `nvme_tcp`.
    fn name(&self) -> &'static str;

    /// What the registry checks.
    fn properties(&self) -> Properties;

    /// Reads a header out of the first [`Properties::header_bytes`] of `bytes`; `None` when it is none.
    fn parse(&self, state: &State, bytes: &[u8]) -> Option<Header>;

    /// Whether a candidate that was found by search looks genuine. `bytes` begins with the header and may hold more
    /// of the message, digests included.
    fn is_plausible(&self, _state: &State, _bytes: &[u8]) -> bool {
        true
    }

    /// Begins a message whose header is complete. The header's bytes have passed.
    fn begin(&self, work: &mut Work<'_>, length: u32);

    /// Processes a piece behind the header.
    fn advance(&self, work: &mut Work<'_>, piece: MessagePiece<'_>);

    /// Ends a message whose last byte has passed.
    fn finish(&self, work: &mut Work<'_>, length: u32) -> Verdict;

    /// Places a piece of the current message although bytes before it are missing; tells whether it could.
    fn place_ahead(&self, _work: &mut Work<'_>, _at: u32, _bytes: &[u8]) -> bool {
        false
    }

    /// Tells the key cache which keys of the state are gone: part of `l5o_destroy`.
    fn forget(&self, _state: &State, _keys: &mut KeyCache) {}
}
