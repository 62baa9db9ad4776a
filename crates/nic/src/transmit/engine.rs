//! The NIC's transmit engine: fetches descriptors, gathers payload into an internal buffer,
//! sends it out.
//!
//! The engine serves the rings in turn. A frame takes room in the internal buffer from the issue
//! of its read until it is sent. PCIe is faster than the wire, so the buffer fills; the ring that
//! finds it full is not served for about as long as a read takes, on the assumption that other
//! rings keep the wire busy (nicmem, section 2.1.3), and these begin once there is room for a few
//! frames. With one ring none does, and the wire idles.

mod internal;
mod room;
mod sent;

use std::collections::VecDeque;

use nicforge_platform::{Addr, Dma, Gathered, Hint, Moment, PacketKey};
use nicforge_units::{BitRate, Bytes, Time};

use super::departure::{Departure, Egress};
use super::gather::{Inlined, gather};
use super::guard::Guard;
use super::layout::{TxDescriptor, TxRing};
use crate::stage::{Chain, Leaving};
use crate::{DATA_BYTES_MAX, DropCounters, KeyTable, NicSpec, PortId, TxOffload};
pub use internal::{Internal, InternalQueue};
use sent::Sent;

mod restart;

/// Words of descriptors fetched by one read, at most: 16 descriptors of a line.
const WORDS_MAX: usize = 16 * 8;

/// What the engine counted since the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounters {
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// How often a ring filled the internal buffer and was not served for a while.
    pub deschedules: u64,
    /// Descriptors that were skipped because of what they name, by cause.
    pub refused: DropCounters,
}

#[derive(Debug)]
struct Queue {
    ring: TxRing,
    /// Descriptors fetched by one read.
    batch: usize,
    /// Told by the doorbell.
    tail: u64,
    /// Next descriptor to fetch.
    fetched: u64,
    /// Fetched and waiting, with the time at which they are here.
    waiting: VecDeque<(Time, TxDescriptor)>,
    /// Their second lines, in a ring that inlines headers.
    inlined: VecDeque<Inlined>,
    served: u64,
    /// Descriptors that named no memory or too much of it.
    bad: u64,
    not_before: Time,
    last_read: Time,
    /// When all its reads so far are back: nothing is reported earlier.
    read_until: Time,
    /// Whether frames of its lie in the NIC's own memory, so that they are done only when sent.
    sends_late: bool,
}

/// The transmit side of one NIC.
#[derive(Debug)]
pub struct TransmitEngine {
    port: PortId,
    rate: BitRate,
    overhead: Bytes,
    pipeline: Time,
    buffer_size: Bytes,
    resume_room: Bytes,
    deschedule_reads: f64,
    guard: Guard,
    queues: Vec<Queue>,
    /// Queues with descriptors that are not served yet, by number.
    busy: Vec<usize>,
    turn: usize,
    /// No descriptor of any ring is here before, unless a doorbell rings.
    nothing_before: Time,
    /// Room taken in the internal buffer, from the read's issue until the last bit is sent.
    taken: Bytes,
    taken_until: VecDeque<(Time, Bytes)>,
    /// A ring found the buffer full; no ring is served until there is `resume_room`.
    full: bool,
    wire_free: Time,
    /// Ring positions to report, and when: once they are read into the internal buffer, and once
    /// they are sent, where that is not before.
    reports: VecDeque<(Time, usize, u64)>,
    late_reports: VecDeque<(Time, usize, u64)>,
    /// Frames that come from the NIC's own receive path.
    internal: InternalQueue,
    frame: Vec<u8>,
    /// Whether others compute checksums and cut segments.
    unfinished: bool,
    /// Descriptors that were served in queues that began anew since.
    served_before: u64,
    counters: TransmitCounters,
}

impl TransmitEngine {
    /// An engine that serves `rings`. Descriptors may name host memory below `memory_end`.
    pub fn new(spec: &NicSpec, rings: &[TxRing], memory_end: Addr) -> TransmitEngine {
        let batch = |ring: &TxRing| {
            let most = WORDS_MAX * 8 / ring.stride() as usize;
            ((spec.descriptor_read.0 / ring.stride()) as usize).clamp(1, most)
        };
        let queue = |&ring: &TxRing| Queue {
            batch: batch(&ring),
            ring,
            tail: ring.first,
            fetched: ring.first,
            waiting: VecDeque::new(),
            inlined: VecDeque::new(),
            served: ring.first,
            bad: 0,
            not_before: Time::ZERO,
            last_read: Time::ZERO,
            read_until: Time::ZERO,
            sends_late: false,
        };
        TransmitEngine {
            port: spec.port,
            rate: spec.rate,
            overhead: spec.wire_overhead,
            pipeline: spec.tx_pipeline,
            buffer_size: spec.tx_buffer,
            resume_room: spec.tx_resume_room.min(spec.tx_buffer),
            deschedule_reads: spec.tx_deschedule_reads,
            guard: Guard::new(memory_end, KeyTable::default()),
            queues: rings.iter().map(queue).collect(),
            busy: Vec::new(),
            turn: 0,
            nothing_before: Time::ZERO,
            taken: Bytes(0),
            taken_until: VecDeque::new(),
            full: false,
            wire_free: Time::ZERO,
            reports: VecDeque::new(),
            late_reports: VecDeque::new(),
            internal: InternalQueue::default(),
            frame: Vec::new(),
            unfinished: false,
            served_before: 0,
            counters: TransmitCounters::default(),
        }
    }

