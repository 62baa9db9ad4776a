//! Listeners of the stack, and the addresses that share one.

use std::collections::VecDeque;
use std::net::SocketAddr;

use nicforge_tcp::stack::ListenerId;

use super::super::{Event, Id, Transport};
use super::Network;

/// One listener of the stack with the addresses that share it: families of one port.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) listener: ListenerId,
    pub(super) places: Vec<Place>,
}

#[derive(Debug)]
pub(super) struct Place {
    pub(super) id: Id,
    pub(super) at: SocketAddr,
    pub(super) backlog: usize,
    pub(super) pending: VecDeque<Id>,
}

impl Network {
    /// Takes connections from a listener of the stack to the addresses that share it, up to their backlogs.
    pub(super) fn take_accepted(&mut self, listener: ListenerId) {
        let Some(index) = self.listeners.iter().position(|shared| shared.listener == listener) else { return };
        while self.listeners[index].places.iter().any(|place| place.pending.len() < place.backlog) {
            let Some(at) = self.stack.accept(listener) else { return };
            let id = self.learn(at, true);
            let local = self.stack.tuple(at).map(|tuple| tuple.local);
            let fits = |place: &&mut Place| local.is_some_and(|local| local.is_ipv4() == place.at.is_ipv4());
            match self.listeners[index].places.iter_mut().find(fits) {
                Some(place) => {
                    place.pending.push_back(id);
                    self.events.push(Event::Incoming(place.id));
                }
                // Nobody listens to this family.
                None => self.abort(id),
            }
        }
    }

    pub(super) fn place(&mut self, id: Id) -> Option<(ListenerId, &mut Place)> {
        self.listeners.iter_mut().find_map(|shared| {
            let listener = shared.listener;
            shared.places.iter_mut().find(|place| place.id == id).map(|place| (listener, place))
        })
    }
}
