//! External ports that all cores of a NAT take from, for each of TCP, UDP and ICMP: which are taken, a bit each, and who
//! owns them ([`PortOwners`]), which NICs look up.
//!
//! A port is chosen at random (RFC 6056, section 3.3), and the next free one behind it is taken. Nothing is locked, so a
//! core that dies holds up no other: a core sets a port's bit, then names itself as the owner. The core that replaces a dead one
//! frees what that owned. A core that dies between the two leaves one port behind, for as long as the tables live.
//!
//! Each core keeps some ports for itself, so that none finds all taken by others: it counts those beyond in one word, and
//! takes no more of them than there are.

use std::hash::Hasher;

use nicforge_nic::PortOwners;
use nicforge_platform::{Addr, AddressSpace, Atomic, Cpu};
use siphasher::sip::SipHasher13;

use super::External;

/// Random numbers that only the seed gives away.
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

impl Parity {
    /// The ports of this parity in a word of bits, which begins with an even one.
    fn bits(self) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        match self {
            Parity::Any => u64::MAX,
            Parity::Like(port) if port % 2 == 0 => EVEN,
            Parity::Like(_) => !EVEN,
        }
    }
}

/// How far a port is looked for that this core has already.
const NEAR: u32 = 1024;

/// Words of a row: the ports of one protocol of one address, a bit each.
const ROW: u32 = PortOwners::PORTS / 64;

/// External ports of all cores, all free while the memory is zero.
#[derive(Clone, Debug)]
pub struct SharedPorts {
    base: u32,
    owners: PortOwners,
    /// Rows of bits, by protocol and address.
    bits: Addr,
    /// How many ports of each protocol cores took beyond those that they keep, a line each.
    lent: Addr,
}

impl SharedPorts {
    /// The ports of `addresses` consecutive addresses from `base`.
    pub fn allocate(space: &mut AddressSpace, base: u32, addresses: u32) -> SharedPorts {
        let rows = PortOwners::PROTOCOLS as u64 * u64::from(addresses);
        SharedPorts {
            base,
            owners: PortOwners { at: space.data(PortOwners::bytes(addresses), 64), addresses },
            bits: space.data(rows * u64::from(ROW) * 8, 64),
            lent: space.data(PortOwners::PROTOCOLS as u64 * 64, 64),
        }
    }

    /// The table of which core owns each port.
    pub fn owners(&self) -> PortOwners {
        self.owners
    }

    /// How many addresses there are.
    pub fn addresses(&self) -> u32 {
        self.owners.addresses
    }
}

/// The ports as one core has them.
#[derive(Clone, Debug)]
pub struct CorePorts {
    shared: SharedPorts,
    core: usize,
    /// Ports of each protocol that no other core takes.
    keeps: u32,
    /// Ports of each protocol that no core keeps.
    lends: u64,
    taken: [u32; PortOwners::PROTOCOLS],
}

impl CorePorts {
    /// Those of core `core` of `cores`, which keeps so many per cent of its even part for itself.
    pub fn new(shared: SharedPorts, core: usize, cores: usize, percent: u32) -> CorePorts {
        let all = u64::from(shared.addresses()) * u64::from(PortOwners::PORTS);
        let keeps = all / cores.max(1) as u64 * u64::from(percent) / 100;
        let lends = all - keeps * cores as u64;
        CorePorts { shared, core, keeps: keeps as u32, lends, taken: [0; PortOwners::PROTOCOLS] }
    }

    /// Frees what a core that is no more owned in this one's place.
    pub fn start<C: Cpu>(&mut self, cpu: &mut C) {
        for protocol in 0..PortOwners::PROTOCOLS {
            let mut left = 0;
            for (address, port) in self.owned(cpu, protocol) {
                self.free(cpu, protocol, address, port);
                left += 1;
            }
            let beyond = u64::from(u32::saturating_sub(left, self.keeps));
            cpu.atomic(self.lent(protocol), Atomic::Add(beyond.wrapping_neg()));
        }
    }

    /// All ports that this core owns, by number of their address.
    fn owned<C: Cpu>(&self, cpu: &mut C, protocol: usize) -> Vec<(u32, u16)> {
        let mut owned = Vec::new();
        for word in 0..self.shared.addresses() * ROW {
            if cpu.acquire(self.word(protocol, 0, word)) == 0 {
                continue;
            }
            let (address, first) = (word / ROW, PortOwners::FIRST_PORT + (word % ROW * 64) as u16);
            let ports = (0..64).map(|bit| first + bit);
            owned.extend(ports.filter(|&port| self.owns(cpu, protocol, address, port)).map(|port| (address, port)));
        }
        owned
    }

    fn owns<C: Cpu>(&self, cpu: &mut C, protocol: usize, address: u32, port: u16) -> bool {
        let place = self.shared.owners.place(protocol, address, port);
        place.is_some_and(|place| place.owner(cpu.acquire(place.at)) == Some(self.core))
    }

    /// Ports of each protocol that this core has taken.
    pub fn taken(&self) -> [u32; PortOwners::PROTOCOLS] {
        self.taken
    }

