//! What the `Cpu` and `Dma` contracts cost: the protocol of private rings through them, and the same
//! protocol written by hand over slices, both ends in turn on one core.

use std::time::Instant;

use nicforge_nic::{
    Arriving, DriverHalf, Packet, PortId, ReceiveHalf, RxFlags, Segment, TxOffload, mbuf_room,
    registers,
};
use nicforge_platform::live::{Bell, Control, LiveCpu, LiveDma};
use nicforge_platform::{Addr, Register};
use nicforge_units::Time;

use super::halves::{BURST, ENTRIES, Layout, frames, lay_out};
use super::median;

/// Bursts of each measurement, and how many of each kind are taken in turn.
const BURSTS: usize = 20_000;
const ROUNDS: usize = 15;

/// Time of the one by that of the other, for frames of `len` bytes: the median of pairs.
pub fn ratio(len: usize) -> f64 {
    let frames = frames(len);
    let (mut contracts, mut by_hand) = (Contracts::new(), ByHand::new());
    let time = |burst: &mut dyn FnMut()| {
        let began = Instant::now();
        for _ in 0..BURSTS {
            burst();
        }
        began.elapsed().as_secs_f64()
    };
    let mut pair = || {
        let through = time(&mut || contracts.burst(&frames));
        through / time(&mut || by_hand.burst(&frames))
    };
    pair();
    let mut ratios: Vec<f64> = (0..ROUNDS).map(|_| pair()).collect();
    median(&mut ratios)
}

/// Both halves of the interface, as they are.
struct Contracts {
    layout: Layout,
    control: Control,
    cpu: LiveCpu,
    dma: LiveDma,
    doorbell: u64,
    packets: Vec<Packet>,
}

impl Contracts {
    fn new() -> Contracts {
        let mut layout = lay_out("priv_ring");
        let control = Control::new(&layout.space, &layout.shape).unwrap();
        let bell = Bell::new().unwrap();
        let mut cpu = LiveCpu::new(control.clone(), bell, 0).device_polls();
        let dma = LiveDma::new(control.clone(), &layout.space).workers_poll();
        layout.pool.start(&mut cpu);
        layout.driver.start(&mut cpu, &mut layout.cache);
        Contracts {
            layout,
            control,
            cpu,
            dma,
            doorbell: 0,
            packets: Vec::with_capacity(BURST),
        }
    }

    #[inline(never)]
    fn burst(&mut self, frames: &[Vec<u8>]) {
        let Layout {
            nic, driver, cache, ..
        } = &mut self.layout;
        let register = Register {
            device: 0,
            index: registers::RECEIVE,
        };
        let doorbell = self.control.register_value(register);
        if doorbell != self.doorbell {
            self.doorbell = doorbell;
            nic.write_register(&mut self.dma, 0, doorbell);
        }
        for frame in frames {
            let received = nic.receive(&mut self.dma, &arriving(frame));
            assert!(received.is_ok(), "a ring with room drops nothing");
        }
        self.dma.wake();
        driver.rx_burst(&mut self.cpu, cache, &mut self.packets, BURST);
        free(&mut self.packets, |mbuf| cache.give(&mut self.cpu, mbuf));
    }
}

fn arriving(frame: &[u8]) -> Arriving<'_> {
    Arriving {
        bytes: frame,
        head: frame.len(),
        headers: 42,
        stamp: Time::ZERO,
        rss_hash: 1,
        flags: RxFlags::L3_GOOD,
        segment: 0,
        port: PortId(0),
        queue: 0,
    }
}

fn free(packets: &mut Vec<Packet>, mut give: impl FnMut(Addr)) {
    assert_eq!(packets.len(), BURST, "all that came is taken");
    packets.drain(..).for_each(|packet| give(packet.mbuf));
}

/// Words in front of each buffer's frame, and of each buffer.
const HEAD_BYTES: usize = 256;
/// Frame and object header behind it.
const STRIDE: usize = HEAD_BYTES + mbuf_room() as usize + 64;
/// Descriptors that the device reads at a time.
const BATCH: usize = 32;

