//! Steering: which queue a frame goes to, by its RSS hash.
//!
//! A receive half may have several sets of queues, each with an indirection table of its own; one
//! register selects the set in use (shRing, section 5.1.5: "two sets of RSS tables"). A table
//! never names a queue that the half does not have.
//!
//! RSS does not find the queue of what comes back to a translated address. A rule on the
//! destination port does, as the filters of today's NICs have it. Nor does it find the queue of the
//! flow that an ICMP error is about: a NIC that looks at what is quoted does.

use nicforge_wire::headers::{ICMP_HEADER_LEN, Ipv4View, icmp_type, ip_protocol};
use nicforge_wire::rss::{INDIRECTION_ENTRIES, IndirectionTable, Toeplitz};
use nicforge_wire::{FrameSummary, IpAddresses};

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
        let IpAddresses::V4 { destination, .. } = summary.addresses else {
            return None;
        };
        if destination.to_bits().wrapping_sub(self.first_address) >= self.addresses {
            return None;
        }
        let port = match summary.protocol {
            _ if summary.has_ports() => summary.destination_port,
            ip_protocol::ICMP if summary.has_l4_header => {
                icmp_port(frame.get(usize::from(summary.l4_offset)..)?)?
            }
            _ => return None,
        };
        let number = u32::from(port.checked_sub(self.first_port)?) / self.share.max(1);
        u16::try_from(number).ok()
    }
}

/// What stands for the destination port in an ICMP message.
fn icmp_port(message: &[u8]) -> Option<u16> {
    let word = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    match *message.first()? {
        icmp_type::ECHO_REPLY | icmp_type::ECHO_REQUEST => word(message, 4),
        error if icmp_type::is_error(error) => {
            let (ip, l4) = quoted(message)?;
            // The quoted packet went out: its source is what answers are sent to.
            let source = if ip.protocol() == ip_protocol::ICMP {
                4
            } else {
                0
            };
            word(l4, source)
        }
        _ => None,
    }
}

/// The packet that an ICMP error quotes, and what there is of it behind its IP header.
fn quoted(message: &[u8]) -> Option<(Ipv4View<&[u8]>, &[u8])> {
    let quoted = message.get(ICMP_HEADER_LEN..)?;
    let ip = Ipv4View::new(quoted).ok()?;
    let l4 = quoted.get(ip.header_len()..)?;
    Some((ip, l4))
}

