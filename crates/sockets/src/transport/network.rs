//! The project's TCP stack behind a port.

mod frames;
mod listeners;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use nicforge_platform::live::ports::Port;
use nicforge_tcp::Config;
use nicforge_tcp::config::KeepAlive;
use nicforge_tcp::conn::{Connection, State, Tuning};
use nicforge_tcp::stack::{ConnectionId, Event as StackEvent, HostConfig, Stack};
use nicforge_units::Time;
use rustix::io::Errno;

use super::figures;
use super::groups::mail::Mail;
use super::loss::Loss;
use super::names::{errno, refusal};
pub use super::orphans::{ORPHANS, Orphans};
use super::pages::PagedBuffers;
use super::secure::{Secure, Way};
use super::{Accepted, Event, Host, Id, Info, Setting, Transport};
use crate::tls::CryptoInfo;
use crate::watch::Watch;

use listeners::{Place, Shared};

/// So many frames at once are a load under which more come at any time.
const MANY: usize = 4;
/// Longest frame of a port: 64 KiB and a link header.
const FRAME_BYTES: usize = 65_600;
/// How often the port's link is looked at.
const LOOK_EVERY: Time = Time::from_ms(250);
/// What this layer knows of a connection.
#[derive(Debug)]
struct Known {
    at: ConnectionId,
    /// Its handshake was reported.
    open: bool,
    /// Its end was reported.
    ended: bool,
}

/// A stack and its port.
pub struct Network {
    stack: Stack<PagedBuffers>,
    port: Box<dyn Port>,
    tuning: Tuning,
    known: HashMap<Id, Known>,
    ids: HashMap<ConnectionId, Id>,
    listeners: Vec<Shared>,
    serial: u64,
    now: Time,
    frame: Vec<u8>,
    events: Vec<Event>,
    look_at: Time,
    /// Connections that close without an owner.
    pub orphans: Orphans,
    watch: Watch,
    secure: Secure,
    loss: Loss,
    /// Where it is one of several flow-groups of a host.
    mail: Option<Mail>,
    /// Frames that the last poll took.
    took: usize,
    expects_none: bool,
    /// Errors of the port; its link is down, or a frame did not fit.
    pub port_errors: u64,
}

impl Network {
    /// A stack for `host` behind a port. `seed` is the source of its secrets.
    pub fn new(host: HostConfig, config: Config, port: Box<dyn Port>, seed: [u8; 16]) -> Network {
        let tuning = Tuning::new(&config);
        Network {
            stack: Stack::new(host, config, PagedBuffers, seed),
            port,
            tuning,
            known: HashMap::new(),
            ids: HashMap::new(),
            listeners: Vec::new(),
            serial: 0,
            now: Time::ZERO,
            frame: vec![0; FRAME_BYTES],
            events: Vec::new(),
            look_at: Time::ZERO,
            orphans: Orphans::at_most(ORPHANS),
            watch: Watch::default(),
            secure: Secure::default(),
            loss: Loss::new(0.0, 0),
            mail: None,
            took: 0,
            expects_none: false,
            port_errors: 0,
        }
    }

    /// The same with another limit of orphans.
    pub fn with_orphans(self, most: usize) -> Network {
        Network { orphans: Orphans::at_most(most), ..self }
    }

    /// The same over a link that loses frames by intent.
    pub fn with_loss(self, loss: Loss) -> Network {
        Network { loss, ..self }
    }

    /// The same as a flow-group of a host that has several.
    pub(super) fn with_mail(self, mail: Mail) -> Network {
        Network { mail: Some(mail), ..self }
    }

    fn name(&mut self) -> Id {
        self.serial += 1;
        Id(self.serial)
    }

    fn learn(&mut self, at: ConnectionId, open: bool) -> Id {
        let id = self.name();
        self.known.insert(id, Known { at, open, ended: false });
        self.ids.insert(at, id);
        id
    }

    fn forget(&mut self, id: Id) -> Option<ConnectionId> {
        let known = self.known.remove(&id)?;
        self.ids.remove(&known.at);
        Some(known.at)
    }

    fn connection(&self, id: Id) -> Option<&Connection> {
        self.stack.connection(self.known.get(&id)?.at)
    }

    fn take_events(&mut self) {
        while let Some(event) = self.stack.next_event() {
            match event {
                StackEvent::Accepted(listener) => self.take_accepted(listener),
                StackEvent::Arrived(at) => self.changed(at, Event::Readable),
                StackEvent::Changed(at) => self.changed(at, Event::Writable),
            }
        }
    }

