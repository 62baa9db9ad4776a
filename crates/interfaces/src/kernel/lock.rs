//! A lock around what several cores use. With one core there is none, and it costs nothing.

use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::CACHE_LINE_BYTES;

/// A lock in a line of its own.
#[derive(Clone, Copy, Debug)]
pub struct SharedLock(Option<Addr>);

impl SharedLock {
    /// One for `cores` cores.
    pub fn new(space: &mut AddressSpace, cores: usize) -> SharedLock {
        SharedLock((cores > 1).then(|| space.data(CACHE_LINE_BYTES, CACHE_LINE_BYTES)))
    }

    /// Does `what` while no other core does anything under this lock.
    pub fn hold<C: Cpu, T>(&self, cpu: &mut C, what: impl FnOnce(&mut C) -> T) -> T {
        self.take(cpu);
        let result = what(cpu);
        self.give(cpu);
        result
    }

    /// Takes it; [`give`](Self::give) must follow.
    pub fn take<C: Cpu>(&self, cpu: &mut C) {
        if let Some(at) = self.0 {
            cpu.lock(at);
        }
    }

    /// Gives it back.
    pub fn give<C: Cpu>(&self, cpu: &mut C) {
        if let Some(at) = self.0 {
            cpu.unlock(at);
        }
    }
}
