//! A guest as the device sees it: memory, queues, what was negotiated. The control channel changes it
//! (control.rs), and frames pass through it; a lock keeps the two apart.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use nicforge_wire::offload::{OFFLOAD_HEADER_LEN, Offload};
use rustix::event::epoll;
use vhost::vhost_user::{Error, Result};
use vm_memory::GuestMemoryMmap;

use super::super::foreign::Watch;
use super::queue::{Fault, Format, Virtqueue};

mod requests;

// Bits of virtio's features (Virtual I/O Device specification 1.2, sections 5.1.3 and 6).
const CHECKSUM: u64 = 1 << 0;
const GUEST_CHECKSUM: u64 = 1 << 1;
const GUEST_TSO4: u64 = 1 << 7;
const GUEST_TSO6: u64 = 1 << 8;
const HOST_TSO4: u64 = 1 << 11;
const HOST_TSO6: u64 = 1 << 12;
const MERGEABLE: u64 = 1 << 15;
const QUEUE_PAIRS: u64 = 1 << 22;
const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;
/// vhost-user's own: queues are enabled one by one, and there is more to negotiate.
const PROTOCOL: u64 = 1 << 30;
const VERSION_1: u64 = 1 << 32;
const OFFERED: u64 = CHECKSUM
    | GUEST_CHECKSUM
    | GUEST_TSO4
    | GUEST_TSO6
    | HOST_TSO4
    | HOST_TSO6
    | MERGEABLE
    | QUEUE_PAIRS
    | INDIRECT
    | EVENT_INDEX
    | PROTOCOL
    | VERSION_1;

/// A part of the guest's memory, as its hypervisor sees it.
#[derive(Debug)]
struct Part {
    /// Where the hypervisor has it.
    user: u64,
    guest: u64,
    bytes: u64,
}

/// What the guest's memory is at one time.
#[derive(Debug, Default)]
struct Memory {
    /// Go before the mappings.
    watches: Vec<Watch>,
    parts: Vec<Part>,
    mapped: GuestMemoryMmap,
}

impl Memory {
    /// Where the guest has what its hypervisor has at `user`.
    fn guest_address(&self, user: u64) -> Option<u64> {
        let part = self.parts.iter().find(|part| user.checked_sub(part.user).is_some_and(|at| at < part.bytes))?;
        part.guest.checked_add(user - part.user)
    }
}

/// A guest, or the place for one.
#[derive(Debug)]
pub struct Guest {
    /// All that can wake the device.
    wakes: Arc<OwnedFd>,
    pairs: u16,
    features: u64,
    has_protocol: bool,
    memory: Memory,
    /// Pair by pair: the guest receives by the first of each, and sends by the second.
    queues: Vec<Virtqueue>,
    bases: Vec<u16>,
}

/// What a guest was given, or gave.
pub type Passed = std::result::Result<bool, Fault>;

impl Guest {
    /// The place for a guest with as many pairs of queues.
    pub fn new(pairs: u16, wakes: Arc<OwnedFd>) -> Guest {
        let queues = 2 * usize::from(pairs);
        Guest {
            wakes,
            pairs,
            features: 0,
            has_protocol: false,
            memory: Memory::default(),
            queues: (0..queues).map(|_| Virtqueue::new()).collect(),
            bases: vec![0; queues],
        }
    }

    /// The guest is gone.
    pub fn leave(&mut self) {
        for number in 0..self.queues.len() {
            self.forget_kick(number);
        }
        *self = Guest::new(self.pairs, self.wakes.clone());
    }

    /// Whether frames can pass.
    pub fn is_up(&self) -> bool {
        self.queues.chunks_exact(2).any(|pair| pair.iter().all(Virtqueue::is_on))
    }

    #[cfg(test)]
    pub fn are_enabled(&self) -> bool {
        self.queues.iter().all(|queue| queue.is_enabled)
    }

    /// Whether the memory lost bytes that are mapped.
    pub fn is_short(&self) -> bool {
        self.memory.watches.iter().any(Watch::is_broken)
    }

    fn has(&self, features: u64) -> bool {
        self.features & features == features
    }

    fn format(&self) -> Format {
        let merges = self.has(MERGEABLE);
        Format { merges, has_count: merges || self.has(VERSION_1) }
    }

    /// Whether the guest finishes what `left` says by itself.
    pub fn finishes(&self, left: &Offload) -> bool {
        self.has(GUEST_CHECKSUM)
            && match left.kind {
                0 => true,
                Offload::TCP_V4 => self.has(GUEST_TSO4),
                Offload::TCP_V6 => self.has(GUEST_TSO6),
                _ => false,
            }
    }

    /// Pairs of queues that the guest receives by.
    pub fn pairs_on(&self) -> usize {
        self.queues.iter().step_by(2).take_while(|queue| queue.is_on()).count()
    }

    /// Pairs of queues.
    pub fn pairs(&self) -> usize {
        self.pairs.into()
    }

    /// Takes the next frame that the guest sends by `pair` into `frame`, which is empty, and what is left to do
    /// for it; `None` when there is none.
    pub fn take(&mut self, pair: usize, frame: &mut Vec<u8>) -> Option<std::result::Result<Offload, Fault>> {
        let format = self.format();
        let queue = &mut self.queues[2 * pair + 1];
        if !queue.is_on() {
            return None;
        }
        let taken = queue.take(&self.memory.mapped, format, frame)?;
        Some(taken.map(|()| {
            let offload = frame.first_chunk::<OFFLOAD_HEADER_LEN>().map(Offload::decode).unwrap_or_default();
            frame.drain(..format.header_bytes());
            offload
        }))
    }

    /// Gives the guest a frame by `pair`.
    pub fn put(&mut self, pair: usize, header: &[u8; OFFLOAD_HEADER_LEN], parts: [&[u8]; 2]) -> Passed {
        let format = self.format();
        let queue = &mut self.queues[2 * pair];
        if queue.is_on() { queue.put(&self.memory.mapped, format, header, parts) } else { Ok(false) }
    }

    /// Shows the guest what it was given, or what of its own was taken.
    pub fn publish(&mut self, given: bool) {
        let queues = self.queues.iter_mut().skip(usize::from(!given)).step_by(2);
        queues.for_each(|queue| queue.publish(&self.memory.mapped));
    }

    /// Polls what the guest sends.
    pub fn poll(&mut self) {
        let queues = self.queues.iter_mut().skip(1).step_by(2);
        queues.for_each(|queue| queue.poll(&self.memory.mapped));
    }

    /// Waits for kicks; whether there is something already.
    pub fn await_kick(&mut self) -> bool {
        // Each of them, whatever the others have.
        let queues = self.queues.iter_mut().skip(1).step_by(2);
        queues.filter_map(|queue| queue.await_kick(&self.memory.mapped).then_some(())).count() > 0
    }

    fn queue(&mut self, index: u32) -> Result<&mut Virtqueue> {
        self.queues.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// Without this the file of a kick would wake us as long as the hypervisor has it.
    fn forget_kick(&mut self, number: usize) {
        if let Some(kick) = self.queues[number].kick.take() {
            let _ = epoll::delete(&*self.wakes, &kick);
        }
    }

    fn start(&mut self, number: usize) -> Result<()> {
        let event_index = self.has(EVENT_INDEX);
        let queue = &mut self.queues[number];
        // Without the choice all are enabled.
        queue.is_enabled |= !self.has_protocol;
        if queue.start(&self.memory.mapped, self.bases[number], event_index) {
            Ok(())
        } else {
            Err(Error::InvalidParam)
        }
    }
}
