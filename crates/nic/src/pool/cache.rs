//! A core's own level of the pool.

use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::Cycles;

use super::{GIVEN, LOCK, Pool, PoolOrder, TAKEN, WORD_BYTES};
use crate::Packet;
use crate::ledger::Ledger;
use crate::packet::drop_reference;

/// One core's level of the pool.
#[derive(Debug)]
pub struct PoolCache {
    pool: Pool,
    /// A stack of buffers: where it begins, ends now, and ends at most.
    stack: Addr,
    top: Addr,
    limit: Addr,
    size: usize,
    /// The last request for a buffer found none.
    dry: bool,
    /// Requests that found none.
    refused: u64,
    /// Where it is written down that this core has a buffer, and its mark; where cores may die.
    ledger: Option<(Ledger, u16)>,
    /// Instructions of one take or give that hits the stack.
    work: Cycles,
    /// The same for buffers on nicmem, if this core has any.
    nicmem: Option<Box<PoolCache>>,
}

impl PoolCache {
    /// An empty stack that keeps about `size` buffers.
    pub fn new(space: &mut AddressSpace, pool: Pool, size: usize, work: Cycles) -> PoolCache {
        let limit = (size + size / 2) as u64 * WORD_BYTES;
        let stack = space.data(limit + WORD_BYTES, 64);
        PoolCache {
            pool,
            stack,
            top: stack,
            limit: stack + limit,
            size,
            dry: false,
            refused: 0,
            ledger: None,
            work,
            nicmem: None,
        }
    }

    /// The same core with buffers on nicmem besides.
    pub fn with_nicmem(self, nicmem: PoolCache) -> PoolCache {
        PoolCache { nicmem: Some(Box::new(nicmem)), ..self }
    }

    /// The same, which writes down in `ledger` what it takes from the shared level of that ledger's
    /// pool as worker `worker`, and what it gives back there.
    pub fn with_ledger(mut self, ledger: Ledger, worker: usize) -> PoolCache {
        if ledger.pool() == self.pool {
            self.ledger = Some((ledger, Ledger::mark(worker)));
        }
        let nicmem = self.nicmem.take();
        self.nicmem = nicmem.map(|near| Box::new(near.with_ledger(ledger, worker)));
        self
    }

    /// This core's level of the pool on nicmem, if there is one.
    pub fn nicmem(&mut self) -> Option<&mut PoolCache> {
        self.nicmem.as_deref_mut()
    }

    /// The shared level.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// Buffers in the shared levels, those on nicmem among them.
    pub fn shared<C: Cpu>(&self, cpu: &mut C) -> u64 {
        let near = self.nicmem.as_ref();
        self.pool.available(cpu) + near.map_or(0, |near| near.pool.available(cpu))
    }

    /// Buffers in this core's stacks, those on nicmem among them.
    pub fn len(&self) -> usize {
        self.in_stack() + self.nicmem.as_ref().map_or(0, |nicmem| nicmem.len())
    }

    /// Whether this core's stack of buffers in host memory is empty.
    pub fn is_empty(&self) -> bool {
        self.top == self.stack
    }

    /// Buffers in this core's stack.
    fn in_stack(&self) -> usize {
        ((self.top.0 - self.stack.0) / WORD_BYTES) as usize
    }

    /// Whether a buffer in host memory was wanted since the last call, and there was none.
    pub fn ran_dry(&mut self) -> bool {
        std::mem::take(&mut self.dry)
    }

    /// Requests for a buffer that found none, those for nicmem not among them (DPDK's `rx_nombuf`).
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Takes a buffer; `None` when both levels are empty.
    #[inline(always)]
    pub fn take<C: Cpu>(&mut self, cpu: &mut C) -> Option<Addr> {
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        if self.is_empty() {
            self.fill(cpu);
        }
        let found = !self.is_empty();
        // Mostly it stands there already, and what a core writes costs it more than what it reads.
        if self.dry == found {
            self.dry = !found;
        }
        if !found {
            self.refused += 1;
        }
        let taken = found.then(|| {
            self.top = Addr(self.top.0 - WORD_BYTES);
            Addr(cpu.load::<u64>(self.top))
        });
        cpu.enter(part);
        taken
    }

    /// Gives all buffers of a packet back.
    #[inline]
    pub fn free<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet) {
        self.give(cpu, packet.mbuf);
        if packet.tail != Addr(0) {
            self.give(cpu, packet.tail);
        }
        if packet.references != Addr(0) {
            drop_reference(cpu, packet.references);
        }
    }

    /// Gives a buffer back; it may come from another core's stack.
    #[inline(always)]
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        if self.nicmem.is_some() && self.give_to_nicmem(cpu, mbuf) {
            return;
        }
        let part = cpu.enter(Part::Alloc);
        cpu.work(self.work);
        let top = self.top;
        cpu.store(top, mbuf.0);
        self.top = top + WORD_BYTES;
        if self.top > self.limit {
            self.drain(cpu);
        }
        cpu.enter(part);
    }

    /// Gives a buffer back if it is one on nicmem.
    #[cold]
    fn give_to_nicmem<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) -> bool {
        let nicmem = self.nicmem.as_mut();
        let Some(near) = nicmem.filter(|near| near.pool.number_of(mbuf).is_some()) else {
            return false;
        };
        near.give(cpu, mbuf);
        true
    }

    /// Moves `size` buffers from the shared level to the stack; where there are fewer, only one, so that other cores
    /// get some, too (DPDK's `rte_mempool_generic_get`: a cache is filled in one piece or not at all).
    #[cold]
    fn fill<C: Cpu>(&mut self, cpu: &mut C) {
        let shared = self.pool.shared;
        cpu.lock(shared + LOCK);
        let taken: u64 = cpu.load(shared + TAKEN);
        let given: u64 = cpu.load(shared + GIVEN);
        let (there, wanted) = (given - taken, self.size.max(1) as u64);
        let count = if there < wanted { there.min(1) } else { wanted };
        let first = match self.pool.order {
            PoolOrder::Ring => taken,
            PoolOrder::Stack => given - count,
        };
        for i in 0..count {
            let mbuf: u64 = cpu.load(self.pool.entry(first + i));
            cpu.store(self.stack + i * WORD_BYTES, mbuf);
            if let Some((ledger, mark)) = self.ledger {
                ledger.write(cpu, mbuf, mark);
            }
        }
        match self.pool.order {
            PoolOrder::Ring => cpu.store(shared + TAKEN, taken + count),
            PoolOrder::Stack => cpu.store(shared + GIVEN, first),
        }
        cpu.unlock(shared + LOCK);
        self.top = self.stack + count * WORD_BYTES;
    }

    /// Moves what exceeds `size` to the shared level.
    #[cold]
    fn drain<C: Cpu>(&mut self, cpu: &mut C) {
        let shared = self.pool.shared;
        cpu.lock(shared + LOCK);
        let given: u64 = cpu.load(shared + GIVEN);
        let count = (self.in_stack() - self.size) as u64;
        let from = self.stack + self.size as u64 * WORD_BYTES;
        for i in 0..count {
            let mbuf: u64 = cpu.load(from + i * WORD_BYTES);
            cpu.store(self.pool.entry(given + i), mbuf);
            if let Some((ledger, _)) = self.ledger {
                ledger.write(cpu, mbuf, 0);
            }
        }
        cpu.store(shared + GIVEN, given + count);
        cpu.unlock(shared + LOCK);
        self.top = from;
    }
}
