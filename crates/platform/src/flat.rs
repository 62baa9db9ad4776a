//! Functional ground without a model, for tests and for filling tables before a run.

use std::collections::BTreeMap;

use nicforge_units::{Cycles, Time};

use crate::{Addr, Atomic, Cpu, Dma, HostBytes, Part, Pod, Register, Vector};

/// A [`Cpu`] over plain bytes: nothing is charged, time stands still unless it is set.
///
/// The memory is zeroed lazily by the operating system, so large tables that are hardly
/// touched cost little. An access beyond its end is a broken invariant of the caller and
/// panics.
#[derive(Clone, Debug)]
pub struct FlatCpu {
    memory: HostBytes,
    registers: BTreeMap<(u8, u32), u64>,
    part: Part,
    now: Time,
    work: Cycles,
}

impl FlatCpu {
    /// `bytes` of zeroed memory, usually `AddressSpace::end()`.
    pub fn new(bytes: u64) -> FlatCpu {
        FlatCpu::over(HostBytes::zeroed(bytes))
    }

    /// Memory taken from elsewhere, such as from a finished run.
    pub fn over(memory: HostBytes) -> FlatCpu {
        FlatCpu { memory, registers: BTreeMap::new(), part: Part::App, now: Time::ZERO, work: Cycles(0) }
    }

    /// Sets the time that [`Cpu::now`] tells.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The sum of all [`Cpu::work`] so far.
    pub fn total_work(&self) -> Cycles {
        self.work
    }

    /// The memory, to hand over once tables are filled.
    pub fn into_memory(self) -> HostBytes {
        self.memory
    }

    /// The last value written to each register, for the device that takes over.
    pub fn registers(&self) -> impl Iterator<Item = (Register, u64)> + '_ {
        self.registers.iter().map(|(&(device, index), &value)| (Register { device, index }, value))
    }
}

impl Cpu for FlatCpu {
    #[inline]
    fn load<T: Pod>(&mut self, at: Addr) -> T {
        let at = at.0 as usize;
        bytemuck::pod_read_unaligned(&self.memory[at..at + size_of::<T>()])
    }

    #[inline]
    fn store<T: Pod>(&mut self, at: Addr, value: T) {
        let at = at.0 as usize;
        self.memory[at..at + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    }

    fn acquire(&mut self, at: Addr) -> u64 {
        self.load(at)
    }

    fn release(&mut self, at: Addr, value: u64) {
        self.store(at, value);
    }

    fn atomic(&mut self, at: Addr, change: Atomic) -> u64 {
        let before = self.load::<u64>(at);
        self.store(at, change.apply(before));
        before
    }

    fn lock(&mut self, at: Addr) {
        // One core only: a lock that is already taken can never be given back.
        assert_eq!(self.load::<u64>(at), 0, "lock at {at:?} taken twice");
        self.store(at, 1u64);
    }

    fn unlock(&mut self, at: Addr) {
        self.store(at, 0u64);
    }

    #[inline]
    fn bytes(&mut self, at: Addr, len: usize) -> &[u8] {
        &self.memory[at.0 as usize..at.0 as usize + len]
    }

    #[inline]
    fn bytes_mut(&mut self, at: Addr, len: usize) -> &mut [u8] {
        &mut self.memory[at.0 as usize..at.0 as usize + len]
    }

    fn mmio_read(&mut self, register: Register) -> u64 {
        let key = (register.device, register.index);
        self.registers.get(&key).copied().unwrap_or(0)
    }

    fn mmio_write(&mut self, register: Register, value: u64) {
        self.registers.insert((register.device, register.index), value);
    }

    #[inline]
    fn work(&mut self, cycles: Cycles) {
        self.work += cycles;
    }

    #[inline]
    fn enter(&mut self, part: Part) -> Part {
        std::mem::replace(&mut self.part, part)
    }

    #[inline]
    fn now(&self) -> Time {
        self.now
    }
}

/// Calls of [`Dma`] by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Reads that the device waited for.
    pub reads: u64,
    /// Reads ahead of need.
    pub reads_ahead: u64,
    /// Writes.
    pub writes: u64,
    /// Publishes.
    pub publishes: u64,
}

/// A [`Dma`] over the memory of a [`FlatCpu`]: what it does is visible at once, and takes no time.
#[derive(Clone, Debug)]
pub struct FlatDma {
    /// The software's side of the same memory.
    pub cpu: FlatCpu,
    /// How often the device did what.
    pub calls: Calls,
    now: Time,
}

impl FlatDma {
    /// A device of the host of `cpu`.
    pub fn new(cpu: FlatCpu) -> FlatDma {
        FlatDma { cpu, calls: Calls::default(), now: Time::ZERO }
    }

    /// Sets the device's time.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }
}

impl Dma for FlatDma {
    fn read(&mut self, from: Addr, into: &mut [u8]) {
        self.calls.reads += 1;
        into.copy_from_slice(self.cpu.bytes(from, into.len()));
    }

    fn read_ahead(&mut self, from: Addr, into: &mut [u8]) -> Time {
        self.calls.reads_ahead += 1;
        into.copy_from_slice(self.cpu.bytes(from, into.len()));
        self.now
    }

    fn write(&mut self, to: Addr, bytes: &[u8]) {
        self.calls.writes += 1;
        self.cpu.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
    }

    fn publish(&mut self, to: Addr, bytes: &[u8]) {
        self.calls.publishes += 1;
        self.cpu.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
    }

    fn interrupt(&mut self, _vector: Vector) {}

    fn wait_until(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    fn now(&self) -> Time {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_sees_the_same_bytes() {
        let mut cpu = FlatCpu::new(4096);
        cpu.store(Addr(70), 0x1122_3344_u32);
        assert_eq!(cpu.load::<u32>(Addr(70)), 0x1122_3344);
        assert_eq!(cpu.bytes(Addr(70), 1), [0x44]);
        cpu.bytes_mut(Addr(70), 2)[1] = 0;
        assert_eq!(cpu.load::<u32>(Addr(70)), 0x1122_0044);
        assert_eq!(cpu.atomic(Addr(128), Atomic::Or(6)), 0);
        assert_eq!(cpu.atomic(Addr(128), Atomic::And(3)), 6);
        assert_eq!(cpu.atomic(Addr(128), Atomic::Add(5)), 2);
        assert_eq!(cpu.acquire(Addr(128)), 7);
    }

    #[test]
    fn parts_work_and_registers_are_kept() {
        let mut cpu = FlatCpu::new(64);
        assert_eq!(cpu.enter(Part::Driver), Part::App);
        assert_eq!(cpu.enter(Part::App), Part::Driver);
        cpu.work(Cycles(3));
        cpu.work(Cycles(4));
        assert_eq!(cpu.total_work(), Cycles(7));
        let register = Register { device: 1, index: 2 };
        assert_eq!(cpu.mmio_read(register), 0);
        cpu.mmio_write(register, 9);
        assert_eq!(cpu.mmio_read(register), 9);
    }
}
