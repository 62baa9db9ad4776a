//! `ids`: intrusion detection as Snort does it (FlexNIC paper, section 5). Rules of a port make up a port group, which is an
//! automaton; a packet meets the groups of its ports and that of any port.
//!
//! ```text
//!  rules.rs: file, or made up ─► groups by protocol and port ─► automaton.rs: one of each, for each core
//!  packet ─► tables of ports ─► its groups (a flow group) ─► scan ─► alerts
//!  partition.rs: flow groups to cores
//! ```
//!
//! Each core is a process of its own with automata of its own, so steering decides which of them its cache holds. Frames are forwarded
//! to the peer, whatever was found in them.
//!
//! Left out: what spans packets (streams are not put together), and options of rules beyond a pattern.

mod automaton;
mod partition;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use nicforge_nic::{Packet, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_wire::headers::ip_protocol;
use nicforge_wire::parse_headers;

use crate::{AppConfig, AppError, AppKind, Application, Place, PortMap, SharedTables};
use automaton::Automaton;

pub use partition::greedy;
pub use rules::{Ports, Rule, RuleError, letter, made, made_port, parse};

/// Ports.
const PORTS: u64 = 1 << 16;
/// Protocols and directions: from and to, of TCP and of UDP.
const TABLES: u64 = 4;
/// The seed of made-up rules: the same in every run, as captures have their patterns.
pub const RULES_SEED: u64 = 38;

options! {
    /// Intrusion detection.
    pub struct IdsOptions {
        /// Rules, a line each; without a file they are made up.
        ids_rules: Option<String> = None, "", Allowed::File, default "made up";
        /// Services that made-up rules are about.
        ids_services: u32 = 32, "services", Allowed::Whole(1, 1024), source "FlexNIC paper, section 5.1: 30 to 100 flow groups";
        /// Made-up rules for each direction of a service.
        ids_service_rules: u32 = 60, "rules", Allowed::Whole(1, 10_000), source "FlexNIC paper, section 5: tens of MB";
    }
}

/// Whose packets a group is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meets {
    /// A packet of a protocol, by one of its ports.
    Port { protocol: u8, ports: Ports },
    /// A packet of a protocol.
    Any(u8),
}

/// Groups of rules with their automata as rows.
#[derive(Clone, Debug, Default)]
pub struct Groups(BTreeMap<Meets, Arc<Vec<u32>>>);

impl Groups {
    /// Sorts rules into groups and compiles them.
    ///
    /// # Errors
    /// A group of too many states.
    pub fn compile(rules: &[Rule]) -> Result<Groups, AppError> {
        let mut sorted: BTreeMap<Meets, Vec<&[u8]>> = BTreeMap::new();
        for Rule { protocol, ports, pattern } in rules {
            let meets = match ports {
                Ports::Any => Meets::Any(*protocol),
                _ => Meets::Port { protocol: *protocol, ports: *ports },
            };
            sorted.entry(meets).or_default().push(pattern);
        }
        if sorted.len() > usize::from(u16::MAX) - 1 {
            return Err(AppError::Rules { what: format!("{} groups of ports are too many", sorted.len()) });
        }
        let too_large = |_| AppError::Rules { what: "a port's patterns have more than 2^24 states".to_owned() };
        let compiled = sorted
            .into_iter()
            .map(|(meets, patterns)| Ok((meets, Arc::new(automaton::rows(&patterns).map_err(too_large)?))));
        Ok(Groups(compiled.collect::<Result<_, AppError>>()?))
    }
}

/// The rules that `options` name.
///
/// # Errors
/// The file cannot be read, or has a line that is no rule.
pub fn rules_of(options: &IdsOptions) -> Result<Vec<Rule>, AppError> {
    let Some(file) = &options.ids_rules else {
        return Ok(made(RULES_SEED, options.ids_services, options.ids_service_rules));
    };
    let wrong = |what: String| AppError::Rules { what: format!("{file}: {what}") };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    parse(&text).map_err(|error| wrong(error.to_string()))
}

/// The detector on one core.
#[derive(Clone, Debug)]
pub struct Ids {
    ports: PortMap,
    /// Number of the group of a port, from 1; 0 is none. One table for each protocol and direction.
    by_port: Addr,
    /// The value there.
    numbers: Vec<(u64, u16)>,
    /// Groups that packets of TCP and UDP meet whatever their ports.
    any: [Option<usize>; 2],
    automata: Vec<Automaton>,
    payload: Vec<u8>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    inspected: u64,
    others: u64,
    scanned_bytes: u64,
    scans: u64,
    alerts: u64,
}

