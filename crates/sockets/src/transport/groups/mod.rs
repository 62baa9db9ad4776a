//! A host whose flows are split among threads: RSS steers each into a flow-group, which has a stack and a queue of the
//! NIC of its own. The service's thread serves all groups while that is little work; under load other threads take
//! groups over, and give them back.
//!
//! ```text
//!  NIC, queue 0 ══ group 0: stack ─┐ served by the service's thread
//!  NIC, queue 1 ══ group 1: stack ─┤                                    ── events ──► service ══ applications
//!  NIC, queue 2 ══ group 2: stack ─┘ or by threads of their own (crew.rs)
//! ```

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use nicforge_tcp::scale::{LOOK_EVERY, Scale};
use nicforge_units::Time;
use rustix::event::epoll;
use rustix::io::Errno;

use super::network::Network;
use super::secure::Way;
use super::{Accepted, Event, Host, Id, Info, Setting, Transport};
use crate::tls::CryptoInfo;
use crate::watch::Watch;

mod crew;
pub mod mail;
#[cfg(test)]
mod tests;

use crew::{Crew, Group, Lane};
use mail::{Mail, Post};

/// Names of connections have their group from this bit on.
const GROUP: u32 = 48;
/// Names of listeners, which all groups have, have this bit.
const LISTENER: u64 = 1 << 62;

/// A host of several flow-groups.
pub struct Groups {
    crew: Arc<Crew>,
    threads: Vec<JoinHandle<()>>,
    /// The parts of each listener, by group.
    listeners: HashMap<Id, Vec<Id>>,
    /// The listener of each part.
    parts: HashMap<(usize, Id), Id>,
    serial: u64,
    /// The group whose turn it is to be accepted from.
    turn: usize,
    now: Time,
    scale: Scale,
    worked: Time,
    /// Readable when the service has something to do.
    files: OwnedFd,
    scratch: Vec<Event>,
}

fn named(group: usize, id: Id) -> Id {
    Id(id.0 | (group as u64) << GROUP)
}

impl Groups {
    /// A host of these groups. Thread `n` runs `begin(n)` first; thread 0 is the caller's.
    ///
    /// # Errors
    /// Descriptors or threads that cannot be had.
    pub fn new(networks: Vec<Network>, begin: Arc<dyn Fn(usize) + Send + Sync>) -> Result<Groups, Errno> {
        let threads = networks.len();
        Groups::among(networks, threads, &begin)
    }

    /// One group that a device's thread serves, and never the service's. The thread runs `begin` first.
    ///
    /// # Errors
    /// As [`Groups::new`].
    pub fn on_device(network: Network, begin: Arc<dyn Fn() + Send + Sync>) -> Result<Groups, Errno> {
        let on_device = move |thread: usize| {
            if thread == 1 {
                begin();
            }
        };
        Groups::among(vec![network], 2, &(Arc::new(on_device) as Arc<dyn Fn(usize) + Send + Sync>))
    }

