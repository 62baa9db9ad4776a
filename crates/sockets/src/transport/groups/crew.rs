//! Fast-path threads, and what they share with the service's thread, which is the first of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nicforge_units::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::mail::Post;
use crate::service::now;
use crate::transport::network::Network;
use crate::transport::{Event, Transport};

/// Turns between two looks at how long a thread has worked.
const TELL_EVERY: u32 = 64;
/// How long a thread sleeps at most where a port cannot be waited for.
const NAP: Time = Time::from_ms(1);

/// The part of a group that one thread has at a time.
pub struct Lane {
    /// Its stack and port.
    pub network: Network,
    /// What happened, until the service takes it.
    pub events: Vec<Event>,
}

/// A flow-group.
pub struct Group {
    lane: Mutex<Lane>,
    /// A copy of its port's descriptor, if that can be waited for.
    port: Option<OwnedFd>,
    /// The thread that serves it.
    server: AtomicUsize,
    /// The service changed something.
    touched: AtomicBool,
    /// Events wait.
    told: AtomicBool,
}

impl Group {
    /// Served by the service's thread.
    pub fn new(network: Network) -> Result<Group, Errno> {
        let port = network.waker().map(|port| rustix::io::fcntl_dupfd_cloexec(port, 0)).transpose()?;
        Ok(Group {
            lane: Mutex::new(Lane { network, events: Vec::new() }),
            port,
            server: AtomicUsize::new(0),
            touched: AtomicBool::new(false),
            told: AtomicBool::new(false),
        })
    }

    /// Its stack, once no other thread has it.
    pub fn lane(&self) -> MutexGuard<'_, Lane> {
        // Whoever panicked with it ends the process.
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, to change something: its thread sends what follows.
    pub fn change(&self, now: Time) -> MutexGuard<'_, Lane> {
        self.touched.store(true, Ordering::SeqCst);
        let mut lane = self.lane();
        lane.network.set_time(now);
        lane
    }

    /// The thread that serves it.
    pub fn server(&self) -> usize {
        self.server.load(Ordering::SeqCst)
    }

    /// Gives it to another thread.
    pub fn give_to(&self, thread: usize) {
        self.server.store(thread, Ordering::SeqCst);
        self.touched.store(true, Ordering::SeqCst);
    }

    /// Whether the service has changed something since the last call.
    pub fn take_touched(&self) -> bool {
        self.touched.swap(false, Ordering::SeqCst)
    }

    /// Whether there were events since the last call.
    pub fn take_told(&self) -> bool {
        self.told.swap(false, Ordering::SeqCst)
    }

    /// Whether events wait.
    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    /// What can be waited for.
    pub fn port(&self) -> Option<BorrowedFd<'_>> {
        self.port.as_ref().map(AsFd::as_fd)
    }

    /// Frames, timers, frames; whether there was anything to do.
    fn turn(&self) -> bool {
        let touched = self.take_touched();
        let lane = &mut *self.lane();
        let busy = lane.network.poll(now(), &mut lane.events);
        lane.network.flush();
        if !lane.events.is_empty() {
            self.told.store(true, Ordering::SeqCst);
        }
        busy || touched
    }
}

/// How a thread is woken, and how much it worked.
struct Seat {
    bell: OwnedFd,
    asleep: AtomicBool,
    worked_ns: AtomicU64,
}

/// What all threads see.
pub struct Crew {
    /// Flow-groups.
    pub groups: Vec<Group>,
    /// Letters between them.
    pub post: Arc<Post>,
    seats: Vec<Seat>,
    stop: AtomicBool,
}

