//! A device of the live ground: copies, and a release for each publish, burst by burst.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::held::Held;
use super::region::LINE_WORDS;
use super::stock::{Pending, Stock};
use super::{Control, Recorder, hints};
use crate::{Addr, AddressSpace, Atomic, Dma, Gathered, Hint, Owner, Run, Vector, copy_ahead};

/// Bytes of a line.
const LINE_BYTES: usize = CACHE_LINE_BYTES as usize;

/// The device's way to the host. Time stands between calls of [`tick`](Self::tick).
#[derive(Debug)]
pub struct LiveDma {
    control: Control,
    /// Who watches each line of control memory.
    owners: Vec<Owner>,
    /// Who was published to since the last [`wake`](Self::wake), by number.
    touched: Vec<bool>,
    any: bool,
    /// Workers never sleep, so that no publish wakes one.
    workers_poll: bool,
    /// Writes below here are [prepared](Self::prepare_write): those into control memory, or all while
    /// publishes are noted.
    prepares_below: u64,
    /// What was published since the last [`flush`](Self::flush).
    held: Held,
    /// Where control memory ends: nothing is published beyond.
    control_end: u64,
    /// The ledger of buffers that workers hold, if there is one.
    pending: Option<Pending>,
    /// Bytes of the region that were read or written, where they are counted.
    moved: Option<u64>,
    /// Notes of packets, if some are followed.
    recorder: Option<Box<Recorder>>,
    now: Time,
}

impl LiveDma {
    /// The device of `control`, whose owners `space` knows.
    pub fn new(control: Control, space: &AddressSpace) -> LiveDma {
        let lines = space.control_end().div_ceil(CACHE_LINE_BYTES) as usize;
        let mut owners = vec![Owner::NOBODY; lines];
        let mut workers = 0;
        for &(at, len, owner) in space.owners() {
            let end = Addr(at.0 + len.max(1) - 1).line() as usize;
            owners[at.line() as usize..=end].fill(owner);
            if owner != Owner::NOBODY {
                workers = workers.max(usize::from(owner.0) + 1);
            }
        }
        LiveDma {
            now: control.clock().now(),
            control,
            owners,
            touched: vec![false; workers],
            any: false,
            workers_poll: false,
            held: Held::new(),
            prepares_below: u64::MAX,
            control_end: space.control_end(),
            pending: None,
            moved: None,
            recorder: None,
        }
    }

