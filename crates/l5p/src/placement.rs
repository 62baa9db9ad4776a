//! Request-response states: where the payload of an answer belongs, by the identifier that the answer carries.

use std::collections::BTreeMap;

use crate::context::ContextId;
use crate::host::Piece;

/// Identifier of a request-response state: NVMe's command identifier, iSCSI's task tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RrStateId(pub u32);

/// Destination of an answer's payload: buffers that follow one another.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RrState {
    /// The buffers in order.
    pub pieces: Vec<Piece>,
}

impl RrState {
    /// Where the bytes from `offset` on belong, until a buffer or `bytes` ends; `None` behind the last buffer.
    pub fn locate(&self, offset: u32, bytes: u32) -> Option<Piece> {
        let mut left = u64::from(offset);
        for piece in &self.pieces {
            let size = u64::from(piece.bytes);
            if left < size {
                let here = (size - left).min(u64::from(bytes)) as u32;
                return Some(Piece { address: piece.address.checked_add(left)?, bytes: here });
            }
            left -= size;
        }
        None
    }
}

/// Why a state was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RrError {
    /// The identifier is in use: two answers could not be told apart.
    #[error("context {context} already has a state {id}: delete it at completion before the identifier is used again")]
    InUse {
        /// Number of the context.
        context: u32,
        /// The identifier.
        id: u32,
    },
    /// The NIC has no room.
    #[error("{0} states are in use, which is all that there is room for; the answer takes the way without placement")]
    Full(usize),
}

/// The states of all flows. The device gives it its bound.
#[derive(Debug)]
pub struct Placements {
    states: BTreeMap<(ContextId, RrStateId), RrState>,
    limit: usize,
}

impl Placements {
    /// No states, and room for `limit`.
    pub fn new(limit: usize) -> Self {
        Self { states: BTreeMap::new(), limit }
    }

    /// `l5o_add_rr_state`; ULP DDP `setup`.
    ///
    /// # Errors
    ///
    /// [`RrError`] when the identifier is in use or there is no room.
    pub fn add(&mut self, context: ContextId, id: RrStateId, state: RrState) -> Result<(), RrError> {
        if self.states.contains_key(&(context, id)) {
            return Err(RrError::InUse { context: context.0, id: id.0 });
        }
        if self.states.len() == self.limit {
            return Err(RrError::Full(self.limit));
        }
        self.states.insert((context, id), state);
        Ok(())
    }

    /// `l5o_del_rr_state`; ULP DDP `teardown`. Tells whether there was one.
    pub fn remove(&mut self, context: ContextId, id: RrStateId) -> bool {
        self.states.remove(&(context, id)).is_some()
    }

    /// Deletes what a destroyed context left.
    pub fn remove_all(&mut self, context: ContextId) {
        let ids = self.states.range((context, RrStateId(0))..=(context, RrStateId(u32::MAX)));
        let ids: Vec<RrStateId> = ids.map(|((_, id), _)| *id).collect();
        for id in ids {
            self.states.remove(&(context, id));
        }
    }

    /// The state of an answer.
    pub fn get(&self, context: ContextId, id: RrStateId) -> Option<&RrState> {
        self.states.get(&(context, id))
    }

    /// States in use.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether no state is in use.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}
