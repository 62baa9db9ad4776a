//! TCP with options (RFC 9293; options: RFC 7323, RFC 2018).

use super::{WireError, be16, be32, put16, put32, require};

/// Length of a TCP header without options, in bytes.
pub const TCP_MIN_HEADER_LEN: usize = 20;

const SOURCE_PORT: usize = 0;
const DESTINATION_PORT: usize = 2;
const SEQUENCE: usize = 4;
const ACKNOWLEDGMENT: usize = 8;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const WINDOW: usize = 14;
pub(crate) const CHECKSUM: usize = 16;
const URGENT: usize = 18;

/// The eight flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// Sender is done.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Reset.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Push.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgment number counts.
    pub const ACK: TcpFlags = TcpFlags(0x10);

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A view over a TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<B> {
    bytes: B,
    header_len: usize,
}

impl<B: AsRef<[u8]>> TcpView<B> {
    /// Views `bytes`, which begin with the source port and hold at least the whole header.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let header = bytes.as_ref();
        require("TCP", header, TCP_MIN_HEADER_LEN)?;
        let header_len = usize::from(header[DATA_OFFSET] >> 4) * 4;
        if header_len < TCP_MIN_HEADER_LEN {
            return Err(WireError::BadHeaderLength { header: "TCP", found: header_len, least: TCP_MIN_HEADER_LEN });
        }
        require("TCP", header, header_len)?;
        Ok(TcpView { bytes, header_len })
    }

    /// Length of the header with options, in bytes.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        be16(self.bytes.as_ref(), SOURCE_PORT)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        be16(self.bytes.as_ref(), DESTINATION_PORT)
    }

    /// Sequence number of the first data byte.
    pub fn sequence(&self) -> u32 {
        be32(self.bytes.as_ref(), SEQUENCE)
    }

    /// Next sequence number that the sender expects.
    pub fn acknowledgment(&self) -> u32 {
        be32(self.bytes.as_ref(), ACKNOWLEDGMENT)
    }

    /// Flags.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.bytes.as_ref()[FLAGS])
    }

    /// Receive window, unscaled.
    pub fn window(&self) -> u16 {
        be16(self.bytes.as_ref(), WINDOW)
    }

    /// Checksum.
    pub fn checksum(&self) -> u16 {
        be16(self.bytes.as_ref(), CHECKSUM)
    }

    /// Urgent pointer.
    pub fn urgent(&self) -> u16 {
        be16(self.bytes.as_ref(), URGENT)
    }

    /// The options, one after the other.
    pub fn options(&self) -> TcpOptions<'_> {
        TcpOptions { rest: &self.bytes.as_ref()[TCP_MIN_HEADER_LEN..self.header_len] }
    }

    /// The data.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_len..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> TcpView<B> {
    /// Makes `bytes` a TCP header of `header_len` bytes (a multiple of 4, 20 to 60), all other
    /// fields and options zero, and views it.
    pub fn init(mut bytes: B, header_len: usize) -> Result<Self, WireError> {
        let words = (header_len / 4).clamp(5, 15);
        require("TCP", bytes.as_ref(), words * 4)?;
        let header = &mut bytes.as_mut()[..words * 4];
        header.fill(0);
        header[DATA_OFFSET] = (words as u8) << 4;
        TcpView::new(bytes)
    }

    /// Sets the source port.
    pub fn set_source_port(&mut self, port: u16) {
        put16(self.bytes.as_mut(), SOURCE_PORT, port);
    }

    /// Sets the destination port.
    pub fn set_destination_port(&mut self, port: u16) {
        put16(self.bytes.as_mut(), DESTINATION_PORT, port);
    }

    /// Sets the sequence number.
    pub fn set_sequence(&mut self, number: u32) {
        put32(self.bytes.as_mut(), SEQUENCE, number);
    }

    /// Sets the acknowledgment number.
    pub fn set_acknowledgment(&mut self, number: u32) {
        put32(self.bytes.as_mut(), ACKNOWLEDGMENT, number);
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: TcpFlags) {
        self.bytes.as_mut()[FLAGS] = flags.0;
    }

    /// Sets the receive window.
    pub fn set_window(&mut self, window: u16) {
        put16(self.bytes.as_mut(), WINDOW, window);
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        put16(self.bytes.as_mut(), CHECKSUM, checksum);
    }

    /// The bytes of the options, writable.
    pub fn options_mut(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut()[TCP_MIN_HEADER_LEN..self.header_len]
    }
}

