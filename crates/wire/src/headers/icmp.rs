//! ICMP for IPv4 (RFC 792) and for IPv6 (RFC 4443), which share one layout.

use super::{WireError, be16, put16, require};

/// Length of the fixed part of every ICMP message that we act on, in bytes.
pub const ICMP_HEADER_LEN: usize = 8;

const TYPE: usize = 0;
const CODE: usize = 1;
pub(crate) const CHECKSUM: usize = 2;
const IDENTIFIER: usize = 4;
const SEQUENCE: usize = 6;

/// ICMP message types for IPv4 that we act on.
pub mod icmp_type {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable: carries the packet that could not be delivered.
    pub const UNREACHABLE: u8 = 3;
    /// Source quench (obsolete): carries a packet.
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect: carries a packet.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded: carries a packet.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem: carries a packet.
    pub const PARAMETER_PROBLEM: u8 = 12;

    /// Whether a message asks and carries an identifier: echo, timestamp, information, address mask (RFC 792, RFC 950).
    #[inline]
    pub fn is_query(message: u8) -> bool {
        matches!(message, ECHO_REQUEST | 13 | 15 | 17)
    }

    /// Whether a message answers a query.
    #[inline]
    pub fn is_answer(message: u8) -> bool {
        matches!(message, ECHO_REPLY | 14 | 16 | 18)
    }

    /// Whether a message quotes the packet that caused it.
    #[inline]
    pub fn is_error(message: u8) -> bool {
        matches!(message, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
    }
}

/// ICMPv6 message types that we act on.
pub mod icmpv6_type {
    /// Destination unreachable: carries the packet that could not be delivered.
    pub const UNREACHABLE: u8 = 1;
    /// The packet is longer than the next link takes.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Hop limit used up, or reassembly took too long.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Who has an address (RFC 4861)?
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// Who has it.
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
    /// There is a better first hop.
    pub const REDIRECT: u8 = 137;

    /// Whether a message quotes the packet that caused it (RFC 4443, section 2.1).
    #[inline]
    pub fn is_error(message: u8) -> bool {
        message < 128
    }
}

/// A view over an ICMP or ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct IcmpView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> IcmpView<B> {
    /// Views `bytes`, which begin with the message type.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        require("ICMP", bytes.as_ref(), ICMP_HEADER_LEN)?;
        Ok(IcmpView { bytes })
    }

    /// Message type; its meaning depends on the IP version.
    pub fn message_type(&self) -> u8 {
        self.bytes.as_ref()[TYPE]
    }

    /// Code within the type.
    pub fn code(&self) -> u8 {
        self.bytes.as_ref()[CODE]
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        be16(self.bytes.as_ref(), CHECKSUM)
    }

    /// Identifier of an echo message.
    pub fn identifier(&self) -> u16 {
        be16(self.bytes.as_ref(), IDENTIFIER)
    }

    /// Sequence number of an echo message.
    pub fn sequence(&self) -> u16 {
        be16(self.bytes.as_ref(), SEQUENCE)
    }

    /// What follows the fixed part.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[ICMP_HEADER_LEN..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> IcmpView<B> {
    /// Sets type and code.
    pub fn set_type_and_code(&mut self, message_type: u8, code: u8) {
        let header = self.bytes.as_mut();
        header[TYPE] = message_type;
        header[CODE] = code;
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put16(self.bytes.as_mut(), CHECKSUM, checksum);
    }

    /// Sets the identifier of an echo message.
    pub fn set_identifier(&mut self, identifier: u16) {
        put16(self.bytes.as_mut(), IDENTIFIER, identifier);
    }

    /// Sets the sequence number of an echo message.
    pub fn set_sequence(&mut self, sequence: u16) {
        put16(self.bytes.as_mut(), SEQUENCE, sequence);
    }

    /// What follows the fixed part, writable.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut()[ICMP_HEADER_LEN..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_rfc_792_has_them() {
        let mut view = IcmpView::new([0u8; 9]).unwrap();
        view.set_type_and_code(icmp_type::UNREACHABLE, 3);
        view.set_checksum(0x0102);
        view.set_identifier(0x0304);
        view.set_sequence(0x0506);
        view.payload_mut()[0] = 7;
        assert_eq!(view.bytes, [3, 3, 1, 2, 3, 4, 5, 6, 7]);
        assert!(icmp_type::is_error(view.message_type()));
        assert!(IcmpView::new([0u8; 7]).is_err());
    }
}
