//! How drivers that share a ring give descriptors back to the NIC.

use nicforge_platform::{Addr, Atomic, Cpu, Part, Register};

use super::layout::{Order, Ring, SLOTS_MAX};

/// Bits of a word of the bitmap.
const WORD_BITS: u64 = 64;

/// Descriptors that one driver has refilled since it last told the others and the NIC.
#[derive(Debug)]
pub enum Repost {
    /// Array (RxArr, listing 5.1): bits to set in one word of the bitmap.
    Array {
        /// Which word.
        word: u64,
        /// Which of its bits.
        bits: u64,
    },
    /// List (RxList, listing 5.2): a chain of descriptors to append.
    List {
        /// How many.
        count: u64,
        /// The first one. Its buffers go into the descriptor that stands spare at the end.
        first: u64,
        /// The buffers of the first one.
        buffers: [Addr; SLOTS_MAX],
        /// The last one: the next to stand spare.
        last: u64,
    },
}

impl Repost {
    /// Nothing yet.
    pub fn new(order: Order) -> Repost {
        match order {
            Order::Array => Repost::Array { word: 0, bits: 0 },
            Order::List => Repost::List { count: 0, first: 0, buffers: [Addr(0); SLOTS_MAX], last: 0 },
        }
    }

    /// Descriptor `index` is free, and `mbufs` are the empty buffers in exchange for those that it
    /// had. An array takes them in place.
    #[inline]
    pub fn add<C: Cpu>(&mut self, cpu: &mut C, ring: &Ring, index: u64, mbufs: [Addr; SLOTS_MAX]) {
        match self {
            Repost::Array { word, bits } => {
                ring.store(cpu, index, mbufs, 0);
                if *word != index / WORD_BITS {
                    set_bits(cpu, ring, *word, *bits);
                    (*word, *bits) = (index / WORD_BITS, 0);
                }
                *bits |= 1 << (index % WORD_BITS);
            }
            Repost::List { count, first, buffers, last } => {
                match *count {
                    0 => (*first, *buffers) = (index, mbufs),
                    _ => ring.store(cpu, *last, mbufs, index as u32),
                }
                *count += 1;
                *last = index;
            }
        }
    }

    /// Gives what was added to the NIC, as far as the order allows.
    pub fn publish<C: Cpu>(&mut self, cpu: &mut C, ring: &Ring, doorbell: Register) {
        match self {
            Repost::Array { bits: 0, .. } | Repost::List { count: 0, .. } => {}
            Repost::Array { word, bits } => {
                set_bits(cpu, ring, *word, std::mem::take(bits));
                locked(cpu, ring, doorbell, |cpu, given| contiguous(cpu, ring, given));
            }
            Repost::List { count, first, buffers, last } => {
                locked(cpu, ring, doorbell, |cpu, given| {
                    let spare = cpu.load::<u64>(ring.spare());
                    ring.store(cpu, spare, *buffers, *first as u32);
                    cpu.store(ring.spare(), *last);
                    given + *count
                });
                *count = 0;
            }
        }
    }
}

fn set_bits<C: Cpu>(cpu: &mut C, ring: &Ring, word: u64, bits: u64) {
    if bits != 0 {
        let part = cpu.enter(Part::Sync);
        cpu.atomic(ring.bitmap_word(word), Atomic::Or(bits));
        cpu.enter(part);
    }
}

/// Advances the count of descriptors given to the NIC under the lock, and rings the doorbell if
/// there are more.
fn locked<C: Cpu>(cpu: &mut C, ring: &Ring, doorbell: Register, advance: impl FnOnce(&mut C, u64) -> u64) {
    let part = cpu.enter(Part::Sync);
    cpu.lock(ring.lock());
    let before = cpu.load::<u64>(ring.given());
    let given = advance(cpu, before);
    if given != before {
        cpu.store(ring.given(), given);
        cpu.store(ring.doorbell_record(), given);
        cpu.mmio_write(doorbell, ring.first + given);
    }
    cpu.unlock(ring.lock());
    cpu.enter(part);
}

/// Clears the bits of all refilled descriptors from `given` on without a gap; returns where the
/// next stands that is not.
fn contiguous<C: Cpu>(cpu: &mut C, ring: &Ring, mut given: u64) -> u64 {
    loop {
        let index = given & (ring.capacity() - 1);
        let word = ring.bitmap_word(index / WORD_BITS);
        let shift = index % WORD_BITS;
        let run = (cpu.acquire(word) >> shift).trailing_ones();
        if run == 0 {
            return given;
        }
        let ones = u64::MAX >> (WORD_BITS - u64::from(run));
        cpu.atomic(word, Atomic::And(!(ones << shift)));
        given += u64::from(run);
    }
}
