//! The register words that workers write, and the device looks at.

use nicforge_platform::{Dma, Register};
use nicforge_units::Time;

use super::Device;

/// How long a register may hold what cannot be, before that counts: somebody else may have written there,
/// and whose it is writes it again.
const IMPOSSIBLE_FOR: Time = Time::from_ms(500);

/// A register, with what it held when it was last looked at.
pub(super) struct Watched {
    pub register: Register,
    pub seen: u64,
    /// Since when it holds what cannot be, if it does.
    pub refused: Option<Time>,
}

impl Watched {
    /// As it is in the beginning.
    pub fn new(register: Register) -> Watched {
        Watched { register, seen: 0, refused: None }
    }
}

impl Device {
    /// Takes what was written to registers since the last time; whether there was anything.
    pub(super) fn read_registers(&mut self) -> bool {
        let mut any = false;
        for watched in &mut self.registers {
            let Watched { register, seen, .. } = *watched;
            let value = self.control.register_value(register);
            if value != seen {
                any = true;
                let nic = &mut self.nics[usize::from(register.device)];
                let known = nic.write_register(&mut self.way.cpu.dma, register.index, value);
                watched.seen = value;
                watched.refused = (!known).then(|| self.way.cpu.dma.now());
            }
        }
        any
    }

    /// Which workers have had what cannot be in a register for a while, so that nothing goes on there.
    pub(super) fn impossible(&self) -> Vec<bool> {
        let workers = self.ownership.as_ref().map_or(0, |books| books.workers);
        let mut impossible = vec![false; workers];
        let now = self.way.cpu.dma.now();
        let lasts = |at: Time| now.saturating_sub(at) >= IMPOSSIBLE_FOR;
        for watched in self.registers.iter().filter(|w| w.refused.is_some_and(lasts)) {
            let Register { device, index } = watched.register;
            let rung_by = self.nics[usize::from(device)].rung_by(index);
            let range = usize::from(rung_by.start)..usize::from(rung_by.end);
            for worker in impossible.get_mut(range).into_iter().flatten() {
                *worker = true;
            }
        }
        impossible
    }
}
