//! The table of offloaded flows in host memory: one line each, open addressing.
//!
//! | word | writer | content |
//! | --- | --- | --- |
//! | 0 | software | source address (high 32 bits), destination address |
//! | 1 | software | source port (high 16), destination port (next 16), in use (bit 8), protocol |
//! | 2, 3 | NIC | packets, bytes of frames |
//! | 4 | software | addresses that frames get: source (high 32 bits), destination |
//! | 5 | software | ports that they get: source (high 16), destination (next 16); what is rewritten: source (bit 0), destination (bit 1), time to live (bit 2) |
//! | 6, 7 | – | zero |
//!
//! The NIC keeps lines in its own memory ([`Contexts`](nicforge_nic::stage::Contexts)) and writes them back when it needs
//! the room, so that counts in host memory lag behind.

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

/// What is kept of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowContext {
    key: [u64; 2],
    /// What is done to its frames.
    pub action: FlowAction,
    /// Packets that the NIC sent on.
    pub packets: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

impl FlowContext {
    /// Whether it is nobody's.
    pub fn is_free(&self) -> bool {
        self.key[1] == 0
    }

    /// Whether it is this flow's.
    pub fn is(&self, flow: FlowMatch) -> bool {
        self.key == flow.0
    }
}

impl FlowContext {
    fn to_words(self) -> [u64; 8] {
        let [first, second] = self.key;
        let [addresses, rest] = self.action.encode();
        [first, second, self.packets, self.bytes, addresses, rest, 0, 0]
    }

    fn from_words(words: &[u64; 8]) -> FlowContext {
        FlowContext {
            key: [words[0], words[1]],
            action: FlowAction::decode([words[4], words[5]]),
            packets: words[2],
            bytes: words[3],
        }
    }
}

impl FlowState for FlowContext {
    const BYTES: usize = CACHE_LINE_BYTES as usize;

    fn encode(&self, into: &mut [u8]) {
        into.copy_from_slice(bytemuck::bytes_of(&self.to_words()));
    }

    fn decode(bytes: &[u8]) -> FlowContext {
        FlowContext::from_words(&bytemuck::pod_read_unaligned(bytes))
    }
}

/// The table found no line for a flow.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("no room for another flow in the NIC's table: allocate it for more flows")]
pub struct TableFull;

/// Where the table is.
#[derive(Clone, Copy, Debug)]
pub struct FlowTable {
    at: Addr,
    mask: u64,
}

impl FlowTable {
    /// Room for `flows` flows, at three quarters full at most. The memory must be zero.
    pub fn allocate(space: &mut AddressSpace, flows: u64) -> FlowTable {
        let lines = (flows.saturating_mul(4) / 3 + 1).next_power_of_two();
        FlowTable { at: space.data(lines * CACHE_LINE_BYTES, CACHE_LINE_BYTES), mask: lines - 1 }
    }

    /// The lines in which a flow may be, in the order in which they are looked at.
    pub fn lines(&self, flow: FlowMatch) -> impl Iterator<Item = u64> + use<> {
        let (first, mask) = (flow.hash(), self.mask);
        (0..PROBES.min(mask + 1)).map(move |probe| (first + probe) & mask)
    }

    /// Where a line is.
    pub fn address(&self, line: u64) -> Addr {
        self.at + line * CACHE_LINE_BYTES
    }

    fn load<C: Cpu>(&self, cpu: &mut C, line: u64) -> FlowContext {
        FlowContext::from_words(&cpu.load(self.address(line)))
    }

    /// Offloads a flow, of whose frames `action` is done; nothing changes if it is already. Before
    /// the run: the NIC does not hear of it if it has looked for the flow before.
    ///
    /// # Errors
    /// All of the flow's lines are others'.
    pub fn install<C: Cpu>(&self, cpu: &mut C, flow: FlowMatch, action: FlowAction) -> Result<(), TableFull> {
        for line in self.lines(flow) {
            let context = self.load(cpu, line);
            if context.is(flow) {
                return Ok(());
            }
            if context.is_free() {
                let context = FlowContext { key: flow.0, action, ..FlowContext::default() };
                cpu.store(self.address(line), context.to_words());
                return Ok(());
            }
        }
        Err(TableFull)
    }

    /// What host memory has of a flow.
    pub fn read<C: Cpu>(&self, cpu: &mut C, flow: FlowMatch) -> Option<FlowContext> {
        let contexts = self.lines(flow).map(|line| self.load(cpu, line));
        let mut contexts = contexts.take_while(|context| !context.is_free());
        contexts.find(|context| context.is(flow))
    }
}
