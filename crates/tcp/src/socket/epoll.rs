//! `epoll` over the descriptors of this layer: level, edge, one-shot.

use std::collections::BTreeMap;

use super::{Errno, Fd, File, Readiness, Sockets};
use crate::ring::Buffers;

const IN: u32 = 0x1;
const PRI: u32 = 0x2;
const OUT: u32 = 0x4;
const ERR: u32 = 0x8;
const HUP: u32 = 0x10;
const RDNORM: u32 = 0x40;
const WRNORM: u32 = 0x100;
const RDHUP: u32 = 0x2000;
const ONE_SHOT: u32 = 1 << 30;
const EDGE: u32 = 1 << 31;

/// What is watched, and the application's word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Bits as in `epoll_event.events`.
    pub events: u32,
    /// The application's word.
    pub data: u64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEvent {
    /// Bits as in `epoll_event.events`.
    pub events: u32,
    /// The application's word.
    pub data: u64,
}

/// `EPOLL_CTL_ADD`, `_MOD`, `_DEL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpollOperation {
    /// Watches a descriptor.
    Add(Interest),
    /// Changes what is watched.
    Change(Interest),
    /// Watches no more.
    Delete,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    interest: Interest,
    /// An edge has not been reported.
    armed: bool,
    /// A one-shot watch has fired.
    spent: bool,
}

/// An epoll descriptor.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watches: BTreeMap<Fd, Watch>,
    /// Where the next report begins, so that none starves.
    next: Option<Fd>,
}

impl Readiness {
    /// As bits of `poll` and `epoll`.
    pub fn bits(self) -> u32 {
        let bit = |on: bool, bits: u32| if on { bits } else { 0 };
        bit(self.readable, IN | RDNORM)
            | bit(self.writable, OUT | WRNORM)
            | bit(self.urgent, PRI)
            | bit(self.read_closed, RDHUP)
            | bit(self.hung_up, HUP)
            | bit(self.error, ERR)
    }
}

impl<B: Buffers> Sockets<B> {
    /// An epoll descriptor.
    pub fn epoll_create(&mut self) -> Fd {
        self.add(File::Epoll(Epoll::default()))
    }

    fn epoll_mut(&mut self, fd: Fd) -> Result<&mut Epoll, Errno> {
        let index = self.index(fd).ok_or(Errno::BAD_FD)?;
        match self.files.get_mut(index).and_then(Option::as_mut) {
            Some(File::Epoll(epoll)) => Ok(epoll),
            Some(File::Socket(_)) => Err(Errno::INVALID),
            None => Err(Errno::BAD_FD),
        }
    }

    /// Watches, changes, forgets.
    pub fn epoll_ctl(&mut self, epoll: Fd, fd: Fd, operation: EpollOperation) -> Result<(), Errno> {
        if !self.owns(fd) {
            return Err(Errno::BAD_FD);
        }
        if epoll == fd {
            return Err(Errno::INVALID);
        }
        let watches = &mut self.epoll_mut(epoll)?.watches;
        match operation {
            EpollOperation::Add(interest) => {
                if watches.contains_key(&fd) {
                    return Err(Errno::EXISTS);
                }
                watches.insert(fd, Watch { interest, armed: true, spent: false });
            }
            EpollOperation::Change(interest) => {
                let watch = watches.get_mut(&fd).ok_or(Errno::NO_ENTRY)?;
                *watch = Watch { interest, armed: true, spent: false };
            }
            EpollOperation::Delete => {
                watches.remove(&fd).ok_or(Errno::NO_ENTRY)?;
            }
        }
        Ok(())
    }

    /// Writes what is ready to `out`; returns how many that are.
    pub fn epoll_wait(&mut self, epoll: Fd, out: &mut [EpollEvent]) -> Result<usize, Errno> {
        let set = self.epoll_mut(epoll)?;
        let start = set.next.unwrap_or(Fd(i32::MIN));
        let mut order: Vec<Fd> = set.watches.range(start..).map(|(fd, _)| *fd).collect();
        order.extend(set.watches.range(..start).map(|(fd, _)| *fd));
        let mut count = 0;
        for fd in order {
            if count == out.len() {
                self.epoll_mut(epoll)?.next = Some(fd);
                break;
            }
            let ready = self.readiness(fd).unwrap_or_default().bits();
            let Some(watch) = self.epoll_mut(epoll)?.watches.get_mut(&fd) else { continue };
            let events = watch.reported(ready);
            if events == 0 || watch.spent || (watch.interest.events & EDGE != 0 && !watch.armed) {
                continue;
            }
            watch.armed = false;
            watch.spent = watch.interest.events & ONE_SHOT != 0;
            out[count] = EpollEvent { events, data: watch.interest.data };
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn has_ready(&self, epoll: &Epoll) -> bool {
        epoll.watches.iter().any(|(fd, watch)| {
            let edge_gone = watch.interest.events & EDGE != 0 && !watch.armed;
            let ready = match self.file(*fd) {
                // An epoll descriptor inside another one is not followed further.
                Some(File::Socket(_)) => self.readiness(*fd).unwrap_or_default().bits(),
                _ => 0,
            };
            !watch.spent && !edge_gone && watch.reported(ready) != 0
        })
    }

    /// Something happened on `fd`: an edge for those that watch it.
    pub(super) fn wake_watchers(&mut self, fd: Fd) {
        for file in self.files.iter_mut().flatten() {
            if let File::Epoll(epoll) = file
                && let Some(watch) = epoll.watches.get_mut(&fd)
            {
                watch.armed = true;
            }
        }
    }

    pub(super) fn unwatch(&mut self, fd: Fd) {
        for file in self.files.iter_mut().flatten() {
            if let File::Epoll(epoll) = file {
                epoll.watches.remove(&fd);
            }
        }
    }
}

impl Watch {
    fn reported(&self, ready: u32) -> u32 {
        ready & (self.interest.events | ERR | HUP)
    }
}
