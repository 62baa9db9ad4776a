//! UDP (RFC 768).

use super::{WireError, be16, put16, require};

/// Length of a UDP header in bytes.
pub const UDP_HEADER_LEN: usize = 8;

const SOURCE_PORT: usize = 0;
const DESTINATION_PORT: usize = 2;
const LENGTH: usize = 4;
pub(crate) const CHECKSUM: usize = 6;

/// A view over a UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> UdpView<B> {
    /// Views `bytes`, which begin with the source port.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        require("UDP", bytes.as_ref(), UDP_HEADER_LEN)?;
        Ok(UdpView { bytes })
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        be16(self.bytes.as_ref(), SOURCE_PORT)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        be16(self.bytes.as_ref(), DESTINATION_PORT)
    }

    /// Length of header and data in bytes, as the field says.
    pub fn length(&self) -> u16 {
        be16(self.bytes.as_ref(), LENGTH)
    }

    /// Checksum; 0 over IPv4 means none.
    pub fn checksum(&self) -> u16 {
        be16(self.bytes.as_ref(), CHECKSUM)
    }

    /// The data: up to the length field or the end of the bytes, whichever is first.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.bytes.as_ref();
        let end = usize::from(self.length()).clamp(UDP_HEADER_LEN, bytes.len());
        &bytes[UDP_HEADER_LEN..end]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> UdpView<B> {
    /// Sets the source port.
    pub fn set_source_port(&mut self, port: u16) {
        put16(self.bytes.as_mut(), SOURCE_PORT, port);
    }

    /// Sets the destination port.
    pub fn set_destination_port(&mut self, port: u16) {
        put16(self.bytes.as_mut(), DESTINATION_PORT, port);
    }

    /// Sets the length of header and data.
    pub fn set_length(&mut self, length: u16) {
        put16(self.bytes.as_mut(), LENGTH, length);
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put16(self.bytes.as_mut(), CHECKSUM, checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_rfc_768_has_them() {
        let mut view = UdpView::new([0u8; 10]).unwrap();
        view.set_source_port(0x0102);
        view.set_destination_port(0x0304);
        view.set_length(9);
        view.set_checksum(0x0506);
        assert_eq!(view.bytes, [1, 2, 3, 4, 0, 9, 5, 6, 0, 0]);
        assert_eq!(view.payload().len(), 1);
        view.set_length(3);
        assert_eq!(view.payload().len(), 0);
        view.set_length(300);
        assert_eq!(view.payload().len(), 2);
    }
}
