//! `vswitch`: a virtual switch between a tunnel and virtual machines, as Open vSwitch is one (FlexNIC paper, section 6.1).
//!
//! ```text
//!  frame ─► GRE tunnel ends ─► datapath: 5-tuple, then wildcards ─┬─► ring of a machine
//!                                                      daemon ◄───┘ miss: decides, and leaves a 5-tuple
//! ```
//!
//! Machine `m` has address 10.9.0.(m + 1), which the wildcards know; which machine other addresses of 10.9.0.0/24 belong to only the
//! daemon does (the last byte modulo the machines). All else is dropped. With `vswitch_nic` the NIC runs the datapath
//! (examples/p4/flexnic/vswitch.p4): core 0 is the daemon, all others run machines, and a flow that the daemon decided on is a rule of the
//! NIC's from then on.
//!
//! Left out: what machines send; flows that end.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::{Packet, Segment, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{Addr, AddressSpace, Cpu, Register, copy};
use nicforge_units::Cycles;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, Ipv4View};
use nicforge_wire::{FrameSummary, parse_headers};

use crate::tables::hash2;
use crate::{AppConfig, AppError, AppKind, Application, Place, SharedTables};

const GRE: u8 = 47;
/// Ethernet, IPv4 and GRE in front of a tunnelled frame.
const TUNNEL_BYTES: usize = ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + 4;
/// GRE without keys, checksums and sequence numbers, around Ethernet (RFC 2784; RFC 7637 has the type).
const GRE_ETHERNET: [u8; 4] = [0, 0, 0x65, 0x58];
/// The machines' network.
const NETWORK: [u8; 3] = [10, 9, 0];
/// Where a frame without a tunnel has the last byte of its destination.
const LAST_OF_DESTINATION: usize = ETHERNET_HEADER_LEN + 19;
/// Entries of a machine's ring, and bytes of each.
const RING_ENTRIES: u64 = 256;
const RING_BYTES: u64 = 2048;
/// Flows that the datapath knows; a newer one takes the place of an older one.
const FLOWS: u64 = 4096;
/// Rules on their way to the NIC, and bytes of each.
const RULES: u64 = 64;
const RULE_BYTES: u64 = 512;
/// Machines at most.
const MACHINES: usize = 16;
const NAMES: [&str; MACHINES] = [
    "machine_0",
    "machine_1",
    "machine_2",
    "machine_3",
    "machine_4",
    "machine_5",
    "machine_6",
    "machine_7",
    "machine_8",
    "machine_9",
    "machine_10",
    "machine_11",
    "machine_12",
    "machine_13",
    "machine_14",
    "machine_15",
];

options! {
    /// A virtual switch.
    pub struct VSwitchOptions {
        /// Virtual machines.
        vswitch_machines: usize = 8, "machines", Allowed::Whole(1, MACHINES as u64), source "FlexNIC supplement";
        /// Whether NICs end tunnels and steer to machines, as examples/p4/flexnic/vswitch.p4 does with interface `flexnic`; then core 0 is the
        /// daemon, and all others run machines.
        vswitch_nic: bool = false, "", Allowed::Flag, source "FlexNIC paper, section 6.1";
        /// Instructions for ending a tunnel.
        vswitch_tunnel_cycles: u32 = 600, "cycles", Allowed::Whole(0, 1_000_000), source "estimate: GRE receive path of Linux, and the packet's second way through it";
        /// Instructions of the daemon for a packet, and of its way there and back.
        vswitch_daemon_cycles: u32 = 50_000, "cycles", Allowed::Whole(0, 10_000_000), source "estimate: 20 to 30 us for an upcall, a look-up in all tables, and a rule";
    }
}

/// A flow in the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Flow {
    addresses: u64,
    ports: u32,
    protocol: u16,
    /// Its machine plus one; 0 in an empty place.
    machine: u16,
}

/// Rules that the daemon leaves with the NIC, each an entry of `flows` as text in registered memory. What becomes of one the daemon need not
/// know: packets of a flow without a rule come to it as before.
#[derive(Clone, Debug)]
struct Rules {
    at: Addr,
    register: Register,
    /// Cores that run machines.
    others: usize,
    left: u64,
}

impl Rules {
    /// Rules of NIC 0, which has a queue for each of `cores`.
    fn allocate(cores: usize, space: &mut AddressSpace) -> Rules {
        let at = space.data(RULES * RULE_BYTES, RULE_BYTES);
        space.register(at, (RULES * RULE_BYTES) as usize);
        // Behind the four registers of each queue.
        let register = Register { device: 0, index: 4 * cores as u32 };
        Rules { at, register, others: cores - 1, left: 0 }
    }

