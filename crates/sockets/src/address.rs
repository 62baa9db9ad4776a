//! Addresses as they stand in shared memory and control messages.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::atomic::Ordering;

use bytemuck::{Pod, Zeroable};

use crate::layout::Place;

/// An address and port in 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct WireAddress {
    octets: [u8; 16],
    port: u16,
    /// 4, 6, or 0 for no address.
    family: u16,
    scope: u32,
}

impl From<SocketAddr> for WireAddress {
    fn from(address: SocketAddr) -> WireAddress {
        let mut wire = WireAddress { port: address.port(), ..WireAddress::default() };
        match address {
            SocketAddr::V4(v4) => {
                wire.family = 4;
                wire.octets[..4].copy_from_slice(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                wire.family = 6;
                wire.octets = v6.ip().octets();
                wire.scope = v6.scope_id();
            }
        }
        wire
    }
}

impl WireAddress {
    /// The address, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.family {
            4 => {
                let [a, b, c, d, ..] = self.octets;
                Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), self.port))
            }
            6 => Some(SocketAddrV6::new(Ipv6Addr::from(self.octets), self.port, 0, self.scope).into()),
            _ => None,
        }
    }
}

impl Place {
    /// Publishes an address.
    pub fn store(&self, address: SocketAddr) {
        let wire = WireAddress::from(address);
        for (word, octets) in self.address.iter().zip(wire.octets.as_chunks::<8>().0) {
            word.store(u64::from_ne_bytes(*octets), Ordering::Relaxed);
        }
        self.scope.store(wire.scope, Ordering::Relaxed);
        self.port.store(u32::from(wire.port) | u32::from(wire.family) << 16, Ordering::Release);
    }

    /// Reads it.
    pub fn load(&self) -> Option<SocketAddr> {
        let port = self.port.load(Ordering::Acquire);
        let mut octets = [0; 16];
        for (word, octets) in self.address.iter().zip(octets.as_chunks_mut::<8>().0) {
            *octets = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        let scope = self.scope.load(Ordering::Relaxed);
        WireAddress { octets, port: port as u16, family: (port >> 16) as u16, scope }.address()
    }
}

/// An address without the disguise of IPv4 in IPv6 (`::ffff:a.b.c.d`).
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// An address as a socket of family `v6` shows it.
pub fn shown(address: SocketAddr, v6: bool) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        other => other,
    }
}
