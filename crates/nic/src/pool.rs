//! A two-level pool of packet buffers: a level that cores share, and one small stack per core.
//!
//! A core takes from and gives to its own stack, last in first out, so that it reuses warm
//! buffers. An empty stack is filled from the shared level; one that grew beyond 1.5 × its size
//! is drained to its size (rxBisect, section 4.2; DPDK's mempool). Any core may free any buffer.
//!
//! Where buffers wander between cores, the order of the shared level ([`PoolOrder`]) decides whether all of the
//! pool's are touched or only as many as are in use.
//!
//! A pool may lie on memory of a NIC: metadata and room for headers are host memory as ever, and
//! beside them each buffer has room for payload in nicmem. A core that has such a pool has a
//! second stack for it, and a buffer finds its way to its own pool by its address.

use std::ops::Range;

use nicforge_platform::{Addr, AddressSpace, Cpu, Dma};
use nicforge_units::CACHE_LINE_BYTES;

pub use cache::PoolCache;

use crate::Allocation;
use crate::mbuf::{DATA_BYTES, OBJECT_HEADER_BYTES, mbuf_stride, room_for};

/// Words in front of the shared ring, each in a line of its own.
const LOCK: u64 = 0;
const TAKEN: u64 = 64;
const GIVEN: u64 = 128;
const ENTRIES: u64 = 192;
const WORD_BYTES: u64 = 8;

nicforge_options::choice! {
    /// Which buffers of the shared level a core gets.
    pub enum PoolOrder {
        /// Those that were given first, so that each has its turn (DPDK's default, `ring`).
        Ring = "ring",
        /// Those that were given last (DPDK's `stack`).
        Stack = "stack",
    }
}

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
    order: PoolOrder,
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
            order: PoolOrder::default(),
            payload: None,
        }
    }

    /// The same with a shared level of this `order`.
    pub fn in_order(self, order: PoolOrder) -> Pool {
        Pool { order, ..self }
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

    /// Buffers of the level of each of `cores` cores: `wanted`, or as few as leave half of the buffers for rings. What
    /// stays in the levels of others, a core with none cannot get (DPDK, `rte_mempool_create`, on `cache_size`).
    pub fn level_size(&self, wanted: usize, cores: usize) -> usize {
        wanted.min(self.count() / (2 * cores))
    }

    /// Puts all buffers into the shared ring; once, before the first is taken.
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
    pub fn fit<D: Dma>(&self, dma: &mut D, from: &Range<u16>, mbuf: Addr, room: u64, len: usize) -> Fit {
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
        let given = cpu.acquire(self.shared + GIVEN);
        // What stands there may be nonsense that somebody wrote.
        given.wrapping_sub(cpu.acquire(self.shared + TAKEN))
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

mod cache;
#[cfg(test)]
mod tests;