    /// `flow` goes to `machine`, on whichever core that is.
    fn add<C: Cpu>(&mut self, cpu: &mut C, flow: &Flow, machine: usize) {
        let Flow { addresses, ports, protocol, .. } = *flow;
        let text = format!(
            "[[entry]]\ntable = \"flows\"\nmatch = {{ \"hdr.ipv4.src\" = {}, \"hdr.ipv4.dst\" = {}, \
             \"hdr.ipv4.protocol\" = {protocol}, \"hdr.ports.src\" = {}, \"hdr.ports.dst\" = {} }}\n\
             action = \"to_machine\"\ndata = {{ queue = {} }}\n",
            addresses >> 32,
            addresses as u32,
            ports >> 16,
            ports as u16,
            1 + machine % self.others,
        );
        let at = self.at + self.left % RULES * RULE_BYTES;
        let rule = cpu.bytes_mut(at, 8 + text.len());
        rule[..8].copy_from_slice(&(text.len() as u64).to_le_bytes());
        rule[8..].copy_from_slice(text.as_bytes());
        self.left += 1;
        // The number tells it from the rule that stood here before.
        cpu.mmio_write(self.register, at.0 | (self.left % 64));
    }
}

/// The switch on one core.
#[derive(Clone, Debug)]
pub struct VSwitch {
    /// With the NIC's help: this core runs machines, and takes frames without a tunnel.
    runs_machines: bool,
    /// With the NIC's help: the daemon's way to its tables.
    rules: Option<Rules>,
    machines: usize,
    flows: Addr,
    rings: Addr,
    tunnel: Cycles,
    datapath: Cycles,
    daemon: Cycles,
    delivered: [u64; MACHINES],
    tunnels: u64,
    exact: u64,
    wildcard: u64,
    asked: u64,
}

impl VSwitch {
    /// Takes address space for flows and machines' rings.
    pub fn allocate(options: &VSwitchOptions, datapath: Cycles, place: Place, space: &mut AddressSpace) -> VSwitch {
        let Place { core, cores } = place;
        let machines = options.vswitch_machines;
        VSwitch {
            runs_machines: options.vswitch_nic && core > 0,
            rules: (options.vswitch_nic && core == 0).then(|| Rules::allocate(cores, space)),
            machines,
            flows: space.data(FLOWS * size_of::<Flow>() as u64, 4096),
            rings: space.data(machines as u64 * RING_ENTRIES * RING_BYTES, 4096),
            tunnel: Cycles(options.vswitch_tunnel_cycles.into()),
            datapath,
            daemon: Cycles(options.vswitch_daemon_cycles.into()),
            delivered: [0; MACHINES],
            tunnels: 0,
            exact: 0,
            wildcard: 0,
            asked: 0,
        }
    }

    /// The machine that wildcards know by the last byte of its address.
    fn own(&self, last: u8) -> Option<usize> {
        usize::from(last).checked_sub(1).filter(|machine| *machine < self.machines)
    }

    /// Brings the frame within a tunnel to its machine.
    fn switch<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet) -> Result<(), &'static str> {
        cpu.work(self.datapath);
        let head = packet.head.len as usize;
        let bytes = cpu.bytes(packet.head.at, head);
        if !is_tunnel(bytes) {
            return Err("no_tunnel");
        }
        let summary = parse_headers(&bytes[TUNNEL_BYTES..], packet.len() as usize - TUNNEL_BYTES);
        let summary = summary.ok().filter(FrameSummary::has_ports).ok_or("no_machine")?;
        self.tunnels += 1;
        cpu.work(self.tunnel);
        let machine = self.machine_of(cpu, &summary)?;
        let slot = self.delivered[machine] % RING_ENTRIES + machine as u64 * RING_ENTRIES;
        let mut to = self.rings + slot * RING_BYTES;
        for Segment { at, len } in packet.span(TUNNEL_BYTES as u32, packet.len()) {
            copy(cpu, at, to, len as usize);
            to = to + u64::from(len);
        }
        self.delivered[machine] += 1;
        Ok(())
    }

    /// By the flow, by wildcards, or by the daemon.
    fn machine_of<C: Cpu>(&mut self, cpu: &mut C, summary: &FrameSummary) -> Result<usize, &'static str> {
        let (source, destination) = summary.ipv4_words().ok_or("no_machine")?;
        let mut flow = Flow {
            addresses: u64::from(source) << 32 | u64::from(destination),
            ports: u32::from(summary.source_port) << 16 | u32::from(summary.destination_port),
            protocol: summary.protocol.into(),
            machine: 0,
        };
        let place = hash2(flow.addresses, u64::from(flow.ports) << 8 | u64::from(flow.protocol)) % FLOWS;
        let place = self.flows + place * size_of::<Flow>() as u64;
        let known: Flow = cpu.load(place);
        if (Flow { machine: 0, ..known }) == flow && known.machine > 0 {
            self.exact += 1;
            return Ok(usize::from(known.machine) - 1);
        }
        let [a, b, c, last] = destination.to_be_bytes();
        if [a, b, c] != NETWORK {
            return Err("no_machine");
        }
        let machine = match self.own(last) {
            Some(machine) => {
                self.wildcard += 1;
                machine
            }
            None => {
                self.asked += 1;
                cpu.work(self.daemon);
                usize::from(last) % self.machines
            }
        };
        flow.machine = machine as u16 + 1;
        cpu.store(place, flow);
        if let Some(rules) = &mut self.rules {
            rules.add(cpu, &flow, machine);
        }
        Ok(machine)
    }
}

