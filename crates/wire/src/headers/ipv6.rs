//! IPv6 with extension headers (RFC 8200; authentication header: RFC 4302).

use std::net::Ipv6Addr;

use super::{WireError, array, be16, be32, ip_protocol, put16, put32, require};

/// Length of the fixed IPv6 header in bytes.
pub const IPV6_HEADER_LEN: usize = 40;

const VERSION_CLASS_LABEL: usize = 0;
const PAYLOAD_LENGTH: usize = 4;
const NEXT_HEADER: usize = 6;
const HOP_LIMIT: usize = 7;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;

/// A view over an IPv6 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> Ipv6View<B> {
    /// Views `bytes`, which begin with the version.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let header = bytes.as_ref();
        require("IPv6", header, IPV6_HEADER_LEN)?;
        let found = header[VERSION_CLASS_LABEL] >> 4;
        if found != 6 {
            return Err(WireError::BadVersion { header: "IPv6", found });
        }
        Ok(Ipv6View { bytes })
    }

    /// Traffic class: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        (be32(self.bytes.as_ref(), VERSION_CLASS_LABEL) >> 20) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        be32(self.bytes.as_ref(), VERSION_CLASS_LABEL) & 0x000f_ffff
    }

    /// Bytes after the fixed header, as the field says; 0 in a jumbogram.
    pub fn payload_len(&self) -> u16 {
        be16(self.bytes.as_ref(), PAYLOAD_LENGTH)
    }

    /// Type of what follows the fixed header ([`ip_protocol`]).
    pub fn next_header(&self) -> u8 {
        self.bytes.as_ref()[NEXT_HEADER]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.bytes.as_ref()[HOP_LIMIT]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(array::<16>(self.bytes.as_ref(), SOURCE))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(array::<16>(self.bytes.as_ref(), DESTINATION))
    }

    /// What follows the fixed header, up to the payload length or the end of the bytes.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.bytes.as_ref();
        let end = (IPV6_HEADER_LEN + usize::from(self.payload_len())).min(bytes.len());
        &bytes[IPV6_HEADER_LEN..end]
    }

    /// The extension headers, one after the other.
    pub fn extension_headers(&self) -> ExtensionHeaders<'_> {
        ExtensionHeaders { next: self.next_header(), rest: self.payload(), consumed: 0 }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv6View<B> {
    /// Makes `bytes` an IPv6 header with all other fields zero, and views it.
    pub fn init(mut bytes: B) -> Result<Self, WireError> {
        require("IPv6", bytes.as_ref(), IPV6_HEADER_LEN)?;
        let header = &mut bytes.as_mut()[..IPV6_HEADER_LEN];
        header.fill(0);
        header[VERSION_CLASS_LABEL] = 0x60;
        Ok(Ipv6View { bytes })
    }

    /// Sets traffic class and flow label (low 20 bits).
    pub fn set_class_and_label(&mut self, class: u8, label: u32) {
        let word = 6 << 28 | u32::from(class) << 20 | label & 0x000f_ffff;
        put32(self.bytes.as_mut(), VERSION_CLASS_LABEL, word);
    }

    /// Sets the number of bytes after the fixed header.
    pub fn set_payload_len(&mut self, length: u16) {
        put16(self.bytes.as_mut(), PAYLOAD_LENGTH, length);
    }

    /// Sets the type of what follows the fixed header.
    pub fn set_next_header(&mut self, protocol: u8) {
        self.bytes.as_mut()[NEXT_HEADER] = protocol;
    }

    /// Sets the hop limit.
    pub fn set_hop_limit(&mut self, hops: u8) {
        self.bytes.as_mut()[HOP_LIMIT] = hops;
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: Ipv6Addr) {
        self.bytes.as_mut()[SOURCE..SOURCE + 16].copy_from_slice(&address.octets());
    }

    /// Sets the destination address.
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        self.bytes.as_mut()[DESTINATION..DESTINATION + 16].copy_from_slice(&address.octets());
    }
}

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionHeader<'a> {
    /// Its own type ([`ip_protocol`]).
    pub kind: u8,
    /// The whole header, beginning with the type of the next one.
    pub bytes: &'a [u8],
}

