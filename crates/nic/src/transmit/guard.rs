//! What a descriptor may name.

use nicforge_platform::Addr;

use super::layout::{INLINE_BYTES, TxDescriptor};
use crate::{Application, DropCause, Key, KeyTable, Refusal, Segment};

/// The descriptor names no memory, or too much of it.
pub const BAD_TX_DESCRIPTOR: DropCause = DropCause("bad_tx_descriptor");

/// The longest frame; segments that are cut may be longer.
const FRAME_MAX: u64 = 16 << 10;

/// All that a NIC knows of memory: where the host's ends, and whose its own is.
#[derive(Clone, Debug)]
pub struct Guard {
    memory_end: Addr,
    keys: KeyTable,
    longest: u64,
}

impl Guard {
    /// Host memory below `memory_end`, and memory of the NIC as `keys` has it.
    pub fn new(memory_end: Addr, keys: KeyTable) -> Guard {
        Guard { memory_end, keys, longest: FRAME_MAX }
    }

    /// The same with the NIC's memory as `keys` has it.
    pub fn with_keys(&self, keys: KeyTable) -> Guard {
        Guard { keys, ..self.clone() }
    }

    /// The same, where a descriptor may name up to `longest` bytes.
    pub fn with_longest(&self, longest: u64) -> Guard {
        Guard { longest, ..self.clone() }
    }

    /// Whether a ring of `application` may have `descriptor`; else why the NIC does not touch it.
    #[inline]
    pub fn check(&self, application: Application, descriptor: &TxDescriptor) -> Result<(), DropCause> {
        let TxDescriptor { head, rest, .. } = *descriptor;
        let inlined = descriptor.inline && head.len > INLINE_BYTES;
        if head.len == 0 || descriptor.len() > self.longest || inlined {
            return Err(BAD_TX_DESCRIPTOR);
        }
        if !descriptor.inline {
            self.segment(application, head, descriptor.head_key)?;
        }
        match rest.len {
            0 => Ok(()),
            _ => self.segment(application, rest, descriptor.rest_key),
        }
    }

    #[inline]
    fn segment(&self, application: Application, segment: Segment, key: Key) -> Result<(), DropCause> {
        let (at, len) = (segment.at, u64::from(segment.len));
        if key != Key::HOST {
            let checked = self.keys.check(application, key, at, len);
            return checked.map_err(Refusal::cause);
        }
        let end = at.0.saturating_add(len);
        if at.0 == 0 || end > self.memory_end.0 {
            return Err(BAD_TX_DESCRIPTOR);
        }
        if self.keys.overlaps(at, Addr(end)) { Err(Refusal::NoKey.cause()) } else { Ok(()) }
    }
}