impl Crew {
    /// So many threads, at most; the first is the service's.
    pub fn new(groups: Vec<Group>, threads: usize, post: Arc<Post>) -> Result<Crew, Errno> {
        let seat = |_| {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Seat { bell, asleep: AtomicBool::new(false), worked_ns: AtomicU64::new(0) })
        };
        let seats = (0..threads).map(seat).collect::<Result<_, Errno>>()?;
        Ok(Crew { groups, post, seats, stop: AtomicBool::new(false) })
    }

    /// Rung when `thread` shall wake up.
    pub fn bell(&self, thread: usize) -> BorrowedFd<'_> {
        self.seats[thread].bell.as_fd()
    }

    /// Wakes `thread`, if it sleeps.
    pub fn wake(&self, thread: usize) {
        // The flag must be seen by whoever made something that is not seen there.
        fence(Ordering::SeqCst);
        if self.seats[thread].asleep.load(Ordering::SeqCst) {
            let _ = rustix::io::write(&self.seats[thread].bell, &1u64.to_ne_bytes());
        }
    }

    /// Wakes every thread for which events, letters or changes wait.
    pub fn wake_all(&self) {
        (0..self.seats.len()).filter(|thread| self.has_work(*thread)).for_each(|thread| self.wake(thread));
    }

    /// `thread` sleeps unless this says that it has something to do.
    pub fn fall_asleep(&self, thread: usize) -> bool {
        self.seats[thread].asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let sleeps = !self.has_work(thread) && !self.stop.load(Ordering::SeqCst);
        let arms = |group: &Group| group.server() != thread || group.lane().network.arm();
        let sleeps = sleeps && self.groups.iter().all(arms);
        if !sleeps {
            self.wake_up(thread);
        }
        sleeps
    }

    /// `thread` is awake.
    pub fn wake_up(&self, thread: usize) {
        let seat = &self.seats[thread];
        if seat.asleep.swap(false, Ordering::SeqCst) {
            let mut count = [0; 8];
            let _ = rustix::io::read(&seat.bell, &mut count);
        }
    }

    fn has_work(&self, thread: usize) -> bool {
        let told = thread == 0 && self.groups.iter().any(Group::is_told);
        let own = |(number, group): (usize, &Group)| {
            group.server() == thread && (self.post.waits(number) || group.touched.load(Ordering::SeqCst))
        };
        told || self.groups.iter().enumerate().any(own)
    }

    /// Publishes how long `thread`, the calling one, has worked.
    pub fn tell_worked(&self, thread: usize) {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.seats[thread].worked_ns.store(ns, Ordering::Relaxed);
    }

    /// How long all threads have worked.
    pub fn worked(&self) -> Time {
        Time::from_ns(self.seats.iter().map(|seat| seat.worked_ns.load(Ordering::Relaxed)).sum())
    }

    /// Ends all threads but the service's.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        (0..self.seats.len()).for_each(|thread| self.wake(thread));
    }

    /// What thread `thread` does until the end.
    pub fn run(&self, thread: usize) {
        let mut turns = 0u32;
        while !self.stop.load(Ordering::Acquire) {
            let mut busy = false;
            for group in self.groups.iter().filter(|group| group.server() == thread) {
                busy |= group.turn();
            }
            self.wake_all();
            turns = turns.wrapping_add(1);
            if !busy || turns.is_multiple_of(TELL_EVERY) {
                self.tell_worked(thread);
            }
            if !busy && self.fall_asleep(thread) {
                self.sleep(thread);
            }
        }
    }

    fn sleep(&self, thread: usize) {
        let bell = self.bell(thread);
        let mut files = vec![PollFd::from_borrowed_fd(bell, PollFlags::IN)];
        let mut until = Time::NEVER;
        for group in self.groups.iter().filter(|group| group.server() == thread) {
            until = until.min(group.lane().network.deadline().unwrap_or(Time::NEVER));
            match group.port() {
                Some(port) => files.push(PollFd::from_borrowed_fd(port, PollFlags::IN)),
                None => until = until.min(now() + NAP),
            }
        }
        let ns = until.saturating_sub(now()).as_ps().div_ceil(1000);
        let limit = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        // Whatever ends it, the thread looks.
        let _ = poll(&mut files, (until != Time::NEVER).then_some(&limit));
        self.wake_up(thread);
    }
}
