//! A two-level pool of packet buffers: one shared ring, one small stack per core.
//!
//! A core takes from and gives to its own stack, last in first out, so that it reuses warm
//! buffers. An empty stack is filled from the shared ring; one that grew beyond 1.5 × its size
//! is drained to its size (rxBisect, section 4.2; DPDK's mempool). Any core may free any buffer.

use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::Cycles;

use crate::mbuf::{MBUF_STRIDE_BYTES, OBJECT_HEADER_BYTES};

/// Words in front of the shared ring, each in a line of its own.
const LOCK: u64 = 0;
const TAKEN: u64 = 64;
const GIVEN: u64 = 128;
const ENTRIES: u64 = 192;

/// The shared level: addresses only, the words lie in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    buffers: Addr,
    count: u64,
    shared: Addr,
}

impl Pool {
    /// Room for `count` buffers.
    pub fn new(space: &mut AddressSpace, count: usize) -> Pool {
        let count = count as u64;
        Pool {
            buffers: space.data(count * MBUF_STRIDE_BYTES, 4096),
            count,
            shared: space.data(ENTRIES + count * 8, 64),
        }
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Puts all buffers into the shared ring; once, before anybody takes one.
    pub fn start<C: Cpu>(&self, cpu: &mut C) {
        for number in 0..self.count {
            cpu.store(self.entry(number), self.buffer(number).0);
        }
        cpu.store(self.shared + TAKEN, 0u64);
        cpu.store(self.shared + GIVEN, self.count);
    }

    /// The metadata address of buffer `number`.
    pub fn buffer(&self, number: u64) -> Addr {
        self.buffers + number * MBUF_STRIDE_BYTES + OBJECT_HEADER_BYTES
    }

    /// The number of the buffer whose metadata is at `mbuf`; `None` if that is no buffer of ours.
    pub fn number_of(&self, mbuf: Addr) -> Option<u64> {
        let offset = mbuf.0.checked_sub(self.buffers.0 + OBJECT_HEADER_BYTES)?;
        let number = offset / MBUF_STRIDE_BYTES;
        (offset.is_multiple_of(MBUF_STRIDE_BYTES) && number < self.count).then_some(number)
    }

    /// Buffers in the shared ring.
    pub fn available<C: Cpu>(&self, cpu: &mut C) -> u64 {
        cpu.load::<u64>(self.shared + GIVEN) - cpu.load::<u64>(self.shared + TAKEN)
    }

    fn entry(&self, position: u64) -> Addr {
        self.shared + ENTRIES + position % self.count * 8
    }
}

/// One core's level of the pool.
#[derive(Debug)]
pub struct PoolCache {
    pool: Pool,
    stack: Addr,
    len: usize,
    size: usize,
    /// Instructions of one take or give that hits the stack.
    work: Cycles,
}

impl PoolCache {
    /// An empty stack that keeps about `size` buffers.
    pub fn new(space: &mut AddressSpace, pool: Pool, size: usize, work: Cycles) -> PoolCache {
        PoolCache {
            pool,
            stack: space.data((PoolCache::limit(size) as u64 + 1) * 8, 64),
            len: 0,
            size,
            work,
        }
    }

    fn limit(size: usize) -> usize {
        size + size / 2
    }

    /// The shared level.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// Buffers in this core's stack.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether this core's stack is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes a buffer; `None` when both levels are empty.
    #[inline]
    pub fn take<C: Cpu>(&mut self, cpu: &mut C) -> Option<Addr> {
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        if self.len == 0 {
            self.fill(cpu);
        }
        let taken = (self.len > 0).then(|| {
            self.len -= 1;
            Addr(cpu.load::<u64>(self.stack + self.len as u64 * 8))
        });
        cpu.enter(part);
        taken
    }

    /// Gives a buffer back; it may come from another core's stack.
    #[inline]
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        cpu.store(self.stack + self.len as u64 * 8, mbuf.0);
        self.len += 1;
        if self.len > PoolCache::limit(self.size) {
            self.drain(cpu);
        }
        cpu.enter(part);
    }

    /// Moves up to `size` buffers from the shared ring to the stack.
    fn fill<C: Cpu>(&mut self, cpu: &mut C) {
        let shared = self.pool.shared;
        cpu.lock(shared + LOCK);
        let taken: u64 = cpu.load(shared + TAKEN);
        let given: u64 = cpu.load(shared + GIVEN);
        let count = (given - taken).min(self.size.max(1) as u64);
        for i in 0..count {
            let mbuf: u64 = cpu.load(self.pool.entry(taken + i));
            cpu.store(self.stack + i * 8, mbuf);
        }
        cpu.store(shared + TAKEN, taken + count);
        cpu.unlock(shared + LOCK);
        self.len = count as usize;
    }

    /// Moves what exceeds `size` to the shared ring.
    fn drain<C: Cpu>(&mut self, cpu: &mut C) {
        let shared = self.pool.shared;
        cpu.lock(shared + LOCK);
        let given: u64 = cpu.load(shared + GIVEN);
        let count = (self.len - self.size) as u64;
        for i in 0..count {
            let mbuf: u64 = cpu.load(self.stack + (self.size as u64 + i) * 8);
            cpu.store(self.pool.entry(given + i), mbuf);
        }
        cpu.store(shared + GIVEN, given + count);
        cpu.unlock(shared + LOCK);
        self.len = self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_platform::FlatCpu;
    use std::collections::BTreeSet;

    fn pool(count: usize, size: usize) -> (FlatCpu, Pool, Vec<PoolCache>) {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, count);
        let caches = (0..2)
            .map(|_| PoolCache::new(&mut space, pool, size, Cycles(1)))
            .collect();
        let mut cpu = FlatCpu::new(space.end());
        pool.start(&mut cpu);
        (cpu, pool, caches)
    }

    #[test]
    fn every_buffer_comes_once_and_then_none() {
        let (mut cpu, pool, mut caches) = pool(100, 32);
        let mut seen = BTreeSet::new();
        while let Some(mbuf) = caches[0].take(&mut cpu) {
            assert!(pool.number_of(mbuf).is_some());
            assert!(seen.insert(mbuf), "handed out twice: {mbuf:?}");
        }
        assert_eq!(seen.len(), 100);
    }

    #[test]
    fn a_stack_drains_beyond_one_and_a_half_times_its_size() {
        let (mut cpu, pool, mut caches) = pool(200, 32);
        let taken: Vec<_> = (0..100).filter_map(|_| caches[0].take(&mut cpu)).collect();
        for (i, mbuf) in taken.into_iter().enumerate() {
            caches[1].give(&mut cpu, mbuf);
            assert!(caches[1].len() <= 48, "after {i}");
        }
        let inside = caches[0].len() + caches[1].len() + pool.available(&mut cpu) as usize;
        assert_eq!(inside, 200);
    }

    #[test]
    fn what_went_in_last_comes_out_first() {
        let (mut cpu, _, mut caches) = pool(64, 16);
        let a = caches[0].take(&mut cpu).unwrap();
        caches[0].give(&mut cpu, a);
        assert_eq!(caches[0].take(&mut cpu), Some(a));
    }

    #[test]
    fn foreign_addresses_are_told_apart() {
        let (_, pool, _) = pool(4, 2);
        assert_eq!(pool.number_of(pool.buffer(3)), Some(3));
        assert_eq!(pool.number_of(pool.buffer(3) + 8), None);
        assert_eq!(pool.number_of(pool.buffer(4)), None);
        assert_eq!(pool.number_of(Addr(0)), None);
    }
}
