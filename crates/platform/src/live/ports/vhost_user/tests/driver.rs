//! A guest's driver and its hypervisor, as far as tests need them.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::EventFd;

use crate::live::ports::foreign::ForeignMemory;

/// Where the hypervisor has the guest's memory, and where the guest has it.
pub(super) const USER: u64 = 0x7f00_0000_0000;
pub(super) const GUEST: u64 = 0x4000_0000;
pub(super) const BYTES: u64 = 4 << 20;
/// Entries of a queue; queue `q` begins at `q * QUEUE`: descriptors, available ring, used ring.
pub(super) const ENTRIES: u16 = 64;
pub(super) const QUEUE: usize = 0x4000;
pub(super) const AVAILABLE: usize = 0x1000;
pub(super) const USED: usize = 0x2000;
pub(super) const BUFFERS: usize = 0x4_0000;
// Flags of descriptors.
pub(super) const NEXT: u16 = 1;
pub(super) const WRITE: u16 = 2;
pub(super) const INDIRECT: u16 = 4;
// Bits of features.
pub(super) const ALL: u64 = 0x1_7040_9983;
pub(super) const MERGEABLE: u64 = 1 << 15;
pub(super) const EVENT_INDEX: u64 = 1 << 29;

/// A guest's driver and its hypervisor, as far as they matter.
pub(super) struct Driver {
    pub(super) frontend: Frontend,
    pub(super) file: OwnedFd,
    pub(super) memory: ForeignMemory,
    pub(super) kicks: Vec<EventFd>,
    pub(super) calls: Vec<EventFd>,
    pub(super) available: Vec<u16>,
    pub(super) seen: Vec<u16>,
    pub(super) header: usize,
}

pub(super) fn memory() -> (OwnedFd, ForeignMemory) {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, BYTES).unwrap();
    let memory = ForeignMemory::map(file.as_fd(), BYTES).unwrap();
    (file, memory)
}

pub(super) fn region(file: &OwnedFd, memory_size: u64) -> VhostUserMemoryRegionInfo {
    VhostUserMemoryRegionInfo {
        guest_phys_addr: GUEST,
        memory_size,
        userspace_addr: USER,
        mmap_offset: 0,
        mmap_handle: file.as_raw_fd(),
    }
}

pub(super) fn place(queue: usize) -> VringConfigData {
    let base = USER + (queue * QUEUE) as u64;
    VringConfigData {
        queue_max_size: ENTRIES,
        queue_size: ENTRIES,
        flags: 0,
        desc_table_addr: base,
        avail_ring_addr: base + AVAILABLE as u64,
        used_ring_addr: base + USED as u64,
        log_addr: None,
    }
}

impl Driver {
    pub(super) fn connect(path: &PathBuf, pairs: usize, features: u64) -> Driver {
        let mut frontend = Frontend::connect(path, 2 * pairs as u64).unwrap();
        let (file, memory) = memory();
        frontend.set_owner().unwrap();
        let offered = frontend.get_features().unwrap();
        assert_eq!(features & !offered, 0);
        let protocol = frontend.get_protocol_features().unwrap();
        assert!(protocol.contains(VhostUserProtocolFeatures::MQ));
        frontend.set_protocol_features(VhostUserProtocolFeatures::MQ).unwrap();
        frontend.set_features(features).unwrap();
        frontend.set_mem_table(&[region(&file, BYTES)]).unwrap();
        let events = || (0..2 * pairs).map(|_| EventFd::new(libc::EFD_NONBLOCK).unwrap()).collect::<Vec<_>>();
        let (kicks, calls) = (events(), events());
        for queue in 0..2 * pairs {
            frontend.set_vring_num(queue, ENTRIES).unwrap();
            frontend.set_vring_base(queue, 0).unwrap();
            frontend.set_vring_addr(queue, &place(queue)).unwrap();
            frontend.set_vring_call(queue, &calls[queue]).unwrap();
            frontend.set_vring_kick(queue, &kicks[queue]).unwrap();
            frontend.set_vring_enable(queue, true).unwrap();
        }
        let driver = Driver {
            frontend,
            file,
            memory,
            kicks,
            calls,
            available: vec![0; 2 * pairs],
            seen: vec![0; 2 * pairs],
            header: 12,
        };
        driver.settle();
        driver
    }

