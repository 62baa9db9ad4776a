//! Listeners: connections travel to the application inside the listener's descriptor, whose queue is the backlog that
//! processes share.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::Service;
use super::flow::{Listener, Role};
use crate::address::{WireAddress, shown};
use crate::control::{Arrival, send};
use crate::layout::{Kind, State};
use crate::queue::Message;
use crate::transport::{Accepted, Id, Transport};

/// A connection that its listener's descriptor has no room for, and the application's end of it.
#[derive(Debug)]
pub(super) struct Held {
    flow: u32,
    theirs: OwnedFd,
}

impl Service {
    /// A socket begins to listen, or changes its backlog.
    pub(super) fn listen(&mut self, index: usize, backlog: usize) -> Result<(), Errno> {
        let backlog = backlog.clamp(1, 4096);
        match &mut self.flows[index].role {
            Role::Listener(listener) => {
                listener.backlog = backlog;
                return Ok(());
            }
            Role::Fresh => {}
            _ => return Err(Errno::INVAL),
        }
        let flow = &self.flows[index];
        let (name, local) = (flow.name, flow.local.ok_or(Errno::INVAL)?);
        let max_segment = flow.options.max_segment;
        let both = flow.v6 && local.ip().is_unspecified() && self.bindings.takes_v4(name, local.port());
        self.bindings.listen(name, local.port())?;
        let v4 = std::net::SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), local.port());
        for at in [Some(local), both.then_some(v4)].into_iter().flatten() {
            if !self.groups.contains_key(&at) {
                let ids = self.route.listen_all(at, backlog, max_segment)?;
                self.by_listener.extend(ids.iter().map(|id| (*id, at)));
                self.groups.entry(at).or_default().ids = ids;
            }
            self.groups.entry(at).or_default().members.push(name);
        }
        let flow = &mut self.flows[index];
        flow.role = Role::Listener(Listener { backlog, waiting: 0, full: false });
        flow.show_state(State::Listening);
        Ok(())
    }

    /// A listener's last descriptor is closed. Connections that wait in it hang up by themselves.
    pub(super) fn stop_listening(&mut self, index: usize) {
        let name = self.flows[index].name;
        self.held.remove(&name);
        let mut empty = Vec::new();
        for (at, group) in &mut self.groups {
            group.members.retain(|member| *member != name);
            if group.members.is_empty() {
                empty.push(*at);
            }
        }
        for at in empty {
            for id in self.groups.remove(&at).map_or_else(Vec::new, |group| group.ids) {
                self.by_listener.remove(&id);
                self.route.unlisten(id);
            }
        }
        self.forget(index);
    }

    /// Hands over what a listener of the stack has.
    pub(super) fn incoming(&mut self, id: Id) {
        while let Some(listener) = self.next_member(id) {
            let Some(accepted) = self.route.accept(id) else { return };
            if let Err(cause) = self.deliver(listener, accepted) {
                // Out of descriptors or over the application's limit.
                debug_assert!(cause != Errno::INVAL);
                self.refused += 1;
                self.route.abort(accepted.id);
                if let Some(application) = self.application(self.flows[listener].owner) {
                    application.refused += 1;
                }
            }
        }
    }

    /// The same for all that a socket listens at.
    pub(super) fn incoming_for(&mut self, index: usize) {
        let name = self.flows[index].name;
        let groups = self.groups.values().filter(|group| group.members.contains(&name));
        let ids: Vec<Id> = groups.flat_map(|group| group.ids.iter().copied()).collect();
        for id in ids {
            self.incoming(id);
        }
    }

    /// The listening socket whose turn it is, among those whose backlog has room.
    fn next_member(&mut self, id: Id) -> Option<usize> {
        let at = self.by_listener.get(&id)?;
        let group = self.groups.get_mut(at)?;
        let (members, first) = (group.members.clone(), group.next);
        group.next = (first + 1) % members.len().max(1);
        (0..members.len()).find_map(|offset| {
            let index = self.find(members[(first + offset) % members.len()])?;
            let Role::Listener(listener) = self.flows[index].role else { return None };
            // Linux lets one more wait than the backlog says.
            (listener.waiting <= listener.backlog && !listener.full).then_some(index)
        })
    }

    fn deliver(&mut self, listener: usize, accepted: Accepted) -> Result<(), Errno> {
        let parent = &self.flows[listener];
        let (v6, owner, options, parent_name) = (parent.v6, parent.owner, parent.options, parent.name);
        let direct = parent.direct;
        let (index, theirs) = self.new_flow(v6, owner)?;
        copy_options(&self.flows[listener].memory, &self.flows[index].memory);
        let flow = &mut self.flows[index];
        flow.local = Some(accepted.local);
        flow.remote = Some(accepted.remote);
        flow.options = options;
        flow.direct = direct;
        flow.role = Role::Connected(accepted.id);
        flow.waits_at = Some(parent_name);
        flow.show_addresses();
        flow.show_state(State::Connected);
        flow.memory.page().application.connect_reported.store(1, Ordering::Relaxed);
        let name = flow.name;
        // Other connections with these addresses cannot exist: the stack tells them apart by addresses.
        let _ = self.bindings.pair(accepted.local, accepted.remote);
        self.by_connection.insert(accepted.id, name);
        self.apply_options(index);
        let full = match self.hand_over(listener, index, &theirs) {
            Ok(()) => false,
            // The queue has room for some hundreds; the backlog may be longer.
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS) => {
                self.held.entry(parent_name).or_default().push_back(Held { flow: name, theirs });
                true
            }
            Err(cause) => {
                self.flows[index].waits_at = None;
                self.forget(index);
                return Err(cause);
            }
        };
        if let Role::Listener(state) = &mut self.flows[listener].role {
            state.waiting += 1;
            state.full = full;
        }
        if let Some(serial) = direct
            && let Some(application) = self.application(serial)
        {
            application.notify(Message::new(Kind::Incoming, parent_name));
        }
        self.due.insert(name);
        Ok(())
    }

    /// Puts a connection into its listener's descriptor.
    fn hand_over(&self, listener: usize, flow: usize, theirs: &OwnedFd) -> Result<(), Errno> {
        let (listener, flow) = (&self.flows[listener], &self.flows[flow]);
        let remote = flow.remote.map_or_else(WireAddress::default, |remote| shown(remote, flow.v6).into());
        let descriptors = [theirs.as_fd(), flow.file.as_fd()];
        send(listener.end.as_fd(), bytemuck::bytes_of(&Arrival { remote }), &descriptors, SendFlags::DONTWAIT)
    }

    /// A listener's descriptor has room again: what was held follows.
    pub(super) fn hand_over_held(&mut self, listener: usize) {
        let name = self.flows[listener].name;
        let mut full = false;
        if let Some(mut held) = self.held.remove(&name) {
            while let Some(next) = held.pop_front() {
                // A connection that has ended meanwhile is no longer there.
                let Some(flow) = self.find(next.flow) else { continue };
                if self.hand_over(listener, flow, &next.theirs).is_err() {
                    held.push_front(next);
                    self.held.insert(name, held);
                    full = true;
                    break;
                }
            }
        }
        if let Role::Listener(state) = &mut self.flows[listener].role {
            state.full = full;
        }
    }

    /// A process took a connection from its listener.
    pub(super) fn taken_over(&mut self, index: usize, serial: u64) {
        let previous = self.flows[index].owner;
        if previous != serial {
            if let Some(application) = self.application(previous) {
                application.connections -= 1;
            }
            if let Some(application) = self.application(serial) {
                application.connections += 1;
            }
            self.flows[index].owner = serial;
        }
        self.uncount(index);
    }
}

/// A connection begins with its listener's options.
fn copy_options(from: &crate::shared::SocketMemory, to: &crate::shared::SocketMemory) {
    let (from, to) = (from.page(), to.page());
    let count = (from.application.option_count.load(Ordering::Acquire) as usize).min(from.options.len());
    for (from, to) in from.options[..count].iter().zip(&to.options) {
        to.level.store(from.level.load(Ordering::Relaxed), Ordering::Relaxed);
        to.name.store(from.name.load(Ordering::Relaxed), Ordering::Relaxed);
        to.len.store(from.len.load(Ordering::Relaxed), Ordering::Relaxed);
        for (from, to) in from.value.iter().zip(&to.value) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    to.application.option_count.store(count as u32, Ordering::Release);
}