    /// A free port of `protocol`: of address number `wanted`, or else of one behind it, of the first of `parities` that
    /// there is. `None` when there is none that this core may have.
    pub fn take<C: Cpu>(
        &mut self,
        cpu: &mut C,
        random: &mut Unforeseen,
        protocol: u8,
        wanted: u32,
        parities: &[Parity],
    ) -> Option<External> {
        let protocol = PortOwners::protocol(protocol)?;
        let borrows = self.taken[protocol] >= self.keeps;
        if borrows && cpu.atomic(self.lent(protocol), Atomic::Add(1)) >= self.lends {
            cpu.atomic(self.lent(protocol), Atomic::Add(u64::MAX));
            return None;
        }
        let addresses = self.shared.addresses();
        for step in 0..addresses {
            let address = (wanted + step) % addresses;
            for &parity in parities {
                let Some(port) = self.search(cpu, random, protocol, address, parity) else { continue };
                if let Some(place) = self.shared.owners.place(protocol, address, port) {
                    cpu.atomic(place.at, Atomic::Or((self.core as u64 + 1) << place.shift));
                }
                self.taken[protocol] += 1;
                return Some(External { address: self.shared.base + address, port });
            }
        }
        if borrows {
            cpu.atomic(self.lent(protocol), Atomic::Add(u64::MAX));
        }
        None
    }

    /// Sets the bit of a free port.
    fn search<C: Cpu>(
        &self,
        cpu: &mut C,
        random: &mut Unforeseen,
        protocol: usize,
        address: u32,
        parity: Parity,
    ) -> Option<u16> {
        let start = random.below(PortOwners::PORTS);
        // The first word is looked at twice: from `start` on, and at the end below it.
        for step in 0..=ROW {
            let word = (start / 64 + step) % ROW;
            let at = self.word(protocol, address, word);
            let from = if step == 0 { u64::MAX << (start % 64) } else { u64::MAX };
            loop {
                let free = !cpu.acquire(at) & from & parity.bits();
                if free == 0 {
                    break;
                }
                let bit = free.trailing_zeros();
                // Another core may have been first.
                if cpu.atomic(at, Atomic::Or(1 << bit)) & 1 << bit == 0 {
                    return Some(PortOwners::FIRST_PORT + (word * 64 + bit) as u16);
                }
            }
        }
        None
    }

    /// A port of address number `address` that this core owns, in use or not: the first of the next 1024 behind a random one.
    pub fn any<C: Cpu>(&self, cpu: &mut C, random: &mut Unforeseen, protocol: u8, address: u32) -> Option<External> {
        let protocol = PortOwners::protocol(protocol)?;
        let start = random.below(PortOwners::PORTS);
        let port = |step| PortOwners::FIRST_PORT + ((start + step) % PortOwners::PORTS) as u16;
        let found = (0..NEAR).map(port).find(|&port| self.owns(cpu, protocol, address, port))?;
        Some(External { address: self.shared.base + address, port: found })
    }

    /// Takes a port out of use for good.
    pub fn reserve<C: Cpu>(&self, cpu: &mut C, protocol: u8, external: External) {
        if let Some((protocol, address)) = self.numbers(protocol, external)
            && let Some((at, bit)) = self.bit(protocol, address, external.port)
        {
            cpu.atomic(at, Atomic::Or(bit));
        }
    }

    /// Gives a port back that [`take`](Self::take) handed out.
    pub fn give<C: Cpu>(&mut self, cpu: &mut C, protocol: u8, external: External) {
        let Some((protocol, address)) = self.numbers(protocol, external) else {
            return;
        };
        if !self.owns(cpu, protocol, address, external.port) {
            return;
        }
        self.free(cpu, protocol, address, external.port);
        self.taken[protocol] -= 1;
        if self.taken[protocol] >= self.keeps {
            cpu.atomic(self.lent(protocol), Atomic::Add(u64::MAX));
        }
    }

    /// Takes the owner off a port, and then frees it.
    fn free<C: Cpu>(&self, cpu: &mut C, protocol: usize, address: u32, port: u16) {
        if let Some(place) = self.shared.owners.place(protocol, address, port) {
            cpu.atomic(place.at, Atomic::And(!(0xffff << place.shift)));
        }
        if let Some((at, bit)) = self.bit(protocol, address, port) {
            cpu.atomic(at, Atomic::And(!bit));
        }
    }

    /// The numbers of a protocol and of an address.
    fn numbers(&self, protocol: u8, external: External) -> Option<(usize, u32)> {
        let address = external.address.checked_sub(self.shared.base)?;
        Some((PortOwners::protocol(protocol)?, address)).filter(|_| address < self.shared.addresses())
    }

    /// The word of a port, and its bit in it.
    fn bit(&self, protocol: usize, address: u32, port: u16) -> Option<(Addr, u64)> {
        let port = u32::from(port.checked_sub(PortOwners::FIRST_PORT)?);
        Some((self.word(protocol, address, port / 64), 1 << (port % 64)))
    }

    /// Word number `word` from the beginning of a row on.
    fn word(&self, protocol: usize, address: u32, word: u32) -> Addr {
        let row = protocol as u64 * u64::from(self.shared.addresses()) + u64::from(address);
        self.shared.bits + (row * u64::from(ROW) + u64::from(word)) * 8
    }

    fn lent(&self, protocol: usize) -> Addr {
        self.shared.lent + protocol as u64 * 64
    }
}

#[cfg(test)]
mod tests;
