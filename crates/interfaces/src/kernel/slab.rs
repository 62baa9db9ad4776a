//! Packet buffers as the slab allocator of Linux 2.6.13 hands them out (`mm/slab.c`), so that a kernel's buffers come from
//! as much memory as are in use at once, and no more.
//!
//! ```text
//!   take ◄─ a core's array, last in first out ◄─ 12 at a time ─ slabs with some free ◄─ slabs, all free ◄─ pages
//!   give ─►                                   ─► the oldest 12 ─► to the end of these ─►                ─►
//! ```
//!
//! A buffer stands for an `sk_buff` and its data of 2 KiB (`size-2048`), which fits 1514 bytes and what goes around them.
//! Its data may be in several hands, as those of a cloned `sk_buff` are: it is free when the last one gives it back.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use nicforge_nic::Pool;
use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::{CACHE_LINE_BYTES, Cycles};

use super::SharedLock;

/// Buffers in a core's array, at most: `enable_cpucache`, for objects of more than 1024 bytes.
const LIMIT: usize = 24;
/// Buffers that go between an array and the slabs in one piece.
const BATCH: usize = LIMIT.div_ceil(2);
/// Buffers of a slab: 2 KiB each on Alpha's pages of 8 KiB; what describes the slab lies elsewhere.
const PER_SLAB: usize = 4;
const WORD_BYTES: u64 = 8;

/// Slabs that all cores share.
#[derive(Clone, Debug)]
pub struct Slabs(Rc<RefCell<Shared>>);

#[derive(Debug)]
struct Shared {
    pool: Pool,
    /// Free buffers of each slab, by number; the last one is taken first.
    slabs: Vec<Vec<u64>>,
    /// Slabs with some buffers free; the first one is taken from, and what is given goes to the end.
    partial: VecDeque<usize>,
    /// Slabs all of whose buffers are free.
    empty: VecDeque<usize>,
    /// Slabs without a page; the last one is taken first, as the page allocator has it.
    pages: Vec<usize>,
    /// Free buffers in slabs that have a page, and how many make the next empty slab give its page back.
    free: usize,
    free_limit: usize,
    /// Hands that a buffer is in beside the first, by number, and all of them together.
    clones: Vec<u8>,
    all_clones: u64,
    /// A line that describes each slab.
    described: Addr,
    lock: SharedLock,
}

impl Slabs {
    /// Slabs of all buffers of `pool`, the last few of which may be in none, for `cores` cores.
    pub fn new(space: &mut AddressSpace, pool: Pool, cores: usize) -> Slabs {
        let count = pool.count() / PER_SLAB;
        let of = |slab: usize| (0..PER_SLAB).rev().map(|place| (slab * PER_SLAB + place) as u64).collect();
        Slabs(Rc::new(RefCell::new(Shared {
            pool,
            slabs: (0..count).map(of).collect(),
            partial: VecDeque::new(),
            empty: VecDeque::new(),
            pages: (0..count).rev().collect(),
            free: 0,
            free_limit: (1 + cores) * BATCH + PER_SLAB,
            clones: vec![0; pool.count()],
            all_clones: 0,
            described: space.data(count as u64 * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            lock: SharedLock::new(space, cores),
        })))
    }

    /// Buffers that are to be found somewhere.
    pub fn count(&self) -> u64 {
        (self.0.borrow().slabs.len() * PER_SLAB) as u64
    }

    /// Buffers that no core has, not even in its array.
    pub fn free(&self) -> u64 {
        self.0.borrow().slabs.iter().map(|slab| slab.len() as u64).sum()
    }

    /// Hands that buffers are in beside their first.
    pub fn clones(&self) -> u64 {
        self.0.borrow().all_clones
    }

    /// Slabs that have a page.
    pub fn pages_in_use(&self) -> usize {
        let shared = self.0.borrow();
        shared.slabs.len() - shared.pages.len()
    }
}

impl Shared {
    /// The core reads and changes what describes a slab.
    fn touch<C: Cpu>(&self, cpu: &mut C, slab: usize) {
        let at = self.described + slab as u64 * CACHE_LINE_BYTES;
        let word: u64 = cpu.load(at);
        cpu.store(at, word);
    }

