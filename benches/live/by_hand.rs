//! The protocol of private rings written by hand over slices, as one would who needs only this one and
//! knows what contracts.rs does: the same words in the same memory, the same checks of what the other
//! side wrote, the same order and the same hints. Sizes are settings there, so they are values here.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nicforge_nic::{
    Arriving, DropCause, METADATA_BYTES, Packet, Pool, PortId, RxFlags, Segment, TxOffload, data_of,
};
use nicforge_platform::live::hints::{expect_read, expect_write};
use nicforge_platform::{Addr, AddressSpace};
use nicforge_units::Time;

use super::contracts::free;
use super::halves::{BURST, ENTRIES};

/// Descriptors that the device reads at a time.
const BATCH: usize = 32;
/// How far ahead lines are called for: those that the device writes, and descriptors.
const AHEAD: usize = 8;
const DESCRIPTORS_AHEAD: usize = 16;
/// Buffers that a worker keeps.
const KEPT: usize = 256;

/// An empty buffer: the address of its metadata, and the room in it.
#[derive(Clone, Copy, Default)]
struct Descriptor {
    mbuf: u64,
    room: u32,
    _zero: u32,
}

/// A completion, which its last word announces.
#[repr(align(64))]
#[derive(Default)]
struct Line {
    words: [u64; 7],
    done: AtomicU64,
}

/// What both sides see.
struct Shared {
    memory: Vec<u8>,
    descriptors: Vec<Descriptor>,
    completions: Vec<Line>,
    doorbell: AtomicU64,
    /// Buffers that nobody keeps.
    buffers: Mutex<Vec<u64>>,
}

/// Where one side stands in a ring: counts up, and the bit that entries of this pass have.
#[derive(Clone, Copy)]
struct Cursor {
    position: u64,
    entries: u64,
}

impl Cursor {
    #[inline]
    fn index(&self, ahead: usize) -> usize {
        ((self.position + ahead as u64) & (self.entries - 1)) as usize
    }

    #[inline]
    fn done(&self) -> u64 {
        !(self.position >> self.entries.trailing_zeros()) & 1
    }
}

struct Queue {
    pool: Pool,
    head: Cursor,
    shown: Cursor,
    held: Vec<[u64; 8]>,
    tail: u64,
    fetched: u64,
    at_hand: Vec<Descriptor>,
    used: usize,
}

impl Queue {
    /// Software says how far descriptors are valid, if that is possible.
    fn doorbell(&mut self, shared: &Shared) {
        let tail = shared.doorbell.load(Ordering::Acquire);
        if tail >= self.tail && tail - self.head.position <= self.head.entries {
            self.tail = tail;
        }
    }

    fn fetch(&mut self, shared: &Shared) {
        let from = (self.fetched & (self.head.entries - 1)) as usize;
        let count = BATCH.min((self.tail - self.fetched) as usize);
        let count = count.min(self.head.entries as usize - from);
        self.at_hand.clear();
        self.at_hand
            .extend_from_slice(&shared.descriptors[from..from + count]);
        self.fetched += count as u64;
        self.used = 0;
    }

    /// Shows what was delivered: no line before its burst is complete.
    fn show(&mut self, shared: &mut Shared) {
        for &[words @ .., done] in &self.held {
            let line = &mut shared.completions[self.shown.index(0)];
            line.words = words;
            line.done.store(done, Ordering::Release);
            self.shown.position += 1;
        }
        self.held.clear();
    }

    #[inline]
    fn receive(&mut self, shared: &mut Shared, frame: &Arriving<'_>) -> Result<(), DropCause> {
        if self.used == self.at_hand.len() {
            self.fetch(shared);
        }
        let Some(&descriptor) = self.at_hand.get(self.used) else {
            return Err(DropCause::NO_DESCRIPTOR);
        };
        let mbuf = Addr(descriptor.mbuf);
        let good = self.pool.number_of(mbuf).is_some();
        let len = frame.bytes.len();
        if good && len > descriptor.room.min(self.pool.room()) as usize {
            return Err(DropCause::OVERSIZED);
        }
        self.used += 1;
        if let Some(later) = self.at_hand.get(self.used + AHEAD)
            && let Some(place) = shared.memory.get(data_of(Addr(later.mbuf)).0 as usize)
        {
            expect_write(place);
        }
        let data = data_of(mbuf).0 as usize;
        if good {
            shared.memory[data..data + len].copy_from_slice(frame.bytes);
        }
        let said = if good { len as u64 } else { 0 };
        let entry = self.head.index(0);
        expect_write(&shared.completions[entry]);
        self.held.push([
            entry as u64 | said << 32,
            u64::from(frame.rss_hash)
                | u64::from(frame.flags.0) << 32
                | u64::from(frame.port.0) << 40
                | u64::from(frame.queue) << 48,
            frame.stamp.as_ps(),
            mbuf.0,
            u64::from(frame.segment) << 32,
            0,
            0,
            self.head.done(),
        ]);
        self.head.position += 1;
        good.then_some(()).ok_or(DropCause::BAD_DESCRIPTOR)
    }
}

struct Driver {
    room: u32,
    /// The buffer in each entry.
    notes: Vec<u64>,
    stack: Vec<u64>,
    tail: Cursor,
    next: Cursor,
}

impl Driver {
    #[inline]
    fn take(&mut self, shared: &Shared) -> Option<u64> {
        if self.stack.is_empty() {
            self.fill(shared);
        }
        self.stack.pop()
    }

    #[cold]
    fn fill(&mut self, shared: &Shared) {
        let mut buffers = shared.buffers.lock().unwrap();
        let kept = buffers.len().saturating_sub(KEPT);
        self.stack.extend(buffers.drain(kept..));
    }

