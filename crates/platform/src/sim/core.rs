//! A simulated core: [`Cpu`] over the memory system, every access charged.
//!
//! Hits of the L1 are part of `work`. A line that was touched before in the same burst is free, too: nothing looks
//! for it again.

use nicforge_units::{CACHE_LINE_BYTES, Cycles, Frequency, Time};

pub use burst_lines::BurstLines;
pub use cycles::CoreCycles;
pub use l1::L1;
pub use with_devices::DeviceReader;

use super::lent::{Agent, Lent, Turn};
use super::locks::Locks;
use super::nicmem::WriteCombining;
use super::paged::Tlb;
use super::{CoreConfig, Host, MmioWrite};
use crate::{Addr, Atomic, CopyLoop, Cpu, Hint, Part, Pod, Register};

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
    near: BurstLines,
    mmio: Vec<MmioWrite>,
    /// The lock that it took last and holds.
    holds: Option<Addr>,
    /// Of a core of another socket: what its link adds to each access.
    link: Option<Time>,
    /// Stores to memory of devices that have not left yet.
    combining: WriteCombining,
    l1: L1,
    tlb: Tlb,
    /// When the system takes the core away next.
    pause: Option<Time>,
    /// When the lines of all stores so far are the core's own.
    stores_done: Time,
    /// Nothing takes time.
    untimed: bool,
}

