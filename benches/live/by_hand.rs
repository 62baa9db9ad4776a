//! The protocol of private rings written by hand over slices, as one would who needs only this one and
//! knows what contracts.rs does: the same words in the same memory, the same checks of what the other
//! side wrote, the same order, hints and kind of memory. Sizes are settings there, so they are values here.

mod device;

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nicforge_nic::{Arriving, METADATA_BYTES, Packet, Pool, PortId, RxFlags, Segment, TxOffload, data_of};
use nicforge_platform::live::hints::{expect_read, expect_write};
use nicforge_platform::live::{Bell, Control, LiveCpu};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Time;

use super::contracts::free;
use super::halves::{BURST, ENTRIES, lay_out};
use device::Queue;

/// How far ahead lines of descriptors are called for.
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

/// What both sides see, beside the buffers' memory.
struct Shared {
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
        u64::from(self.position & self.entries == 0)
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
        shared.descriptors[entry] = Descriptor { mbuf, room: self.room, _zero: 0 };
        self.notes[entry] = mbuf;
        self.tail.position += 1;
        expect_write(&shared.descriptors[self.tail.index(DESCRIPTORS_AHEAD)]);
    }

    /// Not inlined, as both ends are different processes': neither knows what the other has in registers.
    #[inline(never)]
    fn rx_burst(&mut self, shared: &mut Shared, memory: &mut [u8], packets: &mut Vec<Packet>, max: usize) {
        let (from, done) = (self.next.index(0), self.next.done());
        let until = shared.completions.len().min(from + max);
        // Transfers between caches overlap.
        let lines = shared.completions[from..until].iter();
        black_box(lines.take_while(|line| line.done.load(Ordering::Relaxed) & 1 == done).count());
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
            let noted = self.notes[words[0] as u32 as usize];
            let flags = RxFlags(words[5] as u32);
            let received = if flags.contains(RxFlags::HANDED_OVER) { words[3] } else { noted };
            self.post(shared, fresh);
            if words[0] >> 32 == 0 {
                self.give(shared, received);
            } else {
                packets.push(packet(memory, received, words));
            }
        }
        let tail = self.tail.position;
        shared.doorbell.store(tail, Ordering::Release);
    }
}

/// The packet in buffer `mbuf`, whose metadata is written.
#[inline]
fn packet(memory: &mut [u8], mbuf: u64, words: [u64; 7]) -> Packet {
    let (len, hash) = ((words[0] >> 32) as u32, words[1] as u32);
    let flags = RxFlags(words[5] as u32);
    let at = data_of(Addr(mbuf));
    let buffer = &mut memory[mbuf as usize..=at.0 as usize];
    expect_read(&buffer[buffer.len() - 1]);
    let (first, second) = buffer.split_at_mut(METADATA_BYTES as usize / 2);
    first[..8].copy_from_slice(&u64::from(len).to_ne_bytes());
    first[8..16].copy_from_slice(&u64::from(hash).to_ne_bytes());
    second[..8].copy_from_slice(&words[2].to_ne_bytes());
    Packet {
        mark: 0,
        mbuf: Addr(mbuf),
        tail: Addr(0),
        references: Addr(0),
        head: Segment { at, len },
        rest: Segment::default(),
        port: PortId((words[1] >> 40) as u8),
        rss_hash: hash,
        flags: flags.without(RxFlags::HANDED_OVER),
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
    /// Owns the buffers' memory, which is of the same pages as the contracts' so.
    pages: LiveCpu,
    memory_len: usize,
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
        let start = Cursor { position: 0, entries };
        let control = Control::new(&space, &lay_out("priv_ring").shape).unwrap();
        let mut by_hand = ByHand {
            pages: LiveCpu::new(control, Bell::new().unwrap(), 0),
            memory_len: space.end() as usize,
            shared: Shared {
                descriptors: vec![Descriptor::default(); ENTRIES],
                completions: (0..ENTRIES).map(|_| Line::default()).collect(),
                doorbell: AtomicU64::new(0),
                buffers: Mutex::new((0..4 * entries).map(|n| pool.buffer(n).0).collect()),
            },
            queues: vec![Queue::new(pool, start)],
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
        let ByHand { pages, memory_len, shared, queues, driver, packets } = self;
        let memory = pages.bytes_mut(Addr(0), *memory_len);
        for queue in queues.iter_mut() {
            queue.doorbell(shared);
        }
        for frame in frames {
            let received = queues[usize::from(frame.queue)].receive(shared, memory, frame);
            assert!(received.is_ok(), "a ring with room drops nothing");
        }
        for queue in queues.iter_mut() {
            queue.show(shared);
        }
        driver.rx_burst(shared, memory, packets, BURST);
        free(packets, |mbuf| driver.give(shared, mbuf.0));
    }
}
