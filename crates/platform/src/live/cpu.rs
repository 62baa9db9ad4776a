//! Software on a core of the live ground: plain loads and stores.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use nicforge_units::{CACHE_LINE_BYTES, Cycles, Time};
use rustix::io::Errno;
use rustix::thread::futex;

use super::{Bell, Control, Recorder, Region, WakeEvent, hints};
use crate::{Addr, Atomic, Cpu, Hint, Part, Pod, Register};

/// How often a lock is tried before the thread lets others run.
const LOCK_SPINS: u32 = 200;

/// One worker, thread or process.
#[derive(Debug)]
pub struct LiveCpu {
    control: Control,
    /// How it wakes the device, if that ever sleeps.
    bell: Option<Bell>,
    /// What it writes into locks that it holds: its number, plus 1.
    mark: u64,
    /// Notes of packets, if some are followed.
    recorder: Option<Box<Recorder>>,
    now: Time,
}

impl LiveCpu {
    /// Worker `number`.
    pub fn new(control: Control, bell: Bell, number: usize) -> LiveCpu {
        LiveCpu { now: control.clock().now(), control, bell: Some(bell), mark: number as u64 + 1, recorder: None }
    }

    /// The device never sleeps: no doorbell has to wake it, and the worker need not wait until what
    /// it wrote is seen.
    pub fn device_polls(self) -> LiveCpu {
        LiveCpu { bell: None, ..self }
    }

