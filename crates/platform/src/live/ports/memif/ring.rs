//! Rings of memif. The client owns all memory, so it puts descriptors in by `head`, and the server
//! gives them back by `tail`: full or empty, as the ring's direction says.
//!
//! ```text
//!   ring:  0 cookie │ 4 flags │ 6 head │ … │ 64 tail │ … │ 128 descriptors, 16 bytes each
//!   descriptor:  0 flags │ 2 region │ 4 length │ 8 offset │ 12 metadata
//!
//!   server's turn: tail ≤ slot < head      client's turn: head ≤ slot < tail + entries
//! ```
//!
//! | ring | the client | the server |
//! | --- | --- | --- |
//! | to the server | fills a slot, moves head | reads it, moves tail |
//! | to the client | offers an empty slot, moves head | fills it, moves tail |
//!
//! A peer may write anything at any time. So each side keeps its own index to itself, and takes only
//! the other's from the memory.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering, fence};

use super::super::foreign::ForeignMemory;
use super::message::{Direction, RingPlace};

/// Says that a ring is one.
pub const COOKIE: u32 = 0x03e3_1f20;
/// Bytes before the descriptors.
const HEADER_BYTES: usize = 128;
const DESCRIPTOR_BYTES: usize = 16;
const FLAGS_AT: usize = 4;
const HEAD_AT: usize = 6;
const TAIL_AT: usize = 64;
/// Flag of a ring: its consumer polls.
const NO_INTERRUPT: u16 = 1;
/// Flag of a descriptor: the frame goes on in the next.
const GOES_ON: u16 = 1;
/// Log2 of the entries of the largest ring: indexes have 16 bits.
pub const LOG2_ENTRIES_MAX: u8 = 14;
/// Longest frame that is taken, in bytes: a segment that its sender left to the NIC to cut.
pub const FRAME_BYTES_MAX: usize = 65_550;

/// Which side of a ring we are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Ours is the memory.
    Client,
    /// The other's is.
    Server,
}

/// What a peer did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// More entries are its than the ring has: nothing in the ring can be believed.
    Index,
    /// A descriptor leads out of the regions; its frame is lost.
    Outside,
    /// A frame goes on behind the last descriptor; it is lost.
    Unfinished,
    /// A frame is longer than any.
    Length,
    /// A frame has no bytes.
    Empty,
}

impl Fault {
    /// The drop counter's name.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Index => "memif_ring_index",
            Fault::Outside => "memif_descriptor_outside",
            Fault::Unfinished => "memif_frame_unfinished",
            Fault::Length => "longer_than_any_frame",
            Fault::Empty => "memif_frame_empty",
        }
    }
}

/// What a descriptor says.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    goes_on: bool,
    region: u16,
    length: u32,
    offset: u32,
}

/// Bytes of a ring with `1 << log2_entries` entries.
pub const fn ring_bytes(log2_entries: u8) -> usize {
    HEADER_BYTES + (DESCRIPTOR_BYTES << log2_entries)
}

/// A ring, from our side of it.
#[derive(Debug)]
pub struct Ring {
    side: Side,
    place: RingPlace,
    /// Tells the other side that there are frames, or us.
    pub interrupt: OwnedFd,
    /// Our index, published or not: head as client, tail as server.
    own: u16,
    /// As client: up to where the other side gave slots back.
    seen: u16,
    /// What was published of `own`.
    published: u16,
}

impl Ring {
    /// The ring at `place`, if `regions` have it and it begins with a cookie.
    pub fn new(side: Side, place: RingPlace, interrupt: OwnedFd, regions: &[ForeignMemory]) -> Option<Ring> {
        let memory = regions.get(usize::from(place.region))?;
        let at = place.offset as usize;
        let fits = place.log2_entries <= LOG2_ENTRIES_MAX
            && at.checked_add(ring_bytes(place.log2_entries)).is_some_and(|end| end <= memory.len());
        if !fits || memory.word(at)?.load(Ordering::Relaxed) != COOKIE {
            return None;
        }
        let begin = memory.half(at + TAIL_AT)?.load(Ordering::Acquire);
        let own = if side == Side::Server { begin } else { 0 };
        Some(Ring { side, place, interrupt, own, seen: 0, published: own })
    }

