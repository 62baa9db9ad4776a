//! Copying memory, as a copy loop of the C library does: loads stream, stores of whole lines
//! gather in write-combining buffers where the target is memory of a device, or the copy is too large for caches.

use nicforge_nic::Segment;
use nicforge_platform::{Addr, AddressSpace, CopyLoop, Cpu, Part};
use nicforge_units::{Bytes, CACHE_LINE_BYTES, Cycles};

/// Bytes copied at a time: hardware prefetchers stop at the end of a page.
const PAGE_BYTES: u64 = 4096;

/// Copies all of `from` to `to`. The core waits for each line, as no loads of a short copy stream.
pub fn copy<C: Cpu>(cpu: &mut C, from: Segment, to: Addr) {
    let mut line = [0u8; CACHE_LINE_BYTES as usize];
    let mut done = 0;
    while done < from.len {
        let len = (from.len - done).min(CACHE_LINE_BYTES as u32) as usize;
        line[..len].copy_from_slice(cpu.bytes(from.at + u64::from(done), len));
        cpu.bytes_mut(to + u64::from(done), len).copy_from_slice(&line[..len]);
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
    how: CopyLoop,
    /// Bytes copied so far.
    pub copied: u64,
}

impl Copier {
    /// Copies `len` bytes, whole lines, with `line` cycles of instructions for each of these. An
    /// end that is `None` is host memory. Of more than three quarters of the last-level cache, `llc`, `memcpy` stores
    /// past the caches (glibc manual, tunable `glibc.cpu.x86_non_temporal_threshold`).
    pub fn new(
        space: &mut AddressSpace,
        [from, to]: [Option<Addr>; 2],
        len: Bytes,
        line: Cycles,
        llc: Bytes,
    ) -> Copier {
        let mut end = |at: Option<Addr>| at.unwrap_or_else(|| space.data(len.0, PAGE_BYTES));
        let how = CopyLoop { line, past_caches: len.0 > llc.0 / 4 * 3 };
        Copier { from: end(from), to: end(to), len: len.0, at: 0, how, copied: 0 }
    }

    /// Copies what is left of a page.
    pub fn step<C: Cpu>(&mut self, cpu: &mut C) {
        cpu.enter(Part::App);
        let len = (self.len - self.at).min(PAGE_BYTES);
        cpu.copy_loop(self.from + self.at, self.to + self.at, len as usize, self.how);
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
        for llc in [Bytes(1 << 20), Bytes(1 << 10)] {
            let mut space = AddressSpace::default();
            let len = 2 * PAGE_BYTES + 5 * CACHE_LINE_BYTES;
            let mut copier = Copier::new(&mut space, [None, None], Bytes(len), Cycles(3), llc);
            assert_eq!(copier.how.past_caches, llc.0 < len);
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
}
