//! Transmit: descriptors out of the flow's send ring, in order (sections 3.3.1 and 3.3.2 of the paper).

use super::walk::End;
use super::{Engine, is_sound};
use crate::context::{Context, Mode, Start, State};
use crate::host::{HostFault, HostMemory, Piece};
use crate::protocol::{Action, Direction};
use crate::sequence::Seq;

/// What the driver posts for an offloaded flow. A recovery is, in order: static parameters (when the key changes),
/// progress parameters, a fence, dumps, the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// Replaces the protocol's state: keys and options.
    StaticParameters(Box<State>),
    /// Sets sequence number and message number to a message's start.
    ProgressParameters(Start),
    /// What follows sees the parameters before it.
    Fence,
    /// Reads a piece of a message's prefix and processes it without sending it: Linux's `DUMP`.
    Dump(Piece),
    /// Processes a packet's payload and sends it.
    Packet {
        /// Sequence number of the payload's first byte.
        seq: Seq,
        /// The payload as software prepared it; the NIC changes this copy, never host memory.
        payload: Vec<u8>,
    },
    /// Sends a packet as it is, which lies before the start of offload.
    Plain {
        /// Sequence number of the payload's first byte.
        seq: Seq,
        /// The payload.
        payload: Vec<u8>,
    },
}

/// What came of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// The context changed; nothing leaves.
    Done,
    /// A packet leaves.
    Sent {
        /// Sequence number of the payload's first byte.
        seq: Seq,
        /// The payload for the wire.
        payload: Vec<u8>,
    },
}

/// Why the NIC refused a descriptor. Nothing leaves, and it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The packet is not the one that the context goes on with.
    #[error("the context goes on at {expected:?}, not at {seq:?}: post progress parameters first")]
    OutOfSync {
        /// Where the context is.
        expected: Seq,
        /// Where the packet is.
        seq: Seq,
    },
    /// Parameters were written and no fence came.
    #[error("parameters were written: post a fence before the next dump or packet")]
    NoFence,
    /// The bytes do not begin a message where one must begin.
    #[error("no message begins before {0:?}: the stream does not follow the protocol")]
    NotAMessage(Seq),
    /// The context lost its place earlier.
    #[error("the context has no place in the stream: post progress parameters")]
    NoPlace,
    /// The prefix is not in host memory.
    #[error(transparent)]
    Host(#[from] HostFault),
    /// The dump is longer than the NIC reads at once.
    #[error("a dump of {bytes} bytes is longer than {limit}: split it")]
    DumpTooLong {
        /// Its length.
        bytes: u32,
        /// Most that the NIC reads.
        limit: usize,
    },
}

impl Engine {
    /// Executes a descriptor.
    ///
    /// # Errors
    ///
    /// [`Refusal`]; then nothing leaves.
    pub fn execute(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        descriptor: Descriptor,
    ) -> Result<Executed, Refusal> {
        let result = match descriptor {
            Descriptor::StaticParameters(state) => {
                if let Some(protocol) = super::protocol_of(context) {
                    protocol.forget(&context.state, &mut self.keys);
                }
                context.state = *state;
                context.flags.set_awaits_fence(true);
                Ok(Executed::Done)
            }
            Descriptor::ProgressParameters(start) => {
                context.number = start.number;
                context.tcpsn = start.tcpsn;
                context.offset = 0;
                context.set_mode(Mode::Offloading);
                context.flags.set_awaits_fence(true);
                Ok(Executed::Done)
            }
            Descriptor::Fence => {
                context.flags.set_awaits_fence(false);
                Ok(Executed::Done)
            }
            Descriptor::Dump(piece) => self.dump(context, host, piece).map(|()| Executed::Done),
            Descriptor::Packet { seq, payload } => self.packet(context, host, seq, payload),
            Descriptor::Plain { seq, payload } => Ok(Executed::Sent { seq, payload }),
        };
        self.counters_of(context).tx_refused += u64::from(result.is_err());
        result
    }

    fn dump(&mut self, context: &mut Context, host: &mut dyn HostMemory, piece: Piece) -> Result<(), Refusal> {
        check_place(context)?;
        self.with_prefix(context, host, piece, |engine, context, host, bytes| engine.advance(context, host, bytes))
    }

    /// Reads a prefix and hands it to `process`; the context has no place any more when it is not in memory.
    pub(crate) fn with_prefix(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        piece: Piece,
        process: impl FnOnce(&mut Self, &mut Context, &mut dyn HostMemory, &mut [u8]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let limit = self.config.dump_bytes_max;
        if piece.bytes as usize > limit {
            return Err(Refusal::DumpTooLong { bytes: piece.bytes, limit });
        }
        let mut prefix = std::mem::take(&mut self.prefix);
        let bytes = &mut prefix[..piece.bytes as usize];
        let result = match host.read(piece.address, bytes) {
            Ok(()) => process(self, context, host, bytes),
            Err(fault) => {
                context.set_mode(Mode::Searching);
                Err(fault.into())
            }
        };
        self.prefix = prefix;
        result
    }

    fn packet(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        seq: Seq,
        mut payload: Vec<u8>,
    ) -> Result<Executed, Refusal> {
        check_place(context)?;
        if seq != context.tcpsn {
            return Err(Refusal::OutOfSync { expected: context.tcpsn, seq });
        }
        self.advance(context, host, &mut payload)?;
        let counters = self.counters_of(context);
        counters.tx_packets += 1;
        counters.tx_bytes += payload.len() as u64;
        Ok(Executed::Sent { seq, payload })
    }

    /// Processes bytes at the context's place, and leaves the context without a place when that fails.
    pub(crate) fn advance(
        &mut self,
        context: &mut Context,
        host: &mut dyn HostMemory,
        bytes: &mut [u8],
    ) -> Result<(), Refusal> {
        check_place(context)?;
        let walk = self.walk(context, host, bytes, Action::Transform);
        if walk.end == End::Through {
            return Ok(());
        }
        context.set_mode(Mode::Searching);
        Err(Refusal::NotAMessage(context.tcpsn))
    }
}

fn check_place(context: &Context) -> Result<(), Refusal> {
    if context.flags.awaits_fence() {
        return Err(Refusal::NoFence);
    }
    if context.mode() != Mode::Offloading || !is_sound(context, Direction::Transmit) {
        return Err(Refusal::NoPlace);
    }
    Ok(())
}