    /// Writes an empty ring to where it is to be, as client; its slots are the buffers of `buffer_bytes`
    /// each from `buffers` on.
    pub fn lay_out(place: &RingPlace, memory: &ForeignMemory, buffers: usize, buffer_bytes: u32) -> Option<()> {
        let at = place.offset as usize;
        memory.word(at)?.store(COOKIE, Ordering::Relaxed);
        memory.half(at + FLAGS_AT)?.store(0, Ordering::Relaxed);
        for slot in 0..1u32 << place.log2_entries {
            let offset = buffers as u32 + slot * buffer_bytes;
            let mut descriptor = [0; DESCRIPTOR_BYTES];
            descriptor[2..4].copy_from_slice(&place.region.to_ne_bytes());
            descriptor[4..8].copy_from_slice(&buffer_bytes.to_ne_bytes());
            descriptor[8..12].copy_from_slice(&offset.to_ne_bytes());
            memory.copy_in(at + HEADER_BYTES + slot as usize * DESCRIPTOR_BYTES, &descriptor).then_some(())?;
        }
        Some(())
    }

    fn entries(&self) -> u16 {
        1 << self.place.log2_entries
    }

    fn half<'r>(&self, regions: &'r [ForeignMemory], at: usize) -> &'r AtomicU16 {
        // `new` looked whether the ring is inside; regions stay as long as their rings.
        let word = regions[usize::from(self.place.region)].half(self.place.offset as usize + at);
        word.expect("a ring lies within its region")
    }

    fn descriptor_at(&self, slot: u16) -> usize {
        let number = usize::from(slot % self.entries());
        self.place.offset as usize + HEADER_BYTES + number * DESCRIPTOR_BYTES
    }

    fn descriptor(&self, regions: &[ForeignMemory], slot: u16) -> Descriptor {
        let memory = &regions[usize::from(self.place.region)];
        let word = |at| memory.word(self.descriptor_at(slot) + at).expect("as above").load(Ordering::Relaxed);
        let [flags, region] = [word(0) as u16, (word(0) >> 16) as u16];
        Descriptor { goes_on: flags & GOES_ON != 0, region, length: word(4), offset: word(8) }
    }

    fn set_flags(&self, regions: &[ForeignMemory], slot: u16, goes_on: bool) {
        let memory = &regions[usize::from(self.place.region)];
        let flags = if goes_on { GOES_ON } else { 0 };
        memory.half(self.descriptor_at(slot)).expect("as above").store(flags, Ordering::Relaxed);
    }

    /// Says how long the frame, or its part, in `slot` is.
    fn set_descriptor(&self, regions: &[ForeignMemory], slot: u16, length: u32, goes_on: bool) {
        self.set_flags(regions, slot, goes_on);
        let memory = &regions[usize::from(self.place.region)];
        let at = self.descriptor_at(slot);
        memory.word(at + 4).expect("as above").store(length, Ordering::Relaxed);
    }

    /// Slots that are ours: with frames to be taken, or empty ones.
    fn ours(&self, regions: &[ForeignMemory]) -> Result<u16, Fault> {
        let (theirs_at, mine) = match self.side {
            Side::Client => (TAIL_AT, self.seen),
            Side::Server => (HEAD_AT, self.own),
        };
        let theirs = self.half(regions, theirs_at).load(Ordering::Acquire);
        let moved = theirs.wrapping_sub(mine);
        let most = match self.side {
            Side::Client => self.published.wrapping_sub(self.seen),
            Side::Server => self.entries(),
        };
        if moved <= most { Ok(moved) } else { Err(Fault::Index) }
    }

    /// Puts the bytes of the next frame into `frame`, which is empty; `None` when there is no frame. A fault
    /// that is not of an index takes its frame away.
    pub fn take(&mut self, regions: &[ForeignMemory], frame: &mut Vec<u8>) -> Option<Result<(), Fault>> {
        let ours = match self.ours(regions) {
            Ok(0) => return None,
            Ok(ours) => ours,
            Err(fault) => return Some(Err(fault)),
        };
        let mut result = Ok(());
        let mut taken = 0;
        loop {
            let slot = self.next().wrapping_add(taken);
            let descriptor = self.descriptor(regions, slot);
            taken += 1;
            let len = descriptor.length as usize;
            let region = regions.get(usize::from(descriptor.region));
            let copied = match region {
                _ if frame.len() + len > FRAME_BYTES_MAX => Err(Fault::Length),
                Some(region) if region.copy_out(descriptor.offset as usize, len, frame) => Ok(()),
                _ => Err(Fault::Outside),
            };
            result = result.and(copied);
            if !descriptor.goes_on {
                break;
            }
            // DPDK's client only ever sets this flag, and would join the next frame to another.
            self.set_flags(regions, slot, false);
            if taken == ours {
                result = result.and(Err(Fault::Unfinished));
                break;
            }
        }
        if result.is_ok() && frame.is_empty() {
            result = Err(Fault::Empty);
        }
        self.advance(taken);
        Some(result)
    }

    /// The first slot that is ours.
    fn next(&self) -> u16 {
        match (self.side, self.place.direction) {
            // Filled by us, from our head on.
            (Side::Client, Direction::ToServer) => self.own,
            (Side::Client, Direction::ToClient) => self.seen,
            (Side::Server, _) => self.own,
        }
    }

    fn advance(&mut self, slots: u16) {
        match (self.side, self.place.direction) {
            (Side::Client, Direction::ToClient) => self.seen = self.seen.wrapping_add(slots),
            _ => self.own = self.own.wrapping_add(slots),
        }
    }

    /// Empty slots for frames of ours.
    fn room(&mut self, regions: &[ForeignMemory]) -> Result<u16, Fault> {
        let ours = self.ours(regions)?;
        if self.side == Side::Server {
            return Ok(ours);
        }
        self.seen = self.seen.wrapping_add(ours);
        Ok(self.entries() - self.own.wrapping_sub(self.seen))
    }

    /// Puts the parts of a frame into as many slots as they need; `false` when there are too few. The
    /// other side sees it when [published](Self::publish). `buffer_bytes` is what our own buffers hold.
    pub fn put(&mut self, regions: &[ForeignMemory], frame: &[u8], buffer_bytes: u32) -> Result<bool, Fault> {
        let room = self.room(regions)?;
        let (mut rest, mut slots) = (frame, 0);
        while slots == 0 || !rest.is_empty() {
            if slots == room {
                return Ok(false);
            }
            let slot = self.next().wrapping_add(slots);
            let descriptor = self.descriptor(regions, slot);
            let holds = if self.side == Side::Client { buffer_bytes } else { descriptor.length };
            let (part, behind) = rest.split_at(rest.len().min(holds as usize));
            let region = regions.get(usize::from(descriptor.region));
            let is_copied = region.is_some_and(|region| region.copy_in(descriptor.offset as usize, part));
            if part.is_empty() || !is_copied {
                // The slot goes back as it is, or it would be in the way for ever.
                self.set_descriptor(regions, slot, 0, false);
                self.advance(slots + 1);
                return Err(Fault::Outside);
            }
            self.set_descriptor(regions, slot, part.len() as u32, !behind.is_empty());
            (rest, slots) = (behind, slots + 1);
        }
        self.advance(slots);
        Ok(true)
    }

    /// As client: offers all empty slots of a ring that frames come in by.
    pub fn offer(&mut self, regions: &[ForeignMemory], buffer_bytes: u32) {
        let end = self.seen.wrapping_add(self.entries());
        while self.own != end {
            self.set_descriptor(regions, self.own, buffer_bytes, false);
            self.own = self.own.wrapping_add(1);
        }
    }

    /// Publishes the position to the other side. Whether that side wants an interrupt.
    pub fn publish(&mut self, regions: &[ForeignMemory]) -> bool {
        if self.published == self.own {
            return false;
        }
        let at = if self.side == Side::Client { HEAD_AT } else { TAIL_AT };
        self.half(regions, at).store(self.own, Ordering::Release);
        self.published = self.own;
        // The index is stored before the flag is looked at; the other side does it the other way round.
        fence(Ordering::SeqCst);
        self.half(regions, FLAGS_AT).load(Ordering::Relaxed) & NO_INTERRUPT == 0
    }

    /// Whether we poll the ring, or want an interrupt.
    pub fn poll(&self, regions: &[ForeignMemory], polls: bool) {
        let flags = if polls { NO_INTERRUPT } else { 0 };
        self.half(regions, FLAGS_AT).store(flags, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether there is a frame to take, or nonsense.
    pub fn has_frames(&self, regions: &[ForeignMemory]) -> bool {
        self.ours(regions) != Ok(0)
    }

    /// Where it lies.
    #[cfg(test)]
    pub fn place(&self) -> &RingPlace {
        &self.place
    }

    /// Slots that we used, wrapping.
    #[cfg(test)]
    pub fn moved(&self) -> u16 {
        self.published
    }
}