    fn changed(&mut self, at: ConnectionId, event: fn(Id) -> Event) {
        let Some(id) = self.ids.get(&at).copied() else { return };
        let Some(connection) = self.stack.connection(at) else { return };
        let (state, error) = (connection.state(), connection.error());
        let Some(known) = self.known.get_mut(&id).filter(|known| !known.ended) else { return };
        if !known.open && state.is_synchronized() {
            known.open = true;
            self.events.push(Event::Connected(id));
        }
        known.ended = matches!(state, State::Closed | State::TimeWait);
        self.events.push(match (known.ended, error) {
            (true, Some(error)) => Event::Failed(id, errno(error)),
            (true, None) if state == State::Closed && !known.open => Event::Failed(id, Errno::CONNABORTED),
            (true, None) => Event::Closed(id),
            (false, _) => event(id),
        });
    }
}

impl Transport for Network {
    fn owns(&self, address: IpAddr) -> bool {
        self.stack.host().owns(address)
    }

    fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        self.stack.host().next_hop(to)?;
        self.stack.host().source_for(to)
    }

    fn set_time(&mut self, now: Time) {
        // Threads read the clock before they have their turn.
        self.now = self.now.max(now);
    }

    fn listen(&mut self, at: SocketAddr, backlog: usize, max_segment: u16) -> Result<Id, Errno> {
        let local = Some(at.ip()).filter(|ip| !ip.is_unspecified());
        let id = self.name();
        let place = Place { id, at, backlog, pending: VecDeque::new() };
        // Both families of a port share a listener of the stack, which knows one unspecified address for both.
        let shares = |shared: &&mut Shared| {
            let same = |other: &Place| other.at.port() == at.port() && other.at.ip().is_unspecified();
            local.is_none() && shared.places.iter().any(same)
        };
        if let Some(shared) = self.listeners.iter_mut().find(shares) {
            shared.places.push(place);
            return Ok(id);
        }
        let tuning = Tuning { max_segment, ..self.tuning.clone() };
        let listener = self.stack.listen(local, at.port(), backlog, tuning, true).map_err(refusal)?;
        self.listeners.push(Shared { listener, places: vec![place] });
        Ok(id)
    }

    fn accept(&mut self, listener: Id) -> Option<Accepted> {
        let (shared, _) = self.place(listener)?;
        loop {
            let Some(id) = self.place(listener)?.1.pending.pop_front() else {
                self.take_accepted(shared);
                if self.place(listener)?.1.pending.is_empty() {
                    return None;
                }
                continue;
            };
            if let Some(tuple) = self.known.get(&id).and_then(|known| self.stack.tuple(known.at)) {
                let local = SocketAddr::new(tuple.local, tuple.local_port);
                return Some(Accepted { id, local, remote: SocketAddr::new(tuple.remote, tuple.remote_port) });
            }
        }
    }

    fn unlisten(&mut self, listener: Id) {
        let Some(index) = self.listeners.iter().position(|shared| shared.places.iter().any(|p| p.id == listener))
        else {
            return;
        };
        let places = &mut self.listeners[index].places;
        let Some(at) = places.iter().position(|place| place.id == listener) else { return };
        let place = places.remove(at);
        if places.is_empty() {
            let shared = self.listeners.remove(index);
            self.stack.unlisten(shared.listener, self.now);
        }
        for id in place.pending {
            self.abort(id);
        }
    }

    fn connect(&mut self, from: SocketAddr, to: SocketAddr, max_segment: u16) -> Result<Id, Errno> {
        let local = (Some(from.ip()), from.port());
        let tuning = Tuning { max_segment, ..self.tuning.clone() };
        let at = self.stack.connect(local, (to.ip(), to.port()), tuning, self.now).map_err(refusal)?;
        Ok(self.learn(at, false))
    }

    fn send(&mut self, id: Id, bytes: &[u8], more: bool) -> usize {
        let Some(known) = self.known.get(&id) else { return 0 };
        if self.secure.has(known.at, Way::Outward) {
            return self.secure.send(&mut self.stack, known.at, bytes, self.now);
        }
        let sent = self.stack.send(known.at, bytes, more, self.now).unwrap_or(0);
        if sent < bytes.len() {
            self.stack.with(known.at, Connection::wait_for_space);
        }
        sent
    }

    fn receive(&mut self, id: Id, bytes: &mut [u8]) -> usize {
        let Some(known) = self.known.get(&id) else { return 0 };
        if self.secure.has(known.at, Way::Inward) {
            return self.secure.receive(&mut self.stack, known.at, bytes, self.now);
        }
        self.stack.recv(known.at, bytes, self.now).unwrap_or(0)
    }

    fn finished(&self, id: Id) -> bool {
        let Some(known) = self.known.get(&id).filter(|known| !self.secure.waits(known.at)) else { return false };
        let connection = self.stack.connection(known.at);
        connection.is_some_and(|connection| connection.is_read_closed() && connection.readable() == 0)
    }

    fn finish(&mut self, id: Id) {
        if let Some(known) = self.known.get(&id).filter(|known| !self.secure.holds_finish(known.at)) {
            self.stack.shut_write(known.at, self.now);
        }
    }

    fn abort(&mut self, id: Id) {
        // A system that sends within the call has sent what the application wrote before.
        self.flush();
        if let Some(at) = self.forget(id) {
            self.stack.abort(at);
            self.stack.release(at, self.now);
        }
    }

    fn release(&mut self, id: Id) {
        if let Some(at) = self.forget(id) {
            if !self.secure.holds_release(at) {
                self.stack.release(at, self.now);
            }
            self.orphans.note(at, &mut self.stack);
        }
    }

    fn set(&mut self, id: Id, setting: Setting) {
        if let Setting::MaxSegment(bytes) = setting {
            if let Some((listener, _)) = self.place(id) {
                self.stack.set_max_segment(listener, bytes);
            }
            return;
        }
        let Some(known) = self.known.get(&id) else { return };
        let now = self.now;
        self.stack.with(known.at, |connection| match setting {
            Setting::NoDelay(on) => connection.set_no_delay(on),
            Setting::Cork(on) => connection.set_cork(on),
            Setting::UserTimeout(after) => connection.tuning.user_timeout = after,
            Setting::MaxSegment(_) => {}
            Setting::KeepAlive(keep) => {
                let keep_alive = keep.map_or(KeepAlive { on: false, ..connection.tuning.keep_alive }, |keep| {
                    KeepAlive { on: true, idle: keep.idle, interval: keep.interval, probes: keep.count.min(255) as u8 }
                });
                if keep_alive != connection.tuning.keep_alive {
                    connection.tuning.keep_alive = keep_alive;
                    connection.start_keep_alive(now);
                }
            }
        });
    }

    fn secure(&mut self, id: Id, way: Way, info: &CryptoInfo, raw: &[u8]) -> Result<(), Errno> {
        let known = self.known.get(&id).ok_or(Errno::NOTCONN)?;
        self.secure.begin(&self.stack, known.at, way, info, raw)
    }

    fn info(&self, id: Id) -> Info {
        self.connection(id).map_or_else(Info::default, |connection| figures::info(connection, self.now))
    }

    fn poll(&mut self, now: Time, events: &mut Vec<Event>) -> bool {
        self.set_time(now);
        let now = self.now;
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            self.port_errors += u64::from(self.port.look().is_err());
            self.watch.sweep();
        }
        let mut busy = self.receive_frames();
        if self.stack.poll_at().is_some_and(|due| due <= now) {
            self.stack.on_timer(now);
            busy = true;
        }
        self.turn_secure();
        self.send_frames();
        self.take_events();
        busy |= !self.events.is_empty();
        events.append(&mut self.events);
        busy
    }

    fn deadline(&self) -> Option<Time> {
        if !self.events.is_empty() {
            return Some(Time::ZERO);
        }
        Some(self.stack.poll_at().map_or(self.look_at, |due| due.min(self.look_at)))
    }

    fn flush(&mut self) {
        self.turn_secure();
        self.send_frames();
        self.take_events();
    }

    fn expects_more(&self) -> bool {
        self.took >= MANY
    }

    fn expect_none(&mut self) {
        self.expects_none = true;
    }

    fn arm(&mut self) -> bool {
        self.port.arm()
    }

    fn watch(&mut self, add: &mut dyn FnMut(&mut Watch)) -> bool {
        add(&mut self.watch);
        true
    }

    fn host(&self) -> Option<Host> {
        Some(Host {
            counters: *self.stack.counters(),
            connections: self.stack.connection_count(),
            orphans_reset: self.orphans.reset,
            port_errors: self.port_errors + self.mail.as_ref().map_or(0, |mail| mail.lost),
            lost: self.loss.lost,
            threads: 1,
            tls: self.secure.counters(),
        })
    }

    fn waker(&self) -> Option<BorrowedFd<'_>> {
        self.port.readable()
    }
}
