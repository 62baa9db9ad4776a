//! Segments of the log that the NIC fills (FlexNIC, section 3.2): a core registers them, the NIC appends the pairs of SETs.
//!
//! The NIC fills one segment and has up to three more in registers, in turn. With the first item of another segment the core
//! learns that the one before is full, and registers a further one.

use nicforge_platform::{Addr, Cpu, Register};

use super::log::{SEGMENT, Segments, Writer};

/// Registers of a queue that name segments.
const SLOTS: usize = 3;
/// Registrations are told from each other by so many bits of an address, which segments do not need.
const GENERATIONS: u64 = 64;

/// One core's side.
#[derive(Clone, Debug)]
pub struct NicLog {
    registers: [Register; SLOTS],
    /// The segment that each register names, until the NIC begins it.
    slots: [Option<u32>; SLOTS],
    generation: u64,
    /// The segment that the NIC fills, and how far items are known.
    active: Option<(u32, u64)>,
}

impl NicLog {
    /// That of core `core` of `cores`, whose queues are those of NIC 0.
    pub fn new(core: usize, cores: usize) -> NicLog {
        let register = |slot: usize| Register { device: 0, index: (cores * (1 + slot) + core) as u32 };
        NicLog { registers: [register(0), register(1), register(2)], slots: [None; SLOTS], generation: 0, active: None }
    }

    /// Registers segments where a register names none, as long as there are any.
    pub fn register<C: Cpu>(&mut self, cpu: &mut C, segments: &Segments) {
        for slot in 0..SLOTS {
            if self.slots[slot].is_some() {
                continue;
            }
            let Some(number) = segments.take(cpu) else { return };
            self.slots[slot] = Some(number);
            self.generation = self.generation % (GENERATIONS - 1) + 1;
            let at = segments.log + u64::from(number) * SEGMENT.0;
            cpu.mmio_write(self.registers[slot], at.0 | self.generation);
        }
    }

    /// The NIC put an item of `size` bytes at `offset` of the log; false if it cannot have.
    pub fn appended<C: Cpu>(&mut self, cpu: &mut C, writer: &mut Writer, offset: u64, size: u64) -> bool {
        let (number, at) = ((offset / SEGMENT.0) as u32, offset % SEGMENT.0);
        if at + size > SEGMENT.0 {
            return false;
        }
        if self.active.is_none_or(|(active, _)| active != number) {
            let Some(slot) = self.slots.iter().position(|named| *named == Some(number)) else { return false };
            self.slots[slot] = None;
            if let Some((full, used)) = self.active {
                writer.is_full(cpu, full, used);
            }
        }
        self.active = Some((number, at + size));
        if self.slots.contains(&None) && writer.segments().has_free(cpu) {
            self.register(cpu, &writer.segments().clone());
        }
        true
    }
}

/// The offset in the log of `segments` of an item of at least `least` bytes at `at`; `None` if none can be there.
pub fn offset_of(segments: &Segments, at: Addr, least: u64) -> Option<u64> {
    let offset = at.0.checked_sub(segments.log.0)?;
    (offset.is_multiple_of(8) && offset.checked_add(least)? <= segments.bytes()).then_some(offset)
}
