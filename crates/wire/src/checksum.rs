//! The Internet checksum: whole (RFC 1071), incremental (RFC 1624), and over the pseudo-headers of
//! TCP, UDP and ICMPv6 (RFC 9293 3.1, RFC 768, RFC 8200 8.1).

use crate::headers::{be16, icmp, ip_protocol, ipv4, put16, tcp, udp};
use crate::parse::{FrameSummary, IpAddresses};

/// A running ones-complement sum, for data that lies in several pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accumulator {
    sum: u64,
    odd: bool,
}

impl Accumulator {
    /// Nothing summed yet.
    pub fn new() -> Accumulator {
        Accumulator::default()
    }

    /// Adds the next piece; pieces may have odd lengths.
    pub fn add(&mut self, bytes: &[u8]) {
        let sum = u16::from_be(fold(native_sum(bytes)));
        // A piece that begins at an odd place has the halves of its words exchanged.
        let sum = if self.odd { sum.swap_bytes() } else { sum };
        self.sum += u64::from(sum);
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds one big-endian word. The pieces so far must have an even length together.
    pub fn add_word(&mut self, word: u16) {
        self.sum += u64::from(word);
    }

    /// The sum, folded to 16 bits.
    pub fn sum(self) -> u16 {
        fold(self.sum)
    }

    /// The checksum: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !self.sum()
    }
}

/// The sum in the machine's own byte order: RFC 1071 section 2(B) lets us swap at the end.
///
/// The sum of all words of 64 bits modulo 2^64, and that of their upper halves, are enough to know
/// the sums of both halves; and it is a loop for which the compiler has vector instructions.
#[inline(never)]
fn native_sum(bytes: &[u8]) -> u64 {
    inlined_sum(bytes)
}

/// Bytes up to which the loop below is faster without vector instructions than a call of it with them.
const SHORT: usize = 64;

/// The same, for bytes that are mostly few.
#[inline(always)]
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    if bytes.len() > SHORT {
        return native_sum(bytes);
    }
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = 0;
    for &word in words {
        let word = u64::from_ne_bytes(word);
        sum += (word & 0xffff_ffff) + (word >> 32);
    }
    sum + last_word(bytes, rest)
}

/// The same, for bytes whose number the compiler knows.
#[inline(always)]
fn inlined_sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (mut all, mut upper) = (0u64, 0u64);
    for &word in words {
        let word = u64::from_ne_bytes(word);
        all = all.wrapping_add(word);
        upper = upper.wrapping_add(word >> 32);
    }
    all.wrapping_sub(upper << 32) + upper + last_word(bytes, rest)
}

/// The sum of both halves of the word that begins with `rest`, less than 8 bytes at the end of
/// `bytes`, and goes on with zeros.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if rest.is_empty() {
        return 0;
    }
    let word = match bytes.last_chunk::<8>() {
        // Without a loop: the bytes before are shifted out.
        Some(&last) => u64::from_le_bytes(last) >> (64 - 8 * rest.len()),
        None => {
            let bytes = rest.iter().rev();
            bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
        }
    };
    let word = word.to_le();
    (word & 0xffff_ffff) + (word >> 32)
}

/// The sum of the four 16-bit words of `sum`, each carry added again at the bottom. Adding the halves in
/// exchanged places puts the carry out of the lower ones where it belongs.
#[inline]
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// The folded ones-complement sum of `bytes` as big-endian words; 0xffff over data that holds its
/// own right checksum.
pub fn sum(bytes: &[u8]) -> u16 {
    let mut total = Accumulator::new();
    total.add(bytes);
    total.sum()
}

/// The checksum of `bytes`: the complement of [`sum`].
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// The checksum after one 16-bit word of the data changed (RFC 1624 equation 3). For UDP, pass the
/// result through [`nonzero`], and leave a checksum of 0 (none) alone.
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The checksum after a 32-bit field at an even place of the data changed.
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    let high = update16(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update16(high, old as u16, new as u16)
}

/// A UDP checksum as it is sent: 0 would mean "none", and 0xffff is the same number (RFC 768).
pub const fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The sum of a TCP, UDP or ICMPv6 pseudo-header.
pub fn pseudo_header(addresses: &IpAddresses, protocol: u8, l4_len: u32) -> Accumulator {
    let mut total = Accumulator::new();
    match addresses {
        IpAddresses::None => {}
        IpAddresses::V4 { source, destination } => {
            total.add(&source.octets());
            total.add(&destination.octets());
        }
        IpAddresses::V6 { source, destination } => {
            total.add(&source.octets());
            total.add(&destination.octets());
        }
    }
    add_protocol_and_length(&mut total, protocol, l4_len);
    total
}

fn add_protocol_and_length(total: &mut Accumulator, protocol: u8, l4_len: u32) {
    total.add_word(u16::from(protocol));
    total.add_word((l4_len >> 16) as u16);
    total.add_word(l4_len as u16);
}

/// What [`verify`] found. `None`: there is nothing that could be verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksumVerdict {
    /// Whether the IPv4 header checksum is right. `None` for IPv6 and non-IP.
    pub l3: Option<bool>,
    /// Whether the TCP, UDP, ICMP or ICMPv6 checksum is right. `None` for other protocols,
    /// fragments, source-routed packets, and UDP over IPv4 without checksum.
    pub l4: Option<bool>,
}

/// Verifies the checksums of a frame of which `summary` is the summary. Where `frame` is only its
/// beginning, the rest of it is zeros.
#[inline]
pub fn verify(frame: &[u8], summary: &FrameSummary) -> ChecksumVerdict {
    ChecksumVerdict { l3: verify_l3(frame, summary), l4: verify_l4(frame, summary) }
}

