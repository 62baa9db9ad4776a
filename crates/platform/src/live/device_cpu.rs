//! The device's thread as a core: it plays a NIC behind its own.
//!
//! Loads, stores and locks are [`LiveCpu`]'s, unchanged. It cannot be that one alone: what it announces has to
//! go into the device's burst, be written before it looks for answers, and be noted for those who sleep; its
//! doorbells are rung by nobody else's thread; and its time is the device's, so that both see one clock.

use nicforge_units::{Cycles, Time};

use super::{LiveCpu, LiveDma};
use crate::{Addr, Cpu, Dma, Part, Register};

/// A core that the device's thread plays between two things that it does as the device. What it
/// announces goes the way of what the device publishes: sleeping readers are woken with the others. Its
/// register writes are kept for the device, as no other thread looks at what this one says.
#[derive(Debug)]
pub struct DeviceCpu {
    /// The core, where it is one like all others.
    pub cpu: LiveCpu,
    /// The device's own way to memory.
    pub dma: LiveDma,
    rung: Vec<(Register, u64)>,
    copy: Vec<u8>,
}

impl DeviceCpu {
    /// A core that reads and writes as `cpu` does, and announces by `dma`.
    pub fn new(cpu: LiveCpu, dma: LiveDma) -> DeviceCpu {
        DeviceCpu { cpu, dma, rung: Vec::new(), copy: Vec::new() }
    }

    /// The registers that it wrote since the last call, in order.
    pub fn take_rung(&mut self) -> Vec<(Register, u64)> {
        std::mem::take(&mut self.rung)
    }
}

impl Cpu for DeviceCpu {
    crate::forward_cpu!(cpu: load store atomic lock unlock bytes_mut mmio_read hint);

    #[inline]
    fn acquire(&mut self, at: Addr) -> u64 {
        self.dma.flush();
        self.cpu.acquire(at)
    }

    #[inline]
    fn release(&mut self, at: Addr, value: u64) {
        self.dma.publish(at, &value.to_ne_bytes());
    }

    /// A copy: other processes may write there meanwhile.
    fn bytes(&mut self, at: Addr, len: usize) -> &[u8] {
        self.copy.resize(len, 0);
        self.dma.read(at, &mut self.copy);
        &self.copy
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
