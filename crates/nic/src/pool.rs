//! A two-level pool of packet buffers: one shared ring, one small stack per core.
//!
//! A core takes from and gives to its own stack, last in first out, so that it reuses warm
//! buffers. An empty stack is filled from the shared ring; one that grew beyond 1.5 × its size
//! is drained to its size (rxBisect, section 4.2; DPDK's mempool). Any core may free any buffer.
//!
//! A pool may lie on memory of a NIC: metadata and room for headers are host memory as ever, and
//! beside them each buffer has room for payload in nicmem. A core that has such a pool has a
//! second stack for it, and a buffer finds its way to its own pool by its address.

use nicforge_platform::{Addr, AddressSpace, Cpu, Part};
use nicforge_units::Cycles;

use crate::ledger::Ledger;
use crate::mbuf::{DATA_BYTES, OBJECT_HEADER_BYTES, mbuf_stride, room_for};
use crate::packet::drop_reference;
use crate::{Allocation, Packet};

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
    /// Room for a frame in each, and from one to the next.
    room: u64,
    stride: u64,
    shared: Addr,
    /// Where its payload lies, if that is memory of a NIC.
    payload: Option<Allocation>,
}

impl Pool {
    /// `count` buffers of the usual size.
    pub fn new(space: &mut AddressSpace, count: usize) -> Pool {
        Pool::with_room(space, count, DATA_BYTES as usize)
    }

    /// `count` buffers that hold frames of `room` bytes, rounded up to whole lines, at most
    /// [`DATA_BYTES_MAX`](crate::DATA_BYTES_MAX).
    pub fn with_room(space: &mut AddressSpace, count: usize, room: usize) -> Pool {
        let count = count as u64;
        let room = room_for(room as u64);
        Pool {
            buffers: space.data(count * mbuf_stride(room), 4096),
            count,
            room,
            stride: mbuf_stride(room),
            shared: space.data(ENTRIES + count * 8, 64),
            payload: None,
        }
    }

    /// As many buffers of `room` bytes as `payload`, memory of a NIC, has room for.
    pub fn over_nicmem(space: &mut AddressSpace, payload: Allocation, room: u64) -> Pool {
        let count = payload.len / room_for(room);
        let pool = Pool::with_room(space, count as usize, room as usize);
        let payload = Some(payload);
        Pool { payload, ..pool }
    }

    /// Bytes of frame that each buffer holds.
    pub fn room(&self) -> u32 {
        self.room as u32
    }

    /// Bytes from one buffer to the next.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// The memory of a NIC that it lies on, if it does.
    pub fn nicmem(&self) -> Option<Allocation> {
        self.payload
    }

    /// Where the payload of buffer `mbuf`, one of a pool on nicmem, lies. `None` for other buffers.
    #[inline]
    pub fn payload_of(&self, mbuf: Addr) -> Option<Addr> {
        let number = self.number_of(mbuf)?;
        self.payload.map(|payload| payload.at + number * self.room)
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
        self.buffers + number * self.stride + OBJECT_HEADER_BYTES
    }

    /// The number of the buffer whose metadata is at `mbuf`; `None` if that is no buffer of ours.
    pub fn number_of(&self, mbuf: Addr) -> Option<u64> {
        let offset = mbuf.0.checked_sub(self.buffers.0 + OBJECT_HEADER_BYTES)?;
        let number = offset / self.stride;
        (offset.is_multiple_of(self.stride) && number < self.count).then_some(number)
    }

    /// The shared ring holds the buffers `numbers` and no others, whatever stood there.
    pub(crate) fn refill<C: Cpu>(&self, cpu: &mut C, numbers: &[u64]) {
        for (place, &number) in (0..).zip(numbers) {
            cpu.store(self.entry(place), self.buffer(number).0);
        }
        cpu.store(self.shared + TAKEN, 0u64);
        cpu.store(self.shared + GIVEN, numbers.len() as u64);
    }

    /// The lock of the shared ring.
    pub fn lock(&self) -> Addr {
        self.shared + LOCK
    }

    /// Buffers in the shared ring.
    pub fn available<C: Cpu>(&self, cpu: &mut C) -> u64 {
        let given: u64 = cpu.load(self.shared + GIVEN);
        // What stands there may be nonsense that somebody wrote.
        given.wrapping_sub(cpu.load(self.shared + TAKEN))
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
    /// Nobody had a buffer when one was wanted last.
    dry: bool,
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
        PoolCache {
            pool,
            stack: space.data((PoolCache::limit(size) as u64 + 1) * 8, 64),
            len: 0,
            size,
            dry: false,
            ledger: None,
            work,
            nicmem: None,
        }
    }

    /// The same core with buffers on nicmem besides.
    pub fn with_nicmem(self, nicmem: PoolCache) -> PoolCache {
        PoolCache {
            nicmem: Some(Box::new(nicmem)),
            ..self
        }
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

    fn limit(size: usize) -> usize {
        size + size / 2
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
        self.len + self.nicmem.as_ref().map_or(0, |nicmem| nicmem.len())
    }

    /// Whether this core's stack of buffers in host memory is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a buffer in host memory was wanted since the last call, and there was none.
    pub fn ran_dry(&mut self) -> bool {
        std::mem::take(&mut self.dry)
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
        self.dry = taken.is_none();
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
    #[inline]
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        if let Some(nicmem) = &mut self.nicmem
            && nicmem.pool.number_of(mbuf).is_some()
        {
            return nicmem.give(cpu, mbuf);
        }
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
            if let Some((ledger, mark)) = self.ledger {
                ledger.write(cpu, mbuf, mark);
            }
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
            if let Some((ledger, _)) = self.ledger {
                ledger.write(cpu, mbuf, 0);
            }
        }
        cpu.store(shared + GIVEN, given + count);
        cpu.unlock(shared + LOCK);
        self.len = self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Application, Nicmem};
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
    fn a_buffer_on_nicmem_goes_back_to_its_own_pool() {
        let mut space = AddressSpace::default();
        let mut nicmem = Nicmem::new(&mut space, 0, 10 * DATA_BYTES + 5);
        let memory = nicmem
            .alloc_nicmem(Application(0), 10 * DATA_BYTES)
            .unwrap();
        let (host, near) = (
            Pool::new(&mut space, 4),
            Pool::over_nicmem(&mut space, memory, DATA_BYTES),
        );
        assert_eq!((host.count(), near.count()), (4, 10));
        let near_cache = PoolCache::new(&mut space, near, 2, Cycles(1));
        let mut cache = PoolCache::new(&mut space, host, 2, Cycles(1)).with_nicmem(near_cache);
        let mut cpu = FlatCpu::new(space.end());
        host.start(&mut cpu);
        near.start(&mut cpu);
        let ours = cache.take(&mut cpu).unwrap();
        let theirs = cache.nicmem().unwrap().take(&mut cpu).unwrap();
        assert_eq!(host.payload_of(ours), None);
        let payload = near.payload_of(theirs).unwrap();
        assert!(memory.holds(payload) && memory.holds(payload + (DATA_BYTES - 1)));
        let before = cache.len();
        for mbuf in [theirs, ours] {
            cache.give(&mut cpu, mbuf);
        }
        assert_eq!(cache.len(), before + 2);
        assert_eq!(cache.nicmem().unwrap().take(&mut cpu), Some(theirs));
        assert_eq!(cache.take(&mut cpu), Some(ours));
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