    /// Up to a batch of free buffers goes to `array` (`cache_alloc_refill`).
    fn take<C: Cpu>(&mut self, cpu: &mut C, array: &mut Vec<Addr>) {
        while array.len() < BATCH {
            let Some(slab) = self.partial.pop_front().or_else(|| self.empty.pop_front()).or_else(|| self.grow()) else {
                return;
            };
            self.touch(cpu, slab);
            while array.len() < BATCH
                && let Some(number) = self.slabs[slab].pop()
            {
                self.free -= 1;
                array.push(self.pool.buffer(number));
            }
            if !self.slabs[slab].is_empty() {
                self.partial.push_front(slab);
            }
        }
    }

    fn grow(&mut self) -> Option<usize> {
        let slab = self.pages.pop()?;
        self.free += PER_SLAB;
        Some(slab)
    }

    /// A buffer goes back to its slab (`free_block`).
    fn give<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        let Some(number) = self.pool.number_of(mbuf) else {
            return;
        };
        let slab = number as usize / PER_SLAB;
        self.touch(cpu, slab);
        if !self.slabs[slab].is_empty() {
            self.partial.retain(|&other| other != slab);
        }
        self.slabs[slab].push(number);
        self.free += 1;
        if self.slabs[slab].len() < PER_SLAB {
            self.partial.push_back(slab);
        } else if self.free > self.free_limit {
            self.free -= PER_SLAB;
            self.pages.push(slab);
        } else {
            self.empty.push_front(slab);
        }
    }

    /// One of the hands that `mbuf` is in lets go; returns whether that was the last.
    fn let_go(&mut self, mbuf: Addr) -> bool {
        let number = self.pool.number_of(mbuf).map_or(0, |number| number as usize);
        let last = self.clones[number] == 0;
        if !last {
            self.clones[number] -= 1;
            self.all_clones -= 1;
        }
        last
    }
}

/// Free buffers of one core (`array_cache`).
#[derive(Debug)]
pub struct SlabCache {
    slabs: Slabs,
    free: Vec<Addr>,
    /// Where they are written down.
    array: Addr,
    /// Instructions of one take or give that needs no slab.
    work: Cycles,
}

impl SlabCache {
    /// An empty array.
    pub fn new(space: &mut AddressSpace, slabs: &Slabs, work: Cycles) -> SlabCache {
        let array = space.data(LIMIT as u64 * WORD_BYTES, CACHE_LINE_BYTES);
        SlabCache { slabs: slabs.clone(), free: Vec::with_capacity(LIMIT), array, work }
    }

    /// Free buffers in the array.
    pub fn len(&self) -> usize {
        self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }

    fn entry(&self) -> Addr {
        self.array + self.free.len() as u64 * WORD_BYTES
    }

    /// Takes a buffer, if there is one.
    pub fn take<C: Cpu>(&mut self, cpu: &mut C) -> Option<Addr> {
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        if self.free.is_empty() {
            let mut shared = self.slabs.0.borrow_mut();
            let (lock, free) = (shared.lock, &mut self.free);
            lock.hold(cpu, |cpu| shared.take(cpu, free));
        }
        let taken = self.free.pop();
        if taken.is_some() {
            let _: u64 = cpu.load(self.entry());
        }
        cpu.enter(part);
        taken
    }

