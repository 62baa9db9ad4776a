//! vhost-user: the network adapter of a guest (QEMU's virtio-net, or DPDK's virtio-user), plugged into a
//! port. The hypervisor comes to a Unix socket; the guest's memory is mapped, and its queues are served
//! from here.
//!
//! | file | what it says |
//! | --- | --- |
//! | control.rs | the thread that does what the hypervisor asks for |
//! | guest.rs | memory, queues, features: what was asked for so far |
//! | queue.rs | one queue |
//!
//! Each frame is copied once each way, between the guest's memory and the frame that the NIC parses: a
//! frame that lay in the guest's memory while it is parsed could change between two looks at it.
//!
//! Left out: packed queues, migration (dirty logs, queues in flight), guests with an IOMMU.

mod control;
mod guest;
mod queue;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nicforge_units::Time;
use nicforge_wire::offload::{OFFLOAD_HEADER_LEN, Offload};
use nicforge_wire::unfinished::TxOffload;
use rustix::event::{Timespec, epoll};

use super::spread::Spread;
use super::{BegunFrame, HEADERS_MAX, Link, Port, PortCounters, finish_and_send, hand_over};
use crate::live::LiveError;
use control::Control;
use guest::Guest;
use queue::Fault;

/// Pairs of queues of one port, at most.
pub const VHOST_USER_QUEUES_MAX: u16 = 16;

/// A port that a guest is plugged into.
pub struct VhostUserPort {
    link: Link,
    guest: Arc<Mutex<Guest>>,
    control: Control,
    wakes: Arc<OwnedFd>,
    waits: Cell<bool>,
    /// The pair whose turn it is.
    turn: usize,
    spread: Spread,
    frame: Vec<u8>,
    scratch: Vec<u8>,
    note: Option<String>,
    counters: PortCounters,
}

fn locked(guest: &Mutex<Guest>) -> MutexGuard<'_, Guest> {
    guest.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VhostUserPort {
    /// Waits at the Unix socket `path` for a guest with at most `pairs` pairs of queues, for frames with `mtu`
    /// bytes behind the Ethernet header.
    ///
    /// # Errors
    /// The path cannot be had, or the system refuses.
    pub fn open(path: &Path, pairs: u16, mtu: usize) -> Result<VhostUserPort, LiveError> {
        let name = format!("vhost-user {}", path.display());
        let failed = |cause: io::Error| LiveError::of(name.clone())(cause);
        let wakes = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|cause| failed(cause.into()))?;
        let wakes = Arc::new(wakes);
        let guest = Arc::new(Mutex::new(Guest::new(pairs, wakes.clone())));
        let control = Control::new(path, guest.clone()).map_err(failed)?;
        Ok(VhostUserPort {
            link: Link::made(name, mtu),
            guest,
            control,
            wakes,
            waits: Cell::new(true),
            turn: 0,
            spread: Spread::default(),
            frame: Vec::new(),
            scratch: Vec::new(),
            note: None,
            counters: PortCounters::default(),
        })
    }

    /// What a guest did that it must not.
    fn mistrust(&mut self, fault: Fault) {
        if fault == Fault::Ring {
            let name = self.link.name();
            self.note = Some(format!("{name}: a queue of the guest is broken and stopped until its driver restarts"));
        }
    }

    /// Gives the guest a frame behind its header.
    fn give(&mut self, header: &[u8; OFFLOAD_HEADER_LEN], parts: [&[u8]; 2]) {
        let bytes = parts[0].len() + parts[1].len();
        let mut guest = locked(&self.guest);
        let pairs = guest.pairs_on();
        // What a ring is chosen by lies in the headers.
        let given = match pairs {
            0 => Ok(false),
            _ => guest.put(self.spread.ring(parts[0], pairs), header, parts),
        };
        drop(guest);
        match given {
            Ok(true) => self.counters.went_out(bytes as u64),
            Ok(false) => self.counters.refused += 1,
            Err(fault) => {
                self.counters.refused += 1;
                self.mistrust(fault);
            }
        }
    }
}

impl Port for VhostUserPort {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        self.receive_unfinished(budget, 0, &mut |frame, _| each(frame))
    }

    fn receive_unfinished(
        &mut self,
        budget: usize,
        longest: usize,
        each: &mut dyn FnMut(&[u8], TxOffload),
    ) -> Result<usize, LiveError> {
        let guest = self.guest.clone();
        let mut guest = locked(&guest);
        if self.waits.take() {
            let mut events = [const { std::mem::MaybeUninit::uninit() }; 32];
            // What it reports is looked at anyway; this makes the next kick wake us again.
            let _ = epoll::wait(&*self.wakes, &mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            guest.poll();
        }
        let (mut frames, mut looked, mut empty) = (0, 0, 0);
        let pairs = guest.pairs();
        while looked < budget && empty < pairs {
            self.frame.clear();
            let Some(taken) = guest.take(self.turn % pairs, &mut self.frame) else {
                (empty, self.turn) = (empty + 1, self.turn.wrapping_add(1));
                continue;
            };
            empty = 0;
            match taken {
                Ok(offload) => match hand_over(&offload, &mut self.frame, longest, &mut self.scratch, each) {
                    Ok(more) => (frames, looked) = (frames + more as u64, looked + more),
                    Err(error) => {
                        looked += 1;
                        self.counters.lost(error.name(), 1);
                    }
                },
                Err(fault) => {
                    looked += 1;
                    self.counters.lost(fault.name(), 1);
                    self.mistrust(fault);
                }
            }
        }
        self.turn = self.turn.wrapping_add(1);
        guest.publish(false);
        self.counters.received += frames;
        Ok(looked)
    }

    fn takes_segments(&self) -> bool {
        true
    }

    fn send_unfinished(&mut self, frame: &[u8], left: TxOffload, now: Time) -> Result<(), LiveError> {
        let mut room = [0; HEADERS_MAX];
        let begun = BegunFrame::of(frame, left, &mut room);
        let begun = begun.filter(|it| locked(&self.guest).finishes(&Offload::decode(&it.begun.header)));
        let Some(BegunFrame { begun, headers, rest }) = begun else {
            return finish_and_send(self, frame, left, now);
        };
        if begun.l3_len > self.link.mtu {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        self.give(&begun.header, [headers, rest]);
        Ok(())
    }

    fn send(&mut self, frame: &[u8], _now: Time) -> Result<(), LiveError> {
        if !self.link.carries(frame) {
            self.counters.above_mtu += 1;
            return Ok(());
        }
        self.give(&[0; OFFLOAD_HEADER_LEN], [frame, &[]]);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        locked(&self.guest).publish(true);
        Ok(())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.waits.set(true);
        let has_more = locked(&self.guest).await_kick();
        (!has_more).then(|| self.wakes.as_fd())
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn look(&mut self) -> Result<(), LiveError> {
        let (is_up, is_short) = {
            let guest = locked(&self.guest);
            (guest.is_up(), guest.is_short())
        };
        if is_short {
            self.control.hang_up("the guest's memory became shorter");
        }
        if is_up {
            self.link.is_up = true
        } else {
            self.link.went_down()
        }
        if let Some(why) = self.control.take_note() {
            self.note = Some(format!("{}: the guest was left: {why}", self.link.name()));
        }
        Ok(())
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
}
