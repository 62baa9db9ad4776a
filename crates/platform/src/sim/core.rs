//! A simulated core: [`Cpu`] over the memory system, every access charged.
//!
//! There is no L1: within one burst a line that was touched before is free, which is what an
//! L1 does for the lines of a burst; its hits are part of `work`.

use nicforge_units::{Cycles, Time};

pub use cycles::CoreCycles;
pub use near::Near;

use super::nicmem::WriteCombining;
use super::{CoreConfig, Devices, Host, MmioWrite};
use crate::{Addr, Cpu, Part, Pod, Register};

/// The state of one core between its steps.
// In this order, so that `cursor` does not stand beside one of the sums in `spent`: both would be loaded as
// one by whoever adds to both, and that waits for all stores before the last one of either.
#[repr(C)]
pub struct SimCore {
    cursor: Time,
    number: usize,
    config: CoreConfig,
    mmio_write: Time,
    mmio_read: Time,
    part: Part,
    spent: CoreCycles,
    /// Fractions of the latency that an overlapping access costs, in 2^-16.
    independent_q16: u64,
    streaming_q16: u64,
    near: Near,
    mmio: Vec<MmioWrite>,
    /// The lock that it took last and holds.
    holds: Option<Addr>,
    /// Of a core of another socket: what its link adds to each access.
    link: Option<Time>,
    /// Stores to memory of devices that have not left yet.
    combining: WriteCombining,
}

impl SimCore {
    /// Core `number`, at the beginning of time. `mmio_write` and `mmio_read` are the latencies
    /// of the way to its device.
    pub fn new(number: usize, config: &CoreConfig, mmio_write: Time, mmio_read: Time) -> SimCore {
        SimCore {
            number,
            mmio_write,
            mmio_read,
            cursor: Time::ZERO,
            part: Part::Driver,
            spent: CoreCycles::default(),
            independent_q16: (65536.0 / config.mlp_independent) as u64,
            streaming_q16: (65536.0 / config.mlp_streaming) as u64,
            near: Near::new(),
            mmio: Vec::new(),
            holds: None,
            link: None,
            combining: WriteCombining::new(config.write_combining_buffers),
            config: config.clone(),
        }
    }

    /// The same core on another socket, behind a link of this latency. It is taken to miss all
    /// caches of its own socket with every line that a burst touches for the first time.
    pub fn behind_link(self, latency: Time) -> SimCore {
        SimCore { link: Some(latency), ..self }
    }

    /// The core's time.
    pub fn now(&self) -> Time {
        self.cursor
    }

    /// Where its time went.
    pub fn spent(&self) -> &CoreCycles {
        &self.spent
    }

    /// Its configuration.
    pub fn config(&self) -> &CoreConfig {
        &self.config
    }

    /// A new burst begins: what is near now may since have been changed by others.
    pub fn begin_burst(&mut self) {
        self.near.begin_burst();
    }

    /// The core slept from its own time until something was published at `time`: it is charged
    /// the empty polls that it would have made, and wakes at the end of the last of them.
    #[inline]
    pub fn idle_until(&mut self, time: Time) {
        if time <= self.cursor {
            return;
        }
        let poll = self.config.frequency.time_for(self.config.empty_poll);
        let idle = match ((time - self.cursor).as_ps(), poll.as_ps()) {
            (idle, 0) => idle,
            (idle, poll) => idle.div_ceil(poll) * poll,
        };
        self.cursor += Time::from_ps(idle);
        self.spent.idle_ps += idle;
    }

    /// What the core spent since `earlier` as the polls found nothing: `ps` of work become idle.
    pub fn count_as_idle(&mut self, before: &CoreCycles) {
        let now = &self.spent;
        let busy = |spent: &CoreCycles| -> u64 { spent.work_ps.iter().chain(&spent.stall_ps).sum() };
        let idle = busy(now) - busy(before);
        self.spent = CoreCycles { idle_ps: before.idle_ps + idle, ..before.clone() };
    }

