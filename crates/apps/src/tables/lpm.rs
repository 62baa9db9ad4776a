//! Longest-prefix match: DIR-24-8 for IPv4, and its continuation by strides of 8 for IPv6.
//!
//! ```text
//!  first 24 bits ──► table of 16 Mi words ──┬─► next hop
//!                                           └─► group of 256 words, next 8 bits ──► …
//! ```
//!
//! After Gupta, Lin and McKeown, "Routing lookups in hardware at memory access speeds"
//! (INFOCOM 1998), and DPDK's `rte_lpm` and `rte_lpm6`. The default route stands apart: to
//! write it into every word would touch 64 MiB and change no look-up. Filled once, before
//! the run; there is no update.

use std::collections::BTreeSet;

use nicforge_platform::{Addr, AddressSpace, Cpu};

/// The leading `len` bits of an address, left-aligned in `bits`; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// How many bits count, 0 to 128.
    pub len: u8,
    /// The bits, from the most significant one down.
    pub bits: u128,
}

impl Prefix {
    /// Cuts off what lies beyond `len`.
    pub fn new(bits: u128, len: u8) -> Prefix {
        let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
        Prefix { len, bits: bits & mask }
    }

    fn cut(self, len: u8) -> Prefix {
        Prefix::new(self.bits, len)
    }
}

const FIRST_BITS: u8 = 24;
const STRIDE: u8 = 8;
const GROUP_WORDS: u64 = 1 << STRIDE;
const VALID: u32 = 1 << 31;
const GROUP: u32 = 1 << 30;
const NUMBER: u32 = (1 << 24) - 1;

/// A routing table in modelled memory.
#[derive(Clone, Debug)]
pub struct Lpm {
    first: Addr,
    groups: Addr,
    group_count: u32,
    default: Option<u8>,
}

impl Lpm {
    /// Takes address space for these routes, pairs of prefix and next hop. The memory must be
    /// zero.
    pub fn allocate(space: &mut AddressSpace, routes: &[(Prefix, u8)]) -> Lpm {
        let mut inner = BTreeSet::new();
        for (prefix, _) in routes {
            let mut len = FIRST_BITS;
            while len < prefix.len {
                inner.insert(prefix.cut(len));
                len += STRIDE;
            }
        }
        let group_count = inner.len() as u32;
        Lpm {
            first: space.data(4 << FIRST_BITS, 4096),
            groups: space.data(u64::from(group_count) * GROUP_WORDS * 4, 4096),
            group_count,
            default: routes.iter().rev().find(|(prefix, _)| prefix.len == 0).map(|(_, hop)| *hop),
        }
    }

    /// Writes all routes, the same ones as were given to [`allocate`](Self::allocate). Of
    /// equal prefixes the later one counts.
    pub fn fill<C: Cpu>(&self, cpu: &mut C, routes: &[(Prefix, u8)]) {
        let mut sorted: Vec<&(Prefix, u8)> = routes.iter().collect();
        // From short to long, so that a longer prefix simply overwrites. The sort is stable.
        sorted.sort_by_key(|(prefix, _)| prefix.len);
        let mut groups_used = 0;
        for (prefix, hop) in sorted {
            if prefix.len > 0 {
                self.write(cpu, &mut groups_used, *prefix, *hop);
            }
        }
    }

    fn write<C: Cpu>(&self, cpu: &mut C, groups_used: &mut u32, prefix: Prefix, hop: u8) {
        let mut table = self.first;
        let mut index = (prefix.bits >> (128 - FIRST_BITS)) as u64;
        let mut depth = FIRST_BITS;
        while prefix.len > depth {
            let at = table + index * 4;
            let word: u32 = cpu.load(at);
            let group = if word & GROUP != 0 {
                word & NUMBER
            } else {
                *groups_used += 1;
                self.new_group(cpu, at, word, *groups_used - 1)
            };
            table = self.groups + u64::from(group) * GROUP_WORDS * 4;
            depth += STRIDE;
            index = (prefix.bits >> (128 - depth)) as u64 & (GROUP_WORDS - 1);
        }
        for word in index..index + (1 << (depth - prefix.len)) {
            cpu.store(table + word * 4, VALID | u32::from(hop));
        }
    }

