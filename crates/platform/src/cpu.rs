//! What software on a core can do.

use std::ops::Range;

use bytemuck::Pod;
use nicforge_units::{CACHE_LINE_BYTES, Cycles, Time};

use crate::Addr;

/// A register of a device, as a core addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// Which device.
    pub device: u8,
    /// The register's number within the device; its meaning is the interface's `layout.rs`.
    pub index: u32,
}

/// What a core is busy with, so that its cycles can be told apart in the report.
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

/// Where an entry of a line says that it is there.
const ENTRY_LAST_WORD: u64 = CACHE_LINE_BYTES - 8;

/// The contract of software on a core: memory, device registers and work.
///
/// Live: plain loads and stores. Sim: the same bytes, plus a charge in cycles.
pub trait Cpu {
    /// Reads a value that nobody writes meanwhile; the core waits for it (a dependent access).
    fn load<T: Pod>(&mut self, at: Addr) -> T;

    /// Reads a word that others may be writing: all of it at once, and in no order with anything else.
    #[inline]
    fn load_shared(&mut self, at: Addr) -> u64 {
        self.load(at)
    }

    /// Writes a value through the store buffer; the core does not wait.
    fn store<T: Pod>(&mut self, at: Addr, value: T);

    /// Reads a word that another agent publishes; what it wrote before is visible after.
    fn acquire(&mut self, at: Addr) -> u64;

    /// Writes a word that announces all earlier stores.
    fn release(&mut self, at: Addr, value: u64);

    /// Reads an entry of one line whose last word a device publishes, if that word's lowest bit is
    /// `bit`: the words before it.
    // Always inlined: whoever asks needs some of the words, and takes them from where they lie.
    #[inline(always)]
    fn entry(&mut self, at: Addr, bit: u64) -> Option<[u64; 7]> {
        (self.acquire(at + ENTRY_LAST_WORD) & 1 == bit).then(|| self.load(at))
    }

    /// Writes an entry of one line whose last word announces it.
    #[inline]
    fn write_entry(&mut self, at: Addr, words: [u64; 8]) {
        let [rest @ .., last] = words;
        self.store(at, rest);
        self.release(at + ENTRY_LAST_WORD, last);
    }

    /// Atomically ORs `bits` into the word; returns the word before.
    fn fetch_or(&mut self, at: Addr, bits: u64) -> u64;

    /// Atomically ANDs `bits` into the word; returns the word before.
    fn fetch_and(&mut self, at: Addr, bits: u64) -> u64;

    /// Atomically adds to the word; returns the word before.
    fn fetch_add(&mut self, at: Addr, value: u64) -> u64;

    /// Takes the lock at `at` (a word, 0 = free); waits while another core holds it.
    fn lock(&mut self, at: Addr);

    /// Gives the lock back.
    fn unlock(&mut self, at: Addr);

    /// Reads `len` bytes in place: the first line is waited for, the rest stream in.
    fn bytes(&mut self, at: Addr, len: usize) -> &[u8];

    /// Reads and writes `len` bytes in place.
    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8];

    /// Reads the bytes at `from`, which somebody else may write meanwhile, into `into`.
    #[inline]
    fn copy_out(&mut self, from: Addr, into: &mut [u8]) {
        into.copy_from_slice(self.bytes(from, into.len()));
    }

    /// Copies `len` bytes from `from` to `to`, which do not overlap; returns them where they are now.
    fn copy(&mut self, from: Addr, to: Addr, len: usize) -> &[u8] {
        let bytes = self.bytes(from, len).to_vec();
        let there = self.bytes_mut(to, len);
        there.copy_from_slice(&bytes);
        there
    }

    /// Starts fetching `len` bytes that will be needed soon; overlaps with others.
    fn prefetch(&mut self, at: Addr, len: usize);

    /// Says that the core will look at words, `stride` bytes apart from where `words` begins to where it
    /// ends, until the lowest bit of one is not `bit`. Where transfers between caches take real time they may
    /// run side by side; nothing else happens.
    #[inline]
    fn look_ahead(&mut self, _words: Range<Addr>, _stride: u64, _bit: u64) {}

    /// Says that the core will write the line at `at` soon, which a device may have read; nothing
    /// else happens.
    #[inline]
    fn expect_store(&mut self, _at: Addr) {}

    /// Says that the core will look at these entries of a line each soon, one after the other. One whose
    /// last word's lowest bit is the one beside it may name a place in its word `word`, and the core will
    /// access the `lines`, a few, counted from there. Nothing else happens, whatever stands there.
    #[inline]
    fn expect_entries(&mut self, _entries: [(Addr, u64); 3], _word: u64, _lines: [u64; 4]) {}

    /// Looks at `len` bytes for nothing, where that can be had: only what is expected may depend on them.
    #[inline]
    fn glance(&self, _at: Addr, _len: usize) -> Option<&[u8]> {
        None
    }

    /// Says that the core will access the line at `at` soon; nothing else happens.
    #[inline]
    fn expect_access(&mut self, _at: Addr) {}

    /// Says it again, nearer to the access: what is known of the line has come since.
    #[inline]
    fn expect_soon(&mut self, _at: Addr) {}

    /// Says that the core will access something in the page of `at` next, which was
    /// [expected](Self::expect_access) before; nothing else happens.
    #[inline]
    fn expect_page(&mut self, _at: Addr) {}

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
}