    /// Whether there were register writes since [`take_mmio`](Self::take_mmio).
    pub fn has_mmio(&self) -> bool {
        !self.mmio.is_empty()
    }

    /// Register writes since the last call.
    pub fn take_mmio(&mut self) -> std::vec::Drain<'_, MmioWrite> {
        self.mmio.drain(..)
    }
}

/// [`Cpu`] in virtual time: one step of one core.
pub struct SimCpu<'a> {
    host: &'a mut Host,
    core: &'a mut SimCore,
    /// What answers register reads, if anything does.
    devices: Option<&'a mut dyn Devices>,
}

impl<'a> SimCpu<'a> {
    /// A step of `core` that begins at its own time.
    pub fn new(host: &'a mut Host, core: &'a mut SimCore) -> SimCpu<'a> {
        SimCpu { host, core, devices: None }
    }

    /// As [`new`](Self::new), where `devices` answer register reads. A read is preceded by the
    /// register writes that the core posted before.
    pub fn with_devices(host: &'a mut Host, core: &'a mut SimCore, devices: &'a mut dyn Devices) -> SimCpu<'a> {
        SimCpu { host, core, devices: Some(devices) }
    }

    #[inline]
    fn spend(&mut self, time: Time) {
        self.core.cursor += time;
        self.core.spent.work_ps[self.core.part as usize] += time.as_ps();
    }

    #[inline]
    fn stall(&mut self, time: Time) {
        self.core.cursor += time;
        self.core.spent.stall_ps[self.core.part as usize] += time.as_ps();
    }

    fn wait_for_lock(&mut self, until: Time) {
        self.core.spent.work_ps[Part::Sync as usize] += (until - self.core.cursor).as_ps();
        self.core.cursor = until;
    }
}