impl ExtensionHeader<'_> {
    /// For a fragment header: offset in bytes and whether more fragments follow.
    pub fn fragment(&self) -> Option<(u32, bool)> {
        if self.kind != ip_protocol::FRAGMENT || self.bytes.len() < 8 {
            return None;
        }
        let field = be16(self.bytes, 2);
        Some((u32::from(field & 0xfff8), field & 1 == 1))
    }
}

/// Walks extension headers; ends at the first header of another kind, at a fragment that is not
/// the first (what follows is data from the middle), or at the first one that is cut off.
#[derive(Clone, Debug)]
pub struct ExtensionHeaders<'a> {
    next: u8,
    rest: &'a [u8],
    consumed: usize,
}

impl<'a> ExtensionHeaders<'a> {
    pub(crate) fn over(next: u8, rest: &'a [u8]) -> ExtensionHeaders<'a> {
        ExtensionHeaders { next, rest, consumed: 0 }
    }

    /// Type of what comes next: after the walk, the upper protocol, or an extension header's type
    /// when that one is cut off.
    pub fn next_header(&self) -> u8 {
        self.next
    }

    /// Bytes walked so far, from the end of the fixed header.
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    /// Whether the next thing is another extension header that this walk could not step over.
    pub fn is_cut_off(&self) -> bool {
        is_extension(self.next)
    }
}

fn is_extension(kind: u8) -> bool {
    matches!(
        kind,
        ip_protocol::HOP_BY_HOP
            | ip_protocol::ROUTING
            | ip_protocol::FRAGMENT
            | ip_protocol::AUTHENTICATION
            | ip_protocol::DESTINATION_OPTIONS
    )
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = ExtensionHeader<'a>;

    fn next(&mut self) -> Option<ExtensionHeader<'a>> {
        if !is_extension(self.next) {
            return None;
        }
        let units = usize::from(*self.rest.get(1)?);
        let len = match self.next {
            ip_protocol::FRAGMENT => 8,
            ip_protocol::AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        let header = ExtensionHeader { kind: self.next, bytes };
        self.next = bytes[0];
        self.rest = rest;
        self.consumed += len;
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_rfc_8200_has_them() {
        let mut view = Ipv6View::init([0u8; 44]).unwrap();
        view.set_class_and_label(0xab, 0x12345);
        view.set_payload_len(3);
        view.set_next_header(17);
        view.set_hop_limit(64);
        view.set_source(Ipv6Addr::LOCALHOST);
        assert_eq!(view.bytes[..8], [0x6a, 0xb1, 0x23, 0x45, 0, 3, 17, 64]);
        assert_eq!(view.bytes[23], 1);
        assert_eq!((view.traffic_class(), view.flow_label()), (0xab, 0x12345));
        assert_eq!(view.payload().len(), 3);
    }

    #[test]
    fn extension_headers_are_walked_to_the_upper_protocol() {
        let mut bytes = [0u8; 40 + 8 + 8 + 4];
        let mut view = Ipv6View::init(&mut bytes[..]).unwrap();
        view.set_payload_len(20);
        view.set_next_header(ip_protocol::HOP_BY_HOP);
        bytes[40] = ip_protocol::FRAGMENT;
        bytes[48..56].copy_from_slice(&[17, 0, 0x00, 0x09, 0, 0, 0, 1]);
        let view = Ipv6View::new(&bytes[..]).unwrap();
        let mut walk = view.extension_headers();
        assert_eq!(walk.next().unwrap().kind, ip_protocol::HOP_BY_HOP);
        assert_eq!(walk.next().unwrap().fragment(), Some((8, true)));
        assert_eq!(walk.next(), None);
        assert_eq!((walk.next_header(), walk.consumed()), (17, 16));
        assert!(!walk.is_cut_off());
    }

    #[test]
    fn a_cut_extension_header_ends_the_walk() {
        let mut walk = ExtensionHeaders::over(ip_protocol::ROUTING, &[17, 3, 0, 0]);
        assert_eq!(walk.next(), None);
        assert!(walk.is_cut_off());
    }
}
