//! The device's thread as a core: it plays a NIC behind its own.
//!
//! Loads, stores and locks are [`LiveCpu`]'s, unchanged. It cannot be that one alone: what it announces has to
//! go into the device's burst, be written before it looks for answers, and be noted for those who sleep; its
//! doorbells are rung by nobody else's thread; and its time is the device's, so that both see one clock.

use nicforge_units::{Cycles, Time};

use super::{LiveCpu, LiveDma};
use crate::{Addr, Cpu, Dma, Part, Register};

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
    crate::forward_cpu!(cpu: load store fetch_or fetch_and fetch_add lock unlock);
    crate::forward_cpu!(cpu: bytes bytes_mut prefetch expect_store mmio_read);

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

    #[inline]
    fn copy_out(&mut self, from: Addr, into: &mut [u8]) {
        self.dma.read(from, into);
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
