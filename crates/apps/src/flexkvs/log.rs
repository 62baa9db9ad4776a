//! The log of FlexKVS (flexnic, section 3.1): segments that cores fill with items, one after the other.
//!
//! A core has one active segment. When it is full the core takes a free one from a pool that all cores share; only this
//! takes a lock. Each segment counts the bytes of items without a reference. The core that filled a segment compacts it when most
//! of it is freed: items that the table still names move to the active segment, some with each request. The segment goes back to
//! the pool when all of it is freed.

use bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Atomic, Cpu};
use nicforge_units::{Bytes, CACHE_LINE_BYTES};

/// A segment (FlexKVS of 2017).
pub const SEGMENT: Bytes = Bytes(2 << 20);
/// A segment with at least this share freed is compacted, in percent.
const FREED_PERCENT: u64 = 80;

/// The header of a segment; it takes one cache line.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct SegmentHeader {
    /// Bytes of items without a reference: the table does not name them, and no GET holds them.
    freed: u64,
    /// Bytes that items take.
    used: u64,
    /// The next free segment, plus one.
    next_free: u64,
    unused: [u64; 5],
}

const FREED: u64 = std::mem::offset_of!(SegmentHeader, freed) as u64;
const USED: u64 = std::mem::offset_of!(SegmentHeader, used) as u64;
const NEXT_FREE: u64 = std::mem::offset_of!(SegmentHeader, next_free) as u64;

/// The memory that all cores share: segments, their headers, and the pool of free ones.
#[derive(Clone, Debug)]
pub struct Segments {
    /// Where items lie.
    pub log: Addr,
    headers: Addr,
    /// The pool's lock; the line behind it names the first free segment, plus one.
    pool: Addr,
    count: u32,
}

impl Segments {
    /// Takes address space for a log of `size`. The memory must be zero.
    pub fn allocate(space: &mut AddressSpace, size: Bytes) -> Segments {
        let count = (size.0 / SEGMENT.0).clamp(1, 1 << 13) as u32;
        Segments {
            log: space.data(u64::from(count) * SEGMENT.0, 4096),
            headers: space.data(u64::from(count) * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            pool: space.data(2 * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            count,
        }
    }

    /// Puts all segments into the pool; one core does it.
    pub fn fill<C: Cpu>(&self, cpu: &mut C) {
        for number in (0..self.count).rev() {
            self.give(cpu, number);
        }
    }

    fn header(&self, number: u32) -> Addr {
        self.headers + u64::from(number) * CACHE_LINE_BYTES
    }

    fn first_free(&self) -> Addr {
        self.pool + CACHE_LINE_BYTES
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * SEGMENT.0
    }

    /// Whether a segment is free, without the lock: another core may take it.
    pub fn has_free<C: Cpu>(&self, cpu: &mut C) -> bool {
        cpu.load::<u64>(self.first_free()) != 0
    }

    /// A free segment.
    pub fn take<C: Cpu>(&self, cpu: &mut C) -> Option<u32> {
        cpu.lock(self.pool);
        let first: u64 = cpu.load(self.first_free());
        let number = first.checked_sub(1).map(|number| number as u32);
        if let Some(number) = number {
            let next: u64 = cpu.load(self.header(number) + NEXT_FREE);
            cpu.store(self.first_free(), next);
        }
        cpu.unlock(self.pool);
        number
    }

    /// Gives a segment back.
    fn give<C: Cpu>(&self, cpu: &mut C, number: u32) {
        cpu.lock(self.pool);
        let first: u64 = cpu.load(self.first_free());
        let header = SegmentHeader { next_free: first, ..SegmentHeader::zeroed() };
        cpu.store(self.header(number), header);
        cpu.store(self.first_free(), u64::from(number) + 1);
        cpu.unlock(self.pool);
    }

    /// An item of `size` bytes at `offset` is in use no more.
    pub fn free<C: Cpu>(&self, cpu: &mut C, offset: u64, size: u64) {
        let number = (offset / SEGMENT.0) as u32;
        cpu.atomic(self.header(number) + FREED, Atomic::Add(size));
    }
}

/// One core's side of the log.
#[derive(Clone, Debug)]
pub struct Writer {
    segments: Segments,
    active: Option<Active>,
    /// Full segments, oldest first.
    full: std::collections::VecDeque<u32>,
    /// The segment that is being compacted, and how far.
    compacting: Option<Active>,
}

/// A segment and a place in it.
#[derive(Clone, Copy, Debug)]
struct Active {
    number: u32,
    at: u64,
}

impl Writer {
    /// That of a core.
    pub fn new(segments: Segments) -> Writer {
        Writer { segments, active: None, full: Default::default(), compacting: None }
    }

    /// The memory that all cores share.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Room for an item of `size` bytes, as an offset in the log; `None` when no segment is free.
    pub fn append<C: Cpu>(&mut self, cpu: &mut C, size: u64) -> Option<u64> {
        if size > SEGMENT.0 {
            return None;
        }
        if self.active.is_none_or(|active| active.at + size > SEGMENT.0) {
            let number = self.segments.take(cpu)?;
            self.full.extend(self.active.map(|active| active.number));
            self.active = Some(Active { number, at: 0 });
        }
        let active = self.active.as_mut()?;
        let offset = u64::from(active.number) * SEGMENT.0 + active.at;
        active.at += size;
        cpu.store(self.segments.header(active.number) + USED, active.at);
        Some(offset)
    }

    /// A segment that something else filled is full: `used` bytes of it are items.
    pub fn is_full<C: Cpu>(&mut self, cpu: &mut C, number: u32, used: u64) {
        cpu.store(self.segments.header(number) + USED, used);
        self.full.push_back(number);
    }

    /// The offset of the next item to move or forget, in the segment that is being compacted; `None` when there is none to
    /// compact. An item that was looked at is [passed](Self::pass).
    pub fn candidate<C: Cpu>(&mut self, cpu: &mut C) -> Option<u64> {
        loop {
            let Some(Active { number, at }) = self.compacting else {
                let number = self.full.pop_front()?;
                let header: SegmentHeader = cpu.load(self.segments.header(number));
                if header.freed * 100 < header.used * FREED_PERCENT {
                    // Its turn comes again when the others have been looked at.
                    self.full.push_back(number);
                    return None;
                }
                self.compacting = Some(Active { number, at: 0 });
                continue;
            };
            let SegmentHeader { used, freed, .. } = cpu.load(self.segments.header(number));
            if at < used {
                return Some(u64::from(number) * SEGMENT.0 + at);
            }
            if freed < used {
                // A GET of another core holds an item of it.
                return None;
            }
            self.segments.give(cpu, number);
            self.compacting = None;
        }
    }

    /// The candidate of `size` bytes has been moved or forgotten.
    pub fn pass(&mut self, size: u64) {
        if let Some(compacting) = &mut self.compacting {
            compacting.at += size;
        }
    }
}
