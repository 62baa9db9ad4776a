//! Later fragments have no ports: they follow the first one of their packet.
//!
//! A small direct-mapped table per core remembers what the application found out about each first
//! fragment, such as the address that replaced its own. A later fragment that comes before its first
//! one, or whose line was taken over by another packet, is not found. That the NIC brings all of them
//! to one core is its business ([`nicforge_nic::Steering`]).

use bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::{CACHE_LINE_BYTES, Time};

use crate::tables::hash2;

const LINES: u64 = 1024;

/// What all fragments of a packet have in common (RFC 791, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FragmentKey {
    addresses: u64,
    /// Identification, in use (1), protocol.
    rest: u64,
}

impl FragmentKey {
    /// From source and destination as they arrive, identification and protocol.
    pub fn new(source: u32, destination: u32, identification: u16, protocol: u8) -> FragmentKey {
        FragmentKey {
            addresses: u64::from(source) << 32 | u64::from(destination),
            rest: u64::from(identification) << 16 | 1 << 8 | u64::from(protocol),
        }
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Line {
    key: FragmentKey,
    seen: u64,
    value: u64,
    unused: [u64; 4],
}

/// The fragment table of one core.
#[derive(Clone, Copy, Debug)]
pub struct Fragments {
    lines: Addr,
    timeout: Time,
}

impl Fragments {
    /// Takes address space.
    pub fn allocate(space: &mut AddressSpace, timeout: Time) -> Fragments {
        Fragments {
            lines: space.data(LINES * CACHE_LINE_BYTES, CACHE_LINE_BYTES),
            timeout,
        }
    }

    /// Remembers what was found out about a first fragment.
    pub fn remember<C: Cpu>(&self, cpu: &mut C, key: FragmentKey, value: u32) {
        let line = Line {
            key,
            seen: cpu.now().as_ps(),
            value: u64::from(value),
            unused: [0; 4],
        };
        cpu.store(self.at(&key), line);
    }

    /// The same for a later fragment, while the first one is not too long ago.
    pub fn find<C: Cpu>(&self, cpu: &mut C, key: FragmentKey) -> Option<u32> {
        let line: Line = cpu.load(self.at(&key));
        let age = cpu.now().saturating_sub(Time::from_ps(line.seen));
        (line.key == key && age < self.timeout).then_some(line.value as u32)
    }

    fn at(&self, key: &FragmentKey) -> Addr {
        self.lines + hash2(key.addresses, key.rest) % LINES * CACHE_LINE_BYTES
    }
}
