//! nmKVS: values of hot items in memory of the NIC, sent from there without a copy (nicmem,
//! section 2.2.2, "KVS Acceleration").
//!
//! ```text
//!  item in the log ── hot ──► slot (host memory): references | valid | item | hash
//!   its value: the pending buffer        └─ n-th value in nicmem: the stable buffer
//! ```
//!
//! A PUT writes the pending buffer only, and clears `valid`. A GET sends the stable buffer, which
//! is first overwritten if it is not valid; while packets still refer to it that must not be, and
//! the GET is answered with a copy of the pending one. So no packet sees a mix of two values.
//!
//! The store knows its hot items before traffic begins, as in the paper's evaluation, or a sketch
//! finds them on line. With a sketch, a GET of another item takes the place of the item that the hand points at, if it
//! was asked for more often of late and no packet refers to its place.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::{CACHE_LINE_BYTES, Cycles};

use super::log::{ItemHeader, Log, Position};
use super::sketch::{SAMPLE_PER_ITEM, Sketch};
use crate::copy::{copy, copy_work};

/// What is known of one place in nicmem; in host memory.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    /// Packets that refer to the stable buffer. Freeing the packet drops one.
    references: u64,
    /// Where in the log the item is, + 1; 0: the place is free.
    item: u64,
    hash: u64,
    /// Whether the stable buffer has the item's value.
    valid: u64,
}

/// Items that were asked for less often of late do not compete for places: an item that is asked for
/// as often as hot ones on average, where all requests are for these, comes to ten to twenty.
const ASKED_LEAST: u8 = 4;

const SLOT_BYTES: u64 = size_of::<Slot>() as u64;
const VALID: u64 = 24;

/// A value in nicmem that may be sent from there.
#[derive(Clone, Copy, Debug)]
pub struct Lent {
    /// The value.
    pub value: Segment,
    /// What counts the packets that refer to it; this one is counted already.
    pub references: Addr,
}

/// An item and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// In the log.
    pub position: Position,
    /// In memory.
    pub at: Addr,
    /// What stands there.
    pub header: ItemHeader,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct HotCounts {
    /// GETs answered from nicmem.
    pub lent: u64,
    /// GETs of hot items answered with a copy, because packets still refer to what was before.
    pub copied: u64,
    /// Stable buffers written.
    pub refreshed: u64,
    /// Items that got a place.
    pub moved_in: u64,
    /// Items that lost it to another one.
    pub moved_out: u64,
}

/// The hot items of one partition.
#[derive(Clone, Debug)]
pub struct HotItems {
    slots: Addr,
    values: Addr,
    /// From one value to the next.
    room: u64,
    count: u16,
    /// Slots that were given out at least once.
    used: u16,
    /// The slot that the next candidate competes with.
    hand: u16,
    /// The sketch that finds hot items; none where the store knows them before traffic begins.
    sketch: Option<Sketch>,
    /// Instructions of a copy loop for each line.
    copy_line: Cycles,
    /// What was counted so far.
    pub counts: HotCounts,
}

/// Nicmem that a place for a value of up to `value_bytes` takes: whole lines, which no other value shares.
pub fn hot_place_bytes(value_bytes: u32) -> u64 {
    u64::from(value_bytes.max(1)).next_multiple_of(CACHE_LINE_BYTES)
}

impl HotItems {
    /// As many places for values of up to `value_bytes` as there is room for in `len` bytes of
    /// nicmem at `values`; at most 65 534. `None` when there is no room for any. The memory must
    /// be zero.
    pub fn allocate(space: &mut AddressSpace, values: Addr, len: u64, value_bytes: u32) -> Option<HotItems> {
        let room = hot_place_bytes(value_bytes);
        let count = (len / room).min(u64::from(u16::MAX) - 1) as u16;
        (count > 0).then(|| HotItems {
            slots: space.data(u64::from(count) * SLOT_BYTES, CACHE_LINE_BYTES),
            values,
            room,
            count,
            used: 0,
            hand: 0,
            sketch: None,
            copy_line: Cycles(0),
            counts: HotCounts::default(),
        })
    }

    /// The same, whose hot items a sketch finds.
    pub fn with_sketch(self, space: &mut AddressSpace) -> HotItems {
        HotItems { sketch: Some(Sketch::allocate(space, self.count.into())), ..self }
    }

    /// The same, where a copy costs so many instructions a line.
    pub fn with_copy_line(self, copy_line: Cycles) -> HotItems {
        HotItems { copy_line, ..self }
    }

    /// Whether a place was never used.
    pub fn has_room(&self) -> bool {
        self.used < self.count
    }

    fn slot_at(&self, slot: u16) -> Addr {
        self.slots + u64::from(slot) * SLOT_BYTES
    }

