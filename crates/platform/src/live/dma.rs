//! A device of the live ground: copies, and a release for each publish, burst by burst.

use std::sync::atomic::{Ordering, fence};

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::Control;
use super::stock::{Pending, Stock};
use crate::{Addr, AddressSpace, Dma, Owner, Vector};

/// Lines that are held back, at most.
const HELD_MAX: usize = 64;
/// A line in bytes and in words.
const LINE_BYTES: usize = CACHE_LINE_BYTES as usize;
const LINE_WORDS: usize = LINE_BYTES / 8;

/// A line, or the beginning of one, that was published and is not written yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    to: Addr,
    words: [u64; LINE_WORDS],
    /// How many of them count; at least 1.
    count: usize,
}

/// The device's way to the host. Time stands between calls of [`tick`](Self::tick).
#[derive(Debug)]
pub struct LiveDma {
    control: Control,
    /// Who watches each line of control memory.
    owners: Vec<Owner>,
    /// Who was published to since the last [`wake`](Self::wake), by number.
    touched: Vec<bool>,
    any: bool,
    /// Workers poll for ever: nobody has to be woken.
    workers_poll: bool,
    /// What was published since the last [`flush`](Self::flush), in order. A line that software has
    /// read takes as long to come back as a packet may take, or longer; so it is called for when it
    /// is published, and written at the end of the burst.
    held: Vec<Held>,
    /// Where control memory ends: nothing is published beyond.
    control_end: u64,
    /// Where it is written down who gets which buffer, if anybody asks.
    pending: Option<Pending>,
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
            held: Vec::with_capacity(HELD_MAX),
            control_end: space.control_end(),
            pending: None,
        }
    }

    /// From now on it is written down who gets which buffer of `stock`.
    pub fn keep_book(&mut self, stock: Stock) {
        self.pending = Some(Pending::new(stock));
    }

    /// Workers never sleep: none needs to be woken, and the device need not wait until what it
    /// published is seen.
    pub fn workers_poll(self) -> LiveDma {
        LiveDma {
            workers_poll: true,
            ..self
        }
    }

    /// Takes the time.
    pub fn tick(&mut self) -> Time {
        self.now = self.control.clock().now();
        self.now
    }

    /// Writes what was published, each entry's last word last.
    pub fn flush(&mut self) {
        let region = self.control.region();
        for held in &self.held {
            let last = held.count - 1;
            match held.words[..last] {
                // A whole line, which most are: the length is known, and no loop needed.
                [a, b, c, d, e, f, g] => region.store(held.to, [a, b, c, d, e, f, g]),
                ref before => region.write(held.to, bytemuck::cast_slice(before)),
            }
            let announces = held.to + 8 * last as u64;
            let word = region.word(announces);
            word.store(held.words[last], Ordering::Release);
        }
        self.held.clear();
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

    #[inline]
    fn hold(&mut self, to: Addr, words: [u64; LINE_WORDS], count: usize) {
        self.control.region().expect_write(to);
        if self.held.len() == HELD_MAX {
            self.flush();
        }
        self.held.push(Held { to, words, count });
    }

    /// What is shorter than a line, or several.
    fn hold_all(&mut self, to: Addr, bytes: &[u8]) {
        for (number, entry) in (0..).zip(bytes.chunks(LINE_BYTES)) {
            let mut words = [0u64; LINE_WORDS];
            bytemuck::bytes_of_mut(&mut words)[..entry.len()].copy_from_slice(entry);
            self.hold(to + number * CACHE_LINE_BYTES, words, entry.len() / 8);
        }
    }

    /// Before anything else is done in control memory, what was published there is written.
    #[inline]
    fn keep_order(&mut self, at: Addr) {
        if at.0 < self.control_end && !self.held.is_empty() {
            self.flush();
        }
    }

    #[inline]
    fn note(&mut self, to: Addr) {
        if self.workers_poll {
            return;
        }
        let owner = self.owners.get(to.line() as usize);
        if let Some(Owner(number)) = owner
            && let Some(touched) = self.touched.get_mut(usize::from(*number))
        {
            *touched = true;
            self.any = true;
        }
    }
}

impl Dma for LiveDma {
    #[inline]
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.keep_order(from);
        self.control.region().read(from, into);
    }

    #[inline]
    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.keep_order(from);
        self.control.region().read(from, into);
        self.now
    }

    #[inline]
    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.keep_order(to);
        self.control.region().write(to, bytes);
        if let Some(pending) = &mut self.pending {
            pending.wrote(to);
        }
    }

    #[inline]
    fn expect_write(&mut self, to: Addr) {
        self.control.region().expect_write(to);
    }

    #[inline]
    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        // Before the worker can know of its buffers.
        if let Some(pending) = &mut self.pending
            && let Some(&Owner(owner)) = self.owners.get(to.line() as usize)
        {
            pending.announce(self.control.region(), owner);
        }
        match <&[u8; LINE_BYTES]>::try_from(bytes) {
            Ok(line) => self.hold(to, bytemuck::pod_read_unaligned(line), LINE_WORDS),
            Err(_) => self.hold_all(to, bytes),
        }
        self.note(to);
    }

    /// Workers poll, and are woken after the device's round: there is nothing to raise.
    fn interrupt(&mut self, _vector: Vector) {}

    /// What was read is here already, so nobody waits; the cursor moves as the contract has it.
    #[inline]
    fn wait_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    #[inline]
    fn now(&self) -> Time {
        self.now
    }
}