    /// From now on packets are noted by `recorder`.
    pub fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(Box::new(recorder));
    }

    /// The notes so far; there are no more from now on.
    pub fn take_record(&mut self) -> Option<Recorder> {
        self.recorder.take().map(|recorder| *recorder)
    }

    /// Takes the time, which then stands until the next call: a clock read costs as much as a
    /// packet may.
    #[inline]
    pub fn tick(&mut self) -> Time {
        self.now = self.control.clock().now();
        self.now
    }

    /// The time is `time` until it is taken again.
    pub fn set_time(&mut self, time: Time) {
        self.now = time;
    }

    /// Tells the device how many packets this worker took so far.
    pub fn tell_taken(&self, taken: u64) {
        self.control.tell_taken(self.mark as usize - 1, taken);
    }

    /// Tells the device how many receive calls this worker made so far.
    pub fn tell_calls(&self, calls: u64) {
        self.control.tell_calls(self.mark as usize - 1, calls);
    }

    /// The device's last order to this worker, see [`Control::order`].
    #[inline]
    pub fn order(&self) -> u64 {
        self.control.order_of(self.mark as usize - 1)
    }

    /// Says that this worker is about to sleep. Look for work once more after it, then
    /// [`sleep`](Self::sleep) or [`stay_awake`](Self::stay_awake).
    pub fn announce_sleep(&self) {
        if let Some(asleep) = self.control.worker_asleep(self.mark as usize - 1) {
            asleep.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// Takes the announcement back.
    pub fn stay_awake(&self) {
        if let Some(asleep) = self.control.worker_asleep(self.mark as usize - 1) {
            asleep.store(0, Ordering::Relaxed);
        }
    }

    /// Sleeps until the device publishes something to this worker, or for `timeout`.
    pub fn sleep(&self, timeout: Duration) {
        let Some(asleep) = self.control.worker_asleep(self.mark as usize - 1) else {
            return;
        };
        let timeout = futex::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // However it ends (woken, no longer announced, time over, a signal), the worker looks.
        let _: Result<(), Errno> = futex::wait(asleep, futex::Flags::empty(), 1, Some(&timeout));
        asleep.store(0, Ordering::Relaxed);
    }

    /// As [`sleep`](Self::sleep), where the device interrupts this worker by `event`. From
    /// [`announce_sleep`](Self::announce_sleep) until the end of this sleep the device may interrupt once.
    pub fn sleep_until_interrupt(&self, event: &WakeEvent, timeout: Duration) {
        event.wait(timeout);
        self.stay_awake();
    }

    /// Looks at words: as no load waits for another, all are on their way at once, and none of a line that
    /// is not written yet except the last. What stands in front of entries of several lines comes along.
    #[inline]
    fn look(&self, words: Range<Addr>, stride: u64, bit: u64) {
        let region = self.region();
        let mut at = words.start;
        let end = region.look(words, stride, bit);
        if stride > CACHE_LINE_BYTES {
            while at < end {
                hints::read(region.hint(Addr(at.0.wrapping_sub(CACHE_LINE_BYTES))));
                at = at + stride;
            }
        }
    }

    #[inline]
    fn region(&self) -> &Region {
        self.control.region()
    }
}

impl Cpu for LiveCpu {
    #[inline]
    fn load<T: Pod>(&mut self, at: Addr) -> T {
        self.region().load(at)
    }

    #[inline]
    fn store<T: Pod>(&mut self, at: Addr, value: T) {
        self.region().store(at, value);
    }

    #[inline]
    fn acquire(&mut self, at: Addr) -> u64 {
        self.region().word(at).load(Ordering::Acquire)
    }

    #[inline]
    fn release(&mut self, at: Addr, value: u64) {
        self.region().word(at).store(value, Ordering::Release);
    }

    #[inline]
    fn atomic(&mut self, at: Addr, change: Atomic) -> u64 {
        self.region().atomic(at, change)
    }

    fn lock(&mut self, at: Addr) {
        let word = self.region().word(at);
        let mut tries = 0u32;
        let mut holder = 0;
        while let Err(found) = word.compare_exchange_weak(holder, self.mark, Ordering::Acquire, Ordering::Relaxed) {
            tries += 1;
            // Only a lock that is free can be taken, or one whose holder is dead.
            holder = 0;
            if !tries.is_multiple_of(LOCK_SPINS) {
                spin_loop();
                continue;
            }
            if self.control.is_gone(found) {
                holder = found;
            }
            // On few cores the holder may be the one that waits for ours.
            std::thread::yield_now();
        }
    }

    #[inline]
    fn unlock(&mut self, at: Addr) {
        self.region().word(at).store(0, Ordering::Release);
    }

    #[inline]
    fn bytes(&mut self, at: Addr, len: usize) -> &[u8] {
        // SAFETY: what a core reads in place is a packet that it took from a ring and nobody else
        // writes until it gives the buffer back, or a table of its own; the slice borrows the core.
        unsafe { self.region().slice(at, len) }
    }

    #[inline]
    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        // SAFETY: as for `bytes`; the exclusive borrow of the core keeps it the only slice here.
        unsafe { self.region().slice_mut(at, len) }
    }

    fn mmio_read(&mut self, register: Register) -> u64 {
        self.control.register_value(register)
    }

    /// A write to a register that there is not goes nowhere, as on a bus.
    #[inline]
    fn mmio_write(&mut self, register: Register, value: u64) {
        if let Some(word) = self.control.register(register) {
            word.store(value, Ordering::Release);
            if let Some(bell) = &self.bell {
                bell.ring(&self.control);
            }
        }
    }

    #[inline]
    fn work(&mut self, _cycles: Cycles) {}

    /// The live ground keeps no account of parts.
    #[inline]
    fn enter(&mut self, part: Part) -> Part {
        part
    }

    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline(always)]
    fn hint(&mut self, hint: Hint) {
        match hint {
            Hint::Fetch { at, .. } => hints::read(self.region().hint(at)),
            Hint::Write(at) => hints::write(self.region().hint(at)),
            Hint::Words { from, until, stride, bit } => self.look(from..until, stride, bit),
            Hint::Packet(key, moment) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.packet(key, moment);
                }
            }
            Hint::Burst(moment) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.burst(moment);
                }
            }
            _ => {}
        }
    }
}
