//! The key of an IPv4 flow: the 5-tuple in two words.

use std::net::SocketAddrV4;

use bytemuck::{Pod, Zeroable};

use super::hash::hash2;
use crate::Flow;

/// Where a packet comes from, as a NAT sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the private network.
    Inside,
    /// From the public network.
    Outside,
}

/// An IPv4 5-tuple and the side it arrives from, in 16 bytes.
///
/// | word | bits 63–32 | bits 31–0 |
/// | --- | --- | --- |
/// | 0 | source address | destination address |
/// | 1 | source port, destination port | side, protocol |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FlowKey([u64; 2]);

impl FlowKey {
    /// From addresses and ports in host byte order.
    #[inline]
    pub fn new(source: (u32, u16), destination: (u32, u16), protocol: u8, side: Side) -> FlowKey {
        FlowKey([
            u64::from(source.0) << 32 | u64::from(destination.0),
            u64::from(source.1) << 48 | u64::from(destination.1) << 32 | (side as u64) << 8 | u64::from(protocol),
        ])
    }

    /// The key of `flow`, whose packets arrive from `side`.
    pub fn of(flow: &Flow, side: Side) -> FlowKey {
        let end = |address: SocketAddrV4| (address.ip().to_bits(), address.port());
        FlowKey::new(end(flow.source), end(flow.destination), flow.protocol, side)
    }

    /// Source address and port.
    #[inline]
    pub fn source(&self) -> (u32, u16) {
        ((self.0[0] >> 32) as u32, (self.0[1] >> 48) as u16)
    }

    /// Destination address and port.
    #[inline]
    pub fn destination(&self) -> (u32, u16) {
        (self.0[0] as u32, (self.0[1] >> 32) as u16)
    }

    /// IP protocol number.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.0[1] as u8
    }

    /// Where packets of this flow arrive from.
    #[inline]
    pub fn side(&self) -> Side {
        if self.0[1] >> 8 & 1 == Side::Inside as u64 { Side::Inside } else { Side::Outside }
    }

    /// The hash that tables use.
    #[inline]
    pub fn hash(&self) -> u64 {
        hash2(self.0[0], self.0[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let key = FlowKey::new((0x0a00_0001, 7), (0xc000_0201, 65535), 17, Side::Outside);
        assert_eq!(key.source(), (0x0a00_0001, 7));
        assert_eq!(key.destination(), (0xc000_0201, 65535));
        assert_eq!((key.protocol(), key.side()), (17, Side::Outside));
        let other = FlowKey::new(key.source(), key.destination(), 17, Side::Inside);
        assert_eq!(other.side(), Side::Inside);
        assert!(key != other && key.hash() != other.hash());
    }
}