    /// With more threads than groups the last threads serve them, and with as many the service's thread does at first.
    fn among(
        networks: Vec<Network>,
        threads: usize,
        begin: &Arc<dyn Fn(usize) + Send + Sync>,
    ) -> Result<Groups, Errno> {
        let first = threads - networks.len();
        let post = Post::new(networks.len());
        let mailed =
            |(number, network): (usize, Network)| Group::new(network.with_mail(Mail::new(Arc::clone(&post), number)));
        let groups = networks.into_iter().enumerate().map(mailed).collect::<Result<Vec<_>, _>>()?;
        let count = groups.len();
        groups.iter().enumerate().filter(|_| first > 0).for_each(|(number, group)| group.give_to(first + number));
        let crew = Arc::new(Crew::new(groups, threads, Arc::clone(&post))?);
        let files = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let own = crew.groups.iter().filter(|group| group.server() == 0);
        let every = [crew.bell(0)].into_iter().chain(own.filter_map(Group::port));
        for file in every {
            epoll::add(&files, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let mut helpers = Vec::new();
        begin(0);
        for number in 1..threads {
            let (crew, begin) = (Arc::clone(&crew), Arc::clone(begin));
            let thread = std::thread::Builder::new().name(format!("fast-path-{number}"));
            let thread = thread.spawn(move || {
                begin(number);
                crew.run(number);
            });
            helpers.push(thread.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?);
        }
        Ok(Groups {
            crew,
            threads: helpers,
            listeners: HashMap::new(),
            parts: HashMap::new(),
            serial: 0,
            turn: 0,
            now: Time::ZERO,
            scale: Scale::new(count, LOOK_EVERY, crate::service::now()),
            worked: Time::ZERO,
            files,
            scratch: Vec::new(),
        })
    }

    /// The group of a connection and its name there.
    fn at(&self, id: Id) -> (&Group, Id) {
        let group = (id.0 >> GROUP) as usize % self.crew.groups.len();
        (&self.crew.groups[group], Id(id.0 & ((1 << GROUP) - 1)))
    }

    /// Does something with a connection.
    fn with<T>(&self, id: Id, work: impl FnOnce(&mut Network, Id) -> T) -> T {
        let (group, id) = self.at(id);
        work(&mut group.change(self.now).network, id)
    }

    /// An event of `group` by the names that are used here.
    fn translate(&self, group: usize, event: Event) -> Option<Event> {
        let name = |id: Id| named(group, id);
        Some(match event {
            Event::Incoming(part) => Event::Incoming(*self.parts.get(&(group, part))?),
            Event::Connected(id) => Event::Connected(name(id)),
            Event::Readable(id) => Event::Readable(name(id)),
            Event::Writable(id) => Event::Writable(name(id)),
            Event::Failed(id, cause) => Event::Failed(name(id), cause),
            Event::Closed(id) => Event::Closed(name(id)),
        })
    }

    /// Decides how many threads work, if it is time.
    fn look(&mut self) {
        if self.now < self.scale.due() {
            return;
        }
        self.crew.tell_worked(0);
        let worked = self.crew.worked();
        let busy = worked.saturating_sub(self.worked);
        self.worked = worked;
        if self.scale.look(self.now, busy) {
            self.share_out();
        }
    }

    /// So many threads work from now on, whatever the load is.
    #[cfg(test)]
    fn go_on_with(&mut self, threads: usize) {
        self.scale.set(threads);
        self.share_out();
    }

    /// Gives each group to its thread.
    fn share_out(&self) {
        for (number, group) in self.crew.groups.iter().enumerate() {
            let (before, after) = (group.server(), number % self.scale.active());
            if before == after {
                continue;
            }
            group.give_to(after);
            if let Some(port) = group.port() {
                // Both have been checked when they were added at the start.
                let flags = if after == 0 { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
                let _ = epoll::modify(&self.files, port, epoll::EventData::new_u64(0), flags);
            }
        }
        self.crew.wake_all();
    }

    fn groups(&self) -> impl Iterator<Item = (usize, &Group)> {
        self.crew.groups.iter().enumerate()
    }
}

impl Transport for Groups {
    fn owns(&self, address: IpAddr) -> bool {
        self.crew.groups[0].lane().network.owns(address)
    }

    fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        self.crew.groups[0].lane().network.source_for(to)
    }

    fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    fn listen(&mut self, at: SocketAddr, backlog: usize, max_segment: u16) -> Result<Id, Errno> {
        let mut parts = Vec::new();
        for group in &self.crew.groups {
            match group.change(self.now).network.listen(at, backlog, max_segment) {
                Ok(part) => parts.push(part),
                Err(cause) => {
                    let made = self.crew.groups.iter().zip(parts);
                    made.for_each(|(group, part)| group.change(self.now).network.unlisten(part));
                    return Err(cause);
                }
            }
        }
        self.serial += 1;
        let id = Id(LISTENER | self.serial);
        self.parts.extend(parts.iter().enumerate().map(|(group, part)| ((group, *part), id)));
        self.listeners.insert(id, parts);
        Ok(id)
    }

    fn accept(&mut self, listener: Id) -> Option<Accepted> {
        let parts = self.listeners.get(&listener)?;
        let count = parts.len();
        let found = (self.turn..self.turn + count).find_map(|turn| {
            let group = turn % count;
            let accepted = self.crew.groups[group].change(self.now).network.accept(parts[group])?;
            Some((group, Accepted { id: named(group, accepted.id), ..accepted }))
        });
        let (group, accepted) = found?;
        self.turn = (group + 1) % count;
        Some(accepted)
    }

    fn unlisten(&mut self, listener: Id) {
        for (group, part) in self.listeners.remove(&listener).into_iter().flatten().enumerate() {
            self.parts.remove(&(group, part));
            self.crew.groups[group].change(self.now).network.unlisten(part);
        }
    }

    fn connect(&mut self, from: SocketAddr, to: SocketAddr, max_segment: u16) -> Result<Id, Errno> {
        let group = self.crew.post.group_of(from, to);
        let id = self.crew.groups[group].change(self.now).network.connect(from, to, max_segment)?;
        Ok(named(group, id))
    }

    fn send(&mut self, id: Id, bytes: &[u8], more: bool) -> usize {
        self.with(id, |network, id| network.send(id, bytes, more))
    }

    fn receive(&mut self, id: Id, bytes: &mut [u8]) -> usize {
        self.with(id, |network, id| network.receive(id, bytes))
    }

    fn finished(&self, id: Id) -> bool {
        let (group, id) = self.at(id);
        group.lane().network.finished(id)
    }

    fn finish(&mut self, id: Id) {
        self.with(id, |network, id| network.finish(id));
    }

    fn abort(&mut self, id: Id) {
        self.with(id, |network, id| network.abort(id));
    }

    fn release(&mut self, id: Id) {
        self.with(id, |network, id| network.release(id));
    }

    fn set(&mut self, id: Id, setting: Setting) {
        self.with(id, |network, id| network.set(id, setting));
    }

    fn secure(&mut self, id: Id, way: Way, info: &CryptoInfo, raw: &[u8]) -> Result<(), Errno> {
        self.with(id, |network, id| network.secure(id, way, info, raw))
    }

    fn info(&self, id: Id) -> Info {
        let (group, id) = self.at(id);
        group.lane().network.info(id)
    }

    fn poll(&mut self, now: Time, events: &mut Vec<Event>) -> bool {
        self.now = now;
        self.crew.wake_up(0);
        let (mut busy, mut happened) = (false, std::mem::take(&mut self.scratch));
        for (number, group) in self.groups() {
            let own = group.server() == 0;
            if own || group.take_told() {
                let lane = &mut *group.lane();
                happened.append(&mut lane.events);
                if own {
                    group.take_touched();
                    busy |= lane.network.poll(now, &mut happened);
                }
            }
            busy |= !happened.is_empty();
            events.extend(happened.drain(..).filter_map(|event| self.translate(number, event)));
        }
        self.scratch = happened;
        self.look();
        busy
    }

    fn flush(&mut self) {
        for group in self.crew.groups.iter().filter(|group| group.server() == 0) {
            group.lane().network.flush();
            group.take_touched();
        }
        self.crew.wake_all();
    }

    fn deadline(&self) -> Option<Time> {
        let own = self.crew.groups.iter().filter(|group| group.server() == 0);
        let own = own.filter_map(|group| group.lane().network.deadline());
        own.chain([self.scale.wakes_at()]).min()
    }

    fn expects_more(&self) -> bool {
        let expects = |group: &Group| group.server() == 0 && group.lane().network.expects_more();
        self.crew.groups.iter().any(expects)
    }

    fn expect_none(&mut self) {
        for group in self.crew.groups.iter().filter(|group| group.server() == 0) {
            group.lane().network.expect_none();
        }
    }

    fn arm(&mut self) -> bool {
        self.crew.fall_asleep(0)
    }

    fn watch(&mut self, add: &mut dyn FnMut(&mut Watch)) -> bool {
        self.crew.groups.iter().all(|group| group.lane().network.watch(add))
    }

    fn host(&self) -> Option<Host> {
        let mut sum = Host { threads: self.scale.active(), ..Host::default() };
        for group in &self.crew.groups {
            let Lane { network, .. } = &*group.lane();
            let host = network.host()?;
            sum.counters += host.counters;
            sum.connections += host.connections;
            sum.orphans_reset += host.orphans_reset;
            sum.port_errors += host.port_errors;
            sum.lost += host.lost;
            for (name, count) in host.tls {
                match sum.tls.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, total)) => *total += count,
                    None => sum.tls.push((name, count)),
                }
            }
        }
        Some(sum)
    }

    fn waker(&self) -> Option<BorrowedFd<'_>> {
        Some(self.files.as_fd())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.crew.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
