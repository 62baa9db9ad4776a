//! One virtqueue of a guest (Virtual I/O Device specification 1.2, sections 2.7 and 5.1.6), from the
//! device's side. The guest is trusted with nothing: what it says is checked against its memory.
//!
//! The virtio-queue crate reads available descriptors. Used ones are written here: all buffers of a
//! frame must become visible at once, which the crate does one by one.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{Ordering, fence};

use nicforge_wire::offload::OFFLOAD_HEADER_LEN;
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Entries of the largest queue.
pub const ENTRIES_MAX: u16 = 1024;
/// Longest frame that is taken, in bytes: a segment that its sender left to the NIC to cut.
const FRAME_BYTES_MAX: usize = 65_550;
/// Flag of the available ring: the guest does not want to be interrupted.
const NO_INTERRUPT: u16 = 1;

/// What a guest did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The ring itself cannot be believed: it is stopped.
    Ring,
    /// A descriptor leads out of the guest's memory, or is of the wrong kind; its frame is lost.
    Outside,
    /// There is no whole header, or nothing behind it.
    Short,
    /// A frame is longer than any.
    Length,
}

impl Fault {
    /// The drop counter's name.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Ring => "virtio_ring_broken",
            Fault::Outside => "virtio_descriptor_outside",
            Fault::Short => "virtio_frame_short",
            Fault::Length => "longer_than_any_frame",
        }
    }
}

/// How frames lie in buffers, as was negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// A frame may take several buffers (VIRTIO_NET_F_MRG_RXBUF).
    pub merges: bool,
    /// The header ends with a count of buffers; also without merging, since version 1.
    pub has_count: bool,
}

impl Format {
    /// Bytes of the header.
    pub fn header_bytes(self) -> usize {
        OFFLOAD_HEADER_LEN + if self.has_count { 2 } else { 0 }
    }
}

/// A queue.
#[derive(Debug)]
pub struct Virtqueue {
    queue: Queue,
    /// The guest rings it when there is something new.
    pub kick: Option<File>,
    /// We ring it when something was used.
    pub call: Option<File>,
    /// Whether the guest's driver uses it.
    pub is_enabled: bool,
    /// Used so far, and what the guest knows of that; both wrap.
    used: u16,
    published: u16,
    /// Whether it was stopped because nothing of it could be believed.
    is_broken: bool,
}

impl Virtqueue {
    /// One that has no place yet.
    pub fn new() -> Virtqueue {
        Virtqueue {
            // The size is a power of two that the crate knows.
            queue: Queue::new(ENTRIES_MAX).expect("a size that is allowed"),
            kick: None,
            call: None,
            is_enabled: false,
            used: 0,
            published: 0,
            is_broken: false,
        }
    }

    /// Sets the number of entries; whether it is one.
    pub fn set_size(&mut self, entries: u32) -> bool {
        u16::try_from(entries).is_ok_and(|entries| self.queue.try_set_size(entries).is_ok())
    }

    /// Sets where it lies: descriptors, available and used ring.
    pub fn set_place(&mut self, descriptors: u64, available: u64, used: u64) -> bool {
        let queue = &mut self.queue;
        queue.try_set_desc_table_address(GuestAddress(descriptors)).is_ok()
            && queue.try_set_avail_ring_address(GuestAddress(available)).is_ok()
            && queue.try_set_used_ring_address(GuestAddress(used)).is_ok()
    }

    /// Begins to use it; whether it lies in the guest's memory.
    pub fn start(&mut self, memory: &GuestMemoryMmap, next: u16, event_index: bool) -> bool {
        self.queue.set_next_avail(next);
        self.queue.set_event_idx(event_index);
        self.queue.set_ready(true);
        let valid = self.queue.is_valid(memory);
        self.queue.set_ready(valid);
        self.is_broken = false;
        let used = self.queue.used_idx(memory, Ordering::Acquire).map_or(0, |used| used.0);
        (self.used, self.published) = (used, used);
        valid
    }

    /// Stops it; returns the number of the next descriptor that was not looked at.
    pub fn stop(&mut self) -> u16 {
        self.queue.set_ready(false);
        self.queue.next_avail()
    }

    /// Whether frames can pass.
    pub fn is_on(&self) -> bool {
        self.is_enabled && self.queue.ready() && !self.is_broken
    }

    fn broken<T>(&mut self) -> Result<T, Fault> {
        self.is_broken = true;
        Err(Fault::Ring)
    }

