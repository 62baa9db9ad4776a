//! What lies behind the host's memory: register words, and who sleeps.
//!
//! | line | writer | content |
//! | --- | --- | --- |
//! | 0 | first process | magic, length of host memory, origin of time (ns) |
//! | 1 | device, workers | 1 while the device sleeps; a ring clears it |
//! | 2 + w | worker, device | 1 while worker w sleeps (a futex) |
//! | | worker | word 1: packets that it took so far |
//! | | device | word 2: its orders: even, go on; odd, stop and say so |
//! | | worker | word 3: the last order that it saw and followed |
//! | | worker | word 5: receive calls that it made so far, if the device wants them |
//! | | device | word 4: 1 when its process is gone: its locks may be taken |
//! | then | workers | registers, a line each: device by device, bank by bank |
//!
//! A register holds the last value written. Doorbells count up, so none is missed that matters.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use nicforge_units::CACHE_LINE_BYTES;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::thread::futex;

use super::{Clock, LiveError, Region};
use crate::{Addr, AddressSpace, Register};

const MAGIC: u64 = u64::from_le_bytes(*b"nicforge");
/// Words of a worker's line.
const TAKEN: u64 = 1;
const ORDER: u64 = 2;
const FOLLOWED: u64 = 3;
const GONE: u64 = 4;
const CALLS: u64 = 5;
/// What the device writes into locks that it holds; no worker's mark.
const DEVICE_MARK: u64 = u64::MAX;

/// The region with what lies in it beside the host's memory.
#[derive(Clone, Debug)]
pub struct Control {
    region: Region,
    /// Where host memory ends.
    memory_end: u64,
    begin: Addr,
    workers: usize,
    banks: Vec<Bank>,
    clock: Clock,
    /// Workers of this process that wait for a file in place of their futex.
    events: Vec<(usize, Arc<OwnedFd>)>,
}

/// What a worker waits for that has a wait of its own.
#[derive(Clone, Debug)]
pub struct WakeEvent(Arc<OwnedFd>);

