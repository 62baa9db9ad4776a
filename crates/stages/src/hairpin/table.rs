//! The table of offloaded flows in host memory: a rule of one line for each, open addressing, and a counter beside it.
//!
//! | word of a rule | content |
//! | --- | --- |
//! | 0 | source address (high 32 bits), destination address |
//! | 1 | source port (high 16), destination port (next 16), in use (bit 8), protocol |
//! | 2 | addresses that frames get: source (high 32 bits), destination |
//! | 3 | ports that they get: source (high 16), destination (next 16); what is rewritten: source (bit 0), destination (bit 1), time to live (bit 2) |
//! | 4 to 7 | zero |
//!
//! Software writes rules, and the NIC counters, of two words each: packets, and bytes of frames. A rule has its counter's
//! number, so the NIC can look for a counter when the rule is there. So do steering tables of ConnectX adapters: entries
//! have 64 bytes and name a counter, which lies elsewhere and has 16 (Linux, drivers/net/ethernet/mellanox/mlx5:
//! `DR_STE_SIZE` in dr_types.h, `mlx5_ifc_traffic_counter_bits`).
//!
//! The NIC keeps rules and counters in its own memory ([`Contexts`](nicforge_nic::stage::Contexts)) and writes them back when it needs
//! the room, so that counts in host memory lag behind.

use bytemuck::{Pod, Zeroable};
use nicforge_nic::stage::FlowState;
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::CACHE_LINE_BYTES;
use nicforge_wire::FrameSummary;

use super::FlowAction;

/// Lines that are looked at for a flow, at most.
pub const PROBES: u64 = 256;

const IN_USE: u64 = 1 << 8;

/// Which flow: IPv4 addresses, ports and protocol of whole UDP and TCP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMatch([u64; 2]);

impl FlowMatch {
    /// From addresses and ports (source, destination) and IP protocol.
    pub fn new(source: (u32, u16), destination: (u32, u16), protocol: u8) -> FlowMatch {
        FlowMatch([
            u64::from(source.0) << 32 | u64::from(destination.0),
            u64::from(source.1) << 48 | u64::from(destination.1) << 32 | IN_USE | u64::from(protocol),
        ])
    }

    /// Of a parsed frame; `None` for what cannot be offloaded.
    pub fn of(summary: &FrameSummary) -> Option<FlowMatch> {
        let (source, destination) = summary.ipv4_words()?;
        (summary.has_ports() && !summary.is_fragment()).then(|| {
            FlowMatch::new((source, summary.source_port), (destination, summary.destination_port), summary.protocol)
        })
    }

    fn hash(self) -> u64 {
        // Both words times odd constants (Steele and others, SplitMix64), the halves folded.
        let product = u128::from(self.0[0] ^ 0x9e37_79b9_7f4a_7c15) * u128::from(self.0[1] ^ 0xbf58_476d_1ce4_e5b9);
        let folded = product as u64 ^ (product >> 64) as u64;
        (folded ^ folded >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    }
}

/// What is done to frames of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRule {
    key: [u64; 2],
    /// What is done to its frames.
    pub action: FlowAction,
}

/// What the NIC sent on of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FlowCounter {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
}

impl FlowRule {
    /// Whether it is nobody's.
    pub fn is_free(&self) -> bool {
        self.key[1] == 0
    }

    /// Whether it is this flow's.
    pub fn is(&self, flow: FlowMatch) -> bool {
        self.key == flow.0
    }
}

impl FlowRule {
    fn to_words(self) -> [u64; 8] {
        let [first, second] = self.key;
        let [addresses, rest] = self.action.encode();
        [first, second, addresses, rest, 0, 0, 0, 0]
    }

    fn from_words(words: &[u64; 8]) -> FlowRule {
        FlowRule { key: [words[0], words[1]], action: FlowAction::decode([words[2], words[3]]) }
    }
}

impl FlowState for FlowRule {
    const BYTES: usize = CACHE_LINE_BYTES as usize;

    fn encode(&self, into: &mut [u8]) {
        into.copy_from_slice(bytemuck::bytes_of(&self.to_words()));
    }

    fn decode(bytes: &[u8]) -> FlowRule {
        FlowRule::from_words(&bytemuck::pod_read_unaligned(bytes))
    }
}

impl FlowState for FlowCounter {
    const BYTES: usize = size_of::<FlowCounter>();

    fn encode(&self, into: &mut [u8]) {
        into.copy_from_slice(bytemuck::bytes_of(self));
    }

    fn decode(bytes: &[u8]) -> FlowCounter {
        bytemuck::pod_read_unaligned(bytes)
    }
}

/// The table found no line for a flow.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("no room for another flow in the NIC's table: allocate it for more flows")]
pub struct TableFull;

/// Where the table is.
#[derive(Clone, Copy, Debug)]
pub struct FlowTable {
    rules: Addr,
    counters: Addr,
    mask: u64,
}

impl FlowTable {
    /// Room for `flows` flows, at three quarters full at most. The memory must be zero.
    pub fn allocate(space: &mut AddressSpace, flows: u64) -> FlowTable {
        let lines = (flows.saturating_mul(4) / 3 + 1).next_power_of_two();
        let mut area = |each: usize| space.data(lines * each as u64, CACHE_LINE_BYTES);
        FlowTable { rules: area(FlowRule::BYTES), counters: area(FlowCounter::BYTES), mask: lines - 1 }
    }

    /// The lines in which a flow may be, in the order in which they are looked at.
    pub fn lines(&self, flow: FlowMatch) -> impl Iterator<Item = u64> + use<> {
        let (first, mask) = (flow.hash(), self.mask);
        (0..PROBES.min(mask + 1)).map(move |probe| (first + probe) & mask)
    }

    /// Where the rule of a line is.
    pub fn rule_at(&self, line: u64) -> Addr {
        self.rules + line * FlowRule::BYTES as u64
    }

    /// Where the counter of a line is.
    pub fn counter_at(&self, line: u64) -> Addr {
        self.counters + line * FlowCounter::BYTES as u64
    }

    fn load<C: Cpu>(&self, cpu: &mut C, line: u64) -> FlowRule {
        FlowRule::from_words(&cpu.load(self.rule_at(line)))
    }

    /// Offloads a flow, of whose frames `action` is done; nothing changes if it is already. Before
    /// the run: the NIC does not hear of it if it has looked for the flow before.
    ///
    /// # Errors
    /// All of the flow's lines are others'.
    pub fn install<C: Cpu>(&self, cpu: &mut C, flow: FlowMatch, action: FlowAction) -> Result<(), TableFull> {
        for line in self.lines(flow) {
            let rule = self.load(cpu, line);
            if rule.is(flow) {
                return Ok(());
            }
            if rule.is_free() {
                cpu.store(self.rule_at(line), FlowRule { key: flow.0, action }.to_words());
                return Ok(());
            }
        }
        Err(TableFull)
    }

    /// What host memory has counted of a flow.
    pub fn counted<C: Cpu>(&self, cpu: &mut C, flow: FlowMatch) -> Option<FlowCounter> {
        let rules = self.lines(flow).map(|line| (line, self.load(cpu, line)));
        let mut rules = rules.take_while(|(_, rule)| !rule.is_free());
        let (line, _) = rules.find(|(_, rule)| rule.is(flow))?;
        Some(cpu.load(self.counter_at(line)))
    }
}
