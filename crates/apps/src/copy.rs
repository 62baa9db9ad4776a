//! Copying memory, as a copy loop of the C library does: loads stream, stores of whole lines
//! gather in write-combining buffers where the target is memory of a device.

use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::{CACHE_LINE_BYTES, Cycles};

/// Bytes copied at a time: hardware prefetchers stop at the end of a page.
const PAGE_BYTES: u64 = 4096;

/// Copies all of `from` to `to`, `at_a_time` bytes (at most a page) at a time: the loads of these
/// stream.
pub fn copy<C: Cpu>(cpu: &mut C, from: Segment, to: Addr, at_a_time: u64) {
    let mut page = [0u8; PAGE_BYTES as usize];
    let mut done = 0;
    while done < from.len {
        let len = (from.len - done).min(at_a_time.min(PAGE_BYTES) as u32) as usize;
        page[..len].copy_from_slice(cpu.bytes(from.at + u64::from(done), len));
        cpu.bytes_mut(to + u64::from(done), len).copy_from_slice(&page[..len]);
        done += len as u32;
    }
}

/// Cycles that a copy loop takes for `len` bytes, memory accesses apart; `line` cycles for each line.
pub fn copy_work(len: u32, line: Cycles) -> Cycles {
    Cycles(line.0 * u64::from(len).div_ceil(CACHE_LINE_BYTES))
}

/// A program that copies one buffer to another, over and over.
#[derive(Clone, Debug)]
pub struct Copier {
    from: Addr,
    to: Addr,
    len: u64,
    /// Where the next step begins.
    at: u64,
    /// Instructions for each line.
    line: Cycles,
    /// Bytes copied so far.
    pub copied: u64,
}

impl Copier {
    /// Copies `len` bytes, whole lines, with `line` cycles of instructions for each of these. An
    /// end that is `None` is host memory.
    pub fn new(space: &mut AddressSpace, [from, to]: [Option<Addr>; 2], len: u64, line: Cycles) -> Copier {
        let mut end = |at: Option<Addr>| at.unwrap_or_else(|| space.data(len, PAGE_BYTES));
        Copier { from: end(from), to: end(to), len, at: 0, line, copied: 0 }
    }

    /// Copies what is left of a page.
    pub fn step<C: Cpu>(&mut self, cpu: &mut C) {
        cpu.enter(Part::App);
        let len = (self.len - self.at).min(PAGE_BYTES);
        let from = Segment { at: self.from + self.at, len: len as u32 };
        copy(cpu, from, self.to + self.at, PAGE_BYTES);
        cpu.work(copy_work(len as u32, self.line));
        self.copied += len;
        self.at = (self.at + len) % self.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_platform::FlatCpu;

    #[test]
    fn all_of_it_is_copied_and_it_begins_again() {
        let mut space = AddressSpace::default();
        let len = 2 * PAGE_BYTES + 5 * CACHE_LINE_BYTES;
        let mut copier = Copier::new(&mut space, [None, None], len, Cycles(3));
        let mut cpu = FlatCpu::new(space.end());
        for round in [1u8, 2] {
            cpu.bytes_mut(copier.from, len as usize).fill(round);
            (0..3).for_each(|_| copier.step(&mut cpu));
            let to = cpu.bytes(copier.to, len as usize);
            assert!(to.iter().all(|&byte| byte == round));
        }
        assert_eq!(copier.copied, 2 * len);
    }
}
