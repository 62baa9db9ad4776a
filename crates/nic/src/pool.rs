//! A two-level pool of packet buffers: one shared ring, one small stack per core.
//!
//! A core takes from and gives to its own stack, last in first out, so that it reuses warm
//! buffers. An empty stack is filled from the shared ring; one that grew beyond 1.5 × its size
//! is drained to its size (rxBisect, section 4.2; DPDK's mempool). Any core may free any buffer.
//!
//! A pool may lie on memory of a NIC: metadata and room for headers are host memory as ever, and
//! beside them each buffer has room for payload in nicmem. A core that has such a pool has a
//! second stack for it, and a buffer finds its way to its own pool by its address.

use std::ops::Range;

use nicforge_platform::{Addr, AddressSpace, Cpu, Dma, Part};
use nicforge_units::{CACHE_LINE_BYTES, Cycles};

use crate::ledger::Ledger;
use crate::mbuf::{DATA_BYTES, OBJECT_HEADER_BYTES, mbuf_stride, room_for};
use crate::packet::drop_reference;
use crate::{Allocation, Packet};

/// Words in front of the shared ring, each in a line of its own.
const LOCK: u64 = 0;
const TAKEN: u64 = 64;
const GIVEN: u64 = 128;
const ENTRIES: u64 = 192;
const WORD_BYTES: u64 = 8;

/// The shared level: addresses only, the words lie in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    buffers: Addr,
    count: u64,
    /// Room for a frame in each, and from one to the next.
    room: u64,
    stride: u64,
    /// What the lines of a stride, an odd number, times this is 1 modulo 2^64.
    inverse: u64,
    shared: Addr,
    /// Where its payload lies, if that is memory of a NIC.
    payload: Option<Allocation>,
}

/// Whether a frame can go into what a descriptor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// A buffer with room.
    Good,
    /// No buffer has so much room.
    TooLong,
    /// No buffer of the pool, or not all of it, or one that was not its writer's to give.
    NoBuffer,
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
            inverse: inverse_of_odd(mbuf_stride(room) / CACHE_LINE_BYTES),
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

    /// Where its buffers lie, and how many bytes they take; none is written before one is taken.
    pub fn memory(&self) -> (Addr, u64) {
        (self.buffers, self.count * self.stride)
    }

    /// The metadata address of buffer `number`.
    pub fn buffer(&self, number: u64) -> Addr {
        self.buffers + number * self.stride + OBJECT_HEADER_BYTES
    }

    /// The number of the buffer whose metadata is at `mbuf`; `None` if that is no buffer of ours.
    #[inline]
    pub fn number_of(&self, mbuf: Addr) -> Option<u64> {
        let offset = mbuf.0.wrapping_sub(self.buffers.0 + OBJECT_HEADER_BYTES);
        // A division without one: this takes each `number * stride` to `number`, and as it takes no
        // two offsets to the same, nothing else to the number of a buffer.
        let number = offset.wrapping_mul(self.inverse);
        let number = number.rotate_right(CACHE_LINE_BYTES.trailing_zeros());
        (number < self.count).then_some(number)
    }

    /// Whether `len` bytes fit into the buffer at `mbuf`, of which software of the queues `from` said that
    /// it has `room` of them. It has no more than it has, whatever that says.
    #[inline]
    pub fn fit<D: Dma>(
        &self,
        dma: &mut D,
        from: &Range<u16>,
        (mbuf, room): (Addr, u64),
        len: usize,
    ) -> Fit {
        let len = len as u64;
        if self.number_of(mbuf).is_none() || !dma.is_from(mbuf, from) {
            return Fit::NoBuffer;
        }
        match len <= room.min(self.room) {
            true => Fit::Good,
            false if len > self.room => Fit::TooLong,
            // It would be in the way for ever.
            false => Fit::NoBuffer,
        }
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
        let given = cpu.load_shared(self.shared + GIVEN);
        // What stands there may be nonsense that somebody wrote.
        given.wrapping_sub(cpu.load_shared(self.shared + TAKEN))
    }

    fn entry(&self, position: u64) -> Addr {
        self.shared + ENTRIES + position % self.count * 8
    }
}

/// What `odd` times it is 1 modulo 2^64 (Newton's method: each step doubles the bits that are right, of
/// which `odd` itself has three).
const fn inverse_of_odd(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut right = 3;
    while right < u64::BITS {
        let error = odd.wrapping_mul(inverse);
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(error));
        right *= 2;
    }
    inverse
}

/// One core's level of the pool.
#[derive(Debug)]
pub struct PoolCache {
    pool: Pool,
    /// A stack of buffers: where it begins, ends now, and ends at most.
    stack: Addr,
    top: Addr,
    limit: Addr,
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
        let limit = (size + size / 2) as u64 * WORD_BYTES;
        let stack = space.data(limit + WORD_BYTES, 64);
        PoolCache {
            pool,
            stack,
            top: stack,
            limit: stack + limit,
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

    /// Moves up to `size` buffers from the shared ring to the stack.
    #[cold]
    fn fill<C: Cpu>(&mut self, cpu: &mut C) {
        let shared = self.pool.shared;
        cpu.lock(shared + LOCK);
        let taken: u64 = cpu.load(shared + TAKEN);
        let given: u64 = cpu.load(shared + GIVEN);
        let count = (given - taken).min(self.size.max(1) as u64);
        for i in 0..count {
            let mbuf: u64 = cpu.load(self.pool.entry(taken + i));
            cpu.store(self.stack + i * WORD_BYTES, mbuf);
            if let Some((ledger, mark)) = self.ledger {
                ledger.write(cpu, mbuf, mark);
            }
        }
        cpu.store(shared + TAKEN, taken + count);
        cpu.unlock(shared + LOCK);
        self.top = self.stack + count * WORD_BYTES;
    }

    /// Moves what exceeds `size` to the shared ring.
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

#[cfg(test)]
mod tests;