    /// Descriptors may name memory of the NIC from now on, as `keys` has it.
    pub fn set_keys(&mut self, keys: KeyTable) {
        self.guard = self.guard.with_keys(keys);
    }

    /// From now on checksums are not computed and segments not cut: whoever is at the other end of the
    /// wire does, and segments may be as long as a buffer.
    pub fn leave_unfinished(&mut self) {
        self.unfinished = true;
        self.guard = self.guard.with_longest(DATA_BYTES_MAX);
    }

    /// Queue `number`'s doorbell: descriptors before `tail` are valid, and the first of them are
    /// fetched. `false` when there is no such queue or the tail is impossible.
    pub fn doorbell<D: Dma>(&mut self, dma: &mut D, number: usize, tail: u64) -> bool {
        match self.queues.get_mut(number) {
            Some(queue) if tail >= queue.tail && tail - queue.served <= queue.ring.entries => {
                queue.tail = tail;
                queue.fetch(dma);
                self.nothing_before = Time::ZERO;
                if queue.served != tail
                    && let Err(place) = self.busy.binary_search(&number)
                {
                    self.busy.insert(place, number);
                }
                true
            }
            _ => false,
        }
    }

    /// Does what is due at the cursor of `dma`, where frames pass the stages of `chain`; returns when to call again.
    pub fn advance<D: Dma, E: Egress>(&mut self, dma: &mut D, egress: &mut E, chain: &mut Chain<D>) -> Time {
        let now = dma.now();
        self.report(dma, now);
        let internal = match self.serve_internal(dma, egress, chain) {
            Ok(()) => return now,
            Err(next) => next,
        };
        match self.choose(now) {
            Ok(queue) => {
                self.serve(queue, dma, egress, chain);
                now
            }
            Err(next) => {
                let first =
                    |reports: &VecDeque<(Time, usize, u64)>| reports.front().map_or(Time::NEVER, |report| report.0);
                let (soon, late) = (first(&self.reports), first(&self.late_reports));
                next.min(soon).min(late).min(internal)
            }
        }
    }

    /// Frames that are in rings or in the engine.
    pub fn inside(&self) -> u64 {
        self.queues.iter().map(|queue| queue.tail - queue.served).sum()
    }

    /// Descriptors dealt with so far.
    pub fn served(&self) -> u64 {
        let queues = self.queues.iter();
        let now: u64 = queues.map(|queue| queue.served - queue.ring.first).sum();
        self.served_before + now
    }

    /// What was counted so far.
    pub fn counters(&self) -> &TransmitCounters {
        &self.counters
    }

    fn report<D: Dma>(&mut self, dma: &mut D, now: Time) {
        for reports in [&mut self.reports, &mut self.late_reports] {
            while let Some(&(due, queue, position)) = reports.front()
                && due <= now
            {
                reports.pop_front();
                let done = self.queues[queue].ring.done;
                dma.publish(done, &position.to_ne_bytes());
            }
        }
    }

    /// The next ring to serve, or when there may be one.
    fn choose(&mut self, now: Time) -> Result<usize, Time> {
        if now < self.nothing_before {
            return Err(self.nothing_before);
        }
        self.release(now);
        if self.full {
            let room = self.resume_room;
            self.room_at(now, room)?;
            self.full = false;
        }
        let mut next = Time::NEVER;
        let mut all_wait = true;
        let queues = self.queues.len();
        let first = self.busy.partition_point(|&number| number < self.turn);
        for step in 0..self.busy.len() {
            let place = first + step;
            let number = self.busy[if place < self.busy.len() { place } else { place - self.busy.len() }];
            let queue = &mut self.queues[number];
            let Some(&(here, descriptor)) = queue.waiting.front() else {
                continue;
            };
            let ready = here.max(queue.not_before);
            if ready > now {
                next = next.min(ready);
                continue;
            }
            self.turn = (number + 1) % queues;
            // What names no memory is skipped when its turn comes and needs no room.
            let application = queue.ring.application;
            if self.guard.check(application, &descriptor).is_err() {
                return Ok(number);
            }
            let len = Bytes(descriptor.gathered());
            if self.taken == Bytes(0) || self.taken + len <= self.buffer_size {
                return Ok(number);
            }
            all_wait = false;
            let pause = queue.last_read.as_ps() as f64 * self.deschedule_reads;
            let not_before = now + Time::from_ps(pause as u64);
            queue.not_before = not_before;
            self.counters.deschedules += 1;
            self.full = true;
            let room = self.resume_room;
            self.room_at(now, room)?;
            // Room for other rings' frames, not for this one: again when its own is there.
            let own = self.room_at(now, len).err().unwrap_or(now);
            next = next.min(own.max(not_before));
        }
        if all_wait {
            self.nothing_before = next;
        }
        Err(next)
    }