/// One TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Padding.
    NoOperation,
    /// Largest segment that the sender takes, in bytes.
    MaximumSegmentSize(u16),
    /// Shift of the window field.
    WindowScale(u8),
    /// Selective acknowledgments are understood.
    SackPermitted,
    /// Selective acknowledgment: pairs of edges, 8 bytes each.
    Sack(&'a [u8]),
    /// Sender's clock, and the clock that it echoes.
    Timestamps {
        /// Sender's clock.
        value: u32,
        /// The clock that it echoes.
        echo: u32,
    },
    /// Anything else.
    Other {
        /// Option kind.
        kind: u8,
        /// Its data, without kind and length bytes.
        data: &'a [u8],
    },
}

/// Walks the options of a header; ends at the end-of-list option or at the first malformed one.
#[derive(Clone, Debug)]
pub struct TcpOptions<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        let (kind, data, rest) = next_option(self.rest)?;
        self.rest = rest;
        Some(match (kind, data.len()) {
            (1, _) => TcpOption::NoOperation,
            (2, 2) => TcpOption::MaximumSegmentSize(be16(data, 0)),
            (3, 1) => TcpOption::WindowScale(data[0]),
            (4, 0) => TcpOption::SackPermitted,
            (5, _) => TcpOption::Sack(data),
            (8, 8) => TcpOption::Timestamps { value: be32(data, 0), echo: be32(data, 4) },
            _ => TcpOption::Other { kind, data },
        })
    }
}

/// Splits off the first option: its kind, data and the rest. IPv4 and TCP share the coding:
/// 0 ends the list, 1 is one byte of padding, all others have a length byte that counts itself
/// and the kind.
pub(super) fn next_option(options: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let kind = *options.first()?;
    match kind {
        0 => None,
        1 => Some((kind, &[], &options[1..])),
        _ => {
            let len = usize::from(*options.get(1)?);
            let data = options.get(2..len)?;
            Some((kind, data, &options[len..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_rfc_9293_has_them() {
        let mut view = TcpView::init([0u8; 24], 20).unwrap();
        view.set_source_port(0x0102);
        view.set_destination_port(0x0304);
        view.set_sequence(0x05060708);
        view.set_acknowledgment(0x090a0b0c);
        view.set_flags(TcpFlags::SYN);
        view.set_window(0x0e0f);
        view.set_checksum(0x1011);
        let expected = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x50, 2, 14, 15, 16, 17, 0, 0];
        assert_eq!(view.bytes[..20], expected);
        assert_eq!(view.payload().len(), 4);
        assert!(view.flags().contains(TcpFlags::SYN));
        assert!(!view.flags().contains(TcpFlags::ACK));
    }

    #[test]
    fn options_are_typed_and_end_when_malformed() {
        let mut view = TcpView::init([0u8; 40], 40).unwrap();
        let options = [2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        view.options_mut().copy_from_slice(&options);
        let read: Vec<_> = view.options().collect();
        assert_eq!(read[0], TcpOption::MaximumSegmentSize(1460));
        assert_eq!(read[2], TcpOption::WindowScale(7));
        assert_eq!(read[4], TcpOption::Timestamps { value: 1, echo: 2 });
        view.options_mut()[1] = 1;
        assert_eq!(view.options().count(), 0);
        view.options_mut()[1] = 200;
        assert_eq!(view.options().count(), 0);
    }

    #[test]
    fn a_data_offset_beyond_the_bytes_is_refused() {
        let mut bytes = [0u8; 20];
        bytes[12] = 0x60;
        assert!(TcpView::new(bytes).is_err());
        bytes[12] = 0x40;
        assert!(TcpView::new(bytes).is_err());
    }
}