/// The table of a protocol and a direction.
fn table_of(protocol: u8, ports: Ports) -> Option<u64> {
    let udp = u64::from(protocol == ip_protocol::UDP) * 2;
    match ports {
        Ports::Any => None,
        Ports::From(port) => Some(udp * PORTS + u64::from(port)),
        Ports::To(port) => Some((udp + 1) * PORTS + u64::from(port)),
    }
}

impl Ids {
    /// Takes address space for automata of its own.
    pub fn allocate(ports: PortMap, groups: &Groups, space: &mut AddressSpace) -> Ids {
        let by_port = space.data(TABLES * PORTS * 2, 4096);
        let (mut numbers, mut any, mut automata) = (Vec::new(), [None; 2], Vec::new());
        for (meets, rows) in &groups.0 {
            let number = automata.len();
            match meets {
                Meets::Any(protocol) => any[usize::from(*protocol == ip_protocol::UDP)] = Some(number),
                Meets::Port { protocol, ports } => {
                    let place = table_of(*protocol, *ports);
                    numbers.extend(place.map(|place| (place, number as u16 + 1)));
                }
            }
            automata.push(Automaton::new(Arc::clone(rows), space));
        }
        Ids { ports, by_port, numbers, any, automata, payload: Vec::new(), counts: Counts::default() }
    }

    /// Scans a packet; `None` if it has no ports that are to be looked at.
    fn inspect<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet) -> Option<()> {
        let head = packet.head.len as usize;
        let bytes = cpu.bytes(packet.head.at, head);
        let summary = parse_headers(bytes, packet.len() as usize).ok().filter(|summary| summary.has_ports())?;
        let begin = summary.headers_end(bytes) as u32;
        self.payload.clear();
        for piece in packet.span(begin, summary.l3_end) {
            self.payload.extend_from_slice(cpu.bytes(piece.at, piece.len as usize));
        }
        let mut groups = [None; 3];
        let sides = [Ports::From(summary.source_port), Ports::To(summary.destination_port)];
        for (group, ports) in groups.iter_mut().zip(sides) {
            let place = table_of(summary.protocol, ports)?;
            let number: u16 = cpu.load(self.by_port + place * 2);
            *group = usize::from(number).checked_sub(1);
        }
        groups[2] = self.any[usize::from(summary.protocol == ip_protocol::UDP)];
        for group in groups.into_iter().flatten() {
            self.counts.alerts += self.automata[group].scan(cpu, &self.payload);
            self.counts.scans += 1;
            self.counts.scanned_bytes += self.payload.len() as u64;
        }
        Some(())
    }
}

impl<C: Cpu> Application<C> for Ids {
    fn start(&mut self, cpu: &mut C) {
        self.automata.iter().for_each(|automaton| automaton.fill(cpu));
        for &(place, number) in &self.numbers {
            cpu.store(self.by_port + place * 2, number);
        }
    }

    /// Inspects one packet, and sends it on.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        match self.inspect(cpu, packet) {
            Some(()) => self.counts.inspected += 1,
            None => self.counts.others += 1,
        }
        match self.ports.get(packet.port) {
            Some(port) => Verdict::Transmit(port.peer),
            None => Verdict::Drop(crate::NO_SUCH_PORT),
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.counts;
        vec![
            ("inspected", counts.inspected),
            ("not_inspected", counts.others),
            ("scans", counts.scans),
            ("scanned_bytes", counts.scanned_bytes),
            ("alerts", counts.alerts),
        ]
    }
}

impl AppKind for Ids {
    const NAME: &'static str = "ids";
    const ABOUT: &'static str =
        "looks for patterns of rules in the payload of packets, as Snort does, and forwards them";
    /// Fitted to f-c3 on machines/xeon-l5640.toml. Instructions take about as many cycles elsewhere.
    const WORK: Option<nicforge_units::Cycles> = Some(nicforge_units::Cycles(73_000));
    type Options = IdsOptions;

    fn build<C: Cpu>(
        config: &AppConfig,
        _place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let groups = Groups::compile(&rules_of(&config.values.read())?)?;
        Ok(Box::new(Ids::allocate(config.ports.clone(), &groups, space)))
    }
}
