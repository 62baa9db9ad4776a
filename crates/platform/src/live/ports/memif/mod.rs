//! memif: a ring of shared memory to another data plane of this machine, VPP or a DPDK program.
//!
//! | file | what it says |
//! | --- | --- |
//! | message.rs | what is said on the control channel |
//! | channel.rs | the channel: a Unix socket |
//! | session.rs | from a new channel to rings |
//! | ring.rs | rings and their descriptors |
//!
//! Each frame is copied once each way: between the shared memory and the frame that the NIC parses. A
//! frame that lay in the peer's memory while it is parsed could change between two looks at it.
//!
//! Ring pairs are many on request; frames of a flow stay in one. Left out: modes other than Ethernet,
//! metadata, several interfaces on one socket.

mod channel;
mod message;
mod ring;
mod session;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nicforge_units::Time;
use rustix::event::epoll;

use super::spread::Spread;
use super::{Link, Port, PortCounters};
use crate::live::LiveError;
use channel::{Channel, Listener};
use ring::{Fault, Side};
use session::{BUFFER_BYTES, Ended, Session};

pub use session::Terms;

/// How long a peer may take from its first message to its first frame.
const PATIENCE: Duration = Duration::from_secs(2);
/// Why a peer is left of whose rings nothing can be believed.
const INDEX_IS_WRONG: &str = "an index of a ring is beyond its entries";
/// Ring pairs of one port, at most.
pub const MEMIF_QUEUES_MAX: u16 = 16;

/// Which end of the socket a port is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemifRole {
    /// Waits for a client, whose memory it uses.
    #[default]
    Server,
    /// Goes to a server with memory of its own, again and again until there is one.
    Client,
}

/// A memif port.
pub struct MemifPort {
    path: PathBuf,
    side: Side,
    terms: Terms,
    link: Link,
    /// All that can wake us: the listener, the channel, and interrupts.
    wakes: OwnedFd,
    listener: Option<Listener>,
    session: Option<(Session, Instant)>,
    /// Whether the rings may interrupt: a caller has asked for the files to wait for.
    waits: Cell<bool>,
    /// The ring pair whose turn it is.
    turn: usize,
    spread: Spread,
    frame: Vec<u8>,
    note: Option<String>,
    counters: PortCounters,
}

impl MemifPort {
    /// A port at the Unix socket `path`, for frames with `mtu` bytes behind the Ethernet header.
    ///
    /// # Errors
    /// The path cannot be had, or the system refuses.
    pub fn open(path: &Path, role: MemifRole, terms: Terms, mtu: usize) -> Result<MemifPort, LiveError> {
        let failed = |cause: io::Error| LiveError::of(format!("memif {}", path.display()))(cause);
        let wakes = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|cause| failed(cause.into()))?;
        let side = match role {
            MemifRole::Server => Side::Server,
            MemifRole::Client => Side::Client,
        };
        let listener = match role {
            MemifRole::Server => Some(Listener::new(path).map_err(failed)?),
            MemifRole::Client => None,
        };
        if let Some(listener) = &listener {
            wake_by(&wakes, listener.as_fd()).map_err(failed)?;
        }
        let mut port = MemifPort {
            path: path.to_owned(),
            side,
            terms,
            link: Link::made(format!("memif {}", path.display()), mtu),
            wakes,
            listener,
            session: None,
            waits: Cell::new(true),
            turn: 0,
            spread: Spread::default(),
            frame: Vec::new(),
            note: None,
            counters: PortCounters::default(),
        };
        port.attend()?;
        Ok(port)
    }

    /// Takes care of peers that come, talk and go.
    fn attend(&mut self) -> Result<(), LiveError> {
        // What it reports is looked at anyway; this makes the next event wake us again.
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 32];
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = epoll::wait(&self.wakes, &mut events, Some(&none));
        if let Some((session, since)) = &mut self.session {
            let was_up = session.is_up();
            let heard = match session.listen() {
                Ok(()) if session.regions.iter().any(|region| region.is_broken()) => {
                    Err(Ended("its memory became shorter".into()))
                }
                Ok(()) if !session.is_up() && since.elapsed() > PATIENCE => Err(Ended("it does not go on".into())),
                heard => heard,
            };
            match heard {
                Err(Ended(why)) => self.end(&why),
                Ok(()) if !was_up && session.is_up() => self.begin()?,
                Ok(()) => {}
            }
        }
        self.meet()
    }

    /// The session is up.
    fn begin(&mut self) -> Result<(), LiveError> {
        if let Some((session, _)) = &self.session {
            for ring in &session.receive {
                ring.poll(&session.regions, true);
                wake_by(&self.wakes, ring.interrupt.as_fd()).map_err(LiveError::of(self.link.name()))?;
            }
            self.link.is_up = true;
        }
        Ok(())
    }

    /// The session is over.
    fn end(&mut self, why: &str) {
        if let Some((session, _)) = self.session.take() {
            session.say_goodbye(why);
        }
        self.link.went_down();
        self.note = Some(format!("{}: the peer was left: {why}", self.link.name()));
    }

    /// A new peer, if there is one and it is wanted.
    fn meet(&mut self) -> Result<(), LiveError> {
        let found = match &self.listener {
            Some(listener) => listener.accept(),
            None if self.session.is_some() => None,
            None => Channel::connect(&self.path).map_err(LiveError::of(self.link.name()))?,
        };
        let Some(channel) = found else {
            return Ok(());
        };
        wake_by(&self.wakes, channel.as_fd()).map_err(LiveError::of(self.link.name()))?;
        let session = Session::new(self.side, self.terms.clone(), channel);
        match &self.session {
            Some(_) => session.say_goodbye("already connected"),
            None => self.session = Some((session, Instant::now())),
        }
        Ok(())
    }
}

