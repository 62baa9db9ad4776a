//! A physical ring, as the emulating core serves it.

use std::collections::VecDeque;
use std::ops::Range;

use nicforge_nic::{Arriving, CompletionReader, DATA_BYTES_MAX, DriverCosts, DropCause, PoolCache};
use nicforge_platform::{Addr, Cpu, Dma, Hint, Moment, PacketKey};
use nicforge_units::Time;

use super::book::Book;
use super::core_dma::{CoreDma, HandedOver};
use super::emulator::{BURST, Lost, Part, Played, Step};
use super::layout::Physical;
use crate::priv_ring::layout::RxDescriptor;

/// A packet as the device tells of it: where its software cannot be trusted, what stands in memory may
/// not be what the device wrote. `None`: nobody's, its buffer stays in the ring. The device has counted it,
/// or its queue began anew.
pub type Came = Option<Arriving<'static>>;

/// A physical ring, as the emulating core stands in it.
#[derive(Debug)]
pub struct Served {
    physical: Physical,
    completions: CompletionReader,
    /// Packets that the device has told of, oldest first.
    pub came: VecDeque<Came>,
    /// How many of them are there to be seen.
    pub seen: usize,
    /// The buffer of the oldest of them, if the core has read of it and it found no descriptor of the
    /// emulated NIC.
    read: Option<Addr>,
    /// That one waits for a doorbell.
    pub stuck: bool,
    /// Packets dealt with so far, descriptors written, and what the device was told of them.
    head: u64,
    tail: u64,
    rung: u64,
    /// The buffer of each descriptor, where nobody but the core puts any there; else none.
    own: Vec<Addr>,
}