    /// Puts the bytes of the next frame that the guest sends into `frame`, its header in front; `None` when
    /// there is none.
    pub fn take(&mut self, memory: &GuestMemoryMmap, format: Format, frame: &mut Vec<u8>) -> Option<Result<(), Fault>> {
        let chain = match self.queue.iter(memory) {
            Ok(mut chains) => chains.next()?,
            Err(_) => return Some(self.broken()),
        };
        let head = chain.head_index();
        let mut result = Ok(());
        for descriptor in chain {
            let (begin, len) = (frame.len(), descriptor.len() as usize);
            if descriptor.is_write_only() {
                result = Err(Fault::Outside);
            } else if begin + len > FRAME_BYTES_MAX {
                result = Err(Fault::Length);
            } else {
                frame.resize(begin + len, 0);
                if memory.read_slice(&mut frame[begin..], descriptor.addr()).is_err() {
                    result = Err(Fault::Outside);
                }
            }
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() && frame.len() <= format.header_bytes() {
            result = Err(Fault::Short);
        }
        match self.use_up(memory, head, 0) {
            Ok(()) => Some(result),
            Err(fault) => Some(Err(fault)),
        }
    }

    /// Gives the guest a frame of `parts`, in front of which `header` says what is left to do; `false` when
    /// it has too few buffers for it.
    pub fn put(
        &mut self,
        memory: &GuestMemoryMmap,
        format: Format,
        header: &[u8; OFFLOAD_HEADER_LEN],
        parts: [&[u8]; 2],
    ) -> Result<bool, Fault> {
        let first = self.queue.next_avail();
        let before = self.used;
        let mut count = [0u8; 2];
        // The count of buffers is known in the end.
        let header_parts = [&header[..], &count[..format.header_bytes() - OFFLOAD_HEADER_LEN]];
        let mut source = Source { parts: [header_parts[0], header_parts[1], parts[0], parts[1]], next: 0 };
        let mut at_count = None;
        let mut buffers = 0u16;
        while source.left() > 0 {
            let chain = match self.queue.iter(memory) {
                Ok(mut chains) => chains.next(),
                Err(_) => return self.broken(),
            };
            let Some(chain) = chain.filter(|_| buffers == 0 || format.merges) else {
                // None of it was shown to the guest.
                self.queue.set_next_avail(first);
                self.used = before;
                return Ok(false);
            };
            let head = chain.head_index();
            let mut written = 0;
            for descriptor in chain {
                if !descriptor.is_write_only() {
                    self.use_up(memory, head, 0)?;
                    return Err(Fault::Outside);
                }
                let mut room = descriptor.len() as usize;
                let mut place = descriptor.addr();
                while room > 0 && source.left() > 0 {
                    if source.next == 1 {
                        at_count = Some(place);
                    }
                    let piece = source.take(room);
                    if memory.write_slice(piece, place).is_err() {
                        self.use_up(memory, head, 0)?;
                        return Err(Fault::Outside);
                    }
                    room -= piece.len();
                    written += piece.len();
                    place = GuestAddress(place.0.wrapping_add(piece.len() as u64));
                }
            }
            if written == 0 {
                // It would never end.
                self.use_up(memory, head, 0)?;
                return Err(Fault::Outside);
            }
            self.use_up(memory, head, written as u32)?;
            buffers += 1;
        }
        if let Some(place) = at_count.filter(|_| format.has_count) {
            count = buffers.to_le_bytes();
            if memory.write_slice(&count, place).is_err() {
                return self.broken();
            }
        }
        Ok(true)
    }

    /// Writes into the used ring that the chain at `head` is used; the guest sees it when
    /// [published](Self::publish).
    fn use_up(&mut self, memory: &GuestMemoryMmap, head: u16, len: u32) -> Result<(), Fault> {
        const ELEMENTS: u64 = 4;
        let entry = u64::from(self.used % self.queue.size());
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        element[4..].copy_from_slice(&len.to_le_bytes());
        let at = self.queue.used_ring().wrapping_add(ELEMENTS + 8 * entry);
        if head >= self.queue.size() || memory.write_slice(&element, GuestAddress(at)).is_err() {
            return self.broken();
        }
        self.used = self.used.wrapping_add(1);
        Ok(())
    }

    /// Shows the guest what was used, and interrupts it where it wants that.
    pub fn publish(&mut self, memory: &GuestMemoryMmap) {
        if self.published == self.used || !self.is_on() {
            return;
        }
        const INDEX: u64 = 2;
        let at = GuestAddress(self.queue.used_ring().wrapping_add(INDEX));
        if memory.store(self.used.to_le(), at, Ordering::Release).is_err() {
            self.is_broken = true;
            return;
        }
        let before = std::mem::replace(&mut self.published, self.used);
        // The index is stored before it is looked at whether the guest waits for it.
        fence(Ordering::SeqCst);
        let available = self.queue.avail_ring();
        let half = |at: u64| memory.load::<u16>(GuestAddress(at), Ordering::Relaxed).map(u16::from_le);
        let wants = if self.queue.event_idx_enabled() {
            let at = available.wrapping_add(4 + 2 * u64::from(self.queue.size()));
            // Section 2.7.7.2: whether the index passed the one that the guest waits for.
            half(at).map(|event| self.used.wrapping_sub(event).wrapping_sub(1) < self.used.wrapping_sub(before))
        } else {
            half(available).map(|flags| flags & NO_INTERRUPT == 0)
        };
        if wants.unwrap_or(false)
            && let Some(call) = &mut self.call
        {
            // A counter that is full has rung already.
            let _ = call.write(&1u64.to_ne_bytes());
        }
    }

    /// The guest need not kick: we look.
    pub fn poll(&mut self, memory: &GuestMemoryMmap) {
        if self.is_on() && self.queue.disable_notification(memory).is_err() {
            self.is_broken = true;
        }
    }

    /// The guest shall kick when there is something new; whether there is already.
    pub fn await_kick(&mut self, memory: &GuestMemoryMmap) -> bool {
        if !self.is_on() {
            return false;
        }
        match self.queue.enable_notification(memory) {
            Ok(has_more) => has_more,
            Err(_) => {
                self.is_broken = true;
                false
            }
        }
    }
}

/// Bytes in several pieces, taken one after another.
struct Source<'b> {
    parts: [&'b [u8]; 4],
    /// The first that is not empty.
    next: usize,
}

impl<'b> Source<'b> {
    fn left(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// At most `room` bytes, of one piece.
    fn take(&mut self, room: usize) -> &'b [u8] {
        while self.next < 3 && self.parts[self.next].is_empty() {
            self.next += 1;
        }
        let part = &mut self.parts[self.next];
        let (piece, rest) = part.split_at(part.len().min(room));
        *part = rest;
        while self.next < 3 && self.parts[self.next].is_empty() {
            self.next += 1;
        }
        piece
    }
}
