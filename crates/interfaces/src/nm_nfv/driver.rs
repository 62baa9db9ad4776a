//! The driver's half.

use nicforge_nic::{
    Completion, CompletionReader, DriverCosts, DriverHalf, Key, METADATA_BYTES, Packet, Pool, PoolCache, Segment,
    data_of,
};
use nicforge_platform::{Addr, AddressSpace, Cpu, Hint, Part, Register};

use super::layout::{Buffer, PRIMARY, SECONDARY, frames_of};
use crate::priv_ring::layout::Ring;
use crate::priv_ring::supply::EXPECTED;

/// One of a queue's two rings.
#[derive(Debug)]
pub struct Side {
    ring: Ring<Buffer>,
    /// Descriptors of a frame.
    each: u64,
    doorbell: Register,
    /// The buffers in each entry, software's own copy: two times 8 bytes, the first for headers.
    notes: Addr,
    /// Descriptors written so far, and what the NIC was told.
    tail: u64,
    rung: u64,
}

/// The two buffers of a frame; without one for headers these come in the completion.
#[derive(Clone, Copy, Debug)]
struct Pair {
    headers: Option<Addr>,
    payload: Addr,
}

impl Side {
    /// The driver's side of `ring`.
    pub fn new(space: &mut AddressSpace, ring: Ring<Buffer>, each: u64, doorbell: Register) -> Side {
        Side {
            ring,
            each,
            doorbell,
            notes: space.data(ring.entries / each * 16, 64),
            tail: ring.first,
            rung: ring.first,
        }
    }

    /// Puts empty buffers into the entry at the tail. `payload` says how the NIC finds the second.
    #[inline(always)]
    fn post<const EACH: usize, C: Cpu>(&mut self, cpu: &mut C, pair: Pair, payload: Buffer) {
        let each = EACH as u64;
        let index = self.ring.index(self.tail);
        let note = self.note(frames_of(index, each));
        if let Some(headers) = pair.headers {
            let buffer = Buffer::new(headers, self.ring.room, Key::HOST);
            cpu.store(self.ring.descriptor(index), buffer);
            cpu.store(note, headers.0);
        }
        cpu.store(self.ring.descriptor(index + each - 1), payload);
        cpu.store(note + 8, pair.payload.0);
        self.tail += each;
        let later = self.ring.index(self.tail + EXPECTED);
        cpu.hint(Hint::Write(self.ring.descriptor(later)));
    }

    fn note(&self, entry: u64) -> Addr {
        self.notes + entry * 16
    }

    /// The buffers that were put into entry `entry`.
    #[inline(always)]
    fn buffers<const EACH: usize, C: Cpu>(&self, cpu: &mut C, entry: u32) -> Pair {
        let note = self.note(entry.into());
        let has_headers = EACH == 2;
        Pair { headers: has_headers.then(|| Addr(cpu.load::<u64>(note))), payload: Addr(cpu.load::<u64>(note + 8)) }
    }

    fn ring_doorbell<C: Cpu>(&mut self, cpu: &mut C) {
        if self.rung != self.tail {
            self.rung = self.tail;
            cpu.mmio_write(self.doorbell, frames_of(self.tail, self.each));
        }
    }
}

/// One core's receive queue.
#[derive(Debug)]
pub struct Driver {
    sides: [Side; 2],
    completions: CompletionReader,
    /// The pool on nicmem, and how many of its buffers to start with.
    nicmem: Option<(Pool, u64)>,
    entries: u64,
    /// Frames' worth of buffers in the rings.
    posted: u64,
    taken: u64,
    costs: DriverCosts,
}

impl Driver {
    /// The driver of two rings, which together hold buffers for `entries` frames.
    pub fn new(
        sides: [Side; 2],
        completions: CompletionReader,
        nicmem: Option<(Pool, u64)>,
        entries: u64,
        costs: DriverCosts,
    ) -> Driver {
        Driver { sides, completions, nicmem, entries, posted: 0, taken: 0, costs }
    }

    /// Buffers for one frame: its payload's on nicmem where there is one, else in host memory.
    #[inline(always)]
    fn take<const EACH: usize, C: Cpu>(cpu: &mut C, pool: &mut PoolCache, near: bool) -> Option<(usize, Pair)> {
        let headers = match EACH {
            1 => None,
            _ => Some(pool.take(cpu)?),
        };
        let nicmem = if near { pool.nicmem() } else { None };
        let (side, payload) = match nicmem.and_then(|nicmem| nicmem.take(cpu)) {
            Some(payload) => (PRIMARY, Some(payload)),
            None => (SECONDARY, pool.take(cpu)),
        };
        let Some(payload) = payload else {
            headers.into_iter().for_each(|mbuf| pool.give(cpu, mbuf));
            return None;
        };
        Some((side, Pair { headers, payload }))
    }