    /// Hangs a new group below the word at `at`; what the word said holds for all of it.
    fn new_group<C: Cpu>(&self, cpu: &mut C, at: Addr, word: u32, group: u32) -> u32 {
        assert!(group < self.group_count, "routes differ from those allocated for");
        let table = self.groups + u64::from(group) * GROUP_WORDS * 4;
        for index in 0..GROUP_WORDS {
            cpu.store(table + index * 4, word);
        }
        cpu.store(at, GROUP | group);
        group
    }

    /// The next hop for an IPv4 address in host byte order.
    #[inline]
    pub fn find4<C: Cpu>(&self, cpu: &mut C, address: u32) -> Option<u8> {
        self.find(cpu, u128::from(address) << 96)
    }

    /// The next hop for an address, left-aligned.
    #[inline]
    pub fn find<C: Cpu>(&self, cpu: &mut C, address: u128) -> Option<u8> {
        let mut word: u32 = cpu.load(self.first + (address >> (128 - FIRST_BITS)) as u64 * 4);
        let mut depth = FIRST_BITS;
        while word & GROUP != 0 && depth < 128 {
            depth += STRIDE;
            let index = (address >> (128 - depth)) as u64 & (GROUP_WORDS - 1);
            let group = u64::from(word & NUMBER);
            word = cpu.load(self.groups + (group * GROUP_WORDS + index) * 4);
        }
        if word & VALID != 0 { Some(word as u8) } else { self.default }
    }
}

#[cfg(test)]
mod tests {
    use nicforge_platform::FlatCpu;
    use proptest::prelude::*;

    use super::*;

    fn longest(routes: &[(Prefix, u8)], address: u128) -> Option<u8> {
        let matching = routes.iter().filter(|(prefix, _)| Prefix::new(address, prefix.len) == *prefix);
        // The last one of the longest: equal prefixes overwrite.
        matching.max_by_key(|(prefix, _)| prefix.len).map(|route| route.1)
    }

    fn filled(routes: &[(Prefix, u8)]) -> (Lpm, FlatCpu) {
        let mut space = AddressSpace::default();
        let lpm = Lpm::allocate(&mut space, routes);
        let mut cpu = FlatCpu::new(space.end());
        lpm.fill(&mut cpu, routes);
        (lpm, cpu)
    }

    // Addresses out of few values per byte, so that prefixes nest and meet.
    fn address() -> impl Strategy<Value = u128> {
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 128, 255]), 16)
            .prop_map(|bytes| u128::from_be_bytes(bytes.try_into().unwrap()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn finds_what_a_linear_search_finds(
            routes in prop::collection::vec((address(), 0u8..=128, any::<u8>()), 0..40),
            others in prop::collection::vec(address(), 20),
        ) {
            let routes: Vec<(Prefix, u8)> = routes
                .into_iter()
                .map(|(bits, len, hop)| (Prefix::new(bits, len.max(7)), hop))
                .collect();
            let (lpm, mut cpu) = filled(&routes);
            for address in others.into_iter().chain(routes.iter().map(|route| route.0.bits)) {
                prop_assert_eq!(lpm.find(&mut cpu, address), longest(&routes, address));
            }
        }
    }

    #[test]
    fn the_default_route_is_the_last_resort() {
        let ten = Prefix::new(10 << 120, 8);
        let (lpm, mut cpu) = filled(&[(ten, 1), (Prefix::new(0, 0), 2)]);
        assert_eq!(lpm.find4(&mut cpu, 10 << 24 | 5), Some(1));
        assert_eq!(lpm.find4(&mut cpu, 11 << 24), Some(2));
        let (lpm, mut cpu) = filled(&[(ten, 1)]);
        assert_eq!(lpm.find4(&mut cpu, 11 << 24), None);
    }
}
