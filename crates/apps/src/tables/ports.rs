//! The external ports of a NAT: which core owns which, and which are free.

use nicforge_platform::{Addr, AddressSpace, Cpu};

/// Ports below this one are well known and not given to flows (RFC 4787, section 4.2.2).
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT;

/// How the ports of every external address are divided over the cores: into equal
/// contiguous ranges, so that a steering rule on the destination port can find the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPartition {
    share: u32,
    cores: u32,
}

impl PortPartition {
    /// For `cores` cores (1 to 64512).
    pub fn new(cores: usize) -> PortPartition {
        let cores = (cores as u32).clamp(1, PORTS);
        PortPartition { share: PORTS / cores, cores }
    }

    /// The first port of `core`, one of those there are.
    pub fn first_port(&self, core: usize) -> u16 {
        self.first(core) as u16
    }

    /// Ports that each core has per address.
    pub fn share(&self) -> u32 {
        self.share
    }

    /// The core that owns the flows behind an external port; `None` for ports of no core.
    pub fn owner_core(&self, port: u16) -> Option<usize> {
        let core = u32::from(port).checked_sub(FIRST_PORT)? / self.share;
        (core < self.cores).then_some(core as usize)
    }

    fn first(&self, core: usize) -> u32 {
        FIRST_PORT + core as u32 * self.share
    }
}

/// An external address with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External {
    /// IPv4 address, host byte order.
    pub address: u32,
    /// Port (or ICMP identifier).
    pub port: u16,
}

/// One core's free external ports: first those never used, then the one given back longest
/// ago, so that a port rests before it is used again.
#[derive(Clone, Debug)]
pub struct PortPool {
    base: u32,
    first: u32,
    share: u32,
    total: u32,
    fresh: u32,
    ring: Addr,
    head: u32,
    freed: u32,
}

impl PortPool {
    /// The share of `core` in the ports of `addresses` consecutive addresses from `base`.
    pub fn allocate(
        space: &mut AddressSpace,
        partition: PortPartition,
        core: usize,
        base: u32,
        addresses: u32,
    ) -> PortPool {
        let total = addresses.saturating_mul(partition.share);
        PortPool {
            base,
            first: partition.first(core),
            share: partition.share,
            total,
            fresh: 0,
            ring: space.data(u64::from(total) * 4, 64),
            head: 0,
            freed: 0,
        }
    }

    /// How many ports are free.
    pub fn free(&self) -> u32 {
        self.total - self.fresh + self.freed
    }

    /// A port for a new flow; `None` when all are taken.
    pub fn take<C: Cpu>(&mut self, cpu: &mut C) -> Option<External> {
        let number = if self.fresh < self.total {
            self.fresh += 1;
            self.fresh - 1
        } else if self.freed > 0 {
            let number = cpu.load(self.ring + u64::from(self.head) * 4);
            self.head = (self.head + 1) % self.total;
            self.freed -= 1;
            number
        } else {
            return None;
        };
        Some(External { address: self.base + number / self.share, port: (self.first + number % self.share) as u16 })
    }

    /// Gives a port back that [`take`](Self::take) handed out.
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, external: External) {
        let number = (external.address - self.base) * self.share + u32::from(external.port) - self.first;
        let tail = (u64::from(self.head) + u64::from(self.freed)) % u64::from(self.total);
        cpu.store(self.ring + tail * 4, number);
        self.freed += 1;
    }
}

#[cfg(test)]
mod tests {
    use nicforge_platform::FlatCpu;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_port_has_one_owner_or_none() {
        for cores in [1, 2, 3, 16, 63] {
            let partition = PortPartition::new(cores);
            for port in 0..=u16::MAX {
                let owners: Vec<usize> = (0..cores)
                    .filter(|&core| {
                        let first = partition.first(core);
                        (first..first + partition.share()).contains(&u32::from(port))
                    })
                    .collect();
                assert!(owners.len() <= 1);
                assert_eq!(partition.owner_core(port), owners.first().copied());
            }
        }
    }

    proptest! {
        #[test]
        fn no_port_is_out_twice_and_all_come_back(takes in prop::collection::vec(any::<bool>(), 1..600)) {
            let mut space = AddressSpace::default();
            let partition = PortPartition::new(6000);
            let mut pool = PortPool::allocate(&mut space, partition, 5, 1 << 24, 7);
            let mut cpu = FlatCpu::new(space.end());
            let total = pool.free();
            let mut out = Vec::new();
            for take in takes {
                if take {
                    match pool.take(&mut cpu) {
                        Some(port) => {
                            prop_assert!(!out.contains(&port));
                            prop_assert_eq!(partition.owner_core(port.port), Some(5));
                            out.push(port);
                        }
                        None => prop_assert_eq!(out.len() as u32, total),
                    }
                } else if !out.is_empty() {
                    let port = out.swap_remove(out.len() / 2);
                    pool.give(&mut cpu, port);
                }
                prop_assert_eq!(pool.free() + out.len() as u32, total);
            }
        }
    }
}
