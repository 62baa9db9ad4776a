//! What a random program consists of.

use proptest::prelude::*;

use super::super::*;

/// What a frame is.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Bytes that mean nothing.
    Plain,
    /// An IPv4 packet of this protocol, with wrong checksums or right ones.
    Ip { protocol: u8, l3_wrong: bool, l4_wrong: bool },
}

impl Content {
    /// The least length of it.
    pub fn least(self) -> usize {
        match self {
            // A name.
            Content::Plain => 4,
            Content::Ip { .. } => 54,
        }
    }

    pub fn frame(self, number: u32, len: usize) -> Vec<u8> {
        match self {
            Content::Plain => frame(number, len),
            Content::Ip { protocol, l3_wrong, l4_wrong } => ip_packet(number, protocol, len, l3_wrong, l4_wrong),
        }
    }

    /// What becomes of it when its checksums are computed.
    pub fn completed(self) -> Content {
        match self {
            Content::Plain => self,
            Content::Ip { protocol, .. } => Content::Ip { protocol, l3_wrong: false, l4_wrong: false },
        }
    }

    /// What RxDone says of it.
    pub fn flags(self) -> u64 {
        let Content::Ip { protocol, l3_wrong, l4_wrong } = self else {
            return 0;
        };
        let (packet, error) = match protocol {
            ip_protocol::TCP => (rx_done::TCP_PACKET, rx_done::TCP_ERROR),
            _ => (rx_done::UDP_PACKET, rx_done::UDP_ERROR),
        };
        rx_done::IP_PACKET.mask() | packet.mask() | rx_done::IP_ERROR.of(l3_wrong.into()) | error.of(l4_wrong.into())
    }
}

/// All bits of RxDone that say what a packet is.
pub const FLAGS: u64 = rx_done::IP_PACKET.mask()
    | rx_done::TCP_PACKET.mask()
    | rx_done::UDP_PACKET.mask()
    | rx_done::IP_ERROR.mask()
    | rx_done::TCP_ERROR.mask()
    | rx_done::UDP_ERROR.mask();

/// One thing that a driver, or the wire, does.
#[derive(Clone, Debug)]
pub enum Step {
    Arrive(Content, usize),
    /// A virtual NIC asks for so many bytes of its packet, or of the next.
    Post(u16, u64),
    /// It looks whether its copy is done, by RxDone or RxWait.
    Look(u16, bool),
    /// It begins a packet of these parts, or sends the next part; looks by TxDone or TxWait.
    Send(u16, Packet, bool),
    Pass(u64),
    ReadStatus,
    /// It lets these conditions interrupt.
    Mask(u64),
    /// It lets the device interrupt, and transmit.
    Enable(bool, bool),
    /// The driver resets the device, and begins again.
    Reset,
}

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Packet {
    pub content: Content,
    pub parts: Vec<u64>,
    /// The device computes its checksums.
    pub checksum: bool,
}

fn content() -> impl Strategy<Value = Content> {
    let protocol = prop_oneof![Just(ip_protocol::TCP), Just(ip_protocol::UDP)];
    prop_oneof![
        Just(Content::Plain),
        (protocol, any::<bool>(), any::<bool>())
            .prop_map(|(protocol, l3_wrong, l4_wrong)| { Content::Ip { protocol, l3_wrong, l4_wrong } }),
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    let parts = prop::collection::vec(1u64..500, 1..4);
    (content(), parts, any::<bool>()).prop_map(|(content, parts, checksum)| Packet { content, parts, checksum })
}

pub fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![1usize..200, 1400usize..1515];
    let copy = prop_oneof![Just(64u64), Just(1514), 1u64..1514];
    prop_oneof![
        4 => (content(), len).prop_map(|(content, len)| Step::Arrive(content, len)),
        4 => (any::<u16>(), copy).prop_map(|(vnic, len)| Step::Post(vnic, len)),
        4 => (any::<u16>(), any::<bool>()).prop_map(|(vnic, wait)| Step::Look(vnic, wait)),
        4 => (any::<u16>(), packet(), any::<bool>())
            .prop_map(|(vnic, packet, wait)| Step::Send(vnic, packet, wait)),
        2 => (0u64..3000).prop_map(Step::Pass),
        1 => Just(Step::ReadStatus),
        1 => (0u64..0x200).prop_map(Step::Mask),
        1 => (any::<bool>(), any::<bool>())
            .prop_map(|(interrupt, transmit)| Step::Enable(interrupt, transmit)),
        // In two programs of three, and then mostly once.
        1 => prop::bool::weighted(0.2).prop_map(|reset| if reset { Step::Reset } else { Step::ReadStatus }),
    ]
}