    /// Gives a buffer back, which any core may have taken.
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        if self.slabs.0.borrow_mut().let_go(mbuf) {
            if self.free.len() == LIMIT {
                let mut shared = self.slabs.0.borrow_mut();
                let (lock, oldest) = (shared.lock, self.free.drain(..BATCH));
                lock.hold(cpu, |cpu| oldest.for_each(|mbuf| shared.give(cpu, mbuf)));
            }
            cpu.store(self.entry(), mbuf.0);
            self.free.push(mbuf);
        }
        cpu.enter(part);
    }

    /// Whether a buffer is in more than one hand.
    pub fn is_cloned(&self, mbuf: Addr) -> bool {
        let shared = self.slabs.0.borrow();
        shared.pool.number_of(mbuf).is_some_and(|number| shared.clones[number as usize] > 0)
    }

    /// Puts a buffer into one more hand, which [`give`](Self::give)s it, too (`skb_clone`).
    pub fn clone_of<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) -> Addr {
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        let mut shared = self.slabs.0.borrow_mut();
        if let Some(number) = shared.pool.number_of(mbuf) {
            shared.clones[number as usize] += 1;
            shared.all_clones += 1;
        }
        cpu.enter(part);
        mbuf
    }
}

#[cfg(test)]
mod tests {
    use nicforge_platform::FlatCpu;

    use super::*;

    struct Bench {
        cpu: FlatCpu,
        slabs: Slabs,
        cache: SlabCache,
    }

    fn bench(buffers: usize) -> Bench {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, buffers);
        let slabs = Slabs::new(&mut space, pool, 1);
        let cache = SlabCache::new(&mut space, &slabs, Cycles(1));
        Bench { cpu: FlatCpu::new(space.end()), slabs, cache }
    }

    impl Bench {
        fn take(&mut self) -> Addr {
            self.cache.take(&mut self.cpu).unwrap()
        }

        fn give(&mut self, mbuf: Addr) {
            self.cache.give(&mut self.cpu, mbuf);
        }
    }

    #[test]
    fn all_buffers_are_handed_out_once_and_then_none() {
        let mut b = bench(100);
        let mut taken: Vec<Addr> = (0..100).map(|_| b.take()).collect();
        assert_eq!(b.cache.take(&mut b.cpu), None);
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), 100);
        taken.into_iter().for_each(|mbuf| b.give(mbuf));
        assert_eq!(b.slabs.free() + b.cache.len() as u64, 100);
    }

    #[test]
    fn what_was_given_last_comes_first() {
        let mut b = bench(100);
        let (first, second) = (b.take(), b.take());
        b.give(first);
        b.give(second);
        assert_eq!([b.take(), b.take()], [second, first]);
    }

    /// Packets wait in a queue of 40: 80 buffers pass by, of 40 in use, an array and what the slabs keep.
    #[test]
    fn a_queue_walks_through_the_memory_that_is_in_use_and_no_more() {
        let mut b = bench(10_000);
        let mut queue: VecDeque<Addr> = (0..40).map(|_| b.take()).collect();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10_000 {
            let next = b.take();
            seen.insert(next);
            queue.push_back(next);
            let oldest = queue.pop_front().unwrap();
            b.give(oldest);
        }
        assert!((40..40 + 2 * LIMIT + 28).contains(&seen.len()), "{}", seen.len());
    }

    #[test]
    fn pages_go_back_when_more_is_free_than_the_limit() {
        let mut b = bench(1000);
        let taken: Vec<Addr> = (0..400).map(|_| b.take()).collect();
        assert!(b.slabs.pages_in_use() >= 100);
        taken.into_iter().for_each(|mbuf| b.give(mbuf));
        // 28 and a slab in slabs, 24 in the array, each of which may keep a slab.
        assert!(b.slabs.pages_in_use() <= (28 + 24) / PER_SLAB + 24, "{}", b.slabs.pages_in_use());
    }

    #[test]
    fn a_cloned_buffer_is_free_when_both_hands_gave_it() {
        let mut b = bench(100);
        let mbuf = b.take();
        let same = b.cache.clone_of(&mut b.cpu, mbuf);
        let free = b.cache.len();
        assert_eq!((same, b.slabs.clones(), b.cache.is_cloned(mbuf)), (mbuf, 1, true));
        b.give(mbuf);
        assert_eq!((b.cache.len(), b.slabs.clones(), b.cache.is_cloned(mbuf)), (free, 0, false));
        b.give(mbuf);
        assert_eq!(b.cache.len(), free + 1);
    }
}