    #[inline(always)]
    fn post<const EACH: usize, C: Cpu>(&mut self, cpu: &mut C, side: usize, pair: Pair) {
        let near = match side {
            PRIMARY => self.in_nicmem(pair.payload),
            _ => None,
        };
        let room = self.sides[side].ring.room;
        let payload = near.unwrap_or(Buffer::new(pair.payload, room, Key::HOST));
        self.sides[side].post::<EACH, C>(cpu, pair, payload);
        self.posted += 1;
    }

    /// How the NIC finds the payload of buffer `mbuf`, if that is one on nicmem.
    #[inline]
    fn in_nicmem(&self, mbuf: Addr) -> Option<Buffer> {
        let (pool, _) = self.nicmem.as_ref()?;
        let at = pool.payload_of(mbuf)?;
        Some(Buffer::new(at, pool.room(), pool.nicmem()?.key))
    }

    #[inline(always)]
    fn packet<C: Cpu>(&self, cpu: &mut C, pool: &mut PoolCache, pair: Pair, completion: &Completion) -> Packet {
        let mut packet = match pair.headers {
            Some(mbuf) => completion.packet(cpu, mbuf),
            None => {
                // The payload may lie behind the headroom of the same buffer.
                let at = pair.payload + METADATA_BYTES;
                self.completions.copy_inlined(cpu, completion, at);
                completion.packet_at(cpu, pair.payload, at)
            }
        };
        packet.head.len = completion.head;
        let len = completion.len.saturating_sub(completion.head);
        let near = self.in_nicmem(pair.payload);
        packet.rest = Segment { at: near.map_or(data_of(pair.payload), |buffer| buffer.at), len };
        match (pair.headers, len) {
            (None, _) => {}
            // All of the frame is in front.
            (Some(_), 0) => pool.give(cpu, pair.payload),
            (Some(_), _) => packet.tail = pair.payload,
        }
        packet
    }

    /// Fills the rings.
    fn fill<const EACH: usize, C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        let share = self.nicmem.map_or(0, |(_, share)| share);
        for number in 0..self.entries {
            let Some((side, pair)) = Self::take::<EACH, C>(cpu, pool, number < share) else {
                break;
            };
            self.post::<EACH, C>(cpu, side, pair);
        }
        for side in &mut self.sides {
            side.ring_doorbell(cpu);
        }
    }

    /// Takes frames of `EACH` descriptors out, each against empty buffers.
    #[inline(always)]
    fn exchange<const EACH: usize, C: Cpu>(
        &mut self,
        cpu: &mut C,
        pool: &mut PoolCache,
        packets: &mut Vec<Packet>,
        max: usize,
    ) {
        let near = self.nicmem.is_some();
        let mut came = false;
        self.completions.look_ahead(cpu, max);
        for _ in 0..max {
            let Some((completion, after)) = self.completions.peek(cpu) else {
                break;
            };
            after.prefetch_inlined(cpu);
            let from = usize::from(completion.ring).min(SECONDARY);
            let received = self.sides[from].buffers::<EACH, C>(cpu, completion.entry);
            if received.payload == Addr(0) {
                // An entry that was never filled: the device was told of it by a stranger.
                self.completions = after;
                continue;
            }
            // Without buffers to put in their place the frame stays where it is, so that the rings
            // always hold as many as there are entries.
            let Some((side, fresh)) = Self::take::<EACH, C>(cpu, pool, near) else {
                break;
            };
            came = true;
            cpu.work(self.costs.rx_packet);
            self.posted -= 1;
            if completion.len == 0 {
                received.headers.into_iter().for_each(|mbuf| pool.give(cpu, mbuf));
                pool.give(cpu, received.payload);
            } else {
                self.taken += 1;
                packets.push(self.packet(cpu, pool, received, &completion));
            }
            self.completions = after;
            self.post::<EACH, C>(cpu, side, fresh);
        }
        if came {
            cpu.work(self.costs.burst);
        }
        for side in &mut self.sides {
            side.ring_doorbell(cpu);
        }
    }
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        match self.sides[PRIMARY].each {
            1 => self.fill::<1, C>(cpu, pool),
            _ => self.fill::<2, C>(cpu, pool),
        }
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        match self.sides[PRIMARY].each {
            1 => self.exchange::<1, C>(cpu, pool, packets, max),
            _ => self.exchange::<2, C>(cpu, pool, packets, max),
        }
        cpu.enter(part);
    }

    fn taken(&self) -> u64 {
        self.taken
    }

    fn buffers_held(&self) -> i64 {
        (self.posted * self.sides[PRIMARY].each) as i64
    }
}
