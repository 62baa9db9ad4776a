//! Observers of the network's frames: captures (`nicforge tcpdump`) and traces of connections (`nicforge ss --trace`).
//!
//! A frame meets the filter of each observer where it passes the port; only what an observer wants is copied. Each
//! observer gets messages over its control socket, and one that does not read them in time loses them, counted.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use nicforge_units::Time;
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::control::send;

pub mod event;
pub mod trace;

pub use nicforge_tcp::watch::{filter, frame};

use event::Event;
use filter::Filter;
use frame::Seen;
use trace::{Figures, Outgoing, Tracer};

/// Bytes of a filter's text, at most.
pub const FILTER_BYTES: usize = 4096;

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Way {
    /// Into the host.
    In = 0,
    /// Out of it.
    Out = 1,
}

/// What stands before the frame in a capture's message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct CaptureHeader {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// [`Way`] as a number.
    pub way: u32,
    /// Bytes of the frame, of which the message may have fewer.
    pub frame_bytes: u32,
    /// Frames lost so far because the observer did not read in time.
    pub lost: u64,
}

enum Work {
    Capture { most: usize },
    Trace(Box<Tracer>),
}

struct Observer {
    to: OwnedFd,
    filter: Filter,
    work: Work,
    lost: u64,
    gone: bool,
}

/// All observers of a network.
#[derive(Default)]
pub struct Watch {
    observers: Vec<Observer>,
    message: Vec<u8>,
    wall: Wall,
}

/// Wall-clock time at the monotonic clock's zero.
struct Wall(Duration);

impl Default for Wall {
    fn default() -> Wall {
        let clock = |id| {
            let time = rustix::time::clock_gettime(id);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        Wall(clock(rustix::time::ClockId::Realtime).saturating_sub(clock(rustix::time::ClockId::Monotonic)))
    }
}

impl Wall {
    fn at(&self, now: Time) -> u64 {
        (self.0 + Duration::from_nanos(now.as_ps() / 1000)).as_nanos() as u64
    }
}

impl Watch {
    /// Whether nobody watches.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.observers.is_empty()
    }

    /// Copies frames, up to `most` bytes of each, to an observer until its end hangs up.
    pub fn capture(&mut self, to: OwnedFd, filter: Filter, most: usize) {
        self.add(to, filter, Work::Capture { most });
    }

    /// Tells an observer what happens to segments until its end hangs up.
    pub fn trace(&mut self, to: OwnedFd, filter: Filter) {
        self.add(to, filter, Work::Trace(Box::default()));
    }

    fn add(&mut self, to: OwnedFd, filter: Filter, work: Work) {
        self.observers.push(Observer { to, filter, work, lost: 0, gone: false });
    }

    /// Forgets observers that have gone.
    pub fn sweep(&mut self) {
        self.observers.retain(|observer| !observer.gone);
    }

    /// A frame came in and was handled: the connection's figures before and after, if it has one.
    pub fn came(&mut self, frame: &[u8], now: Time, before: &Figures, after: &Figures) {
        self.each(frame, Way::In, now, |tracer, seen, wall| tracer.came(seen, wall, now, before, after));
    }

    /// A frame goes out; the connection's figures after it.
    pub fn goes(&mut self, frame: &[u8], now: Time, after: &Figures) {
        let outgoing = Outgoing { now, after };
        self.each(frame, Way::Out, now, |tracer, seen, wall| tracer.goes(seen, wall, &outgoing));
    }

    fn each(
        &mut self,
        frame: &[u8],
        way: Way,
        now: Time,
        mut trace: impl FnMut(&mut Tracer, &Seen<'_>, u64) -> Vec<Event>,
    ) {
        let seen = Seen::parse(frame);
        let wall = self.wall.at(now);
        for observer in self.observers.iter_mut().filter(|observer| observer.filter.matches(&seen)) {
            match &mut observer.work {
                Work::Capture { most } => {
                    let part = &frame[..frame.len().min(*most)];
                    let frame_bytes = frame.len() as u32;
                    let header = CaptureHeader { time_ns: wall, way: way as u32, frame_bytes, lost: observer.lost };
                    self.message.clear();
                    self.message.extend_from_slice(bytemuck::bytes_of(&header));
                    self.message.extend_from_slice(part);
                    observer.tell(&self.message);
                }
                Work::Trace(tracer) => {
                    for event in trace(tracer, &seen, wall) {
                        if let Ok(text) = serde_json::to_vec(&event) {
                            observer.tell(&text);
                        }
                    }
                }
            }
        }
    }
}

impl Observer {
    fn tell(&mut self, message: &[u8]) {
        match send(self.to.as_fd(), message, &[], SendFlags::DONTWAIT) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => self.lost += 1,
            Err(_) => self.gone = true,
        }
    }
}