    /// Until the thread did all that was asked for.
    pub(super) fn settle(&self) {
        self.frontend.get_features().unwrap();
    }

    pub(super) fn describe(&self, queue: usize, slot: u16, (at, len, flags, next): (u64, u32, u16, u16)) {
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&at.to_le_bytes());
        descriptor[8..12].copy_from_slice(&len.to_le_bytes());
        descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
        descriptor[14..].copy_from_slice(&next.to_le_bytes());
        assert!(self.memory.copy_in(queue * QUEUE + 16 * usize::from(slot), &descriptor));
    }

    /// Makes the chain at `head` available.
    pub(super) fn offer(&mut self, queue: usize, head: u16) {
        let index = self.available[queue];
        let ring = queue * QUEUE + AVAILABLE;
        self.memory.half(ring + 4 + 2 * usize::from(index % ENTRIES)).unwrap().store(head, Ordering::Relaxed);
        self.available[queue] = index.wrapping_add(1);
        self.memory.half(ring + 2).unwrap().store(self.available[queue], Ordering::Release);
    }

    pub(super) fn buffer(queue: usize, slot: u16) -> usize {
        BUFFERS + queue * 0x2_0000 + usize::from(slot) * 2048
    }

    /// Sends by `pair`, from slot `slot` on, behind `header`; long frames take several descriptors.
    pub(super) fn send(&mut self, pair: usize, slot: u16, header: &[u8], frame: &[u8]) {
        let queue = 2 * pair + 1;
        let bytes = [header, &vec![0; self.header - header.len()], frame].concat();
        let parts: Vec<&[u8]> = bytes.chunks(2048).collect();
        for (number, part) in parts.iter().enumerate() {
            let slot = (slot + number as u16) % ENTRIES;
            let at = Driver::buffer(queue, slot);
            assert!(self.memory.copy_in(at, part));
            let flags = if number + 1 < parts.len() { NEXT } else { 0 };
            self.describe(queue, slot, (GUEST + at as u64, part.len() as u32, flags, (slot + 1) % ENTRIES));
        }
        self.offer(queue, slot % ENTRIES);
    }

    /// Offers buffers of `len` bytes for frames.
    pub(super) fn make_room(&mut self, pair: usize, slots: std::ops::Range<u16>, len: u32) {
        for slot in slots {
            let at = Driver::buffer(2 * pair, slot);
            self.describe(2 * pair, slot, (GUEST + at as u64, len, WRITE, 0));
            self.offer(2 * pair, slot);
        }
    }

    /// What was used of `queue` since the last look: heads and lengths.
    pub(super) fn used(&mut self, queue: usize) -> Vec<(u16, usize)> {
        let ring = queue * QUEUE + USED;
        let end = self.memory.half(ring + 2).unwrap().load(Ordering::Acquire);
        let mut used = Vec::new();
        while self.seen[queue] != end {
            let at = ring + 4 + 8 * usize::from(self.seen[queue] % ENTRIES);
            let word = |at| self.memory.word(at).unwrap().load(Ordering::Relaxed);
            used.push((word(at) as u16, word(at + 4) as usize));
            self.seen[queue] = self.seen[queue].wrapping_add(1);
        }
        used
    }

    /// Headers and frames that came in by `pair`, put together again.
    pub(super) fn received(&mut self, pair: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut frames = Vec::new();
        let mut used = self.used(2 * pair).into_iter();
        while let Some((slot, len)) = used.next() {
            let mut bytes = Vec::new();
            assert!(self.memory.copy_out(Driver::buffer(2 * pair, slot), len, &mut bytes));
            for _ in 1..u16::from_le_bytes([bytes[10], bytes[11]]) {
                let (slot, len) = used.next().expect("all buffers are shown at once");
                assert!(self.memory.copy_out(Driver::buffer(2 * pair, slot), len, &mut bytes));
            }
            let frame = bytes.split_off(self.header);
            frames.push((bytes, frame));
        }
        frames
    }
}
