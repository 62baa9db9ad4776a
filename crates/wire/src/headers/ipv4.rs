//! IPv4 with options (RFC 791).

use std::net::Ipv4Addr;

use super::{WireError, array, be16, put16, require};

/// Length of an IPv4 header without options, in bytes.
pub const IPV4_MIN_HEADER_LEN: usize = 20;

const VERSION_AND_LENGTH: usize = 0;
const TYPE_OF_SERVICE: usize = 1;
const TOTAL_LENGTH: usize = 2;
const IDENTIFICATION: usize = 4;
const FLAGS_AND_OFFSET: usize = 6;
const TIME_TO_LIVE: usize = 8;
const PROTOCOL: usize = 9;
pub(crate) const CHECKSUM: usize = 10;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// A view over an IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<B> {
    bytes: B,
    header_len: usize,
}

impl<B: AsRef<[u8]>> Ipv4View<B> {
    /// Views `bytes`, which begin with the version and hold at least the whole header.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let header = bytes.as_ref();
        require("IPv4", header, IPV4_MIN_HEADER_LEN)?;
        let found = header[VERSION_AND_LENGTH] >> 4;
        if found != 4 {
            return Err(WireError::BadVersion { header: "IPv4", found });
        }
        let header_len = usize::from(header[VERSION_AND_LENGTH] & 0x0f) * 4;
        if header_len < IPV4_MIN_HEADER_LEN {
            return Err(WireError::BadHeaderLength { header: "IPv4", found: header_len, least: IPV4_MIN_HEADER_LEN });
        }
        require("IPv4", header, header_len)?;
        Ok(Ipv4View { bytes, header_len })
    }

    /// Length of the header with options, in bytes.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Type of service: DSCP and ECN.
    pub fn type_of_service(&self) -> u8 {
        self.bytes.as_ref()[TYPE_OF_SERVICE]
    }

    /// Length of the packet in bytes, as the field says.
    pub fn total_len(&self) -> u16 {
        be16(self.bytes.as_ref(), TOTAL_LENGTH)
    }

    /// Identification, the same in all fragments of a packet.
    pub fn identification(&self) -> u16 {
        be16(self.bytes.as_ref(), IDENTIFICATION)
    }

    /// Whether routers must not fragment it.
    pub fn dont_fragment(&self) -> bool {
        be16(self.bytes.as_ref(), FLAGS_AND_OFFSET) & DONT_FRAGMENT != 0
    }

    /// Whether more fragments follow.
    pub fn more_fragments(&self) -> bool {
        be16(self.bytes.as_ref(), FLAGS_AND_OFFSET) & MORE_FRAGMENTS != 0
    }

    /// Place of this fragment in the packet, in bytes.
    pub fn fragment_offset(&self) -> u32 {
        u32::from(be16(self.bytes.as_ref(), FLAGS_AND_OFFSET) & 0x1fff) * 8
    }

    /// Whether this is a part of a packet only.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Time to live, in hops.
    pub fn time_to_live(&self) -> u8 {
        self.bytes.as_ref()[TIME_TO_LIVE]
    }

    /// Protocol of the payload ([`super::ip_protocol`]).
    pub fn protocol(&self) -> u8 {
        self.bytes.as_ref()[PROTOCOL]
    }

    /// Header checksum.
    pub fn checksum(&self) -> u16 {
        be16(self.bytes.as_ref(), CHECKSUM)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.bytes.as_ref(), SOURCE))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.bytes.as_ref(), DESTINATION))
    }

    /// The header with its options.
    pub fn header(&self) -> &[u8] {
        &self.bytes.as_ref()[..self.header_len]
    }

    /// The options, one after the other.
    pub fn options(&self) -> Ipv4Options<'_> {
        Ipv4Options { rest: &self.bytes.as_ref()[IPV4_MIN_HEADER_LEN..self.header_len] }
    }

    /// What follows the header, up to the total length or the end of the bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_len..self.end()]
    }

    fn end(&self) -> usize {
        usize::from(self.total_len()).clamp(self.header_len, self.bytes.as_ref().len())
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv4View<B> {
    /// Makes `bytes` an IPv4 header of `header_len` bytes (a multiple of 4, 20 to 60), all other
    /// fields and options zero, and views it.
    pub fn init(mut bytes: B, header_len: usize) -> Result<Self, WireError> {
        let words = (header_len / 4).clamp(5, 15);
        require("IPv4", bytes.as_ref(), words * 4)?;
        let header = &mut bytes.as_mut()[..words * 4];
        header.fill(0);
        header[VERSION_AND_LENGTH] = 0x40 | words as u8;
        Ipv4View::new(bytes)
    }

    /// Sets the type of service.
    pub fn set_type_of_service(&mut self, value: u8) {
        self.bytes.as_mut()[TYPE_OF_SERVICE] = value;
    }

    /// Sets the length of the packet.
    pub fn set_total_len(&mut self, length: u16) {
        put16(self.bytes.as_mut(), TOTAL_LENGTH, length);
    }

    /// Sets the identification.
    pub fn set_identification(&mut self, value: u16) {
        put16(self.bytes.as_mut(), IDENTIFICATION, value);
    }

    /// Sets the flags and the place of this fragment (in bytes, a multiple of 8).
    pub fn set_fragment(&mut self, dont_fragment: bool, more_fragments: bool, offset: u32) {
        let flags = if dont_fragment { DONT_FRAGMENT } else { 0 } | if more_fragments { MORE_FRAGMENTS } else { 0 };
        let value = flags | (offset / 8) as u16 & 0x1fff;
        put16(self.bytes.as_mut(), FLAGS_AND_OFFSET, value);
    }

    /// Sets the time to live.
    pub fn set_time_to_live(&mut self, hops: u8) {
        self.bytes.as_mut()[TIME_TO_LIVE] = hops;
    }

    /// Sets the protocol of the payload.
    pub fn set_protocol(&mut self, protocol: u8) {
        self.bytes.as_mut()[PROTOCOL] = protocol;
    }

    /// Sets the header checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put16(self.bytes.as_mut(), CHECKSUM, checksum);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: Ipv4Addr) {
        self.bytes.as_mut()[SOURCE..SOURCE + 4].copy_from_slice(&address.octets());
    }

    /// Sets the destination address.
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        self.bytes.as_mut()[DESTINATION..DESTINATION + 4].copy_from_slice(&address.octets());
    }

    /// What follows the header, writable.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.end();
        &mut self.bytes.as_mut()[self.header_len..end]
    }
}

