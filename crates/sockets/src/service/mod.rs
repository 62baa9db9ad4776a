//! The service: one thread owns all sockets, and the stack unless that is split among threads.
//!
//! A turn takes what the kernel reports, all entries of all context queues, then what happened in the stack. A process
//! writes entries before it closes a descriptor or dies, so entries are taken before closes are acted on.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use nicforge_units::Time;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use slab::Slab;

use crate::shared::{StatusMemory, status_file};
use crate::transport::route::Route;
use crate::transport::{Event, Id, Transport};

mod accept;
mod application;
mod bindings;
mod config;
mod entries;
mod flow;
mod limits;
mod pump;
mod requests;
mod source;
mod tls;
mod view;

pub use config::{Config, ServiceError};
pub use limits::Limits;
pub use view::{ApplicationView, HostView, SocketView, View};

use accept::Held;
use application::Application;
use bindings::Bindings;
pub(crate) use config::open_door;
use flow::Flow;
use source::Source;

/// Bits of a flow's name that are its index.
const INDEX_BITS: u32 = 20;

/// Sockets at one listening address.
#[derive(Debug, Default)]
struct Group {
    ids: Vec<Id>,
    members: Vec<u32>,
    next: usize,
}

/// Events of one call of epoll.
const EVENTS: usize = 256;
/// So many entries and events in one turn are a load under which more come at any time.
const MANY: usize = 4;
/// Turns of a busy service between two looks at what the kernel reports: requests, and descriptors that closed.
const REPORTS_EVERY: u32 = 4;
/// Bytes that one socket moves before others have their turn.
const BATCH_BYTES: usize = 64 << 10;

/// The service.
pub struct Service {
    config: Config,
    door: OwnedFd,
    epoll: OwnedFd,
    stop: Arc<OwnedFd>,
    stopping: Arc<AtomicBool>,
    status_file: OwnedFd,
    status: StatusMemory,
    route: Route,
    applications: Slab<Application>,
    by_serial: HashMap<u64, usize>,
    serial: u64,
    flows: Slab<Flow>,
    generation: u32,
    by_connection: HashMap<Id, u32>,
    by_cookie: HashMap<u64, u32>,
    groups: HashMap<SocketAddr, Group>,
    by_listener: HashMap<Id, SocketAddr>,
    /// By listener: connections that wait for room in its descriptor.
    held: HashMap<u32, VecDeque<Held>>,
    bindings: Bindings,
    random: BufReader<File>,
    instance: u64,
    /// Flows with something left to move.
    due: BTreeSet<u32>,
    /// Flows whose application has used up its rate.
    paused: Vec<u32>,
    now: Time,
    refused: u64,
    /// A copy of the port's descriptor, while it is watched.
    port_watched: Option<OwnedFd>,
}

/// Ends a service's loop from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<OwnedFd>,
    stopping: Arc<AtomicBool>,
}

impl Stopper {
    /// Ends it.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
    }
}

impl Service {
    /// A service at its path, over the loopback and possibly a network.
    pub fn new(config: Config, network: Option<Box<dyn Transport>>) -> Result<Service, ServiceError> {
        if !config.ring_bytes.is_power_of_two() || config.ring_bytes < 4096 || config.ring_bytes > 1 << 30 {
            let doing = format!("rings of {} bytes (a power of two from 4096 to 2^30)", config.ring_bytes);
            return Err(ServiceError { doing, cause: Errno::INVAL });
        }
        let mut config = config;
        config.limits.connections = config.limits.connections.min(share_of_descriptors());
        let door = open_door(&config.path)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(ServiceError::of("creating an epoll"))?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = Arc::new(event.map_err(ServiceError::of("creating an eventfd"))?);
        let (status_file, status) = status_file().map_err(ServiceError::of("creating the status page"))?;
        let random = File::open("/dev/urandom").map_err(|_| Errno::NOENT);
        // A page at a time: each connection needs a word.
        let mut random = BufReader::new(random.map_err(ServiceError::of("opening /dev/urandom"))?);
        let seed = random_word(&mut random);
        let instance = random_word(&mut random);
        status.page().instance.store(instance, Ordering::Release);
        let route = Route::new(network);
        for (source, file) in [(Source::Door, door.as_fd()), (Source::Stop, stop.as_fd())] {
            watch(&epoll, file, source, epoll::EventFlags::IN).map_err(ServiceError::of("watching"))?;
        }
        Ok(Service {
            config,
            door,
            epoll,
            stop,
            stopping: Arc::new(AtomicBool::new(false)),
            status_file,
            status,
            route,
            applications: Slab::new(),
            by_serial: HashMap::new(),
            serial: 0,
            flows: Slab::new(),
            generation: 0,
            by_connection: HashMap::new(),
            by_cookie: HashMap::new(),
            groups: HashMap::new(),
            by_listener: HashMap::new(),
            held: HashMap::new(),
            bindings: Bindings::new(seed),
            random,
            instance,
            due: BTreeSet::new(),
            paused: Vec::new(),
            now: Time::ZERO,
            refused: 0,
            port_watched: None,
        })
    }

