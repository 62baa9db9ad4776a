//! External ports of one IP protocol, a bit each: which are taken.
//!
//! One core's range of every external address lies in a row of words. A port is chosen at random (RFC 6056, section 3.3),
//! and the next free one behind it is taken.

use std::hash::Hasher;

use nicforge_platform::{Addr, AddressSpace, Cpu};
use siphasher::sip::SipHasher13;

use super::{External, PortPartition};

/// Numbers that nobody foresees who does not know the seed.
#[derive(Clone, Copy, Debug)]
pub struct Unforeseen {
    key: u64,
    drawn: u64,
}

impl Unforeseen {
    /// Those of `seed`, for one of several users of it.
    pub fn new(seed: u64, user: u64) -> Unforeseen {
        Unforeseen { key: seed, drawn: user << 48 }
    }

    /// A number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.drawn = self.drawn.wrapping_add(1);
        let mut hasher = SipHasher13::new_with_keys(self.key, !self.key);
        hasher.write_u64(self.drawn);
        ((u128::from(hasher.finish()) * u128::from(limit)) >> 64) as u32
    }
}

/// Which ports a flow may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Any.
    Any,
    /// Even or odd ones, as this port is (RFC 4787, REQ-4).
    Like(u16),
}

/// The ports of one core.
#[derive(Clone, Debug)]
pub struct PortBits {
    base: u32,
    addresses: u32,
    first: u32,
    share: u32,
    words: Addr,
    taken: u32,
}

impl PortBits {
    /// The share of `core` in the ports of `addresses` consecutive addresses from `base`. The memory must be zero.
    pub fn allocate(
        space: &mut AddressSpace,
        partition: PortPartition,
        core: usize,
        base: u32,
        addresses: u32,
    ) -> PortBits {
        let share = partition.share();
        let words = u64::from(addresses) * u64::from(share.div_ceil(64));
        let first = u32::from(partition.first_port(core));
        PortBits { base, addresses, first, share, words: space.data(words * 8, 64), taken: 0 }
    }

    /// How many ports are free.
    pub fn free(&self) -> u32 {
        self.addresses.saturating_mul(self.share) - self.taken
    }

    /// A free port of address number `address` of those there are; `None` when none is free, of that parity.
    pub fn take<C: Cpu>(
        &mut self,
        cpu: &mut C,
        random: &mut Unforeseen,
        address: u32,
        parity: Parity,
    ) -> Option<External> {
        let row = self.share.div_ceil(64);
        let start = random.below(self.share);
        // The first word is looked at twice: from `start` on, and at the end below it.
        for step in 0..=row {
            let word = (start / 64 + step) % row;
            let at = self.words + u64::from(address * row + word) * 8;
            let bits: u64 = cpu.load(at);
            let from = if step == 0 { u64::MAX << (start % 64) } else { u64::MAX };
            let free = !bits & from & self.within(word) & self.like(parity);
            if free != 0 {
                let bit = free.trailing_zeros();
                cpu.store(at, bits | 1 << bit);
                self.taken += 1;
                let port = (self.first + word * 64 + bit) as u16;
                return Some(External { address: self.base + address, port });
            }
        }
        None
    }

    /// Any port of address number `address`, free or not.
    pub fn any(&self, random: &mut Unforeseen, address: u32) -> External {
        External { address: self.base + address, port: (self.first + random.below(self.share)) as u16 }
    }

    /// Takes one port out of use for good; whether it was free and is this core's.
    pub fn reserve<C: Cpu>(&mut self, cpu: &mut C, external: External) -> bool {
        let Some((at, bit)) = self.place(external) else {
            return false;
        };
        let bits: u64 = cpu.load(at);
        cpu.store(at, bits | bit);
        let was_free = bits & bit == 0;
        self.taken += u32::from(was_free);
        was_free
    }

