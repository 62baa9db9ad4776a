//! Steering: which queue a frame goes to, by its RSS hash.
//!
//! A receive half may have several sets of queues, each with an indirection table of its own; one
//! register selects the set in use (shRing, section 5.1.5: "two sets of RSS tables"). A table
//! never names a queue that the half does not have.
//!
//! RSS does not find the queue of what comes back to a translated address. A rule on the
//! destination port does, as the filters of today's NICs have it. Nor does it find the queue of the
//! flow that an ICMP error is about: a NIC that looks at what is quoted does. Nor does it find that of
//! fragments, which it knows by addresses only: a NIC that follows flows sends the first one where the
//! whole packet would go, and later ones after it.

use nicforge_wire::headers::{IcmpView, icmp_type, ip_protocol};
use nicforge_wire::rss::{INDIRECTION_ENTRIES, IndirectionTable, Toeplitz};
use nicforge_wire::{Fragment, FrameSummary, PacketId, Quoted};

mod fragments;
#[cfg(test)]
mod tests;

use fragments::FragmentQueues;

/// Which queue frames go to whose destination is one of a run of addresses: each queue has a
/// range of ports. An echo's identifier counts as a port, and an ICMP error goes where answers to
/// the packet that it quotes would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRule {
    /// The first address.
    pub first_address: u32,
    /// How many, counted on from it.
    pub addresses: u32,
    /// The first port of queue 0.
    pub first_port: u16,
    /// Ports of each queue, at least 1.
    pub share: u32,
}

impl PortRule {
    /// The queue of `frame`, counted within a set; `None` if the rule does not say.
    fn queue(&self, frame: &[u8], summary: &FrameSummary) -> Option<u16> {
        let (_, destination) = summary.ipv4_words()?;
        if destination.wrapping_sub(self.first_address) >= self.addresses {
            return None;
        }
        let port = match summary.protocol {
            _ if summary.has_ports() => summary.destination_port,
            ip_protocol::ICMP if summary.has_l4_header => icmp_port(frame.get(usize::from(summary.l4_offset)..)?)?,
            _ => return None,
        };
        let number = u32::from(port.checked_sub(self.first_port)?) / self.share.max(1);
        u16::try_from(number).ok()
    }
}

/// What stands for the destination port in an ICMP message.
fn icmp_port(message: &[u8]) -> Option<u16> {
    match *message.first()? {
        icmp_type::ECHO_REPLY | icmp_type::ECHO_REQUEST => {
            let echo = IcmpView::new(message).ok()?;
            Some(echo.identifier())
        }
        // The quoted packet went out: its source is what answers are sent to.
        _ => Some(Quoted::read(message)?.ports?.0),
    }
}

/// The RSS hash of packets to which the one that an ICMP error quotes belongs as an answer; `None` for
/// everything else.
fn hash_by_quoted(rss: &Toeplitz, frame: &[u8], summary: &FrameSummary) -> Option<u32> {
    if summary.protocol != ip_protocol::ICMP || !summary.has_l4_header {
        return None;
    }
    let quoted = Quoted::read(frame.get(usize::from(summary.l4_offset)..)?)?;
    let (from, to) = (quoted.destination.into(), quoted.source.into());
    match quoted.ports {
        Some((source, destination)) if quoted.has_ports() => Some(rss.hash_ipv4_ports(from, to, destination, source)),
        _ => Some(rss.hash_ipv4(from, to)),
    }
}

/// The indirection tables of a NIC, of which one is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    tables: Vec<IndirectionTable>,
    active: usize,
    queues: u16,
    rule: Option<PortRule>,
    /// ICMP errors go to the queue of the flow that they are about, fragments to that of theirs.
    follows_flows: bool,
    fragments: FragmentQueues,
}