/// The RSS hash of packets to which the one that an ICMP error quotes belongs as an answer; `None` for
/// everything else.
fn hash_by_quoted(rss: &Toeplitz, frame: &[u8], summary: &FrameSummary) -> Option<u32> {
    if summary.protocol != ip_protocol::ICMP || !summary.has_l4_header {
        return None;
    }
    let message = frame.get(usize::from(summary.l4_offset)..)?;
    if !icmp_type::is_error(*message.first()?) {
        return None;
    }
    let (ip, l4) = quoted(message)?;
    let (from, to) = (ip.destination(), ip.source());
    match (ip.protocol(), l4) {
        (ip_protocol::TCP | ip_protocol::UDP, &[a, b, c, d, ..]) if !ip.is_fragment() => {
            let ports = [[c, d], [a, b]].map(u16::from_be_bytes);
            Some(rss.hash_ipv4_ports(from, to, ports[0], ports[1]))
        }
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
    /// ICMP errors go to the queue of the flow that they are about.
    errors_to_flows: bool,
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
            errors_to_flows: false,
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

    /// From now on an ICMP error goes where packets go that the one it quotes answers.
    pub fn follow_flows(&mut self) {
        self.errors_to_flows = true;
    }

    /// The queue of `frame`, whose parts are as `summary` says and to which `rss` gave `hash`.
    #[inline]
    pub fn queue_of(
        &self,
        frame: &[u8],
        summary: &FrameSummary,
        (rss, hash): (&Toeplitz, u32),
    ) -> u16 {
        let hash = match self.errors_to_flows {
            true => hash_by_quoted(rss, frame, summary).unwrap_or(hash),
            false => hash,
        };
        let by_rule = self.rule.and_then(|rule| {
            let each = self.queues / self.tables.len() as u16;
            let queue = rule.queue(frame, summary)?;
            (queue < each).then(|| self.active() * each + queue)
        });
        by_rule.unwrap_or_else(|| self.queue(hash))
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

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: u32 = INDIRECTION_ENTRIES as u32;

    #[test]
    fn each_set_has_queues_of_its_own() {
        let mut steering = Steering::new(6, 2);
        for (set, first) in [(0, 0), (1, 3), (0, 0)] {
            assert!(steering.write_register(0, set));
            assert_eq!(u64::from(steering.active()), set);
            let queues: Vec<u16> = (0..4).map(|hash| steering.queue(hash)).collect();
            assert_eq!(queues, [first, first + 1, first + 2, first]);
        }
    }

    #[test]
    fn an_entry_of_either_table_can_be_changed() {
        let mut steering = Steering::new(4, 2);
        assert!(steering.write_register(1 + 7, 0));
        assert!(steering.write_register(1 + ENTRIES + 7, 1));
        assert_eq!(steering.queue(7), 0);
        assert!(steering.write_register(0, 1));
        assert_eq!((steering.queue(7), steering.queue(9)), (1, 3));
    }

    #[test]
    fn sets_and_queues_that_there_are_not_change_nothing() {
        let mut steering = Steering::new(4, 2);
        let before = steering.clone();
        for value in [4, 5, 1 << 16, (1 << 16) + 1, u64::MAX] {
            assert!(!steering.write_register(0, value));
            assert!(!steering.write_register(1, value));
            assert!(!steering.write_register(ENTRIES + 1, value));
        }
        for register in [1 + 2 * ENTRIES, 1 << 20, u32::MAX] {
            assert!(!steering.write_register(register, 0));
        }
        assert!(!steering.write_register(0, 2));
        assert_eq!(steering, before);
    }

    /// An IPv4 frame to 10.0.0.9 with protocol and L4 bytes.
    fn frame(protocol: u8, l4: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([
            8,
            0,
            0x45,
            0,
            0,
            20 + l4.len() as u8,
            0,
            0,
            0,
            0,
            64,
            protocol,
        ]);
        frame.extend([0, 0, 192, 0, 2, 1, 10, 0, 0, 9]);
        frame.extend(l4);
        frame
    }

    fn steered(steering: &Steering, frame: &[u8]) -> u16 {
        let summary = nicforge_wire::parse_frame(frame).unwrap();
        steering.queue_of(frame, &summary, (&Toeplitz::default(), 3))
    }

    /// What a host behind a balancer sent to a client, and a router on the way could not send on.
    #[test]
    fn an_error_goes_to_the_queue_of_the_flow_that_it_quotes() {
        let by_addresses = Steering::new(16, 1);
        let mut steering = by_addresses.clone();
        steering.follow_flows();
        let rss = Toeplitz::default();
        let queue_of = |steering: &Steering, frame: &[u8]| {
            let summary = nicforge_wire::parse_frame(frame).unwrap();
            steering.queue_of(frame, &summary, (&rss, rss.hash(&summary)))
        };
        let turned = |frame: &[u8]| {
            let mut frame = frame.to_vec();
            for byte in 0..4 {
                frame.swap(26 + byte, 30 + byte);
            }
            frame
        };
        let mut apart = 0;
        for port in 0..200u16 {
            let [high, low] = port.to_be_bytes();
            let asks = frame(17, &[high, low, 0, 53, 0, 8, 0, 0]);
            let answers = turned(&frame(17, &[0, 53, high, low, 0, 8, 0, 0]));
            let error = frame(1, &[&[3, 4, 0, 0, 0, 0, 0, 0], &answers[14..]].concat());
            let queue = queue_of(&steering, &asks);
            assert_eq!(queue_of(&steering, &error), queue);
            apart += u32::from(queue_of(&by_addresses, &error) != queue);
        }
        assert!(apart > 100, "{apart} of 200 would have gone elsewhere");
        // An echo is known by its addresses.
        let asks = frame(1, &[8, 0, 0, 0, 0, 7, 0, 1]);
        let answers = turned(&frame(1, &[0, 0, 0, 0, 0, 7, 0, 1]));
        let error = frame(1, &[&[11, 0, 0, 0, 0, 0, 0, 0], &answers[14..]].concat());
        assert_eq!(queue_of(&steering, &error), queue_of(&steering, &asks));
        // Cut short, it is as any other.
        let mut cut = error.clone();
        cut.truncate(14 + 20 + 8 + 19);
        cut[17] = 20 + 8 + 19;
        queue_of(&steering, &cut);
    }

    #[test]
    fn a_rule_finds_the_queue_of_what_comes_back() {
        let mut steering = Steering::new(4, 1);
        // Ports from 1000: 100 for each queue.
        steering.set_rule(PortRule {
            first_address: 0x0a00_0008,
            addresses: 2,
            first_port: 1000,
            share: 100,
        });
        let udp = |port: u16| {
            let [high, low] = port.to_be_bytes();
            frame(17, &[0, 53, high, low, 0, 8, 0, 0])
        };
        // Queue 3 is that of the hash, for ports of nobody.
        for (port, queue) in [
            (1000, 0),
            (1099, 0),
            (1100, 1),
            (1399, 3),
            (1400, 3),
            (999, 3),
        ] {
            assert_eq!(steered(&steering, &udp(port)), queue, "port {port}");
        }
        let [high, low] = 1250u16.to_be_bytes();
        let echo = frame(1, &[0, 0, 0, 0, high, low, 0, 1]);
        assert_eq!(steered(&steering, &echo), 2);
        let quoted = &frame(17, &[high, low, 0, 53, 0, 8, 0, 0])[14..];
        let error = frame(1, &[&[3, 3, 0, 0, 0, 0, 0, 0], quoted].concat());
        assert_eq!(steered(&steering, &error), 2);
        let mut cut = error.clone();
        cut.truncate(error.len() - 9);
        cut[17] -= 9;
        assert_eq!(steered(&steering, &cut), 3, "too little is quoted");
        let mut other = udp(1250);
        other[33] = 10;
        assert_eq!(steered(&steering, &other), 3, "10.0.0.10 has no rule");
    }
}
