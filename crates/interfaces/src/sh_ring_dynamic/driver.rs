//! The driver's half: drains one set of rings before it goes on with the other.

use nicforge_nic::{CompletionReader, DriverHalf, Packet, PoolCache};
use nicforge_platform::{Cpu, Part};
use nicforge_units::Time;

use super::layout::{PRIVATE, SHARED};
use crate::{priv_ring, sh_ring};

/// One core's part in both sets.
#[derive(Debug)]
pub struct Driver {
    private: priv_ring::Driver,
    shared: sh_ring::Driver,
    /// The set that the last packets came from.
    polled: u16,
}

impl Driver {
    /// Looks at the private set first, as steering uses it first.
    pub fn new(private: priv_ring::Driver, shared: sh_ring::Driver) -> Driver {
        Driver { private, shared, polled: PRIVATE }
    }

    fn completions(&self, set: u16) -> &CompletionReader {
        match set {
            PRIVATE => self.private.completions(),
            _ => self.shared.completions(),
        }
    }

    /// How many packets of set `set`, at most `max`, come before all of the other set.
    ///
    /// The NIC publishes in the order in which it stamps. So whatever of the other set is older
    /// than a packet that is here is here as well, and can be looked for *after* that packet was
    /// seen. Nobody has to tell a core that steering has switched, and nothing is taken out of
    /// order however often it does.
    fn ready<C: Cpu>(&self, cpu: &mut C, set: u16, max: usize) -> usize {
        let here = self.completions(set).count_until(cpu, Time::NEVER, max);
        match self.completions(other(set)).next_stamp(cpu) {
            Some(stamp) => self.completions(set).count_until(cpu, stamp, here),
            None => here,
        }
    }
}

fn other(set: u16) -> u16 {
    PRIVATE + SHARED - set
}

impl<C: Cpu> DriverHalf<C> for Driver {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.private.start(cpu, pool);
        self.shared.start(cpu, pool);
    }

    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        let part = cpu.enter(Part::Driver);
        // Without buffers a set's ring would get no packet, and so never be polled.
        self.private.fill_up(cpu, pool);
        self.shared.fill_up(cpu, pool);
        let mut count = self.ready(cpu, self.polled, max);
        if count == 0 {
            count = self.ready(cpu, other(self.polled), max);
            if count > 0 {
                self.polled = other(self.polled);
            }
        }
        cpu.enter(part);
        match self.polled {
            PRIVATE => self.private.rx_burst(cpu, pool, packets, count),
            _ => self.shared.rx_burst(cpu, pool, packets, count),
        }
    }

    fn taken(&self) -> u64 {
        DriverHalf::<C>::taken(&self.private) + DriverHalf::<C>::taken(&self.shared)
    }

    fn buffers_held(&self) -> i64 {
        DriverHalf::<C>::buffers_held(&self.private) + DriverHalf::<C>::buffers_held(&self.shared)
    }
}