    /// From now on packets are noted by `recorder`.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(Box::new(recorder));
    }

    /// The notes so far; there are no more from now on.
    pub fn take_record(&mut self) -> Option<Recorder> {
        self.recorder.take().map(|recorder| *recorder)
    }

    /// From now on it is written down who gets which buffer of `stock`.
    pub fn keep_book(&mut self, stock: Stock) {
        self.pending = Some(Pending::new(stock));
        self.plan_notes();
    }

    /// From now on bytes are counted that are read and written.
    pub fn count_moved(&mut self) {
        self.moved = Some(0);
        self.plan_notes();
    }

    /// Bytes of the region that were read or written since they are counted.
    pub fn moved(&self) -> u64 {
        self.moved.unwrap_or(0)
    }

    /// `len` more.
    #[inline]
    fn count(&mut self, len: usize) {
        if let Some(moved) = &mut self.moved {
            *moved += len as u64;
        }
    }

    /// Workers never sleep: none needs to be woken, and the device need not wait until what it
    /// published is seen.
    pub fn workers_poll(mut self) -> LiveDma {
        self.be_polled();
        self
    }

    /// The same from now on.
    pub fn be_polled(&mut self) {
        self.workers_poll = true;
        self.plan_notes();
    }

    /// From now on each publish is noted if anybody has to be woken, if it is written down who gets which
    /// buffer, or if bytes are counted; else publishes and frames take the short way.
    fn plan_notes(&mut self) {
        let notes = !self.workers_poll || self.pending.is_some() || self.moved.is_some();
        self.prepares_below = if notes { u64::MAX } else { self.control_end };
        self.held.settle_each(notes);
    }

    /// Takes the time.
    pub fn tick(&mut self) -> Time {
        self.now = self.control.clock().now();
        self.now
    }

    /// The time is `time` until it is taken again.
    pub fn set_time(&mut self, time: Time) {
        self.now = time;
    }

    /// Writes what was published, each entry's last word last.
    pub fn flush(&mut self) {
        self.held.write(self.control.region());
    }

    /// Writes what was published, and wakes the workers that it is for and that sleep.
    pub fn wake(&mut self) {
        self.flush();
        if !std::mem::take(&mut self.any) {
            return;
        }
        // The publishes and the look at the flags must not change places: a worker sets its flag,
        // then looks at its ring (Dekker's pattern).
        fence(Ordering::SeqCst);
        for (number, touched) in self.touched.iter_mut().enumerate() {
            if !std::mem::take(touched) {
                continue;
            }
            self.control.wake(number);
        }
    }

    #[inline(always)]
    fn hold<const WORDS: usize>(&mut self, to: Addr, words: [u64; WORDS]) {
        let more = self.held.hold(to, words);
        hints::write(self.control.region().hint(to));
        if more {
            self.settle::<WORDS>(to);
        }
    }

    /// The last entry that is held has to be noted, or is in others' way.
    #[cold]
    fn settle<const WORDS: usize>(&mut self, to: Addr) {
        self.note(to, WORDS * size_of::<u64>());
        self.held.settle::<WORDS>(self.control.region());
    }

    /// Publishes several entries, or one that is no line.
    #[inline(never)]
    fn publish_others(&mut self, to: Addr, bytes: &[u8]) {
        for (number, entry) in (0..).zip(bytes.chunks(LINE_BYTES)) {
            let to = to + number * CACHE_LINE_BYTES;
            if let Ok(line) = <&[u8; LINE_BYTES]>::try_from(entry) {
                self.hold::<LINE_WORDS>(to, bytemuck::pod_read_unaligned(line));
            } else if let Ok(half) = <&[u8; LINE_BYTES / 2]>::try_from(entry) {
                self.hold::<{ LINE_WORDS / 2 }>(to, bytemuck::pod_read_unaligned(half));
            } else {
                self.announce_part(to, entry);
            }
        }
    }

    /// All lines of `len` bytes at `to` are going to be written.
    #[cold]
    #[inline(never)]
    fn expect_lines(&mut self, to: Addr, len: usize) {
        for line in 0..(len as u64).div_ceil(CACHE_LINE_BYTES) {
            hints::write(self.control.region().hint(Addr(to.0.wrapping_add(line * CACHE_LINE_BYTES))));
        }
    }

    /// Before anything else is done in control memory, what was published there is written.
    #[inline]
    fn keep_order(&mut self, at: Addr) {
        if at.0 < self.control_end {
            self.write_held();
        }
    }

    #[cold]
    fn write_held(&mut self) {
        self.flush();
    }

    /// Writes the beginning of an entry, whose last word announces it.
    fn announce_part(&mut self, to: Addr, part: &[u8]) {
        self.note(to, part.len());
        if let Some((before, last)) = part.split_last_chunk() {
            self.flush();
            let region = self.control.region();
            region.write(to, before);
            let announces = region.word(to + before.len() as u64);
            announces.store(u64::from_ne_bytes(*last), Ordering::Release);
        }
    }

    /// Something is published at `to`: before its worker can know, it is written down which buffers it
    /// has, and that it may have to be woken.
    fn note(&mut self, to: Addr, len: usize) {
        self.count(len);
        let Some(&Owner(number)) = self.owners.get(to.line() as usize) else {
            return;
        };
        if let Some(pending) = &mut self.pending {
            pending.announce(self.control.region(), number);
        }
        if let Some(touched) = self.touched.get_mut(usize::from(number))
            && !self.workers_poll
        {
            *touched = true;
            self.any = true;
        }
    }

    /// `len` bytes are going to be written at `to`.
    #[cold]
    fn prepare_write(&mut self, to: Addr, len: usize) {
        self.keep_order(to);
        self.count(len);
        if let Some(pending) = &mut self.pending {
            pending.wrote(to);
        }
    }

    /// Whether it is written down that software of `queues` has the buffer at `mbuf`.
    #[cold]
    fn is_noted(&self, mbuf: Addr, queues: Range<u16>) -> bool {
        let pending = self.pending.as_ref();
        pending.is_none_or(|pending| pending.is_from(self.control.region(), mbuf, &queues))
    }
}

