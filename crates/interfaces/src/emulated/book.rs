//! Who has which buffer, where that is written down: software that dies leaves its buffers behind.

use std::ops::Range;

use nicforge_nic::Ledger;
use nicforge_platform::{Addr, Cpu, Owner};

/// The ledger, as the emulating core writes it. Buffers in physical rings are the core's own.
#[derive(Clone, Debug)]
pub struct Book {
    ledger: Ledger,
    /// The core behind each queue of a set, and the emulating one.
    owners: Vec<Owner>,
    emulator: Owner,
}

impl Book {
    /// What `ledger` says of buffers of the cores `owners`, one behind each queue of a set, and of `emulator`.
    pub fn new(ledger: Ledger, owners: Vec<Owner>, emulator: Owner) -> Book {
        Book { ledger, owners, emulator }
    }

    /// The emulating core, as software whose buffers those in physical rings are.
    pub fn own(&self) -> Range<u16> {
        self.emulator.0..self.emulator.0 + 1
    }

    fn mark(&self) -> u16 {
        Ledger::mark(self.emulator.0.into())
    }

    /// The emulating core has no buffer but those that it [claims](Self::claim) from now on.
    pub fn disclaim<C: Cpu>(&self, cpu: &mut C) {
        self.ledger.clear(cpu, self.mark());
    }

    /// The emulating core has the buffer at `mbuf`, whatever stands there.
    pub fn claim<C: Cpu>(&self, cpu: &mut C, mbuf: Addr) {
        self.ledger.write(cpu, mbuf.0, self.mark());
    }

    /// The buffer at `mbuf` goes to the core of `queue`, and the one at `instead` to the emulating core.
    pub fn exchange<C: Cpu>(&self, cpu: &mut C, mbuf: Addr, queue: u16, instead: Addr) {
        // A core has a queue in each set.
        let owner = self.owners[usize::from(queue) % self.owners.len()];
        self.ledger.write(cpu, mbuf.0, Ledger::mark(owner.0.into()));
        self.claim(cpu, instead);
    }

    /// Whether one of `cores` has the buffer at `mbuf`. What is no buffer is not written down.
    pub fn is_from<C: Cpu>(&self, cpu: &mut C, mbuf: Addr, cores: &Range<u16>) -> bool {
        let holder = self.ledger.holder(cpu, mbuf);
        holder.is_none_or(|mark| cores.contains(&mark.wrapping_sub(1)))
    }
}
