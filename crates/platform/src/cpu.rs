//! What software on a core can do.

use bytemuck::Pod;
use nicforge_units::{CACHE_LINE_BYTES, Cycles, Time};

use crate::{Addr, Hint};

/// A register of a device, as a core addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// Which device.
    pub device: u8,
    /// The register's number within the device; its meaning is the interface's `layout.rs`.
    pub index: u32,
}

/// The account that a core's cycles are charged to, as the report shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Receive and transmit code of the driver.
    Driver,
    /// The application.
    App,
    /// Waiting for, and moving, locks and atomics.
    Sync,
    /// Packet-buffer allocation and freeing.
    Alloc,
    /// Of a kernel: taking an interrupt, and finding out what it is for.
    Interrupt,
    /// Of a kernel: IP, TCP, sockets, system calls.
    Stack,
    /// Of a kernel: copying between its buffers and those of a process.
    Copy,
}

impl Part {
    /// All parts, in the order of their number.
    pub const ALL: [Part; 7] =
        [Part::Driver, Part::App, Part::Sync, Part::Alloc, Part::Interrupt, Part::Stack, Part::Copy];
}

/// A change of a word that no other agent can come between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Sets these bits.
    Or(u64),
    /// Keeps these bits only.
    And(u64),
    /// Adds this, wrapping.
    Add(u64),
}

/// How a loop copies memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLoop {
    /// Instructions for each line.
    pub line: Cycles,
    /// Whether stores go past all caches (non-temporal ones): nothing is read first, and no cache has the line then.
    pub past_caches: bool,
}

impl Atomic {
    /// What `word` becomes.
    #[inline]
    pub fn apply(self, word: u64) -> u64 {
        match self {
            Atomic::Or(bits) => word | bits,
            Atomic::And(bits) => word & bits,
            Atomic::Add(value) => word.wrapping_add(value),
        }
    }
}

/// The contract of software on a core: memory, device registers and work.
///
/// Live: plain loads and stores. Sim: the same bytes, plus a charge in cycles.
pub trait Cpu {
    /// Reads a value without concurrent writers; the core waits for it (a dependent access).
    fn load<T: Pod>(&mut self, at: Addr) -> T;

    /// Writes a value through the store buffer; the core does not wait.
    fn store<T: Pod>(&mut self, at: Addr, value: T);

    /// Reads a word that another agent publishes; what it wrote before is visible after.
    fn acquire(&mut self, at: Addr) -> u64;

    /// Writes a word that announces all earlier stores.
    fn release(&mut self, at: Addr, value: u64);

    /// Changes the word atomically; returns the word before.
    fn atomic(&mut self, at: Addr, change: Atomic) -> u64;

    /// Takes the lock at `at` (a word, 0 = free); waits while another core holds it.
    fn lock(&mut self, at: Addr);

    /// Releases the lock.
    fn unlock(&mut self, at: Addr);

    /// Reads `len` bytes in place: the first line is waited for, the rest stream in.
    fn bytes(&mut self, at: Addr, len: usize) -> &[u8];

    /// Reads and writes `len` bytes in place.
    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8];

    /// Copies `len` bytes, whole lines, from `from` to `to`, which do not overlap, by a loop: loads stream up to the
    /// end of a page, and stores go on beside them.
    fn copy_loop(&mut self, from: Addr, to: Addr, len: usize, how: CopyLoop) {
        copy(self, from, to, len);
        self.work(Cycles(how.line.0 * (len as u64).div_ceil(CACHE_LINE_BYTES)));
    }

    /// Reads a device register: a full round trip over the bus.
    fn mmio_read(&mut self, register: Register) -> u64;

    /// Writes a device register: posted, the core does not wait for its arrival.
    fn mmio_write(&mut self, register: Register, value: u64);

    /// Instructions that the memory accesses do not show.
    fn work(&mut self, cycles: Cycles);

    /// Says what the following accesses and work are for; returns what it was before.
    fn enter(&mut self, part: Part) -> Part;

    /// The time on this core.
    fn now(&self) -> Time;

    /// Says what the core is about to do.
    #[inline]
    fn hint(&mut self, _hint: Hint) {}
}

/// Where an entry of a line says that it is there.
const ENTRY_LAST_WORD: u64 = CACHE_LINE_BYTES - 8;

/// Reads an entry of one line whose last word a device publishes, if that word's lowest bit is `bit`: the words
/// before it.
// Always inlined: callers need some of the words, and take them from where they lie.
#[inline(always)]
pub fn entry<C: Cpu>(cpu: &mut C, at: Addr, bit: u64) -> Option<[u64; 7]> {
    (cpu.acquire(at + ENTRY_LAST_WORD) & 1 == bit).then(|| cpu.load(at))
}

/// Writes an entry of one line whose last word announces it.
#[inline]
pub fn write_entry<C: Cpu>(cpu: &mut C, at: Addr, words: [u64; 8]) {
    let [rest @ .., last] = words;
    cpu.store(at, rest);
    cpu.release(at + ENTRY_LAST_WORD, last);
}

/// Copies `len` bytes from `from` to `to`, which do not overlap; returns them where they are now.
pub fn copy<C: Cpu + ?Sized>(cpu: &mut C, from: Addr, to: Addr, len: usize) -> &[u8] {
    let bytes = cpu.bytes(from, len).to_vec();
    let there = cpu.bytes_mut(to, len);
    there.copy_from_slice(&bytes);
    there
}