/// Whether the IPv4 header's checksum is right; `None` where there is none.
#[inline]
pub fn verify_l3(frame: &[u8], summary: &FrameSummary) -> Option<bool> {
    ipv4_header(frame, summary).map(|header| {
        let sum = match <&[u8; ipv4::IPV4_MIN_HEADER_LEN]>::try_from(header) {
            Ok(header) => inlined_sum(header),
            Err(_) => native_sum(header),
        };
        fold(sum) == 0xffff
    })
}

#[inline]
fn verify_l4(frame: &[u8], summary: &FrameSummary) -> Option<bool> {
    let (segment, field) = l4_segment(frame, summary)?;
    let over_ipv4 = matches!(summary.addresses, IpAddresses::V4 { .. });
    if summary.protocol == ip_protocol::UDP && be16(segment, field) == 0 {
        // RFC 768: none. RFC 8200 8.1: over IPv6 there must be one.
        return if over_ipv4 { None } else { Some(false) };
    }
    // Whether the sum is 0xffff does not depend on the byte order.
    let protocol_and_length = match summary.protocol {
        ip_protocol::ICMP if over_ipv4 => 0,
        protocol => {
            let words = [protocol.into(), (summary.l4_len >> 16) as u16, summary.l4_len as u16];
            words.iter().map(|word| u64::from(word.to_be())).sum()
        }
    };
    let addresses = pseudo_addresses(frame, summary);
    let addresses = match <&[u8; 8]>::try_from(addresses) {
        Ok(of_ipv4) => inlined_sum(of_ipv4),
        Err(_) => native_sum(addresses),
    };
    let pseudo_header = addresses + protocol_and_length;
    Some(fold(pseudo_header + native_sum(segment)) == 0xffff)
}

/// Writes the IPv4 header checksum (`l3`) and the TCP, UDP, ICMP or ICMPv6 checksum (`l4`) of a
/// whole frame. Addresses and data are read from the frame, so that `summary` may come from before
/// a translation; only its offsets and lengths must still hold. What has no checksum or cannot
/// have it computed (fragments) is left alone. Returns what [`verify`] will say of what was written.
pub fn fill(frame: &mut [u8], summary: &FrameSummary, l3: bool, l4: bool) -> ChecksumVerdict {
    let mut verdict = ChecksumVerdict::default();
    if l3 && ipv4_header(frame, summary).is_some() {
        let at = usize::from(summary.l3_offset) + ipv4::CHECKSUM;
        put16(frame, at, 0);
        if let Some(header) = ipv4_header(frame, summary) {
            let mut total = Accumulator::new();
            total.add(header);
            put16(frame, at, total.checksum());
            verdict.l3 = Some(true);
        }
    }
    if l4 && let Some((_, field)) = l4_segment(frame, summary) {
        put16(frame, usize::from(summary.l4_offset) + field, 0);
        let Some((segment, _)) = l4_segment(frame, summary) else {
            return verdict;
        };
        let mut total = pseudo_header_of(frame, summary);
        total.add(segment);
        let value = match summary.protocol {
            ip_protocol::UDP => nonzero(total.checksum()),
            _ => total.checksum(),
        };
        put16(frame, usize::from(summary.l4_offset) + field, value);
        verdict.l4 = Some(true);
    }
    verdict
}

#[inline]
fn ipv4_header<'a>(frame: &'a [u8], summary: &FrameSummary) -> Option<&'a [u8]> {
    let IpAddresses::V4 { .. } = summary.addresses else {
        return None;
    };
    let start = usize::from(summary.l3_offset);
    let header_len = usize::from(frame.get(start)? & 0x0f) * 4;
    let header = frame.get(start..start + header_len)?;
    (header_len >= ipv4::IPV4_MIN_HEADER_LEN).then_some(header)
}

/// The L4 header with its data, and where in it the checksum is.
#[inline]
fn l4_segment<'a>(frame: &'a [u8], summary: &FrameSummary) -> Option<(&'a [u8], usize)> {
    if summary.is_fragment() || summary.source_routed || !summary.has_l4_header {
        return None;
    }
    let field = match summary.protocol {
        ip_protocol::TCP => tcp::CHECKSUM,
        ip_protocol::UDP => udp::CHECKSUM,
        _ => icmp::CHECKSUM,
    };
    let start = usize::from(summary.l4_offset);
    let end = (start + summary.l4_len as usize).min(frame.len());
    let segment = frame.get(start..end)?;
    (segment.len() >= field + 2).then_some((segment, field))
}

/// The pseudo-header with the addresses that are in the frame now. ICMP over IPv4 has none.
fn pseudo_header_of(frame: &[u8], summary: &FrameSummary) -> Accumulator {
    let mut total = Accumulator::new();
    let over_ipv4 = matches!(summary.addresses, IpAddresses::V4 { .. });
    if !over_ipv4 || summary.protocol != ip_protocol::ICMP {
        total.add(pseudo_addresses(frame, summary));
        add_protocol_and_length(&mut total, summary.protocol, summary.l4_len);
    }
    total
}

/// The addresses in the frame, as far as a pseudo-header has them.
#[inline]
fn pseudo_addresses<'a>(frame: &'a [u8], summary: &FrameSummary) -> &'a [u8] {
    let l3 = usize::from(summary.l3_offset);
    let addresses = match summary.addresses {
        IpAddresses::V4 { .. } if summary.protocol == ip_protocol::ICMP => None,
        IpAddresses::V4 { .. } => frame.get(l3 + 12..l3 + 20),
        IpAddresses::V6 { .. } => frame.get(l3 + 8..l3 + 40),
        IpAddresses::None => None,
    };
    addresses.unwrap_or_default()
}
