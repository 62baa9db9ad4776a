//! The NIC's half: processes the payload of TCP packets by their flow's context.
//!
//! The engine keeps no packet and waits for nothing. A packet that it cannot process goes up as it came, and
//! software does the work; transmitted packets that it cannot process are refused, because what software hands over is
//! not fit for the wire.
//!
//! [`receive`](Engine::receive) and [`execute`](Engine::execute) take the context by reference; the caller loads and
//! stores it.

mod receive;
mod search;
mod transmit;
mod walk;

pub use receive::{InnerReport, Outcome, Received};
pub use transmit::{Descriptor, Executed, Refusal};

use crate::context::{Context, ContextId, FlowKey, Mode, Start, State};
use crate::counters::Counters;
use crate::keys::KeyCache;
use crate::placement::{Placements, RrError, RrState, RrStateId};
use crate::protocol::{Direction, Protocol, ProtocolId, parse_header};
use crate::registry;

/// Limits and variants of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Room for request-response states.
    pub placements_max: usize,
    /// Most bytes that one dump descriptor may make the NIC read: an MTU.
    pub dump_bytes_max: usize,
    /// Whether packets of the current message are placed although bytes before them are missing.
    pub places_ahead: bool,
    /// Whether the first message after a resync is only checked, and offloading begins once it passed. Then software
    /// that confirms a false guess, or gives a wrong number, cannot make the NIC report bytes as processed that are
    /// not. It costs a message per resync. The paper's NIC trusts software: off.
    pub proves_resync: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { placements_max: 1 << 16, dump_bytes_max: 1500, places_ahead: false, proves_resync: true }
    }
}

/// A protocol number that stands for no protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no layer-5 protocol has number {0}: take it from `registry::find`")]
pub struct UnknownProtocol(pub u8);

/// What software asks of the NIC for a new offload: `l5o_create`.
#[derive(Clone, Copy, Debug)]
pub struct Create {
    /// Number of the context.
    pub id: ContextId,
    /// The flow.
    pub flow: FlowKey,
    /// The layer-5 protocol.
    pub protocol: ProtocolId,
    /// Direction of the flow.
    pub direction: Direction,
    /// Where the next message begins, and its number.
    pub start: Start,
    /// The protocol's state for it (`l5_state`).
    pub state: State,
}

/// The engine.
pub struct Engine {
    config: EngineConfig,
    keys: KeyCache,
    placements: Placements,
    counters: [Counters; registry::PROTOCOLS.len()],
    /// Room for a prefix that is read again.
    prefix: Vec<u8>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new(EngineConfig::default())
    }
}

impl Engine {
    /// An engine without contexts.
    pub fn new(config: EngineConfig) -> Self {
        Self {
            config,
            keys: KeyCache::default(),
            placements: Placements::new(config.placements_max),
            counters: Default::default(),
            prefix: vec![0; config.dump_bytes_max],
        }
    }

    /// `l5o_create`: a context that offloads from `create.start` on. Linux: `tls_dev_add`, ULP DDP `sk_add`.
    ///
    /// # Errors
    ///
    /// [`UnknownProtocol`] when the registry has no such number.
    pub fn create(&mut self, create: Create) -> Result<Context, UnknownProtocol> {
        let Create { id, flow, protocol, direction, start, state } = create;
        registry::get(protocol).ok_or(UnknownProtocol(protocol.0))?;
        let counters = &mut self.counters[usize::from(protocol.0)];
        match direction {
            Direction::Transmit => counters.tx_contexts += 1,
            Direction::Receive => counters.rx_contexts += 1,
        }
        Ok(Context::new(id, flow, protocol, direction, start, state))
    }

    /// `l5o_create` of a context that software has laid out itself; it takes `place`. Tells whether its protocol is known.
    pub fn adopt(&mut self, place: &mut Context, laid_out: &Context) -> bool {
        if registry::get(laid_out.protocol()).is_none() {
            return false;
        }
        *place = *laid_out;
        let counters = self.counters_of(laid_out);
        match laid_out.direction() {
            Direction::Transmit => counters.tx_contexts += 1,
            Direction::Receive => counters.rx_contexts += 1,
        }
        true
    }

    /// `l5o_destroy`: overwrites the context and its keys. Linux: `tls_dev_del`, ULP DDP `sk_del`.
    pub fn destroy(&mut self, context: &mut Context) {
        if let Some(protocol) = registry::get(context.protocol()) {
            protocol.forget(&context.state, &mut self.keys);
            let counters = self.counters_of(context);
            match context.direction() {
                Direction::Transmit => counters.tx_deleted += 1,
                Direction::Receive => counters.rx_deleted += 1,
            }
        }
        self.placements.remove_all(context.id);
        context.erase();
    }

    /// `l5o_add_rr_state`: where the payload of an answer belongs. Linux: ULP DDP `setup`.
    ///
    /// # Errors
    ///
    /// [`RrError`] when the identifier is in use or there is no room; the request may be sent all the same, and
    /// software copies the answer.
    pub fn add_rr_state(&mut self, context: &Context, id: RrStateId, state: RrState) -> Result<(), RrError> {
        let added = self.placements.add(context.id, id, state);
        let counters = self.counters_of(context);
        match added {
            Ok(()) => counters.rx_setup += 1,
            Err(_) => counters.rx_setup_fail += 1,
        }
        added
    }

    /// `l5o_del_rr_state`: the answer is complete. Tells whether there was a state. Linux: ULP DDP `teardown`.
    pub fn del_rr_state(&mut self, context: &Context, id: RrStateId) -> bool {
        let removed = self.placements.remove(context.id, id);
        self.counters_of(context).rx_teardown += u64::from(removed);
        removed
    }

    /// What was counted for a protocol.
    pub fn counters(&self, protocol: ProtocolId) -> Counters {
        self.counters.get(usize::from(protocol.0)).copied().unwrap_or_default()
    }

    /// The expanded keys, of which software acceleration consists; dropping them changes no result.
    pub fn keys(&self) -> &KeyCache {
        &self.keys
    }

    /// Drops all expanded keys, as a device does that is short of memory.
    pub fn drop_keys(&mut self) {
        self.keys = KeyCache::default();
    }

    fn counters_of(&mut self, context: &Context) -> &mut Counters {
        // A context of an unknown protocol never gets past `create`; a forged one counts with the first.
        let place = usize::from(context.protocol().0);
        let place = if place < self.counters.len() { place } else { 0 };
        &mut self.counters[place]
    }
}

/// Whether a context could have been left by the engine. One that comes back from host memory damaged could not.
fn is_sound(context: &Context, direction: Direction) -> bool {
    let Some(protocol) = protocol_of(context) else {
        return false;
    };
    let header_bytes = protocol.properties().header_bytes;
    if context.direction() != direction || (context.offset as usize) < header_bytes {
        return context.direction() == direction;
    }
    let header = parse_header(protocol, &context.state, &context.header[..header_bytes]);
    context.mode() != Mode::Searching
        && context.offset < context.length
        && header.is_some_and(|header| header.length == context.length)
}

/// The protocol of a context.
fn protocol_of(context: &Context) -> Option<&'static dyn Protocol> {
    registry::get(context.protocol())
}
