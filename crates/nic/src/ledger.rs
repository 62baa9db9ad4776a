//! Who holds which buffer, for a device whose workers may die: what a dead one held goes back to
//! the pool.
//!
//! | bytes | writer | content |
//! | --- | --- | --- |
//! | 2 for each buffer | workers under the pool's lock, the device before it announces a frame | 0: the pool's shared level; `w + 1`: worker `w` |
//!
//! A buffer is written down to a worker when it leaves the shared level for that worker's stack,
//! and when the device delivers a frame in it to that worker. In between it goes through rings and
//! hands of that worker only, so that these two places suffice.

use nicforge_platform::{Addr, AddressSpace, Cpu};

use crate::Pool;

/// Bytes of each entry.
pub const LEDGER_ENTRY_BYTES: u64 = 2;

/// Where it is written down who holds each buffer of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ledger {
    pool: Pool,
    /// The entry of the pool's first buffer.
    pub at: Addr,
}

impl Ledger {
    /// A ledger in which the shared level has all buffers.
    pub fn new(space: &mut AddressSpace, pool: Pool) -> Ledger {
        let at = space.data(pool.count() as u64 * LEDGER_ENTRY_BYTES, 64);
        Ledger { pool, at }
    }

    /// The pool whose buffers these are.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// What stands there for worker `worker`.
    pub fn mark(worker: usize) -> u16 {
        worker as u16 + 1
    }

    fn entry(&self, number: u64) -> Addr {
        self.at + number * LEDGER_ENTRY_BYTES
    }

    /// Whose [`mark`](Self::mark) stands at the buffer at `mbuf`, or 0; `None` if that is no buffer of
    /// the pool.
    #[inline]
    pub fn holder<C: Cpu>(&self, cpu: &mut C, mbuf: Addr) -> Option<u16> {
        let number = self.pool.number_of(mbuf)?;
        Some(cpu.load(self.entry(number)))
    }

    /// From now on `holder` (a [`mark`](Self::mark), or 0) has the buffer at `mbuf`.
    #[inline]
    pub fn write<C: Cpu>(&self, cpu: &mut C, mbuf: u64, holder: u16) {
        if let Some(number) = self.pool.number_of(Addr(mbuf)) {
            cpu.store(self.entry(number), holder);
        }
    }

    /// Clears the entries of `holder`.
    pub fn clear<C: Cpu>(&self, cpu: &mut C, holder: u16) {
        for number in 0..self.pool.count() as u64 {
            let entry = self.entry(number);
            if cpu.load::<u16>(entry) == holder {
                cpu.store(entry, 0u16);
            }
        }
    }

    /// Puts everything that the workers `gone`, of the `workers` that there are, held into the shared level; returns how many buffers
    /// that were. The caller holds the pool's lock, and the NICs have forgotten these workers' rings.
    ///
    /// The shared level is rebuilt from the ledger alone, so that it does not matter what a worker
    /// that died in the middle of moving buffers had written already.
    pub fn reclaim<C: Cpu>(&self, cpu: &mut C, gone: &[usize], workers: usize) -> u64 {
        let (mut shared, mut back) = (Vec::new(), 0);
        for number in 0..self.pool.count() as u64 {
            let holder: u16 = cpu.load(self.entry(number));
            // A mark of nobody is nonsense that somebody wrote.
            let of_gone = usize::from(holder) > workers || gone.iter().any(|&worker| Ledger::mark(worker) == holder);
            if of_gone {
                back += 1;
                cpu.store(self.entry(number), 0u16);
            }
            if of_gone || holder == 0 {
                shared.push(number);
            }
        }
        self.pool.refill(cpu, &shared);
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PoolCache;
    use nicforge_platform::FlatCpu;
    use nicforge_units::Cycles;
    use std::collections::BTreeSet;

    #[test]
    fn a_dead_workers_buffers_return_once() {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 100);
        let ledger = Ledger::new(&mut space, pool);
        let mut cache = |worker| {
            let cache = PoolCache::new(&mut space, pool, 8, Cycles(0));
            cache.with_ledger(ledger, worker)
        };
        let (mut dying, mut other, mut anew) = (cache(0), cache(1), cache(0));
        let mut cpu = FlatCpu::new(space.end());
        pool.start(&mut cpu);
        let kept: Vec<Addr> = (0..13).filter_map(|_| other.take(&mut cpu)).collect();
        let mut hands: Vec<Addr> = (0..40).filter_map(|_| dying.take(&mut cpu)).collect();
        for mbuf in hands.split_off(10) {
            dying.give(&mut cpu, mbuf);
        }
        let of_other = kept.len() + other.len();
        let of_dead = hands.len() + dying.len();
        assert_eq!(ledger.reclaim(&mut cpu, &[0], 2), of_dead as u64);
        assert_eq!(pool.available(&mut cpu) as usize, 100 - of_other);
        // Each comes out once, and none that the other still has.
        let mut seen: BTreeSet<Addr> = kept.into_iter().collect();
        while let Some(mbuf) = anew.take(&mut cpu).or_else(|| other.take(&mut cpu)) {
            assert!(seen.insert(mbuf), "{mbuf:?} twice");
        }
        assert_eq!(seen.len(), 100);
    }
}