impl Steering {
    /// Tables for `sets` sets of equally many of the `queues` queues (at least 1 of each): set `s`
    /// has those after set `s - 1`, over which its table spreads frames. The first is in use.
    pub fn new(queues: u16, sets: u16) -> Steering {
        let sets = sets.max(1);
        let each = queues / sets;
        let table = |set: u16| IndirectionTable::spread(set * each..(set + 1) * each);
        Steering {
            tables: (0..sets).map(table).collect(),
            active: 0,
            queues,
            rule: None,
            follows_flows: false,
            fragments: FragmentQueues::default(),
        }
    }

    /// The queue of a frame with this hash.
    #[inline]
    pub fn queue(&self, hash: u32) -> u16 {
        self.tables[self.active].queue(hash)
    }

    /// From now on `rule` comes before the tables.
    pub fn set_rule(&mut self, rule: PortRule) {
        self.rule = Some(rule);
    }

    /// From now on an ICMP error goes where packets go that the one it quotes answers, and all
    /// fragments of a packet where it would go as a whole, if the first one comes first.
    pub fn follow_flows(&mut self) {
        self.follows_flows = true;
    }

    /// The queue of `frame`, whose parts are as `summary` says and to which `rss` gave `hash`.
    #[inline(always)]
    pub fn queue_of(&mut self, frame: &[u8], summary: &FrameSummary, rss: &Toeplitz, hash: u32) -> u16 {
        if self.follows_flows || self.rule.is_some() {
            self.queue_of_flow(frame, summary, rss, hash)
        } else {
            self.queue(hash)
        }
    }

    #[inline(never)]
    fn queue_of_flow(&mut self, frame: &[u8], summary: &FrameSummary, rss: &Toeplitz, hash: u32) -> u16 {
        if !self.follows_flows {
            return self.queue_by_rule(frame, summary, hash);
        }
        match summary.fragment {
            Fragment::Whole => {
                let quoted = hash_by_quoted(rss, frame, summary);
                self.queue_by_rule(frame, summary, quoted.unwrap_or(hash))
            }
            kind => match PacketId::of(frame, summary) {
                Some(id) if kind == Fragment::First => {
                    let queue = self.queue_by_rule(frame, summary, rss.hash_as_whole(summary));
                    self.fragments.remember(id, queue % self.queues_per_set());
                    queue
                }
                id => {
                    let first = id.and_then(|id| self.fragments.find(id));
                    // Of the set in use by now.
                    let queue = first.map(|queue| self.active() * self.queues_per_set() + queue);
                    queue.unwrap_or_else(|| self.queue_by_rule(frame, summary, hash))
                }
            },
        }
    }

    #[inline]
    fn queue_by_rule(&self, frame: &[u8], summary: &FrameSummary, hash: u32) -> u16 {
        let by_rule = self.rule.and_then(|rule| {
            let queue = rule.queue(frame, summary)?;
            (queue < self.queues_per_set()).then(|| self.active() * self.queues_per_set() + queue)
        });
        by_rule.unwrap_or_else(|| self.queue(hash))
    }

    /// Queues of each set.
    fn queues_per_set(&self) -> u16 {
        self.queues / self.tables.len() as u16
    }

    /// The set in use.
    pub fn active(&self) -> u16 {
        self.active as u16
    }

    /// A write of steering register `register`: 0 selects the set in use, `1 + 128 * set + entry`
    /// names the queue of an entry. `false` when there is no such register, set or queue; then
    /// nothing changes.
    pub fn write_register(&mut self, register: u32, value: u64) -> bool {
        let Some(slot) = register.checked_sub(1) else {
            let known = value < self.tables.len() as u64;
            if known {
                self.active = value as usize;
            }
            return known;
        };
        let entries = INDIRECTION_ENTRIES as u32;
        match self.tables.get_mut((slot / entries) as usize) {
            Some(table) if value < u64::from(self.queues) => {
                table.set((slot % entries) as usize, value as u16);
                true
            }
            _ => false,
        }
    }
}
