//! Flows whose TLS holds another protocol: each direction that comes has a context for either, tied together.

use std::collections::BTreeMap;

use nicforge_l5p::context::{CONTEXT_BYTES, ContextId};
use nicforge_l5p::engine::Engine;
use nicforge_l5p::protocol::Direction;
use nicforge_l5p::registry;
use nicforge_l5p::stack::{Stacked, Tie};
use nicforge_nic::stage::Services;
use nicforge_platform::Dma;

use super::{L5p, Window};

/// Which contexts are tied. Ties have 16 bytes, and stay in the NIC's memory.
#[derive(Debug, Default)]
pub struct Stacks {
    ties: BTreeMap<ContextId, (ContextId, Tie)>,
    outer: BTreeMap<ContextId, ContextId>,
}

impl Stacks {
    /// Whether a context holds another protocol.
    pub fn is_outer(&self, id: ContextId) -> bool {
        self.ties.contains_key(&id)
    }

    /// The context of TLS around a context.
    pub fn outer_of(&self, inner: ContextId) -> Option<ContextId> {
        self.outer.get(&inner).copied()
    }

    /// A context is no longer what it was.
    pub fn remove(&mut self, id: ContextId) {
        let outer = self.outer_of(id).unwrap_or(id);
        if let Some((inner, _)) = self.ties.remove(&outer) {
            self.outer.remove(&inner);
        }
    }

    fn tie(&mut self, outer: ContextId, inner: ContextId, tie: Tie) {
        self.ties.insert(outer, (inner, tie));
        self.outer.insert(inner, outer);
    }
}

impl L5p {
    /// Ties two contexts of one flow. `None` unless TLS receives by the outer and another protocol by the inner.
    pub(super) fn stack<D: Dma>(
        &mut self,
        nic: &mut Services<'_, D>,
        outer: ContextId,
        inner: ContextId,
    ) -> Option<bool> {
        let around = self.with_context(nic, outer, |_, context, _| *context)?;
        let within = self.with_context(nic, inner, |_, context, _| *context)?;
        let receives = [&around, &within].iter().all(|context| context.direction() == Direction::Receive);
        let is_tls = |protocol| registry::find("tls") == Some(protocol);
        let fits = receives && around.flow() == within.flow();
        if !fits || !is_tls(around.protocol()) || is_tls(within.protocol()) {
            return None;
        }
        [outer, inner].iter().for_each(|id| self.stacks.remove(*id));
        self.stacks.tie(outer, inner, Tie::new(&within));
        self.flows.insert(around.flow(), outer);
        Some(true)
    }

    /// Calls `work` with both contexts of a flow, which are fetched first where the NIC does not have them.
    pub(super) fn with_stacked<D: Dma, T>(
        &mut self,
        nic: &mut Services<'_, D>,
        outer: ContextId,
        work: impl FnOnce(&mut Engine, &mut Stacked, &mut Window<'_, D>) -> T,
    ) -> Option<T> {
        let &(inner, tie) = self.stacks.ties.get(&outer)?;
        let mut get = |id: ContextId| {
            let at = self.spec.table + u64::from(id.0) * CONTEXT_BYTES as u64;
            let (place, here) = self.contexts.get(nic.dma, id.0.into(), at);
            nic.wait_until(here);
            (place, self.contexts.state(place).0)
        };
        // The second look-up leaves the first's state where it is: it was used last of all in its set.
        let (around, within) = (get(outer), get(inner));
        let mut stacked = Stacked::resume(around.1, within.1, tie);
        let mut window = Window { dma: nic.dma, begin: self.window.0, bytes: self.window.1 };
        let done = work(&mut self.engine, &mut stacked, &mut window);
        self.contexts.state_mut(around.0).0 = stacked.outer;
        self.contexts.state_mut(within.0).0 = stacked.inner;
        self.stacks.tie(outer, inner, stacked.tie());
        Some(done)
    }
}
