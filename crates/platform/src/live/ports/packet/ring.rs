//! The receive ring that a packet socket shares with the kernel (PACKET_RX_RING, version 2 of its slots;
//! Documentation/networking/packet_mmap.rst of Linux). The kernel copies frames into slots as they arrive, in the context of
//! whoever sends them, and no call is needed to have them.
//!
//! ```text
//!   slot: status, lengths, tag │ … │ offload header │ frame
//! ```
//!
//! Segments are longer than slots, which are small as they should stay in caches. Of those the kernel keeps the whole in the socket,
//! too (PACKET_COPY_THRESH), to be received as from any socket.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::c_int;
use nicforge_wire::headers::{VLAN_TAG_LEN, ethertype};
use nicforge_wire::offload::OFFLOAD_HEADER_LEN;

use super::super::mapping::Mapping;
use super::super::system;

/// Bytes of a slot: a frame of 1518 bytes and what stands before it.
const SLOT: usize = 2048;
const SLOTS: usize = 4096;
/// The kernel allocates so many at once.
const SLOTS_OF_BLOCK: usize = 32;

// From linux/if_packet.h.
const PACKET_RX_RING: c_int = 5;
const PACKET_COPY_THRESH: c_int = 7;
const PACKET_VERSION: c_int = 10;
const TPACKET_V2: c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
const TP_STATUS_COPY: u32 = 1 << 1;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// What is asked for (struct tpacket_req).
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    block_bytes: u32,
    blocks: u32,
    slot_bytes: u32,
    slots: u32,
}

/// How a slot begins (struct tpacket2_hdr).
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    status: u32,
    len: u32,
    here: u32,
    frame: u16,
    network: u16,
    seconds: u32,
    nanoseconds: u32,
    tag: u16,
    tag_kind: u16,
    padding: [u8; 4],
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lies {
    /// All of it in the slot.
    Here,
    /// In the socket.
    InSocket,
    /// Nowhere: the socket had no room.
    Lost,
}

/// The oldest frame of the ring.
pub(super) struct Front<'a> {
    /// Offload header and frame, as far as they are in the slot.
    pub bytes: &'a mut [u8],
    /// The VLAN tag that the kernel took out of the frame, as it stood there.
    pub tag: Option<[u8; VLAN_TAG_LEN]>,
    pub lies: Lies,
}

/// The ring.
pub(super) struct FrameRing {
    memory: Mapping,
    /// The slot of the next frame.
    next: usize,
}

impl FrameRing {
    /// A ring for `socket`, which gets no frames yet.
    pub fn new(socket: BorrowedFd<'_>) -> io::Result<FrameRing> {
        let set = |option, value| system::set_option(socket, libc::SOL_PACKET, option, value);
        set(PACKET_VERSION, TPACKET_V2)?;
        set(PACKET_COPY_THRESH, 1)?;
        let request = Request {
            block_bytes: (SLOT * SLOTS_OF_BLOCK) as u32,
            blocks: (SLOTS / SLOTS_OF_BLOCK) as u32,
            slot_bytes: SLOT as u32,
            slots: SLOTS as u32,
        };
        system::set_option(socket, libc::SOL_PACKET, PACKET_RX_RING, request)?;
        Ok(FrameRing { memory: Mapping::of(socket, SLOT * SLOTS, 0)?, next: 0 })
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        let at = slot % SLOTS * SLOT;
        let word = self.memory.pointer(at as u64, size_of::<AtomicU32>()).cast::<AtomicU32>();
        // SAFETY: slots are aligned to more than 4 bytes in a mapping of pages, and begin with their status; the kernel and we
        // change it as one word.
        unsafe { &*word }
    }

    /// The oldest frame that is not [released](Self::release) yet, if there is any.
    pub fn front(&mut self) -> Option<Front<'_>> {
        let status = self.status(self.next).load(Ordering::Acquire);
        if status & TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.memory.pointer((self.next * SLOT) as u64, SLOT);
        // SAFETY: the slot is ours while its status says so, that is until `release`, which needs `self`; the head has
        // integers only, and slots are aligned for them.
        let head = unsafe { slot.cast::<Head>().read() };
        // SAFETY: as above; nothing else refers to the slot's bytes.
        let slot = unsafe { std::slice::from_raw_parts_mut(slot, SLOT) };
        let begin = usize::from(head.frame).saturating_sub(OFFLOAD_HEADER_LEN).min(SLOT);
        let end = (usize::from(head.frame) + head.here as usize).clamp(begin, SLOT);
        Some(Front {
            bytes: &mut slot[begin..end],
            tag: tag_of(status, &head),
            lies: match (head.here < head.len, status & TP_STATUS_COPY != 0) {
                (false, _) => Lies::Here,
                (true, true) => Lies::InSocket,
                (true, false) => Lies::Lost,
            },
        })
    }

    /// How many frames from the oldest on lie in the socket, one after the other, at most `most`.
    pub fn in_socket(&self, most: usize) -> usize {
        let lies_there = |offset: &usize| {
            let status = self.status(self.next + offset).load(Ordering::Acquire);
            status & (TP_STATUS_USER | TP_STATUS_COPY) == TP_STATUS_USER | TP_STATUS_COPY
        };
        (0..most).take_while(lies_there).count()
    }

    /// Gives the slot of the oldest frame back.
    pub fn release(&mut self) {
        self.status(self.next).store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
    }
}

fn tag_of(status: u32, head: &Head) -> Option<[u8; VLAN_TAG_LEN]> {
    if status & TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = status & TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if known { head.tag_kind } else { ethertype::VLAN };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), head.tag.to_be_bytes());
    Some([a, b, c, d])
}
