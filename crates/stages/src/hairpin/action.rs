//! What the NIC does to the frames of a flow, besides counting them and giving them new Ethernet
//! addresses: what a router or a translator of addresses and ports does. Checksums follow.

use nicforge_nic::RxFlags;
use nicforge_nic::stage::Frame;
use nicforge_wire::FrameSummary;
use nicforge_wire::headers::Ipv4View;
use nicforge_wire::rewrite::{End, decrement_hops, replace_end};

const SOURCE: u64 = 1;
const DESTINATION: u64 = 2;
const HOPS: u64 = 4;

/// An IPv4 address and a port.
pub type Endpoint = (u32, u16);

/// What is done to frames of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowAction {
    /// Where they come from, as whoever gets them sees it.
    pub source: Option<Endpoint>,
    /// Where they go.
    pub destination: Option<Endpoint>,
    /// Whether they lose one hop of their time to live.
    pub takes_hop: bool,
}

impl FlowAction {
    /// As it lies in memory.
    pub fn encode(&self) -> [u64; 2] {
        let end = |end: Option<Endpoint>| end.unwrap_or_default();
        let ((from, from_port), (to, to_port)) = (end(self.source), end(self.destination));
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let flags = flag(self.source.is_some(), SOURCE)
            | flag(self.destination.is_some(), DESTINATION)
            | flag(self.takes_hop, HOPS);
        [u64::from(from) << 32 | u64::from(to), u64::from(from_port) << 48 | u64::from(to_port) << 32 | flags]
    }

    /// From memory.
    pub fn decode([addresses, rest]: [u64; 2]) -> FlowAction {
        let end = |bit, address, port| (rest & bit != 0).then_some((address, port));
        FlowAction {
            source: end(SOURCE, (addresses >> 32) as u32, (rest >> 48) as u16),
            destination: end(DESTINATION, addresses as u32, (rest >> 32) as u16),
            takes_hop: rest & HOPS != 0,
        }
    }

    /// Whether a frame is left to software: its last hop is here, and somebody has to
    /// tell its sender, or its IP header is spoilt, and somebody has to drop it.
    pub fn leaves(&self, frame: &Frame<'_>) -> bool {
        let summary = frame.summary();
        if frame.flags.contains(RxFlags::L3_BAD) {
            return true;
        }
        let packet = frame.bytes().get(usize::from(summary.l3_offset)..);
        let ip = packet.and_then(|packet| Ipv4View::new(packet).ok());
        self.takes_hop && ip.is_none_or(|ip| ip.time_to_live() <= 1)
    }

    /// Rewrites a frame of `summary`, a whole IPv4 packet with ports.
    pub fn apply(&self, frame: &mut [u8], summary: &FrameSummary) {
        if self.takes_hop {
            decrement_hops(frame, usize::from(summary.l3_offset));
        }
        let ends = [(End::Source, self.source), (End::Destination, self.destination)];
        for (end, new) in ends {
            if let Some((address, port)) = new {
                replace_end(frame, summary, end, address, Some(port));
            }
        }
    }
}