impl Cpu for SimCpu<'_> {
    // Always inlined: a call would store the value in memory, in other pieces than it is looked at.
    #[inline(always)]
    fn load<T: Pod>(&mut self, at: Addr) -> T {
        let shares_q16 = [1 << 16, self.core.streaming_q16];
        self.touch_few(at, size_of::<T>(), false, shares_q16);
        bytemuck::pod_read_unaligned(self.host.memory.slice(at, size_of::<T>()))
    }

    #[inline(always)]
    fn store<T: Pod>(&mut self, at: Addr, value: T) {
        let len = size_of::<T>();
        // The bytes first: what the access costs needs none of what stands here then.
        self.host.memory.slice_mut(at, len).copy_from_slice(bytemuck::bytes_of(&value));
        match self.host.nicmem.holds(at.line()) {
            true => self.store_run_to_device(at, len as u64),
            false => self.touch_few(at, len, true, [self.core.independent_q16; 2]),
        }
    }

    #[inline(always)]
    fn acquire(&mut self, at: Addr) -> u64 {
        self.touch(at.line(), false, 1 << 16);
        self.host.memory.word_at(at, self.core.cursor)
    }

    fn release(&mut self, at: Addr, value: u64) {
        self.touch(at.line(), true, self.core.independent_q16);
        self.host.memory.release(at, value, self.core.cursor);
    }

    #[inline(always)]
    fn write_entry(&mut self, at: Addr, words: [u64; 8]) {
        self.touch(at.line(), true, self.core.independent_q16);
        let (memory, now) = (&mut self.host.memory, self.core.cursor);
        memory.publish_words(at, words, now);
    }

    fn fetch_or(&mut self, at: Addr, bits: u64) -> u64 {
        self.atomic(at, |word| word | bits)
    }

    fn fetch_and(&mut self, at: Addr, bits: u64) -> u64 {
        self.atomic(at, |word| word & bits)
    }

    fn fetch_add(&mut self, at: Addr, value: u64) -> u64 {
        self.atomic(at, |word| word.wrapping_add(value))
    }

    fn lock(&mut self, at: Addr) {
        self.atomic(at, |word| word);
        let (locks, now) = (&mut self.host.locks, self.core.cursor);
        // With devices that answer there are kernels, whose state is not in this memory.
        let taken = match self.devices {
            Some(_) => locks.take_in_order(at, now),
            None => locks.take(at, now),
        };
        self.wait_for_lock(taken);
        self.core.holds = Some(at);
    }

    fn unlock(&mut self, at: Addr) {
        self.touch(at.line(), true, self.core.independent_q16);
        let goes_on = self.host.locks.give_back(at, self.core.cursor);
        self.wait_for_lock(goes_on);
        self.core.holds = None;
    }

    #[inline]
    fn bytes(&mut self, at: Addr, len: usize) -> &[u8] {
        self.touch_run(at, len, false);
        self.host.memory.slice(at, len)
    }

    #[inline(always)]
    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        self.touch_run(at, len, true);
        self.host.memory.slice_mut(at, len)
    }

    #[inline]
    fn copy(&mut self, from: Addr, to: Addr, len: usize) -> &[u8] {
        self.touch_run(from, len, false);
        self.touch_run(to, len, true);
        self.host.memory.copy(from, to, len);
        self.host.memory.slice(to, len)
    }

    #[inline]
    fn prefetch(&mut self, at: Addr, len: usize) {
        // What no cache holds cannot be fetched ahead.
        if len > 0 && !self.host.nicmem.holds(at.line()) {
            for line in at.line()..=(at + (len as u64 - 1)).line() {
                self.touch(line, false, self.core.independent_q16);
            }
        }
    }

    #[inline]
    fn expect_store(&mut self, at: Addr) {
        self.host.memory.expect_publish(at);
        self.host.hierarchy.expect_remote_write(at.line());
    }

    #[inline(always)]
    fn expect_entries(&mut self, entries: [(Addr, u64); 3], word: u64, lines: [u64; 4]) {
        self.expect_named(entries, word, lines);
    }

    #[inline]
    fn glance(&self, at: Addr, len: usize) -> Option<&[u8]> {
        self.host.memory.get(at, len)
    }

    #[inline]
    fn expect_access(&mut self, at: Addr) {
        self.host.memory.expect(at.line());
        let number = self.core.number;
        self.host.hierarchy.expect_in_l2(number, at.line());
    }

    #[inline]
    fn expect_soon(&mut self, at: Addr) {
        let number = self.core.number;
        self.host.hierarchy.expect_fetch(number, at.line());
    }

    #[inline]
    fn expect_page(&mut self, at: Addr) {
        self.host.memory.expect(at.line());
    }

    fn mmio_read(&mut self, register: Register) -> u64 {
        let Some(devices) = self.devices.as_deref_mut() else {
            self.stall(self.core.mmio_read);
            return 0;
        };
        let there = Time::from_ps(self.core.mmio_read.as_ps() / 2);
        let mut arrives = self.core.cursor + there;
        // A read does not overtake writes.
        for write in self.core.mmio.drain(..) {
            arrives = arrives.max(write.arrives);
            devices.write(self.host, &write);
        }
        let (value, given) = devices.read(self.host, register, arrives);
        let back = given.max(arrives) + (self.core.mmio_read - there);
        self.stall(back - self.core.cursor);
        value
    }

    fn mmio_write(&mut self, register: Register, value: u64) {
        // Posted writes stay in order: what was stored to the device is there before.
        let (now, links) = (self.core.cursor, &mut self.host.links);
        let arrives = self.core.combining.flush(now, links) + self.core.mmio_write;
        self.core.mmio.push(MmioWrite {
            arrives: match self.core.holds {
                Some(lock) => self.host.locks.tell(lock, arrives),
                None => arrives,
            },
            register,
            value,
        });
    }

    #[inline]
    fn work(&mut self, cycles: Cycles) {
        self.spend(self.core.config.frequency.time_for(cycles));
    }

    fn enter(&mut self, part: Part) -> Part {
        std::mem::replace(&mut self.core.part, part)
    }

    #[inline]
    fn now(&self) -> Time {
        self.core.cursor
    }
}

mod ahead;
mod cycles;
mod device_memory;
mod near;
mod run;
#[cfg(test)]
mod tests;
mod touch;