impl WakeEvent {
    /// Readable once the device has woken the worker.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes it readable, whoever sleeps.
    pub fn raise(&self) {
        // A full counter is readable already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Waits until it is readable, or for `timeout`, and clears it.
    pub fn wait(&self, timeout: Duration) {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // However it ends (an interrupt, time over, a signal), the worker looks.
        let _: Result<usize, Errno> = poll(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(&timeout));
        self.clear();
    }

    /// Not readable any more.
    pub fn clear(&self) {
        // Empty already where something else woke the worker.
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

/// A run of registers that every device has: its first index, and how many.
pub type Bank = (u32, u32);

/// What the control words are laid out for.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Devices.
    pub devices: usize,
    /// Workers.
    pub workers: usize,
    /// The registers of each device: banks apart from each other, by rising index.
    pub banks: Vec<Bank>,
}

impl Control {
    /// A new region for `space`.
    pub fn new(space: &AddressSpace, shape: &Shape) -> Result<Control, LiveError> {
        let (_, len) = Control::extent(space, shape);
        let control = Control::over(Region::new(len)?, space, shape, Clock::start());
        control.introduce();
        Ok(control)
    }

    /// Writes what other processes know the region by, whatever stands there.
    pub fn introduce(&self) {
        self.region.store(self.begin + 8, self.memory_end);
        self.region.store(self.begin + 16, self.clock.origin_ns());
        self.region.word(self.begin).store(MAGIC, Ordering::Release);
    }

    /// The region in `file`, made by another process for the same `space` and `shape`.
    pub fn attach(file: OwnedFd, space: &AddressSpace, shape: &Shape) -> Result<Control, LiveError> {
        let (begin, len) = Control::extent(space, shape);
        let region = Region::attach(file, len)?;
        let magic = region.word(begin).load(Ordering::Acquire);
        if magic != MAGIC || region.load::<u64>(begin + 8) != space.end() {
            return Err(LiveError::Region("is laid out otherwise".into()));
        }
        let clock = Clock::since(region.load(begin + 16));
        Ok(Control::over(region, space, shape, clock))
    }

    fn over(region: Region, space: &AddressSpace, shape: &Shape, clock: Clock) -> Control {
        Control {
            region,
            memory_end: space.end(),
            begin: Control::extent(space, shape).0,
            workers: shape.workers,
            banks: shape.banks.clone(),
            clock,
            events: Vec::new(),
        }
    }

    /// Where control words begin, and where the region ends.
    fn extent(space: &AddressSpace, shape: &Shape) -> (Addr, u64) {
        let begin = space.end().next_multiple_of(4096);
        let registers = shape.devices as u64 * registers_of(&shape.banks);
        let lines = 2 + shape.workers as u64 + registers;
        (Addr(begin), begin + lines * CACHE_LINE_BYTES)
    }

    /// The memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The time.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where the host's memory ends: cores and devices address nothing from there on.
    pub fn memory_end(&self) -> Addr {
        Addr(self.memory_end)
    }

    /// 1 while the device sleeps.
    pub(super) fn device_asleep(&self) -> &AtomicU32 {
        self.region.half_word(self.begin + CACHE_LINE_BYTES)
    }

    /// 1 while worker `number` sleeps; `None` if there is none.
    pub(super) fn worker_asleep(&self, number: usize) -> Option<&AtomicU32> {
        let line = 2 + number as u64;
        (number < self.workers).then(|| self.region.half_word(self.begin + line * CACHE_LINE_BYTES))
    }

    /// Worker `number` says how many packets it took so far.
    pub(super) fn tell_taken(&self, number: usize, taken: u64) {
        if let Some(word) = self.worker_word(number, TAKEN) {
            word.store(taken, Ordering::Release);
        }
    }

    /// Packets that worker `number` took so far, as it says.
    #[inline]
    pub fn taken_by(&self, number: usize) -> u64 {
        let word = self.worker_word(number, TAKEN);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Worker `number` says how many receive calls it made so far.
    pub(super) fn tell_calls(&self, number: usize, calls: u64) {
        if let Some(word) = self.worker_word(number, CALLS) {
            word.store(calls, Ordering::Relaxed);
        }
    }

    /// Receive calls that worker `number` made so far, as it reports; 0 if it does not report.
    pub fn calls(&self, number: usize) -> u64 {
        let word = self.worker_word(number, CALLS);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Word `word` of the line of worker `number`; `None` if there is none.
    fn worker_word(&self, number: usize, word: u64) -> Option<&AtomicU64> {
        let at = |number| self.begin + (2 + number as u64) * CACHE_LINE_BYTES + word * 8;
        (number < self.workers).then(|| self.region.word(at(number)))
    }

    /// Worker `number` shall go on (an even number) or stop (an odd one).
    pub fn order(&self, number: usize, order: u64) {
        if let Some(word) = self.worker_word(number, ORDER) {
            word.store(order, Ordering::Release);
            fence(Ordering::SeqCst);
            self.wake(number);
        }
    }

    /// The last order to worker `number`.
    #[inline]
    pub fn order_of(&self, number: usize) -> u64 {
        let word = self.worker_word(number, ORDER);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Worker `number` follows `order`: it touches no ring any more, or again.
    pub fn follow(&self, number: usize, order: u64) {
        if let Some(word) = self.worker_word(number, FOLLOWED) {
            word.store(order, Ordering::Release);
        }
    }

    /// The order that worker `number` follows.
    pub fn followed(&self, number: usize) -> u64 {
        let word = self.worker_word(number, FOLLOWED);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The process of worker `number` is gone, and whoever waits for a lock of it may take it; or
    /// somebody else is about to be there.
    pub fn set_gone(&self, number: usize, gone: bool) {
        if let Some(word) = self.worker_word(number, GONE) {
            word.store(gone.into(), Ordering::Release);
        }
    }

    /// Whether the holder that marks locks with `mark` is gone.
    pub(super) fn is_gone(&self, mark: u64) -> bool {
        let number = usize::try_from(mark.wrapping_sub(1)).unwrap_or(usize::MAX);
        let word = self.worker_word(number, GONE);
        word.is_some_and(|word| word.load(Ordering::Acquire) == 1)
    }

    /// Worker `number` waits for the file that this returns in place of its futex. Clones made before do not know.
    pub fn wake_by_event(&mut self, number: usize) -> Result<WakeEvent, LiveError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = Arc::new(eventfd(0, flags).map_err(LiveError::of("creating an eventfd"))?);
        self.events.push((number, event.clone()));
        Ok(WakeEvent(event))
    }

    /// Wakes worker `number`, if it sleeps.
    pub(super) fn wake(&self, number: usize) {
        if let Some(asleep) = self.worker_asleep(number)
            && asleep.load(Ordering::Relaxed) != 0
            && asleep.swap(0, Ordering::Relaxed) != 0
        {
            if let Some((_, event)) = self.events.iter().find(|(worker, _)| *worker == number) {
                // A full counter has woken it already.
                let _ = rustix::io::write(event, &1u64.to_ne_bytes());
                return;
            }
            // Nobody there any more is fine: the worker woke by itself.
            let _ = futex::wake(asleep, futex::Flags::empty(), 1);
        }
    }

    /// What worker `number` left in its line is as in the beginning.
    pub fn forget_worker(&self, number: usize) {
        for word in [0, TAKEN, FOLLOWED, CALLS] {
            if let Some(word) = self.worker_word(number, word) {
                word.store(0, Ordering::Release);
            }
        }
    }

    /// A register holds 0 again.
    pub fn forget_register(&self, register: Register) {
        if let Some(word) = self.register(register) {
            word.store(0, Ordering::Release);
        }
    }

    /// Takes the lock at `at`, for the device, from whoever `may_lose` it: who holds it is gone, or
    /// never was. Gives up after `patience` and returns what stands there.
    pub fn seize(&self, at: Addr, patience: Duration, may_lose: impl Fn(u64) -> bool) -> Result<(), u64> {
        let word = self.region.word(at);
        let until = std::time::Instant::now() + patience;
        loop {
            let holder = word.load(Ordering::Relaxed);
            let takes = holder == 0 || may_lose(holder);
            let swap = |from| word.compare_exchange(from, DEVICE_MARK, Ordering::Acquire, Ordering::Relaxed);
            if takes && swap(holder).is_ok() {
                return Ok(());
            }
            if std::time::Instant::now() >= until {
                return Err(holder);
            }
            std::thread::yield_now();
        }
    }

    /// The word of a register; `None` if there is no such register.
    pub(super) fn register(&self, register: Register) -> Option<&AtomicU64> {
        let mut before = 0;
        for &(first, count) in &self.banks {
            if (first..first + count).contains(&register.index) {
                let place = before + u64::from(register.index - first);
                let number = u64::from(register.device) * registers_of(&self.banks) + place;
                let line = 2 + self.workers as u64 + number;
                return Some(self.region.word(self.begin + line * CACHE_LINE_BYTES));
            }
            before += u64::from(count);
        }
        None
    }

    /// All registers of device `device`.
    pub fn registers(&self, device: u8) -> impl Iterator<Item = Register> + '_ {
        let indices = self.banks.iter().flat_map(|&(first, count)| first..first + count);
        indices.map(move |index| Register { device, index })
    }

    /// The value last written to a register, with all that its writer wrote before.
    #[inline]
    pub fn register_value(&self, register: Register) -> u64 {
        let word = self.register(register);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }
}

fn registers_of(banks: &[Bank]) -> u64 {
    banks.iter().map(|&(_, count)| u64::from(count)).sum()
}
