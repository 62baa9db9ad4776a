//! Later fragments have no ports: they follow the first one of their packet.
//!
//! A small direct-mapped table per core remembers what the application found out about each first
//! fragment, such as the address that replaced its own. A later fragment that comes before its first
//! one, or whose line was taken over by another packet, is not found. That the NIC brings all of them
//! to one core is its business ([`nicforge_nic::Steering`]).

use bytemuck::{Pod, Zeroable};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::{CACHE_LINE_BYTES, Time};
use nicforge_wire::PacketId;

use crate::tables::hash2;

const LINES: u64 = 1024;

/// A packet's name in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Key {
    addresses: u64,
    /// Identification, in use (1), protocol.
    rest: u64,
}

impl From<PacketId> for Key {
    fn from(id: PacketId) -> Key {
        Key { addresses: id.addresses, rest: u64::from(id.identification) << 16 | 1 << 8 | u64::from(id.protocol) }
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Line {
    key: Key,
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
        Fragments { lines: space.data(LINES * CACHE_LINE_BYTES, CACHE_LINE_BYTES), timeout }
    }

    /// Remembers what was found out about a first fragment.
    pub fn remember<C: Cpu>(&self, cpu: &mut C, id: PacketId, value: u64) {
        let key = Key::from(id);
        let line = Line { key, seen: cpu.now().as_ps(), value, unused: [0; 4] };
        cpu.store(self.at(&key), line);
    }

    /// The same for a later fragment, while the first one is not too long ago.
    pub fn find<C: Cpu>(&self, cpu: &mut C, id: PacketId) -> Option<u64> {
        let key = Key::from(id);
        let line: Line = cpu.load(self.at(&key));
        let age = cpu.now().saturating_sub(Time::from_ps(line.seen));
        (line.key == key && age < self.timeout).then_some(line.value)
    }

    fn at(&self, key: &Key) -> Addr {
        self.lines + hash2(key.addresses, key.rest) % LINES * CACHE_LINE_BYTES
    }
}