    /// What ends [`Service::run`] from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper { stop: self.stop.clone(), stopping: self.stopping.clone() }
    }

    /// Serves until stopped.
    pub fn run(&mut self) -> Result<(), ServiceError> {
        let mut reported = Vec::with_capacity(EVENTS);
        let mut events = Vec::new();
        let (mut busy, mut turn) = (true, 0u32);
        while !self.stopping.load(Ordering::Acquire) {
            turn = turn.wrapping_add(1);
            // Entries and frames need no report of the kernel; a busy service asks for the rest now and then.
            if !busy || turn.is_multiple_of(REPORTS_EVERY) {
                self.wait(busy, &mut reported)?;
            }
            self.now = now();
            self.route.set_time(self.now);
            let taken = self.take_entries();
            for event in reported.drain(..) {
                self.handle(event);
            }
            let moved = self.route.poll(self.now, &mut events);
            // After little work the service sleeps at once: what comes meanwhile ends the sleep.
            busy = taken + events.len() >= MANY || (moved && self.route.expects_more());
            for event in events.drain(..) {
                self.follow(event);
            }
            busy |= self.pump_due();
            self.route.flush();
            self.watch_port()?;
        }
        Ok(())
    }

    /// Takes the kernel's reports; sleeps for them when there is nothing else to do.
    fn wait(&mut self, busy: bool, reported: &mut Vec<epoll::Event>) -> Result<(), ServiceError> {
        let asleep = &self.status.page().asleep;
        let mut timeout = Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut slept = false;
        if !busy {
            asleep.store(1, Ordering::Relaxed);
            // The flag must be seen by whoever adds an entry that is not seen here.
            fence(Ordering::SeqCst);
            let ready =
                |(_, application): (usize, &Application)| application.context.as_ref().is_some_and(|c| c.ready());
            if !self.applications.iter().any(ready) && self.route.arm() {
                timeout = self.sleep_limit();
                slept = true;
            }
        }
        let result = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(reported), timeout.as_ref());
        if !busy {
            asleep.store(0, Ordering::Relaxed);
        }
        let wire = reported.iter().any(|event| Source::of(event.data.u64()) == Source::Wire);
        if slept && !wire && self.port_watched.is_some() {
            self.route.expect_none();
        }
        match result {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(cause) => Err(ServiceError { doing: "waiting for events".into(), cause }),
        }
    }

    /// Watches the port while its link is up: a port that is down is always readable, with nothing to read.
    fn watch_port(&mut self) -> Result<(), ServiceError> {
        let up = self.route.waker();
        if up.is_some() == self.port_watched.is_some() {
            return Ok(());
        }
        match (up, self.port_watched.take()) {
            (Some(port), _) => {
                let own = port.try_clone_to_owned();
                let own = own.map_err(|_| ServiceError { doing: "watching a port".into(), cause: Errno::MFILE })?;
                watch(&self.epoll, &own, Source::Wire, epoll::EventFlags::IN)
                    .map_err(ServiceError::of("watching a port"))?;
                self.port_watched = Some(own);
            }
            (None, Some(own)) => {
                epoll::delete(&self.epoll, &own).map_err(ServiceError::of("watching a port"))?;
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn sleep_limit(&self) -> Option<Timespec> {
        let rates = (!self.paused.is_empty()).then(|| Time::from_ps(self.now.as_ps() + Time::from_ms(5).as_ps()));
        let until = [self.route.deadline(), rates].into_iter().flatten().min()?;
        // Rounded up, so that the deadline has passed when the sleep ends.
        let ns = until.saturating_sub(now()).as_ps().div_ceil(1000);
        Some(Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 })
    }

    fn handle(&mut self, event: epoll::Event) {
        match Source::of(event.data.u64()) {
            Source::Door => self.admit(),
            Source::Stop => {}
            Source::Control(index) => self.serve(index),
            // Entries are taken in every turn; each ring is a new edge.
            Source::Bell(_) => {}
            Source::Flow(name) => self.end_reported(name, event.flags),
            // The transport reads its ports in its poll, which follows.
            Source::Wire => {}
        }
    }

    /// The descriptor's other end wrote a token or is gone.
    fn end_reported(&mut self, name: u32, flags: epoll::EventFlags) {
        if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
            // A process may have added entries and closed after entries were taken above.
            self.take_entries();
            self.abandon(name);
        } else if flags.contains(epoll::EventFlags::IN)
            && let Some(index) = self.find(name)
        {
            self.flows[index].stopped = true;
            self.unstop(index);
        }
    }

    /// What happened in the stack.
    fn follow(&mut self, event: Event) {
        match event {
            Event::Incoming(listener) => self.incoming(listener),
            Event::Connected(id) => self.connected(id),
            Event::Readable(id) | Event::Writable(id) => {
                if let Some(name) = self.by_connection.get(&id) {
                    self.due.insert(*name);
                }
            }
            Event::Failed(id, cause) => self.failed(id, cause),
            Event::Closed(id) => self.closed(id),
        }
    }

    /// The flow of this name.
    fn find(&self, name: u32) -> Option<usize> {
        let index = (name & ((1 << INDEX_BITS) - 1)) as usize;
        self.flows.get(index).filter(|flow| flow.name == name).map(|_| index)
    }

    fn application(&mut self, serial: u64) -> Option<&mut Application> {
        let index = self.by_serial.get(&serial)?;
        self.applications.get_mut(*index)
    }

    /// A new socket of an application, and the application's end.
    fn new_flow(&mut self, v6: bool, owner: u64) -> Result<(usize, OwnedFd), Errno> {
        if self.flows.len() >= self.config.sockets.min(1 << INDEX_BITS) {
            return Err(Errno::NFILE);
        }
        let limit =
            self.application(owner).map(|application| (application.connections, application.limits.connections));
        if limit.is_some_and(|(connections, limit)| connections >= limit) {
            return Err(Errno::MFILE);
        }
        let key = random_word(&mut self.random);
        let ring_bytes = self.config.ring_bytes;
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let entry = self.flows.vacant_entry();
        let index = entry.key();
        let name = index as u32 | generation << INDEX_BITS;
        let (flow, given) = Flow::new(name, key, v6, ring_bytes, owner)?;
        flow.memory.page().service.instance.store(self.instance, Ordering::Relaxed);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        watch(&self.epoll, flow.end.as_fd(), Source::Flow(name), flags)?;
        self.by_cookie.insert(flow.cookie, name);
        entry.insert(flow);
        if let Some(application) = self.application(owner) {
            application.connections += 1;
        }
        Ok((index, given.end))
    }

    /// Forgets a socket: claims, names, memory. The transport's connection is the caller's.
    fn forget(&mut self, index: usize) {
        let flow = self.flows.remove(index);
        self.by_cookie.remove(&flow.cookie);
        self.due.remove(&flow.name);
        if let Some(local) = flow.local {
            if flow.claimed {
                self.bindings.unbind(flow.name, local.port());
            }
            if let Some(remote) = flow.remote {
                self.bindings.unpair(local, remote);
            }
        }
        if let Some(id) = flow.connection() {
            self.by_connection.remove(&id);
        }
        if let Some(application) = self.application(flow.owner) {
            application.connections -= 1;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.config.path);
    }
}

fn watch(epoll: &OwnedFd, file: impl AsFd, source: Source, flags: epoll::EventFlags) -> Result<(), Errno> {
    epoll::add(epoll, file, epoll::EventData::new_u64(source.number()), flags)
}

/// Raises the limit of descriptors as far as it goes, and returns how many sockets one application may have so that a
/// third of the descriptors is left for others. A socket takes two.
fn share_of_descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    (current.unwrap_or(u64::MAX) / 3).min(usize::MAX as u64) as usize
}

fn random_word(random: &mut BufReader<File>) -> u64 {
    let mut word = [0; 8];
    // The kernel's source never ends and never fails once it is open.
    random.read_exact(&mut word).expect("/dev/urandom gives bytes");
    u64::from_ne_bytes(word)
}

/// The kernel's monotonic clock.
pub fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Time::from_ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
