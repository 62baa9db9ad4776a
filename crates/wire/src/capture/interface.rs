//! What a capture says of an interface: how the packets of it are to be read.

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, PcapHeader, PcapNGOption};

use super::error::CaptureProblem;
use super::link::LinkType;

/// Bits of a pcap header's link type field that must be zero.
const LINK_TYPE_RESERVED: u32 = 0x03ff_0000;
/// The bit of a pcap header's link type field that says that its highest four are the length of the FCS.
const FCS_LENGTH_KNOWN: u32 = 1 << 26;
const NS_PER_SECOND: i128 = 1_000_000_000;
/// The type of a pcapng interface description block.
const INTERFACE_DESCRIPTION: u32 = 1;
/// Option of an interface description block: the length of the FCS.
const IF_FCSLEN: OptionCode = OptionCode(13);
/// Option of an enhanced packet block: flags.
const EPB_FLAGS: OptionCode = OptionCode(2);

/// How packets of one interface are to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    /// The link type, or the number of one that we do not read.
    pub(super) link: Result<LinkType, i32>,
    /// Bytes of FCS at the end of each packet.
    pub(super) fcs_bytes: u32,
    /// Most bytes of a packet that were captured; 0 when there is no limit.
    snap_bytes: u32,
    /// Time stamp units per second; `None` when the file says something absurd.
    units_per_second: Option<i128>,
    /// Seconds to add to time stamps.
    offset_seconds: i64,
}

impl Interface {
    /// The only interface of a pcap file.
    pub(super) fn of_header(header: &PcapHeader) -> Result<Interface, CaptureProblem> {
        if header.version_major != 2 {
            return Err(CaptureProblem::UnsupportedVersion {
                major: header.version_major,
                minor: header.version_minor,
            });
        }
        // The link type is the lower half; the other one says how long the FCS is, in words of 16 bits
        // (draft-ietf-opsawg-pcap, section 4). Where its reserved bits are set, libpcap reads nothing either.
        let field = header.network.0 as u32;
        let number = match field & LINK_TYPE_RESERVED {
            0 => (field & 0xffff) as i32,
            _ => header.network.0,
        };
        let link = LinkType::from_number(number).ok_or(CaptureProblem::UnsupportedLinkType(number))?;
        let fcs_bytes = match field & FCS_LENGTH_KNOWN {
            0 => 0,
            _ => (field >> 28) * 2,
        };
        Ok(Interface {
            link: Ok(link),
            fcs_bytes,
            snap_bytes: 0,
            units_per_second: Some(if header.is_nanosecond_precision() { NS_PER_SECOND } else { 1_000_000 }),
            offset_seconds: 0,
        })
    }

    /// One of a pcapng file. What its options say is read here: the parser takes them for little-endian
    /// wherever they are numbers, and knows no time stamps in powers of two.
    pub(super) fn of_description(description: &InterfaceDescriptionBlock<'_>) -> Interface {
        let number = description.linktype.0;
        let option = |code| option(&description.options, code);
        let units_per_second = match option(OptionCode::IfTsresol) {
            None => Some(1_000_000),
            Some([power]) => units_per_second(*power),
            Some(_) => None,
        };
        let offset = option(OptionCode::IfTsoffset).and_then(|bytes| bytes.try_into().ok());
        let little = description.block_type == INTERFACE_DESCRIPTION;
        let fcs_bytes = match option(IF_FCSLEN) {
            Some(&[length]) => fcs_bytes(length),
            _ => 0,
        };
        Interface {
            link: LinkType::from_number(number).ok_or(number),
            fcs_bytes,
            snap_bytes: description.snaplen,
            units_per_second,
            offset_seconds: offset
                .map_or(0, |bytes| if little { i64::from_le_bytes(bytes) } else { i64::from_be_bytes(bytes) }),
        }
    }

    /// Most bytes of a packet that were captured.
    pub(super) fn snap_bytes(&self) -> usize {
        match self.snap_bytes {
            0 => usize::MAX,
            bytes => bytes as usize,
        }
    }

    /// A time stamp as nanoseconds since 1970.
    pub(super) fn ns(&self, units: impl Into<i128>) -> Result<i128, CaptureProblem> {
        let per_second = self.units_per_second.ok_or(CaptureProblem::TimeUnit)?;
        let ns = units.into() * NS_PER_SECOND / per_second;
        Ok(ns + i128::from(self.offset_seconds) * NS_PER_SECOND)
    }

    /// A time stamp of seconds and a fraction, which is less than a second in the end, and whether it was.
    pub(super) fn ns_of_parts(&self, seconds: u32, fraction: u32) -> Result<(i128, bool), CaptureProblem> {
        let per_second = self.units_per_second.ok_or(CaptureProblem::TimeUnit)?;
        let within = i128::from(fraction).min(per_second - 1);
        let ns = self.ns(i128::from(seconds) * per_second + within)?;
        Ok((ns, within == i128::from(fraction)))
    }
}

/// The FCS of one packet, in bytes, where its flags say how long it is.
pub(super) fn fcs_bytes_of(packet: &EnhancedPacketBlock<'_>) -> Option<u32> {
    let bytes: [u8; 4] = option(&packet.options, EPB_FLAGS)?.try_into().ok()?;
    let flags = if packet.big_endian() { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    // draft-ietf-opsawg-pcapng, section 4.3.1: in bytes; 0 where nobody knows.
    Some(flags >> 5 & 0xf).filter(|&bytes| bytes > 0)
}

/// `if_fcslen` in bytes. It is in bits (draft-ietf-opsawg-pcapng, section 4.2), but some write bytes: there is no
/// FCS of less than a byte, nor one of more than seven.
fn fcs_bytes(length: u8) -> u32 {
    match u32::from(length) {
        bytes @ 0..8 => bytes,
        bits => bits / 8,
    }
}

/// What `if_tsresol` says: a negative power of two where its highest bit is set, of ten elsewhere.
fn units_per_second(power: u8) -> Option<i128> {
    let base: i128 = if power & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(u32::from(power & 0x7f))
}

/// The value of an option, where it is there.
fn option<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    let mut before_end = options.iter().take_while(|option| option.code != OptionCode::EndOfOpt);
    before_end.find(|option| option.code == code)?.as_bytes().ok()
}