/// Each event of `file` makes `wakes` readable once.
fn wake_by(wakes: &OwnedFd, file: BorrowedFd<'_>) -> io::Result<()> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    Ok(epoll::add(wakes, file, epoll::EventData::new_u64(0), flags)?)
}

impl Port for MemifPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        if self.waits.take() {
            self.attend()?;
            if let Some((session, _)) = &self.session {
                session.receive.iter().for_each(|ring| ring.poll(&session.regions, true));
            }
        }
        let Some((session, _)) = self.session.as_mut().filter(|(session, _)| session.is_up()) else {
            return Ok(0);
        };
        let (mut frames, mut looked, mut empty, mut broken) = (0, 0, 0, false);
        let rings = session.receive.len();
        while looked < budget && empty < rings && !broken {
            self.frame.clear();
            let Some(taken) = session.receive[self.turn % rings].take(&session.regions, &mut self.frame) else {
                (empty, self.turn) = (empty + 1, self.turn.wrapping_add(1));
                continue;
            };
            (looked, empty) = (looked + 1, 0);
            match taken {
                Ok(()) => {
                    each(&self.frame);
                    frames += 1;
                }
                Err(fault) => {
                    self.counters.lost(fault.name(), 1);
                    broken = fault == Fault::Index;
                }
            }
        }
        // The ring that was not emptied is the last to have its turn again.
        self.turn = self.turn.wrapping_add(1);
        for ring in &mut session.receive {
            if self.side == Side::Client {
                ring.offer(&session.regions, BUFFER_BYTES);
            }
            ring.publish(&session.regions);
        }
        self.counters.received += frames;
        if broken {
            self.end(INDEX_IS_WRONG);
        }
        Ok(looked)
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        if !self.link.carries(frame) {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        let queues = self.session.as_ref().map_or(1, |(session, _)| session.transmit.len());
        let queue = self.spread.ring(frame, queues);
        let Some((session, _)) = self.session.as_mut().filter(|(session, _)| session.is_up()) else {
            self.counters.refused += 1;
            return Ok(());
        };
        match session.transmit[queue].put(&session.regions, frame, BUFFER_BYTES) {
            Ok(true) => self.counters.went_out(frame.len() as u64),
            Ok(false) => self.counters.refused += 1,
            Err(fault) => {
                self.counters.refused += 1;
                if fault == Fault::Index {
                    self.end(INDEX_IS_WRONG);
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        if let Some((session, _)) = self.session.as_mut().filter(|(session, _)| session.is_up()) {
            for ring in &mut session.transmit {
                if ring.publish(&session.regions) {
                    // A counter that is full woke the peer already.
                    let _ = rustix::io::write(&ring.interrupt, &1u64.to_ne_bytes());
                }
            }
        }
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.waits.set(true);
        if let Some((session, _)) = &self.session {
            session.receive.iter().for_each(|ring| ring.poll(&session.regions, false));
            if session.receive.iter().any(|ring| ring.has_frames(&session.regions)) {
                return None;
            }
        }
        Some(self.wakes.as_fd())
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn look(&mut self) -> Result<(), LiveError> {
        self.attend()
    }

    fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }

    fn finish(&mut self) -> Result<(), LiveError> {
        self.flush()?;
        if let Some((session, _)) = &self.session {
            session.say_goodbye("the run is over");
        }
        Ok(())
    }
}
