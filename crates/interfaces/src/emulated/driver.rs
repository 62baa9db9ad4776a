//! The driver's half: that of the wrapped interface. It also fills physical rings at first.

use nicforge_nic::{DriverHalf, Packet, PoolCache};
use nicforge_platform::Cpu;

use super::layout::Physical;

/// One core's receive queue of the emulated NIC.
pub struct Driver<C: Cpu> {
    inner: Box<dyn DriverHalf<C>>,
    /// The physical rings that this core fills: at most one for each set of queues.
    fills: Vec<Physical>,
    /// Buffers that it put there; as many stay there.
    filled: i64,
}

impl<C: Cpu> Driver<C> {
    /// The driver `inner`, which fills `fills` before it begins.
    pub fn new(inner: Box<dyn DriverHalf<C>>, fills: Vec<Physical>) -> Driver<C> {
        Driver { inner, fills, filled: 0 }
    }
}

impl<C: Cpu> DriverHalf<C> for Driver<C> {
    fn start(&mut self, cpu: &mut C, pool: &mut PoolCache) {
        self.inner.start(cpu, pool);
        for physical in std::mem::take(&mut self.fills) {
            let first = physical.ring.first;
            let mut tail = first;
            while tail < first + physical.ring.entries
                && let Some(mbuf) = pool.take(cpu)
            {
                physical.ring.post(cpu, tail, mbuf);
                tail += 1;
            }
            self.filled += (tail - first) as i64;
            cpu.mmio_write(physical.doorbell, tail);
        }
    }

    #[inline]
    fn rx_burst(&mut self, cpu: &mut C, pool: &mut PoolCache, packets: &mut Vec<Packet>, max: usize) {
        self.inner.rx_burst(cpu, pool, packets, max);
    }

    fn taken(&self) -> u64 {
        self.inner.taken()
    }

    fn buffers_held(&self) -> i64 {
        self.inner.buffers_held() + self.filled
    }
}