    fn serve<D: Dma, E: Egress>(&mut self, number: usize, dma: &mut D, egress: &mut E, chain: &mut Chain<D>) {
        let now = dma.now();
        let queue = &mut self.queues[number];
        let Some((fetched, descriptor)) = queue.waiting.pop_front() else {
            return;
        };
        let key = PacketKey { stamp: descriptor.stamp, port: self.port.0 };
        let from = Some(number as u16);
        let inlined = queue.inlined.pop_front();
        queue.fetch(dma);
        dma.hint(Hint::Packet(key, Moment::Gathering { queue: from, descriptor: fetched }));
        queue.served += 1;
        let position = queue.served;
        if queue.served == queue.tail {
            self.busy.retain(|&other| other != number);
        }
        if let Err(cause) = self.guard.check(queue.ring.application, &descriptor) {
            self.counters.refused.count(cause.0);
            dma.hint(Hint::Packet(key, Moment::Dropped(cause.0)));
            queue.bad += 1;
            self.reports.push_back((now.max(queue.read_until), number, position));
            return;
        }
        let mut frame = std::mem::take(&mut self.frame);
        // By reference: moved out they would be copied as vectors right after they were stored word by word.
        let Gathered { ref pieces, here } = gather(&descriptor, inlined.as_ref(), self.unfinished, dma, &mut frame);
        queue.last_read = here - now;
        let len = Bytes(descriptor.len());
        let gathered = Bytes(descriptor.gathered());
        let left = if self.unfinished { descriptor.offload } else { TxOffload::default() };
        let sent = Sent { number, position, here, report: descriptor.report };
        if chain.sees_egress() {
            let bytes = pieces.concat();
            self.frame = frame;
            // Stages have a copy, so what lies in the NIC's own memory is done with, too.
            self.account(sent, here, false);
            let (stamp, mark) = (descriptor.stamp, descriptor.mark);
            let behind = chain.len();
            let leaving = Leaving { bytes, port: self.port, queue: from, stamp, mark, left, ready: here, behind };
            let moment = match chain.egress(dma, &mut self.internal, leaving) {
                Some(leaving) => self.depart(leaving, gathered, egress),
                None => {
                    self.take_room(gathered, here);
                    Moment::Diverted
                }
            };
            return dma.hint(Hint::Packet(key, moment));
        }
        let (first_bit, last_bit) = self.occupy_wire(len, here);
        // What lies in the NIC's own memory is taken from there as it is sent.
        self.account(sent, last_bit, gathered != len);
        self.take_room(gathered, last_bit);
        egress.depart(Departure { port: self.port, queue: from, pieces, left, stamp: descriptor.stamp, last_bit });
        self.frame = frame;
        dma.hint(Hint::Packet(key, Moment::Sent { gathered: here, first_bit, last_bit }));
    }
}

impl Queue {
    /// Keeps up to two batches of descriptors at hand, one read ahead of the other.
    fn fetch<D: Dma>(&mut self, dma: &mut D) {
        while self.fetched < self.tail && self.waiting.len() <= self.batch {
            let to_wrap = self.ring.entries - (self.fetched & (self.ring.entries - 1));
            let count = (self.tail - self.fetched).min(self.batch as u64).min(to_wrap);
            let each = self.ring.stride() as usize / 8;
            let mut words = [0u64; WORDS_MAX];
            let words = &mut words[..each * count as usize];
            let from = self.ring.descriptor(self.fetched);
            let here = dma.read_ahead(from, bytemuck::cast_slice_mut(words));
            for descriptor in words.chunks_exact(each) {
                let mut decoded = TxDescriptor::decode(descriptor);
                decoded.inline &= self.ring.inlines;
                dma.hint(Hint::Read { at: decoded.head.at, len: decoded.head.len as usize });
                self.waiting.push_back((here, decoded));
                if let Some(Ok(line)) = descriptor.get(8..).map(Inlined::try_from) {
                    self.inlined.push_back(line);
                }
            }
            self.fetched += count;
        }
    }
}
