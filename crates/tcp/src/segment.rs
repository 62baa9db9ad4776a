//! A segment's header as values: parse, emit, and the options that this stack knows.

use nicforge_wire::headers::{TCP_MIN_HEADER_LEN, TcpFlags, TcpView, WireError};

use crate::options::Options;
use crate::seq::Seq;

/// The flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronises sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Resets the connection.
    pub const RST: Flags = Flags(0x04);
    /// Pushes data to the application.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x20);
    /// Echoes a congestion mark (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window is reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all flags of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    pub const fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These without those of `other`.
    #[inline]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// These and, when `set` holds, `other`.
    #[inline]
    pub const fn with_if(self, set: bool, other: Flags) -> Flags {
        if set { self.with(other) } else { self }
    }
}

/// The ECN field of an IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not use ECN.
    #[default]
    NotCapable = 0,
    /// ECN capable, code point 1.
    Capable1 = 1,
    /// ECN capable, code point 0: what this stack sends.
    Capable0 = 2,
    /// A router marked congestion.
    Marked = 3,
}

impl Ecn {
    /// From the type-of-service octet.
    pub const fn from_tos(tos: u8) -> Ecn {
        match tos & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }
}

/// A TCP header as values. Windows are as on the wire, unscaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: Seq,
    /// Acknowledgment number; meaningful with [`Flags::ACK`].
    pub ack: Seq,
    /// Flags.
    pub flags: Flags,
    /// The window field.
    pub window: u16,
    /// The urgent pointer; meaningful with [`Flags::URG`].
    pub urgent: u16,
    /// Options.
    pub options: Options,
    /// Bytes of payload behind the header.
    pub payload_len: u32,
}

impl Header {
    /// Parses `segment`, which begins with the source port and ends where the IP payload ends.
    pub fn parse(segment: &[u8]) -> Result<Header, WireError> {
        let view = TcpView::new(segment)?;
        Ok(Header {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            seq: Seq(view.sequence()),
            ack: Seq(view.acknowledgment()),
            flags: Flags(view.flags().0),
            window: view.window(),
            urgent: view.urgent(),
            options: Options::parse(&segment[TCP_MIN_HEADER_LEN..view.header_len()]),
            payload_len: (segment.len() - view.header_len()) as u32,
        })
    }

    /// Length of the emitted header in bytes, options included.
    pub fn emitted_len(&self) -> usize {
        TCP_MIN_HEADER_LEN + self.options.emitted_len()
    }

    /// Writes the header with a zero checksum to the beginning of `out`; returns its length in bytes.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let len = self.emitted_len();
        let mut view = TcpView::init(&mut *out, len)?;
        view.set_source_port(self.source_port);
        view.set_destination_port(self.destination_port);
        view.set_sequence(self.seq.0);
        view.set_acknowledgment(if self.flags.has(Flags::ACK) { self.ack.0 } else { 0 });
        view.set_flags(TcpFlags(self.flags.0));
        view.set_window(self.window);
        self.options.emit(view.options_mut());
        if self.flags.has(Flags::URG) {
            out[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        }
        Ok(len)
    }

    /// Sequence numbers that the segment takes: its bytes, SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u32 {
        self.payload_len + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }

    /// First sequence number after the segment.
    #[inline]
    pub fn end(&self) -> Seq {
        self.seq + self.seq_len()
    }
}
