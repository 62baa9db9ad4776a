//! Rules on the destination port, for what comes back to a translated address.

use std::net::Ipv4Addr;

use nicforge_platform::Addr;
use nicforge_wire::headers::{IcmpView, icmp_type, ip_protocol};
use nicforge_wire::{FrameSummary, Quoted};

/// Which queue frames go to whose destination is one of a run of addresses, by their destination port. A query's
/// identifier counts as a port, and an ICMP error goes where answers to the packet that it quotes would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRule {
    /// The first address.
    pub first_address: u32,
    /// How many, counted on from it.
    pub addresses: u32,
    /// What says which queue has a port.
    pub ports: PortQueues,
}

/// What says which queue has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortQueues {
    /// Each queue has a range, the same of every address and protocol.
    Ranges {
        /// The first port of queue 0.
        first_port: u16,
        /// Ports of each queue, at least 1.
        share: u32,
    },
    /// A table in host memory, which software changes while traffic runs.
    Owned(OwnedPorts),
}

/// Ports by owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedPorts {
    /// The table.
    pub owners: PortOwners,
    /// The core that serves queue 0.
    pub first_core: usize,
    /// Ports of the first address that belong to an endpoint inside, whatever the table says: what comes for them goes
    /// where packets from that endpoint go.
    pub forwards: Vec<ForwardedPort>,
}

/// A port that belongs to an endpoint inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardedPort {
    /// The IP protocol.
    pub protocol: u8,
    /// The port.
    pub port: u16,
    /// The endpoint's address and port.
    pub inside: (Ipv4Addr, u16),
}

/// A table of 16 bits for each port of TCP, UDP and ICMP queries of each address: the number of the core that owns it,
/// plus 1; 0 for nobody. A NIC of today keeps such tables in host memory, too, and caches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOwners {
    /// Where it begins.
    pub at: Addr,
    /// How many addresses it has.
    pub addresses: u32,
}

/// Where an owner is: in the word at `at`, from bit `shift` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerPlace {
    /// The word.
    pub at: Addr,
    /// The lowest of its bits.
    pub shift: u32,
}

impl OwnerPlace {
    /// The owner that `word` names, the word at this place.
    pub fn owner(&self, word: u64) -> Option<usize> {
        usize::from((word >> self.shift) as u16).checked_sub(1)
    }
}

impl PortOwners {
    /// Ports below this one have no owner: they are well known, and not given to flows (RFC 4787, section 4.2.2).
    pub const FIRST_PORT: u16 = 1024;
    /// Ports of each protocol and address.
    pub const PORTS: u32 = 65_536 - Self::FIRST_PORT as u32;
    /// Protocols with ports of their own.
    pub const PROTOCOLS: usize = 3;

    /// Bytes of a table for so many addresses.
    pub fn bytes(addresses: u32) -> u64 {
        u64::from(addresses) * Self::PROTOCOLS as u64 * u64::from(Self::PORTS) * 2
    }

    /// The number of an IP protocol that has ports, or identifiers that stand for them.
    pub fn protocol(protocol: u8) -> Option<usize> {
        [ip_protocol::TCP, ip_protocol::UDP, ip_protocol::ICMP].iter().position(|&known| known == protocol)
    }

    /// Where the owner of a port of protocol number `protocol` of address number `address` is.
    pub fn place(&self, protocol: usize, address: u32, port: u16) -> Option<OwnerPlace> {
        let port = u64::from(port.checked_sub(Self::FIRST_PORT)?);
        if protocol >= Self::PROTOCOLS || address >= self.addresses {
            return None;
        }
        let row = protocol as u64 * u64::from(self.addresses) + u64::from(address);
        let number = row * u64::from(Self::PORTS) + port;
        Some(OwnerPlace { at: self.at + number / 4 * 8, shift: (number % 4) as u32 * 16 })
    }
}

/// The outer end of a translated flow, as a packet from outside names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OuterEnd {
    protocol: u8,
    /// The number of the address.
    address: u32,
    port: u16,
}

impl PortRule {
    /// The end that `frame` is for; `None` if it is for no address of the rule, or nothing stands for its port.
    pub(super) fn outer_end(&self, frame: &[u8], summary: &FrameSummary) -> Option<OuterEnd> {
        let (_, destination) = summary.ipv4_words()?;
        let address = destination.wrapping_sub(self.first_address);
        if address >= self.addresses {
            return None;
        }
        if summary.has_ports() {
            return Some(OuterEnd { protocol: summary.protocol, address, port: summary.destination_port });
        }
        if summary.protocol != ip_protocol::ICMP || !summary.has_l4_header {
            return None;
        }
        let message = frame.get(usize::from(summary.l4_offset)..)?;
        let message_type = *message.first()?;
        if icmp_type::is_query(message_type) || icmp_type::is_answer(message_type) {
            let port = IcmpView::new(message).ok()?.identifier();
            return Some(OuterEnd { protocol: summary.protocol, address, port });
        }
        // The quoted packet went out: its source is what answers are sent to.
        let quoted = Quoted::read(message)?;
        Some(OuterEnd { protocol: quoted.protocol, address, port: quoted.ports?.0 })
    }

    /// The endpoint inside that the port of `end` belongs to, if it is forwarded.
    pub(super) fn forward_of(&self, end: OuterEnd) -> Option<(Ipv4Addr, u16)> {
        let PortQueues::Owned(OwnedPorts { forwards, .. }) = &self.ports else {
            return None;
        };
        let is_it = |forward: &&ForwardedPort| (forward.protocol, forward.port) == (end.protocol, end.port);
        forwards.iter().find(is_it).filter(|_| end.address == 0).map(|forward| forward.inside)
    }

    /// The number of the queue that has `end`; `read` gives words of host memory.
    pub(super) fn number(&self, end: OuterEnd, read: impl FnOnce(Addr) -> u64) -> Option<u16> {
        let number = match &self.ports {
            PortQueues::Ranges { first_port, share } => u32::from(end.port.checked_sub(*first_port)?) / (*share).max(1),
            PortQueues::Owned(OwnedPorts { owners, first_core, .. }) => {
                let place = owners.place(PortOwners::protocol(end.protocol)?, end.address, end.port)?;
                place.owner(read(place.at))?.checked_sub(*first_core)? as u32
            }
        };
        u16::try_from(number).ok()
    }

    /// The end of a packet's flow that is not translated yet: its source with the port or what stands for it. `None` of a
    /// packet to an address that the rule names, and where there is no port.
    pub(super) fn inner_end(&self, frame: &[u8], summary: &FrameSummary) -> Option<(Ipv4Addr, u16)> {
        let (source, destination) = summary.ipv4_words()?;
        if destination.wrapping_sub(self.first_address) < self.addresses {
            return None;
        }
        if summary.has_ports() {
            return Some((source.into(), summary.source_port));
        }
        if summary.protocol != ip_protocol::ICMP || !summary.has_l4_header {
            return None;
        }
        let message = frame.get(usize::from(summary.l4_offset)..)?;
        let icmp = IcmpView::new(message).ok()?;
        if icmp_type::is_error(icmp.message_type()) {
            // The packet that it is about went the other way.
            let quoted = Quoted::read(message)?;
            return Some((quoted.destination.into(), quoted.ports?.1));
        }
        Some((source.into(), icmp.identifier()))
    }
}
