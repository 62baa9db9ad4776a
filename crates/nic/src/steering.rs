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

use std::net::Ipv4Addr;

use nicforge_platform::Dma;
use nicforge_units::Time;
use nicforge_wire::headers::ip_protocol;
use nicforge_wire::rss::{INDIRECTION_ENTRIES, IndirectionTable, Toeplitz};
use nicforge_wire::{Fragment, FrameSummary, PacketId, Quoted};

mod fragments;
mod rule;
#[cfg(test)]
mod tests;

use fragments::FragmentQueues;
pub use rule::{ForwardedPort, OwnedPorts, PortOwners, PortQueues, PortRule};

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
    /// Packets that leave the rule's network go by where they come from alone.
    by_source: bool,
    fragments: FragmentQueues,
    /// When the rule's table in host memory had been read for the frame before.
    known_at: Time,
    /// Queues that nobody serves at the time; empty where each is served.
    away: Vec<bool>,
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
            by_source: false,
            fragments: FragmentQueues::default(),
            known_at: Time::ZERO,
            away: Vec::new(),
        }
    }

    /// The queue of a frame with this hash.
    #[inline]
    pub fn queue(&self, hash: u32) -> u16 {
        let queue = self.tables[self.active].queue(hash);
        if self.away.is_empty() { queue } else { self.served(queue, hash) }
    }

    /// `queue`, or one in its place if nobody serves it: always the same for a hash while the same queues are served.
    #[cold]
    fn served(&self, queue: u16, hash: u32) -> u16 {
        let is_away = |queue: &u16| self.away.get(usize::from(*queue)).copied().unwrap_or(false);
        if !is_away(&queue) {
            return queue;
        }
        let (first, each) = (self.active() * self.queues_per_set(), self.queues_per_set());
        let served: Vec<u16> = (first..first + each).filter(|queue| !is_away(queue)).collect();
        // Bits that the indirection table does not use.
        let number = (hash / INDIRECTION_ENTRIES as u32) as usize % served.len().max(1);
        served.get(number).copied().unwrap_or(queue)
    }

    /// From now on frames that the tables send to `queue` are spread over the others, or no longer. Queues that are named
    /// by a rule stay.
    pub fn set_away(&mut self, queue: u16, away: bool) {
        self.away.resize(usize::from(self.queues), false);
        if let Some(state) = self.away.get_mut(usize::from(queue)) {
            *state = away;
        }
        if !self.away.contains(&true) {
            self.away.clear();
        }
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

    /// From now on packets to addresses that the rule does not name go by their source and its port alone, so that all
    /// flows of an endpoint have one queue; so do ICMP errors about packets to that endpoint.
    pub fn by_source(&mut self) {
        self.by_source = true;
    }

    /// The queue of `frame`, whose parts are as `summary` says and to which `rss` gave `hash`. A rule's table is read by
    /// `dma`, without waiting: see [`known_at`](Self::known_at).
    #[inline(always)]
    pub fn queue_of<D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &[u8],
        summary: &FrameSummary,
        rss: &Toeplitz,
        hash: u32,
    ) -> u16 {
        if self.follows_flows || self.rule.is_some() {
            self.queue_of_flow(dma, frame, summary, rss, hash)
        } else {
            self.queue(hash)
        }
    }

    /// When the queue of the last frame was known; zero while no table had to be read.
    #[inline(always)]
    pub fn known_at(&self) -> Time {
        self.known_at
    }

    #[inline(never)]
    fn queue_of_flow<D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &[u8],
        summary: &FrameSummary,
        rss: &Toeplitz,
        hash: u32,
    ) -> u16 {
        if !self.follows_flows {
            return self.queue_by_rule(dma, frame, summary, rss, hash);
        }
        match summary.fragment {
            Fragment::Whole => {
                let quoted = hash_by_quoted(rss, frame, summary);
                self.queue_by_rule(dma, frame, summary, rss, quoted.unwrap_or(hash))
            }
            kind => match PacketId::of(frame, summary) {
                Some(id) if kind == Fragment::First => {
                    let queue = self.queue_by_rule(dma, frame, summary, rss, rss.hash_as_whole(summary));
                    self.fragments.remember(id, queue % self.queues_per_set());
                    queue
                }
                id => {
                    let first = id.and_then(|id| self.fragments.find(id));
                    // Of the set in use by now.
                    let queue = first.map(|queue| self.active() * self.queues_per_set() + queue);
                    queue.unwrap_or_else(|| self.queue_by_rule(dma, frame, summary, rss, hash))
                }
            },
        }
    }

    #[inline]
    fn queue_by_rule<D: Dma>(
        &mut self,
        dma: &mut D,
        frame: &[u8],
        summary: &FrameSummary,
        rss: &Toeplitz,
        hash: u32,
    ) -> u16 {
        let nowhere = Ipv4Addr::UNSPECIFIED;
        let by_endpoint = |(from, port)| rss.hash_ipv4_ports(from, nowhere, port, 0);
        let Some(rule) = &self.rule else {
            return self.queue(hash);
        };
        let Some(end) = rule.outer_end(frame, summary) else {
            let endpoint = if self.by_source { rule.inner_end(frame, summary) } else { None };
            return self.queue(endpoint.map_or(hash, by_endpoint));
        };
        if let Some(inside) = rule.forward_of(end) {
            return self.queue(by_endpoint(inside));
        }
        let number = rule.number(end, |at| {
            let mut word = [0; 8];
            self.known_at = dma.read_ahead(at, &mut word);
            u64::from_ne_bytes(word)
        });
        match number.filter(|&number| number < self.queues_per_set()) {
            Some(number) => self.active() * self.queues_per_set() + number,
            None => self.queue(hash),
        }
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
