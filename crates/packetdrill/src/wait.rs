//! Calls that wait: in packetdrill's second thread, while the first one moves the clock.

use std::cell::Cell;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use nicforge_tcp::socket::Errno;
use nicforge_units::Time;

use crate::world::{Shared, World};

/// A call of the first thread that would wait moves the clock by this much at most.
const PATIENCE: Time = Time::from_ms(120_000);

/// Real time in which packetdrill's second thread takes a call's result.
const RESULT_PAUSE: Duration = Duration::from_millis(5);

thread_local! {
    /// When the last waiting call of this thread returned; packetdrill asks for the time right after it.
    static RETURNED_AT: Cell<Option<Time>> = const { Cell::new(None) };
}

/// The time at which this thread's waiting call returned, once.
pub fn returned_at() -> Option<Time> {
    RETURNED_AT.take()
}

impl Shared {
    /// Tries `attempt` until it no longer says [`Errno::AGAIN`], for as long as `patience` where it has an end.
    pub fn until_done<T>(
        &self,
        patience: Option<Time>,
        mut attempt: impl FnMut(&mut World) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut world = self.lock();
        let deadline = patience.map(|patience| world.now + patience);
        let started = world.now;
        let mut waits = false;
        loop {
            let outcome = attempt(&mut world);
            world.collect();
            let late = deadline.is_some_and(|deadline| world.now >= deadline);
            if !matches!(outcome, Err(Errno::AGAIN)) || late {
                RETURNED_AT.set(Some(world.now));
                if waits {
                    world.waiting -= 1;
                    world.returned += 1;
                    self.note_seen(&mut world);
                }
                return outcome;
            }
            if std::thread::current().id() == self.main {
                world = self.one_step(world, deadline.unwrap_or(started + PATIENCE));
                if world.now >= started + PATIENCE {
                    return outcome;
                }
                continue;
            }
            if waits {
                self.note_seen(&mut world);
            } else {
                waits = true;
                world.waiting += 1;
                world.alarms.extend(deadline);
            }
            world = self.changed.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A waiting call has looked: time may go on once all have.
    fn note_seen(&self, world: &mut World) {
        world.unseen = world.unseen.saturating_sub(1);
        self.seen.notify_all();
    }

    /// Gives packetdrill's second thread real time to take the results of calls that have returned. The first thread
    /// has released packetdrill's lock only while it sleeps here. Without this pause it may go on to a step that needs
    /// the result, a new connection's descriptor for example.
    pub fn pause_for_results(&self) {
        let returned = std::mem::take(&mut self.lock().returned);
        if returned > 0 {
            std::thread::sleep(RESULT_PAUSE);
        }
    }

    /// Lets the next timer fire, not beyond `until`.
    fn one_step<'a>(&'a self, world: MutexGuard<'a, World>, until: Time) -> MutexGuard<'a, World> {
        let next = world.sockets.stack.poll_at().map_or(until, |next| next.min(until));
        self.pass(world, next, false)
    }
}
