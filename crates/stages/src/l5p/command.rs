//! What the driver posts into a flow's send ring: special descriptors, as frames that never reach the wire. In the ring
//! they keep their order with the flow's packets, whatever the interface (the paper, section 3.3.1).

use nicforge_l5p::context::{CONTEXT_BYTES, Context, ContextId, STATE_BYTES, Start, State};
use nicforge_l5p::engine::Descriptor;
use nicforge_l5p::host::Piece;
use nicforge_l5p::placement::{RrState, RrStateId};
use nicforge_l5p::sequence::Seq;

/// IEEE 802 local experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Most buffers of a request-response state in one command.
const PIECES_MOST: usize = 64;

/// A command of the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `l5o_create`: the NIC has this context from here on.
    Create(Box<Context>),
    /// `l5o_destroy`.
    Destroy(ContextId),
    /// A special descriptor for a context. Packets are frames of their own, marked by [`mark`].
    Execute(ContextId, Descriptor),
    /// `l5o_add_rr_state`.
    Add(ContextId, RrStateId, RrState),
    /// `l5o_del_rr_state`.
    Delete(ContextId, RrStateId),
    /// What the first context of TLS receives holds messages of the second, which is created before it.
    Stack(ContextId, ContextId),
}

/// The mark of a packet that the NIC is to process by a context.
pub fn mark(context: ContextId) -> u64 {
    1 << 63 | u64::from(context.0)
}

/// The context that a mark names, if it does.
pub fn marked(mark: u64) -> Option<ContextId> {
    (mark >> 63 == 1).then_some(ContextId(mark as u32))
}

impl Command {
    /// The command as a frame. `None` for packets, and states of more buffers than a command has room for.
    pub fn to_frame(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; HEADER - 2];
        frame.extend(ETHERTYPE);
        let mut begin = |kind: u8, context: ContextId| {
            frame.push(kind);
            frame.extend(context.0.to_le_bytes());
        };
        match self {
            Command::Create(context) => {
                begin(1, context.id);
                frame.extend(context.to_bytes());
            }
            Command::Destroy(context) => begin(2, *context),
            Command::Execute(context, Descriptor::StaticParameters(state)) => {
                begin(3, *context);
                frame.extend(state.to_bytes());
            }
            Command::Execute(context, Descriptor::ProgressParameters(start)) => {
                begin(4, *context);
                frame.extend(start.tcpsn.0.to_le_bytes());
                frame.extend(start.number.to_le_bytes());
            }
            Command::Execute(context, Descriptor::Fence) => begin(5, *context),
            Command::Execute(context, Descriptor::Dump(piece)) => {
                begin(6, *context);
                push_piece(&mut frame, *piece);
            }
            Command::Execute(..) => return None,
            Command::Add(_, _, state) if state.pieces.len() > PIECES_MOST => return None,
            Command::Add(context, id, state) => {
                begin(7, *context);
                frame.extend(id.0.to_le_bytes());
                frame.push(state.pieces.len() as u8);
                state.pieces.iter().for_each(|piece| push_piece(&mut frame, *piece));
            }
            Command::Delete(context, id) => {
                begin(8, *context);
                frame.extend(id.0.to_le_bytes());
            }
            Command::Stack(outer, inner) => {
                begin(9, *outer);
                frame.extend(inner.0.to_le_bytes());
            }
        }
        Some(frame)
    }

    /// Whether a frame holds a command, sound or not.
    pub fn is_in(frame: &[u8]) -> bool {
        frame.get(HEADER - 2..HEADER) == Some(&ETHERTYPE)
    }

    /// Reads a command; `None` where it is none that makes sense. Padding behind it is ignored.
    pub fn parse(frame: &[u8]) -> Option<Command> {
        let mut rest = Reader(frame.get(HEADER..)?);
        let [kind] = rest.take()?;
        let context = ContextId(u32::from_le_bytes(rest.take()?));
        Some(match kind {
            1 => {
                let bytes: [u8; CONTEXT_BYTES] = rest.take()?;
                let created = Context::from_bytes(&bytes);
                if created.id != context {
                    return None;
                }
                Command::Create(Box::new(created))
            }
            2 => Command::Destroy(context),
            3 => {
                let bytes: [u8; STATE_BYTES] = rest.take()?;
                Command::Execute(context, Descriptor::StaticParameters(Box::new(State::from_bytes(&bytes))))
            }
            4 => {
                let tcpsn = Seq(u32::from_le_bytes(rest.take()?));
                let start = Start { tcpsn, number: u64::from_le_bytes(rest.take()?) };
                Command::Execute(context, Descriptor::ProgressParameters(start))
            }
            5 => Command::Execute(context, Descriptor::Fence),
            6 => Command::Execute(context, Descriptor::Dump(rest.piece()?)),
            7 => {
                let id = RrStateId(u32::from_le_bytes(rest.take()?));
                let [count] = rest.take()?;
                let pieces: Option<Vec<Piece>> = (0..count).map(|_| rest.piece()).collect();
                Command::Add(context, id, RrState { pieces: pieces? })
            }
            8 => Command::Delete(context, RrStateId(u32::from_le_bytes(rest.take()?))),
            9 => Command::Stack(context, ContextId(u32::from_le_bytes(rest.take()?))),
            _ => return None,
        })
    }
}

fn push_piece(frame: &mut Vec<u8>, piece: Piece) {
    frame.extend(piece.address.to_le_bytes());
    frame.extend(piece.bytes.to_le_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn piece(&mut self) -> Option<Piece> {
        Some(Piece { address: u64::from_le_bytes(self.take()?), bytes: u32::from_le_bytes(self.take()?) })
    }
}