/// The same by hand.
struct ByHand {
    buffers: Vec<u8>,
    /// Address and room of the empty buffer of each entry.
    descriptors: Vec<[u64; 2]>,
    completions: Vec<[u64; 8]>,
    // The device's.
    tail: u64,
    head: u64,
    at_hand: [[u64; 2]; BATCH],
    // The driver's.
    notes: Vec<u64>,
    stack: Vec<u64>,
    posted: u64,
    consumed: u64,
    packets: Vec<Packet>,
}

impl ByHand {
    fn new() -> ByHand {
        let count = 4 * ENTRIES;
        let mut by_hand = ByHand {
            buffers: vec![0; count * STRIDE],
            descriptors: vec![[0; 2]; ENTRIES],
            completions: vec![[0; 8]; ENTRIES],
            tail: 0,
            head: 0,
            at_hand: [[0; 2]; BATCH],
            notes: vec![0; ENTRIES],
            stack: (0..count).map(|number| (number * STRIDE) as u64).collect(),
            posted: 0,
            consumed: 0,
            packets: Vec::with_capacity(BURST),
        };
        for _ in 0..ENTRIES {
            let fresh = by_hand.stack.pop().unwrap();
            by_hand.post(fresh);
        }
        by_hand.tail = by_hand.posted;
        by_hand
    }

    #[inline]
    fn post(&mut self, mbuf: u64) {
        let entry = self.posted as usize % ENTRIES;
        self.descriptors[entry] = [mbuf, 2048];
        self.notes[entry] = mbuf;
        self.posted += 1;
    }

    #[inline(never)]
    fn burst(&mut self, frames: &[Vec<u8>]) {
        self.tail = self.posted;
        for frame in frames {
            self.deliver(frame);
        }
        for _ in 0..BURST {
            let entry = self.consumed as usize % ENTRIES;
            let words = self.completions[entry];
            let done = !(self.consumed / ENTRIES as u64) & 1;
            if words[7] & 1 != done {
                break;
            }
            let Some(fresh) = self.stack.pop() else { break };
            self.consumed += 1;
            let mbuf = self.notes[words[0] as u32 as usize % ENTRIES];
            self.post(fresh);
            self.take(mbuf, words);
        }
        let stack = &mut self.stack;
        free(&mut self.packets, |mbuf| stack.push(mbuf.0));
    }

    #[inline]
    fn deliver(&mut self, frame: &[u8]) {
        let batch = self.head as usize % BATCH;
        if batch == 0 {
            let from = self.head as usize % ENTRIES;
            self.at_hand
                .copy_from_slice(&self.descriptors[from..from + BATCH]);
        }
        assert!(self.head < self.tail, "a ring with room drops nothing");
        let [mbuf, room] = self.at_hand[batch];
        let at = mbuf as usize + HEAD_BYTES;
        assert!(frame.len() <= room as usize && (mbuf as usize).is_multiple_of(STRIDE));
        self.buffers[at..at + frame.len()].copy_from_slice(frame);
        let entry = self.head as usize % ENTRIES;
        let done = !(self.head / ENTRIES as u64) & 1;
        let first = entry as u64 | (frame.len() as u64) << 32;
        self.completions[entry] = [first, 1 | 1 << 32, 0, mbuf, 0, 0, 0, done];
        self.head += 1;
    }

    #[inline]
    fn take(&mut self, mbuf: u64, words: [u64; 8]) {
        let metadata = &mut self.buffers[mbuf as usize..mbuf as usize + HEAD_BYTES];
        let (len, hash) = ((words[0] >> 32) as u32, words[1] as u32);
        metadata[..8].copy_from_slice(&u64::from(len).to_ne_bytes());
        metadata[8..16].copy_from_slice(&u64::from(hash).to_ne_bytes());
        metadata[64..72].copy_from_slice(&words[2].to_ne_bytes());
        self.packets.push(Packet {
            mbuf: Addr(mbuf),
            tail: Addr(0),
            references: Addr(0),
            head: Segment {
                at: Addr(mbuf + HEAD_BYTES as u64),
                len,
            },
            rest: Segment::default(),
            port: PortId((words[1] >> 40) as u8),
            rss_hash: hash,
            flags: RxFlags((words[1] >> 32) as u8),
            offload: TxOffload::default(),
            stamp: Time::from_ps(words[2]),
        });
    }
}

/// A batch never wraps, and one is used up by each burst.
const _: () = assert!(ENTRIES.is_multiple_of(BATCH) && BURST == BATCH);