impl Dma for LiveDma {
    #[inline]
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.keep_order(from);
        self.count(into.len());
        self.control.region().read(from, into);
    }

    #[inline]
    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.keep_order(from);
        self.count(into.len());
        self.control.region().read(from, into);
        self.now
    }

    #[inline]
    fn gather<'a>(&'a mut self, front: &'a [u8], runs: [Run; 2], scratch: &'a mut Vec<u8>) -> Gathered<'a> {
        if front.is_empty()
            && let [run, Run { len: 0, .. }] = runs
        {
            self.keep_order(run.at);
            self.count(run.len);
            // SAFETY: what is to be sent is the device's until it says that it is gone, which takes this
            // value, so not while the slice lives. That no other process breaks this cannot be enforced,
            // and is assumed; what follows from a worker that writes there all the same is limited by who
            // reads: ports take bytes once, into memory of their own or into the kernel, and decide about
            // headers from the copy ([`Joined::join`](nicforge_wire::join::Joined::join)), so that it
            // garbles the frame that it sends and nothing else.
            let view = unsafe { self.control.region().slice(run.at, run.len) };
            return Gathered { pieces: [view, &[], &[]], here: self.now };
        }
        let here = copy_ahead(self, front, runs, scratch);
        Gathered { pieces: [scratch, &[], &[]], here }
    }

    #[inline(always)]
    fn write(&mut self, to: Addr, bytes: &[u8]) {
        if to.0 < self.prepares_below {
            self.prepare_write(to, bytes.len());
        }
        self.control.region().write(to, bytes);
    }

    fn atomic(&mut self, at: Addr, change: Atomic) -> u64 {
        self.keep_order(at);
        self.control.region().atomic(at, change)
    }

    #[inline(always)]
    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        if let Ok(line) = <&[u8; LINE_BYTES]>::try_from(bytes) {
            self.hold::<LINE_WORDS>(to, bytemuck::pod_read_unaligned(line));
        } else {
            self.publish_others(to, bytes);
        }
    }

    #[inline]
    fn is_from(&mut self, mbuf: Addr, queues: &Range<u16>) -> bool {
        self.pending.is_none() || self.is_noted(mbuf, queues.clone())
    }

    /// Workers poll, and are woken after the device's round: there is nothing to raise.
    fn interrupt(&mut self, _vector: Vector) {}

    /// Reads complete at once.
    #[inline]
    fn wait_until(&mut self, _time: Time) {}

    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline(always)]
    fn hint(&mut self, hint: Hint) {
        match hint {
            Hint::Write(at) => hints::write(self.control.region().hint(at)),
            Hint::Frame { at, len } if len <= LINE_BYTES => hints::write(self.control.region().hint(at)),
            Hint::Frame { at, len } => self.expect_lines(at, len),
            Hint::Read { at, len } => {
                for line in 0..(len as u64).div_ceil(CACHE_LINE_BYTES) {
                    hints::read(self.control.region().hint(Addr(at.0.wrapping_add(line * CACHE_LINE_BYTES))));
                }
            }
            Hint::Packet(key, moment) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.packet(key, moment);
                }
            }
            _ => {}
        }
    }
}