/// What the core knows of `frame`: it never looks at the bytes, nor has it any.
pub fn unseen(frame: &Arriving<'_>) -> Arriving<'static> {
    static UNSEEN: [u8; DATA_BYTES_MAX as usize] = [0; DATA_BYTES_MAX as usize];
    let len = frame.bytes.len();
    Arriving {
        mark: frame.mark,
        bytes: &UNSEEN[..len],
        head: len,
        headers: len,
        stamp: frame.stamp,
        rss_hash: frame.rss_hash,
        flags: frame.flags,
        segment: frame.segment,
        port: frame.port,
        queue: frame.queue,
    }
}

impl Served {
    /// An empty ring.
    pub fn new(physical: Physical, completions: CompletionReader) -> Served {
        let first = physical.ring.first;
        Served {
            physical,
            completions,
            came: VecDeque::new(),
            seen: 0,
            read: None,
            stuck: false,
            head: first,
            tail: first,
            rung: first,
            own: Vec::new(),
        }
    }

    /// Another writer has filled descriptors up to `tail`.
    pub fn filled_to(&mut self, tail: u64) {
        self.tail = self.tail.max(tail);
        self.rung = self.tail;
    }

    /// Fills it with buffers of `pool`, as far as that goes.
    pub fn fill<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        let entries = self.physical.ring.entries;
        self.own = vec![Addr(0); entries as usize];
        while self.tail - self.head < entries
            && let Some(mbuf) = pool.take(cpu)
        {
            self.put(cpu, mbuf);
        }
        self.ring_doorbell(cpu);
    }

    fn ring_doorbell<C: Cpu>(&mut self, cpu: &mut C) {
        self.rung = self.tail;
        cpu.mmio_write(self.physical.doorbell, self.tail);
    }

    /// Buffers that the core itself put there.
    pub fn holds(&self) -> u64 {
        if self.own.is_empty() { 0 } else { self.tail - self.head }
    }

    /// What the core put there stands in the descriptors, and in `book` as its own.
    pub fn claim<C: Cpu>(&self, cpu: &mut C, book: Option<&Book>) {
        for position in self.tail - self.holds()..self.tail {
            let mbuf = self.own[self.physical.ring.index(position) as usize];
            self.physical.ring.post(cpu, position, mbuf);
            if let Some(book) = book {
                book.claim(cpu, mbuf);
            }
        }
    }

    /// Whether it has a packet that need not wait.
    pub fn can_move(&self) -> bool {
        self.seen > 0 && !self.stuck
    }

    /// When the oldest packet came that is there to be seen. What is nobody's has waited longest.
    pub fn oldest_came(&self) -> Option<Time> {
        let oldest = self.came.front().filter(|_| self.seen > 0)?;
        Some(oldest.as_ref().map_or(Time::ZERO, |frame| frame.stamp))
    }

    /// Whether its oldest packet came no later than `until`.
    #[inline]
    fn has_turn(&self, until: Time) -> bool {
        until == Time::NEVER || self.oldest_came().is_some_and(|came| came <= until)
    }

    /// Passes packets that came no later than `until` on to `inner`, until the step has moved a burst, and
    /// gives the device the buffers that `inner` would have used. Where `until` is no limit a packet waits for
    /// a descriptor; else steering has gone on, and what finds none is lost.
    pub fn serve<C: Cpu + 'static>(
        &mut self,
        way: &mut CoreDma<C>,
        played: &mut Played<C>,
        costs: &DriverCosts,
        until: Time,
        came_to: &mut Step,
    ) {
        let before = self.tail;
        while came_to.moved() < BURST
            && self.has_turn(until)
            && let Some(mbuf) = self.oldest(&mut way.cpu)
        {
            let fate = match self.came.front() {
                Some(Some(frame)) => pass_on(way, played, frame, mbuf, &mut came_to.blamed),
                _ => Ok(mbuf),
            };
            let free = match fate {
                Ok(free) => {
                    came_to.passed += 1;
                    free
                }
                Err(lost) if lost.cause == DropCause::NO_DESCRIPTOR && until == Time::NEVER => {
                    self.stuck = true;
                    break;
                }
                Err(lost) => {
                    if let Some(Some(frame)) = self.came.front() {
                        way.hint(Hint::Packet(key_of(frame), Moment::Dropped(lost.cause.0)));
                    }
                    came_to.lost.push(lost);
                    mbuf
                }
            };
            self.put(&mut way.cpu, free);
            way.cpu.work(costs.rx_packet);
            self.completions = self.completions.after();
            self.came.pop_front();
            self.seen -= 1;
            self.read = None;
            self.head += 1;
        }
        if self.tail != before {
            way.cpu.work(costs.burst);
        }
        // Small rings must not run dry for it, nor those for which the pool lacked buffers.
        let buffers = self.tail - self.head;
        let batch = (buffers / 4).clamp(1, BURST as u64);
        if self.tail - self.rung >= batch {
            self.ring_doorbell(&mut way.cpu);
        }
    }

    /// The buffer of the oldest packet, if there is one.
    #[inline]
    fn oldest<C: Cpu>(&mut self, cpu: &mut C) -> Option<Addr> {
        if self.seen == 0 {
            return None;
        }
        let delivered = self.came.front()?.is_some();
        let mbuf = match self.read {
            Some(mbuf) => mbuf,
            None => self.buffer(cpu, delivered)?,
        };
        self.read = Some(mbuf);
        Some(mbuf)
    }

    /// The buffer of the oldest packet, which the device `delivered` or not: the core knows what it put
    /// there itself, and else the completion names it.
    fn buffer<C: Cpu>(&self, cpu: &mut C, delivered: bool) -> Option<Addr> {
        let ring = &self.physical.ring;
        let index = ring.index(self.head);
        if let Some(&mbuf) = self.own.get(index as usize) {
            return Some(mbuf);
        }
        let (completion, _) = match self.seen {
            1 => self.completions.peek_last(cpu)?,
            _ => self.completions.peek(cpu)?,
        };
        if delivered {
            return Some(completion.mbuf);
        }
        // No buffer of ours: software gave it, and nobody takes it back.
        let given: RxDescriptor = cpu.load(ring.descriptor(index));
        Some(given.mbuf)
    }

    /// Puts the empty buffer `mbuf` behind the others.
    fn put<C: Cpu>(&mut self, cpu: &mut C, mbuf: Addr) {
        let index = self.physical.ring.post(cpu, self.tail, mbuf);
        if let Some(own) = self.own.get_mut(index as usize) {
            *own = mbuf;
        }
        self.tail += 1;
    }
}

fn key_of(frame: &Arriving<'_>) -> PacketKey {
    PacketKey { stamp: frame.stamp, port: frame.port.0 }
}

/// Passes `frame`, which lies in `mbuf`, on to `inner`, and says which buffer is free instead; `blamed` learns
/// whose descriptor named no buffer.
fn pass_on<C: Cpu + 'static>(
    way: &mut CoreDma<C>,
    played: &mut Played<C>,
    frame: &Arriving<'_>,
    mbuf: Addr,
    blamed: &mut Vec<Range<u16>>,
) -> Result<Addr, Lost> {
    if let Part::Whole(whole) = &mut played.nic {
        whole.receive(way, mbuf, frame);
        return Ok(mbuf);
    }
    way.begin(HandedOver { mbuf, queue: frame.queue, book: played.book.clone() });
    way.hint(Hint::Packet(key_of(frame), Moment::Delivery));
    let outcome = played.half_mut().receive(way, frame);
    let instead = way.end();
    let cause = match outcome {
        // Every interface writes a frame that it delivers into a buffer of its own.
        Ok(()) => {
            way.hint(Hint::Packet(key_of(frame), Moment::Delivered));
            return Ok(instead.unwrap_or(mbuf));
        }
        Err(cause) => cause,
    };
    if cause == DropCause::BAD_DESCRIPTOR {
        blamed.push(played.blamed(frame.queue));
    }
    Err(Lost { cause, queue: frame.queue, rss_hash: frame.rss_hash, stamp: frame.stamp })
}