    #[inline]
    fn give(&mut self, shared: &Shared, mbuf: u64) {
        self.stack.push(mbuf);
        if self.stack.len() > KEPT + KEPT / 2 {
            self.drain(shared);
        }
    }

    #[cold]
    fn drain(&mut self, shared: &Shared) {
        let more = self.stack.drain(KEPT..);
        shared.buffers.lock().unwrap().extend(more);
    }

    #[inline]
    fn post(&mut self, shared: &mut Shared, mbuf: u64) {
        let entry = self.tail.index(0);
        shared.descriptors[entry] = Descriptor {
            mbuf,
            room: self.room,
            _zero: 0,
        };
        self.notes[entry] = mbuf;
        self.tail.position += 1;
        expect_write(&shared.descriptors[self.tail.index(DESCRIPTORS_AHEAD)]);
    }

    fn rx_burst(&mut self, shared: &mut Shared, packets: &mut Vec<Packet>, max: usize) {
        let (from, done) = (self.next.index(0), self.next.done());
        let until = shared.completions.len().min(from + max);
        // Transfers between caches overlap.
        let lines = shared.completions[from..until].iter();
        black_box(
            lines
                .take_while(|line| line.done.load(Ordering::Relaxed) & 1 == done)
                .count(),
        );
        for _ in 0..max {
            let line = &shared.completions[self.next.index(0)];
            if line.done.load(Ordering::Acquire) & 1 != self.next.done() {
                break;
            }
            let words = line.words;
            expect_read(&shared.completions[self.next.index(1)]);
            let Some(fresh) = self.take(shared) else {
                break;
            };
            self.next.position += 1;
            let received = self.notes[words[0] as u32 as usize];
            self.post(shared, fresh);
            if words[0] >> 32 == 0 {
                self.give(shared, received);
            } else {
                packets.push(packet(shared, received, words));
            }
        }
        let tail = self.tail.position;
        shared.doorbell.store(tail, Ordering::Release);
    }
}

/// The packet in buffer `mbuf`, whose metadata is written.
#[inline]
fn packet(shared: &mut Shared, mbuf: u64, words: [u64; 7]) -> Packet {
    let (len, hash) = ((words[0] >> 32) as u32, words[1] as u32);
    let flags = RxFlags((words[1] >> 32) as u8);
    let at = data_of(Addr(mbuf));
    let buffer = &mut shared.memory[mbuf as usize..=at.0 as usize];
    expect_read(&buffer[buffer.len() - 1]);
    let (first, second) = buffer.split_at_mut(METADATA_BYTES as usize / 2);
    first[..8].copy_from_slice(&u64::from(len).to_ne_bytes());
    first[8..16].copy_from_slice(&u64::from(hash).to_ne_bytes());
    second[..8].copy_from_slice(&words[2].to_ne_bytes());
    Packet {
        mbuf: Addr(mbuf),
        tail: Addr(0),
        references: Addr(0),
        head: Segment { at, len },
        rest: Segment::default(),
        port: PortId((words[1] >> 40) as u8),
        rss_hash: hash,
        flags,
        offload: TxOffload {
            l3_checksum: false,
            l4_checksum: flags.contains(RxFlags::L4_BEGUN),
            segment: (words[4] >> 32) as u16,
        },
        stamp: Time::from_ps(words[2]),
    }
}

/// Both ends.
pub struct ByHand {
    shared: Shared,
    /// A device has several queues, though one is used here.
    queues: Vec<Queue>,
    driver: Driver,
    packets: Vec<Packet>,
}

impl ByHand {
    /// With the ring filled.
    pub fn new() -> ByHand {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4 * ENTRIES);
        let entries = ENTRIES as u64;
        let start = Cursor {
            position: 0,
            entries,
        };
        let mut by_hand = ByHand {
            shared: Shared {
                memory: vec![0; space.end() as usize],
                descriptors: vec![Descriptor::default(); ENTRIES],
                completions: (0..ENTRIES).map(|_| Line::default()).collect(),
                doorbell: AtomicU64::new(0),
                buffers: Mutex::new((0..4 * entries).map(|n| pool.buffer(n).0).collect()),
            },
            queues: vec![Queue {
                pool,
                head: start,
                shown: start,
                held: Vec::with_capacity(BURST),
                tail: 0,
                fetched: 0,
                at_hand: Vec::with_capacity(BATCH),
                used: 0,
            }],
            driver: Driver {
                room: pool.room(),
                notes: vec![0; ENTRIES],
                stack: Vec::with_capacity(2 * KEPT),
                tail: start,
                next: start,
            },
            packets: Vec::with_capacity(BURST),
        };
        let ByHand { shared, driver, .. } = &mut by_hand;
        for _ in 0..ENTRIES {
            let fresh = driver.take(shared).unwrap();
            driver.post(shared, fresh);
        }
        let tail = driver.tail.position;
        shared.doorbell.store(tail, Ordering::Release);
        by_hand
    }

    /// The device delivers `frames`, the software takes them and frees them.
    #[inline(never)]
    pub fn burst(&mut self, frames: &[Arriving<'_>]) {
        let ByHand {
            shared,
            queues,
            driver,
            ..
        } = self;
        for queue in queues.iter_mut() {
            queue.doorbell(shared);
        }
        for frame in frames {
            let received = queues[usize::from(frame.queue)].receive(shared, frame);
            assert!(received.is_ok(), "a ring with room drops nothing");
        }
        for queue in queues.iter_mut() {
            queue.show(shared);
        }
        driver.rx_burst(shared, &mut self.packets, BURST);
        free(&mut self.packets, |mbuf| driver.give(shared, mbuf.0));
    }
}
