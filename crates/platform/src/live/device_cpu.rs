//! The device's thread as a core: it plays a NIC behind its own.
//!
//! Loads, stores and locks are [`LiveCpu`]'s, unchanged. It cannot be that one alone: what it announces has to
//! go into the device's burst, be written before it looks for answers, and be noted for those who sleep; its
//! doorbells are rung by nobody else's thread; and its time is the device's, so that both see one clock.

use nicforge_units::{Cycles, Time};

use super::{LiveCpu, LiveDma};
use crate::{Addr, Cpu, Dma, Part, Pod, Register};

/// A core that the device's thread plays between two things that it does as the device. What it
/// announces goes the way of what the device publishes: whoever it is for is woken with the others. Its
/// register writes are kept for the device, as no other thread looks at what this one says.
#[derive(Debug)]
pub struct DeviceCpu<'a> {
    cpu: &'a mut LiveCpu,
    dma: &'a mut LiveDma,
    rung: Vec<(Register, u64)>,
}

impl<'a> DeviceCpu<'a> {
    /// A core that reads and writes as `cpu` does, and announces by `dma`.
    pub fn new(cpu: &'a mut LiveCpu, dma: &'a mut LiveDma) -> DeviceCpu<'a> {
        let rung = Vec::new();
        DeviceCpu { cpu, dma, rung }
    }

    /// The registers that it wrote, in order.
    pub fn into_rung(self) -> Vec<(Register, u64)> {
        self.rung
    }
}

impl Cpu for DeviceCpu<'_> {
    #[inline]
    fn load<T: Pod>(&mut self, at: Addr) -> T {
        self.cpu.load(at)
    }

    #[inline]
    fn store<T: Pod>(&mut self, at: Addr, value: T) {
        self.cpu.store(at, value);
    }

    #[inline]
    fn acquire(&mut self, at: Addr) -> u64 {
        self.dma.flush();
        self.cpu.acquire(at)
    }

    #[inline]
    fn release(&mut self, at: Addr, value: u64) {
        self.dma.flush();
        self.cpu.release(at, value);
    }

    #[inline]
    fn entry(&mut self, at: Addr, bit: u64) -> Option<[u64; 7]> {
        self.dma.flush();
        self.cpu.entry(at, bit)
    }

    #[inline]
    fn write_entry(&mut self, at: Addr, words: [u64; 8]) {
        self.dma.publish_entry(at, words);
    }

    fn fetch_or(&mut self, at: Addr, bits: u64) -> u64 {
        self.cpu.fetch_or(at, bits)
    }

    fn fetch_and(&mut self, at: Addr, bits: u64) -> u64 {
        self.cpu.fetch_and(at, bits)
    }

    fn fetch_add(&mut self, at: Addr, value: u64) -> u64 {
        self.cpu.fetch_add(at, value)
    }

    fn lock(&mut self, at: Addr) {
        self.cpu.lock(at);
    }

    fn unlock(&mut self, at: Addr) {
        self.cpu.unlock(at);
    }

    fn bytes(&mut self, at: Addr, len: usize) -> &[u8] {
        self.cpu.bytes(at, len)
    }

    #[inline]
    fn copy_out(&mut self, from: Addr, into: &mut [u8]) {
        self.dma.read(from, into);
    }

    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        self.cpu.bytes_mut(at, len)
    }

    #[inline]
    fn prefetch(&mut self, at: Addr, len: usize) {
        self.cpu.prefetch(at, len);
    }

    #[inline]
    fn expect_store(&mut self, at: Addr) {
        self.cpu.expect_store(at);
    }

    fn mmio_read(&mut self, register: Register) -> u64 {
        self.cpu.mmio_read(register)
    }

    fn mmio_write(&mut self, register: Register, value: u64) {
        self.rung.push((register, value));
    }

    #[inline]
    fn work(&mut self, _cycles: Cycles) {}

    #[inline]
    fn enter(&mut self, part: Part) -> Part {
        part
    }

    /// The device's.
    #[inline]
    fn now(&self) -> Time {
        self.dma.now()
    }
}