    /// Gives a port back that [`take`](Self::take) handed out.
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, external: External) {
        if let Some((at, bit)) = self.place(external) {
            let bits: u64 = cpu.load(at);
            cpu.store(at, bits & !bit);
            self.taken -= u32::from(bits & bit != 0);
        }
    }

    /// The word of a port of this core, and its bit in it.
    fn place(&self, external: External) -> Option<(Addr, u64)> {
        let address = external.address.checked_sub(self.base).filter(|&number| number < self.addresses)?;
        let port = u32::from(external.port).checked_sub(self.first).filter(|&number| number < self.share)?;
        let word = address * self.share.div_ceil(64) + port / 64;
        Some((self.words + u64::from(word) * 8, 1 << (port % 64)))
    }

    /// The bits of word number `word` of a row that are ports.
    fn within(&self, word: u32) -> u64 {
        let ports = self.share - word * 64;
        if ports >= 64 { u64::MAX } else { (1 << ports) - 1 }
    }

    /// The bits of ports of `parity`. A core's range may begin at an odd port.
    fn like(&self, parity: Parity) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        match parity {
            Parity::Any => u64::MAX,
            Parity::Like(port) if (u32::from(port) ^ self.first) & 1 == 0 => EVEN,
            Parity::Like(_) => !EVEN,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nicforge_platform::FlatCpu;
    use proptest::prelude::*;

    use super::*;

    fn pool(cores: usize, core: usize, addresses: u32) -> (PortBits, FlatCpu) {
        let mut space = AddressSpace::default();
        let pool = PortBits::allocate(&mut space, PortPartition::new(cores), core, 1 << 24, addresses);
        (pool, FlatCpu::new(space.end()))
    }

    #[test]
    fn ports_come_in_no_order() {
        let (mut pool, mut cpu) = pool(1, 0, 1);
        let mut random = Unforeseen::new(7, 0);
        let ports: Vec<u16> =
            (0..1000).map(|_| pool.take(&mut cpu, &mut random, 0, Parity::Any).unwrap().port).collect();
        let steps: BTreeSet<i32> = ports.windows(2).map(|pair| i32::from(pair[1]) - i32::from(pair[0])).collect();
        assert!(steps.len() > 900, "{} different steps", steps.len());
        assert!(ports.iter().filter(|&&port| port < 33_280).count() > 400);
    }

    #[test]
    fn parity_is_kept_while_there_is_a_port_of_it() {
        for core in 0..3 {
            let (mut pool, mut cpu) = pool(3, core, 1);
            let mut random = Unforeseen::new(1, 0);
            let mut odd = 0;
            while let Some(external) = pool.take(&mut cpu, &mut random, 0, Parity::Like(5)) {
                assert_eq!(external.port % 2, 1);
                odd += 1;
            }
            assert_eq!(odd, 10_752);
            assert_eq!(pool.free(), 10_752);
        }
    }

    proptest! {
        #[test]
        fn no_port_is_out_twice_and_all_come_back(takes in prop::collection::vec(any::<bool>(), 1..400), seed: u64) {
            let partition = PortPartition::new(600);
            let (mut pool, mut cpu) = pool(600, 5, 2);
            let mut random = Unforeseen::new(seed, 0);
            let total = pool.free();
            let mut out: Vec<External> = Vec::new();
            for take in takes {
                if take {
                    let address = u32::from(out.len() % 2 == 1);
                    if let Some(external) = pool.take(&mut cpu, &mut random, address, Parity::Any) {
                        prop_assert!(!out.contains(&external));
                        prop_assert_eq!(partition.owner_core(external.port), Some(5));
                        prop_assert_eq!(external.address, (1 << 24) + address);
                        out.push(external);
                    } else {
                        let of_address = out.iter().filter(|external| external.address == (1 << 24) + address);
                        prop_assert_eq!(of_address.count() as u32, partition.share());
                    }
                } else if !out.is_empty() {
                    let external = out.swap_remove(out.len() / 2);
                    pool.give(&mut cpu, external);
                    prop_assert!(pool.reserve(&mut cpu, external));
                    prop_assert!(!pool.reserve(&mut cpu, external));
                    pool.give(&mut cpu, external);
                }
                prop_assert_eq!(pool.free() + out.len() as u32, total);
            }
        }
    }
}