impl SimCore {
    /// Which core of its host this is.
    #[inline]
    pub fn number(&self) -> usize {
        self.number
    }

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
            near: BurstLines::new(),
            mmio: Vec::new(),
            holds: None,
            link: None,
            stores_done: Time::ZERO,
            untimed: false,
            l1: L1::new(config.l1),
            tlb: Tlb::new(config.tlb_pages),
            pause: first_pause(number, config),
            combining: WriteCombining::new(config.write_combining_buffers),
            config: config.clone(),
        }
    }

    /// The core is on another socket from now on, behind a link of this latency. It is taken to miss all
    /// caches of its own socket with every line that a burst touches for the first time.
    pub fn be_behind_link(&mut self, latency: Time) {
        self.link = Some(latency);
    }

    /// A core before time begins: nothing that it does takes time, or changes what caches hold.
    pub fn untimed(config: &CoreConfig) -> SimCore {
        let config = CoreConfig { frequency: Frequency::INFINITE, ..config.clone() };
        SimCore { untimed: true, ..SimCore::new(0, &config, Time::ZERO, Time::ZERO) }
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

    /// A new burst begins: what is near now may since have been changed by others. A pause that was due while the core
    /// worked comes before it.
    pub fn begin_burst(&mut self) {
        self.near.begin_burst();
        while let Some(begins) = self.pause.filter(|begins| *begins <= self.cursor) {
            self.pause = Some(begins + self.config.pause_every);
            self.be_away(self.config.pause);
        }
    }

    /// The core slept until now, and wakes after the end of a pause that began meanwhile.
    fn wake(&mut self) {
        let Some(begins) = self.pause.filter(|begins| *begins <= self.cursor) else {
            return;
        };
        let every = self.config.pause_every.as_ps();
        let behind = (self.cursor - begins).as_ps() % every;
        self.pause = Some(self.cursor - Time::from_ps(behind) + self.config.pause_every);
        self.be_away(Time::from_ps(self.config.pause.as_ps().saturating_sub(behind)));
    }

    fn be_away(&mut self, away: Time) {
        self.cursor += away;
        self.spent.idle_ps += away.as_ps();
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
        self.be_away(Time::from_ps(idle));
        self.wake();
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

/// When the system takes core `number` away first. Cores take turns.
fn first_pause(number: usize, config: &CoreConfig) -> Option<Time> {
    const TURNS: u64 = 16;
    let every = config.pause_every.as_ps();
    (every > 0).then(|| Time::from_ps(every / TURNS * (number as u64 % TURNS + 1)))
}

/// [`Cpu`] in virtual time: a core at work.
pub struct SimCpu {
    host: Box<Host>,
    core: Box<SimCore>,
}

impl Agent for SimCpu {
    type State = SimCore;

    fn into_parts(self) -> (Box<Host>, Box<SimCore>) {
        (self.host, self.core)
    }
}

impl SimCpu {
    /// A step of `core` that begins at its own time.
    #[inline]
    pub fn on<'a>(host: &'a mut Lent<Host>, core: &'a mut Lent<SimCore>) -> Turn<'a, SimCpu> {
        Turn::begin(host, core, SimCpu::of)
    }

    /// As [`on`](Self::on), for a turn that ends with [`give_back`](Self::give_back).
    #[inline]
    pub fn take(host: &mut Lent<Host>, core: &mut Lent<SimCore>) -> SimCpu {
        SimCpu { host: host.take(), core: core.take() }
    }

    /// The turn is over.
    #[inline]
    pub fn give_back(self, host: &mut Lent<Host>, core: &mut Lent<SimCore>) {
        host.give_back(self.host);
        core.give_back(self.core);
    }

    #[inline]
    pub(super) fn of(host: Box<Host>, core: Box<SimCore>) -> SimCpu {
        SimCpu { host, core }
    }

    /// Bytes that this core puts nowhere: they stand for memory that it only refers to, and no access is charged.
    pub fn untouched_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        self.host.memory.slice_mut(at, len)
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

    /// Nothing goes on before the stores so far are done: so does a locked instruction, and a store fence.
    fn wait_for_stores(&mut self) {
        self.stall(self.core.stores_done.saturating_sub(self.core.cursor));
    }

    /// Reads what overlaps with other accesses; memory of a device cannot be fetched ahead, as no cache holds it.
    #[inline]
    fn fetch_ahead(&mut self, at: Addr, len: usize) {
        if len > 0 && !self.host.nicmem.holds(at.line()) {
            for line in at.line()..=(at + (len as u64 - 1)).line() {
                self.touch(line, false, self.core.independent_q16);
            }
        }
    }

    /// Takes the lock at `at`, from when `taken` says.
    fn take_lock(&mut self, at: Addr, taken: impl FnOnce(&mut Locks, Addr, Time) -> Time) {
        self.atomic(at, Atomic::Or(0));
        let from = taken(&mut self.host.locks, at, self.core.cursor);
        self.wait_for_lock(from);
        self.core.holds = Some(at);
    }

    fn wait_for_lock(&mut self, until: Time) {
        self.core.spent.work_ps[Part::Sync as usize] += (until - self.core.cursor).as_ps();
        self.core.cursor = until;
    }
}

impl Cpu for SimCpu {
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
        if self.host.nicmem.holds(at.line()) {
            self.store_run_to_device(at, len as u64)
        } else {
            self.touch_few(at, len, true, [self.core.independent_q16; 2])
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

    fn atomic(&mut self, at: Addr, change: Atomic) -> u64 {
        self.wait_for_stores();
        self.touch(at.line(), true, 1 << 16);
        self.work(self.core.config.atomic);
        let before = self.host.memory.word(at);
        let after = change.apply(before);
        self.host.memory.slice_mut(at, 8).copy_from_slice(&after.to_ne_bytes());
        before
    }

    fn lock(&mut self, at: Addr) {
        self.take_lock(at, Locks::take);
    }

    fn unlock(&mut self, at: Addr) {
        self.touch(at.line(), true, self.core.independent_q16);
        // Others see the store behind those before it; who gave the lock back does not wait for that.
        let (now, seen) = (self.core.cursor, self.core.stores_done.max(self.core.cursor));
        let goes_on = self.host.locks.give_back(at, seen);
        self.wait_for_lock(now + (goes_on - seen));
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

    fn copy_loop(&mut self, from: Addr, to: Addr, len: usize, how: CopyLoop) {
        self.copy_lines(from.line(), to.line(), (len as u64).div_ceil(CACHE_LINE_BYTES), how);
        self.host.memory.copy(from, to, len);
    }

    fn mmio_read(&mut self, _register: Register) -> u64 {
        self.stall(self.core.mmio_read);
        0
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

    #[inline(always)]
    fn hint(&mut self, hint: Hint) {
        match hint {
            Hint::Fetch { at, len } => self.fetch_ahead(at, len),
            Hint::Write(at) => {
                self.host.memory.expect_publish(at);
                self.host.hierarchy.expect_remote_write(at.line());
            }
            Hint::StoreFence => self.wait_for_stores(),
            Hint::Completions(completions) => self.expect_named(&completions),
            Hint::Packet(key, moment) if self.host.tracer.is_some() => self.trace(key, moment),
            Hint::Burst(moment) if self.host.tracer.is_some() => self.trace_burst(moment),
            _ => {}
        }
    }
}

mod ahead;
mod burst_lines;
mod cycles;
mod device_memory;
mod l1;
mod run;
#[cfg(test)]
mod tests;
mod touch;
mod trace;
mod with_devices;
