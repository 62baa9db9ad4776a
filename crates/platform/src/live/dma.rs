//! A device of the live ground: copies, and a release at each publish.

use std::sync::atomic::{Ordering, fence};

use nicforge_units::{CACHE_LINE_BYTES, Time};

use super::Control;
use super::stock::{Pending, Stock};
use crate::{Addr, AddressSpace, Dma, Owner, Vector};

/// The device's way to the host. Time stands between calls of [`tick`](Self::tick).
#[derive(Debug)]
pub struct LiveDma {
    control: Control,
    /// Who watches each line of control memory.
    owners: Vec<Owner>,
    /// Who was published to since the last [`wake`](Self::wake), by number.
    touched: Vec<bool>,
    any: bool,
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
            pending: None,
        }
    }

    /// From now on it is written down who gets which buffer of `stock`.
    pub fn keep_book(&mut self, stock: Stock) {
        self.pending = Some(Pending::new(stock));
    }

    /// Takes the time.
    pub fn tick(&mut self) -> Time {
        self.now = self.control.clock().now();
        self.now
    }

    /// Wakes the workers that were published to and sleep.
    pub fn wake(&mut self) {
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
    fn note(&mut self, to: Addr) {
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
        self.control.region().read(from, into);
    }

    #[inline]
    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.control.region().read(from, into);
        self.now
    }

    #[inline]
    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.control.region().write(to, bytes);
        if let Some(pending) = &mut self.pending {
            pending.wrote(to);
        }
    }

    #[inline]
    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        let region = self.control.region();
        // Before the worker can know of its buffers.
        if let Some(pending) = &mut self.pending
            && let Some(&Owner(owner)) = self.owners.get(to.line() as usize)
        {
            pending.announce(region, owner);
        }
        for (number, entry) in bytes.chunks(CACHE_LINE_BYTES as usize).enumerate() {
            let at = to + number as u64 * CACHE_LINE_BYTES;
            let (before, last) = entry.split_at(entry.len() - 8);
            region.write(at, before);
            let last: u64 = bytemuck::pod_read_unaligned(last);
            let announces = at + before.len() as u64;
            region.word(announces).store(last, Ordering::Release);
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