/// One IPv4 option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Option<'a> {
    /// Option type with copy flag and class.
    pub kind: u8,
    /// Its data, without type and length bytes.
    pub data: &'a [u8],
}

/// Walks the options of a header; ends at the end-of-list option or at the first malformed one.
#[derive(Clone, Debug)]
pub struct Ipv4Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Ipv4Options<'a> {
    type Item = Ipv4Option<'a>;

    fn next(&mut self) -> Option<Ipv4Option<'a>> {
        let (kind, data, rest) = super::tcp::next_option(self.rest)?;
        self.rest = rest;
        Some(Ipv4Option { kind, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_rfc_791_has_them() {
        let mut bytes = [0xffu8; 32];
        let mut view = Ipv4View::init(&mut bytes[..], 24).unwrap();
        view.set_type_of_service(0x12);
        view.set_total_len(30);
        view.set_identification(0x3456);
        view.set_fragment(true, true, 0x0808);
        view.set_time_to_live(64);
        view.set_protocol(17);
        view.set_checksum(0x789a);
        view.set_source(Ipv4Addr::new(1, 2, 3, 4));
        view.set_destination(Ipv4Addr::new(5, 6, 7, 8));
        assert_eq!(view.payload().len(), 6);
        assert!(view.is_fragment() && view.dont_fragment() && view.more_fragments());
        assert_eq!(view.fragment_offset(), 0x0808);
        let expected =
            [0x46, 0x12, 0, 30, 0x34, 0x56, 0x61, 0x01, 64, 17, 0x78, 0x9a, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];
        assert_eq!(view.header(), expected);
    }

    #[test]
    fn options_end_at_the_first_malformed_one() {
        let mut bytes = [0u8; 28];
        Ipv4View::init(&mut bytes[..], 28).unwrap();
        bytes[20..28].copy_from_slice(&[1, 0x94, 4, 0, 0, 7, 60, 0]);
        let view = Ipv4View::new(&bytes[..]).unwrap();
        let options: Vec<_> = view.options().collect();
        assert_eq!(options.len(), 2);
        assert_eq!((options[1].kind, options[1].data), (0x94, &[0u8, 0][..]));
    }

    #[test]
    fn absurd_lengths_are_refused_or_clipped() {
        assert!(Ipv4View::new([0x65u8; 20]).is_err());
        assert!(Ipv4View::new([0x44u8; 20]).is_err());
        assert!(Ipv4View::new([0x46u8; 20]).is_err());
        let view = Ipv4View::new([0x45u8; 21]).unwrap();
        assert_eq!(view.payload().len(), 1);
    }
}