    /// A GET found `item`: its value for a packet, if it is hot, or is now. Else the caller copies
    /// the value out of the log.
    #[inline]
    pub fn get<C: Cpu>(&mut self, cpu: &mut C, log: &Log, item: &Item) -> Option<Lent> {
        let asked = self.sketch.as_mut().map(|sketch| sketch.add(cpu, item.header.hash));
        let slot = match item.header.hot.checked_sub(1) {
            Some(slot) => slot,
            None => self.admit(cpu, log, item, asked?)?,
        };
        self.lend(cpu, log, slot, item)
    }

    fn lend<C: Cpu>(&mut self, cpu: &mut C, log: &Log, slot: u16, item: &Item) -> Option<Lent> {
        let at = self.slot_at(slot);
        let known: Slot = cpu.load(at);
        let pending = log.value(item.at, &item.header);
        let value = Segment { at: self.values + u64::from(slot) * self.room, len: pending.len };
        if known.valid == 0 {
            if known.references > 0 {
                self.counts.copied += 1;
                return None;
            }
            copy(cpu, pending, value.at);
            cpu.work(copy_work(pending.len, self.copy_line));
            cpu.store(at + VALID, 1u64);
            self.counts.refreshed += 1;
        }
        cpu.store(at, known.references + 1);
        self.counts.lent += 1;
        Some(Lent { value, references: at })
    }

    /// The value of a hot item in the log was replaced by one of `len` bytes: what lies in nicmem
    /// is old from now on. Whether the item is hot still.
    #[inline]
    pub fn replaced<C: Cpu>(&mut self, cpu: &mut C, slot: u16, len: usize) -> bool {
        if len as u64 > self.room {
            self.forget(cpu, slot);
            return false;
        }
        cpu.store(self.slot_at(slot) + VALID, 0u64);
        true
    }

    /// The item of a slot is gone. Packets that refer to its value may still be on their way.
    pub fn forget<C: Cpu>(&mut self, cpu: &mut C, slot: u16) {
        cpu.store(self.slot_at(slot) + 8, [0u64; 3]);
    }

    /// All items are gone.
    pub fn forget_all<C: Cpu>(&mut self, cpu: &mut C) {
        (0..self.count).for_each(|slot| self.forget(cpu, slot));
    }

    /// Gives `item` a slot before the run, while there is one that was never used, as if it had
    /// been asked for as often as hot items are.
    pub fn preload<C: Cpu>(&mut self, cpu: &mut C, log: &Log, item: &Item) {
        if let Some(sketch) = &mut self.sketch {
            for _ in 0..SAMPLE_PER_ITEM {
                sketch.add(cpu, item.header.hash);
            }
        }
        let fits = u64::from(item.header.value_len) <= self.room;
        if fits && self.has_room() {
            let slot = self.take(cpu, log, item);
            let value = self.values + u64::from(slot) * self.room;
            let pending = log.value(item.at, &item.header);
            copy(cpu, pending, value);
            cpu.store(self.slot_at(slot) + VALID, 1u64);
        }
    }

    /// A slot for an item that was `asked` for so often; `None` when others are hotter.
    #[inline]
    fn admit<C: Cpu>(&mut self, cpu: &mut C, log: &Log, item: &Item, asked: u8) -> Option<u16> {
        if u64::from(item.header.value_len) > self.room {
            return None;
        }
        if self.has_room() {
            return Some(self.take(cpu, log, item));
        }
        if asked < ASKED_LEAST {
            return None;
        }
        let slot = self.hand;
        self.hand = (self.hand + 1) % self.count;
        let known: Slot = cpu.load(self.slot_at(slot));
        if known.references > 0 {
            return None;
        }
        if let Some(position) = known.item.checked_sub(1).map(Position)
            && log.holds(position)
        {
            if self.sketch.as_ref()?.estimate(cpu, known.hash) >= asked {
                return None;
            }
            log.set_hot(cpu, log.item(position), 0);
            self.counts.moved_out += 1;
        }
        self.assign(cpu, log, slot, item);
        Some(slot)
    }

    /// The next slot that was never used.
    fn take<C: Cpu>(&mut self, cpu: &mut C, log: &Log, item: &Item) -> u16 {
        let slot = self.used;
        self.used += 1;
        self.assign(cpu, log, slot, item);
        slot
    }

    fn assign<C: Cpu>(&mut self, cpu: &mut C, log: &Log, slot: u16, item: &Item) {
        let known = Slot { references: 0, item: item.position.0 + 1, hash: item.header.hash, valid: 0 };
        cpu.store(self.slot_at(slot), known);
        log.set_hot(cpu, item.at, slot + 1);
        self.counts.moved_in += 1;
    }
}