/// Whether a frame is of a tunnel that ends here.
fn is_tunnel(bytes: &[u8]) -> bool {
    let Some(Ok(ip)) = bytes.get(ETHERNET_HEADER_LEN..).map(Ipv4View::new) else { return false };
    bytes.len() > TUNNEL_BYTES
        && bytes[12..14] == [8, 0]
        && ip.protocol() == GRE
        && ip.header_len() == IPV4_MIN_HEADER_LEN
        && !ip.is_fragment()
        && bytes[TUNNEL_BYTES - 4..TUNNEL_BYTES] == GRE_ETHERNET
}

impl<C: Cpu> Application<C> for VSwitch {
    /// It charges its work itself: a machine has none here.
    fn work(&self) -> Option<Cycles> {
        Some(Cycles(0))
    }

    /// Takes one frame to its machine.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        if self.runs_machines {
            let Some(&last) = cpu.bytes(packet.head.at, packet.head.len as usize).get(LAST_OF_DESTINATION) else {
                return Verdict::Drop("no_machine");
            };
            self.delivered[self.own(last).unwrap_or(usize::from(last) % self.machines)] += 1;
            return Verdict::Take;
        }
        match self.switch(cpu, packet) {
            Ok(()) => Verdict::Take,
            Err(cause) => Verdict::Drop(cause),
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let own = [
            ("tunnelled", self.tunnels),
            ("known_flows", self.exact),
            ("wildcards", self.wildcard),
            ("daemon", self.asked),
        ];
        own.into_iter().chain(NAMES.into_iter().zip(self.delivered).take(self.machines)).collect()
    }
}

impl AppKind for VSwitch {
    const NAME: &'static str = "vswitch";
    const ABOUT: &'static str =
        "ends GRE tunnels and brings frames to virtual machines, with a daemon for what no rule knows";
    const WORK: Option<Cycles> = Some(Cycles(2000));
    type Options = VSwitchOptions;

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let options: VSwitchOptions = config.values.read();
        if options.vswitch_nic && place.cores < 2 {
            let (setting, range) = ("cores", "at least 2 with vswitch_nic");
            return Err(AppError::OutOfRange { setting, value: place.cores as u64, range });
        }
        Ok(Box::new(VSwitch::allocate(&options, config.work, place, space)))
    }
}

#[cfg(test)]
mod tests {
    use nicforge_nic::{PortId, RxFlags, TxOffload};
    use nicforge_platform::FlatCpu;
    use nicforge_units::Time;

    use super::*;

    fn ip(protocol: u8, destination: u8, data: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
        frame.extend((20 + data.len() as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 9, 0, destination]);
        frame.extend(data);
        frame
    }

    fn inner(destination: u8) -> Vec<u8> {
        ip(17, destination, &[0, 5, 0, 7, 0, 12, 0, 0, 1, 2, 3, 4])
    }

    fn tunnel(frame: &[u8]) -> Vec<u8> {
        ip(GRE, 99, &[&GRE_ETHERNET, frame].concat())
    }

    #[test]
    fn tunnels_end_at_machines_and_the_daemon_is_asked_once_for_a_flow() {
        let mut space = AddressSpace::default();
        let mut switch =
            VSwitch::allocate(&VSwitchOptions::default(), Cycles(0), Place { core: 0, cores: 1 }, &mut space);
        let buffer = space.data(4096, 64);
        let mut cpu = FlatCpu::new(space.end());
        let mut send = |bytes: &[u8], split: usize| {
            cpu.bytes_mut(buffer, bytes.len()).copy_from_slice(bytes);
            let mut packet = Packet {
                mbuf: buffer,
                tail: Addr(0),
                references: Addr(0),
                head: Segment { at: buffer, len: split as u32 },
                rest: Segment { at: buffer + split as u64, len: (bytes.len() - split) as u32 },
                port: PortId(0),
                rss_hash: 0,
                flags: RxFlags::default(),
                mark: 0,
                offload: TxOffload::default(),
                stamp: Time::ZERO,
            };
            let verdict = Application::packet(&mut switch, &mut cpu, &mut packet);
            let got = cpu.bytes(switch.rings + 2 * RING_ENTRIES * RING_BYTES, 46).to_vec();
            (verdict, got, switch.exact, switch.wildcard, switch.asked)
        };
        let known = tunnel(&inner(3));
        assert_eq!(send(&known, 80), (Verdict::Take, inner(3), 0, 1, 0));
        assert_eq!(send(&known, known.len()).2, 1, "the wildcard left a flow");
        let unknown = tunnel(&inner(200));
        assert_eq!(send(&unknown, unknown.len()).4, 1);
        assert_eq!(send(&unknown, unknown.len()).4, 1, "the daemon left a flow");
        for (wrong, cause) in [
            (inner(3), "no_tunnel"),
            (vec![7; 60], "no_tunnel"),
            (tunnel(&[7; 60]), "no_machine"),
            (ip(GRE, 99, &[1; 40]), "no_tunnel"),
        ] {
            assert_eq!(send(&wrong, wrong.len()).0, Verdict::Drop(cause));
        }
        assert_eq!((switch.delivered[2], switch.delivered[0], switch.tunnels), (2, 2, 4));
    }
}
