//! The frames that nearly all are, in one short walk: Ethernet, IPv4 without options or fragments, TCP or
//! UDP. Parser, checksums and hash say of them what [`parse_headers`](crate::parse_headers),
//! [`checksum::verify`](crate::checksum::verify) and [`Toeplitz::hash`] say, for a fraction of the
//! instructions; a test compares the two.

use std::net::Ipv4Addr;

use crate::checksum::{ChecksumVerdict, fold, sum_of};
use crate::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, TCP_MIN_HEADER_LEN, UDP_HEADER_LEN};
use crate::headers::{array, be16, ip_protocol};
use crate::rss::Toeplitz;
use crate::{Fragment, FrameSummary, IpAddresses};

const L3: usize = ETHERNET_HEADER_LEN;
const L4: usize = L3 + IPV4_MIN_HEADER_LEN;
/// Bytes of headers that all of these frames have.
const HEADERS: usize = L4 + UDP_HEADER_LEN;
/// EtherType of IPv4, and version 4 with a header of five words.
const BEGINS: [u8; 3] = [0x08, 0x00, 0x45];
/// Offset and "more fragments".
const FRAGMENT: u16 = 0x3fff;

/// What a NIC finds out about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Where everything is.
    pub summary: FrameSummary,
    /// Where the headers end.
    pub headers_end: usize,
    /// Its checksums.
    pub verdict: ChecksumVerdict,
    /// Its RSS hash.
    pub rss_hash: u32,
}

/// Looks at a frame of `frame_len` bytes of which `bytes` are the first, and all others are zero.
/// `None`: it is none of these, or malformed, or too short; the general functions tell.
#[inline(always)]
pub fn parse_plain(bytes: &[u8], frame_len: usize, rss: &Toeplitz) -> Option<Plain> {
    let (summary, headers_end) = summary_of(bytes, frame_len)?;
    let headers = bytes.first_chunk::<HEADERS>()?;
    let (protocol, l4_len) = (summary.protocol, summary.l4_len);
    let has_checksum = protocol != ip_protocol::UDP || be16(headers, L4 + 6) != 0;
    let end = bytes.len().min(L4 + l4_len as usize);
    let addresses: &[u8; 8] = headers[L3 + 12..].first_chunk()?;
    let ports: &[u8; 4] = headers[L4..].first_chunk()?;
    let l4_good = || {
        let pseudo = [u16::from(protocol).to_be(), (l4_len as u16).to_be()];
        let pseudo = pseudo.map(u64::from).iter().sum::<u64>() + sum_of(addresses);
        fold(pseudo + sum_of(&bytes[L4..end])) == 0xffff
    };
    Some(Plain {
        verdict: ChecksumVerdict { l3: Some(fold(sum_of(&headers[L3..L4])) == 0xffff), l4: has_checksum.then(l4_good) },
        rss_hash: rss.hash_octets(addresses, ports),
        headers_end,
        summary,
    })
}

/// Where everything is in such a frame, and where its headers end. `None` as above.
// Always inlined, as no caller needs all of it: a call would store it in pieces, and a caller that loads several of
// them at once soon after waits for all stores before.
#[inline(always)]
pub(crate) fn summary_of(bytes: &[u8], frame_len: usize) -> Option<(FrameSummary, usize)> {
    let frame_len = u32::try_from(frame_len.max(bytes.len())).ok()?;
    let headers = bytes.first_chunk::<HEADERS>()?;
    let total_len = u32::from(be16(headers, L3 + 2));
    let l4_len = total_len.checked_sub(IPV4_MIN_HEADER_LEN as u32)?;
    let l3_end = L3 as u32 + total_len;
    let whole = be16(headers, L3 + 6) & FRAGMENT == 0 && l3_end <= frame_len;
    if headers[L3 - 2..=L3] != BEGINS || !whole {
        return None;
    }
    let protocol = headers[L3 + 9];
    let (l4_len, header_len) = match protocol {
        ip_protocol::UDP => {
            let length = u32::from(be16(headers, L4 + 4));
            let fits = length >= UDP_HEADER_LEN as u32 && length <= l4_len;
            fits.then_some((length, UDP_HEADER_LEN))?
        }
        ip_protocol::TCP => {
            let of_tcp = bytes[L4..].first_chunk::<TCP_MIN_HEADER_LEN>()?;
            let header_len = usize::from(of_tcp[12] >> 4) * 4;
            let fits = header_len >= TCP_MIN_HEADER_LEN && header_len as u32 <= l4_len;
            fits.then_some((l4_len, header_len))?
        }
        _ => return None,
    };
    let summary = FrameSummary {
        frame_len,
        l3_end,
        l4_len,
        l3_offset: L3 as u16,
        l4_offset: L4 as u16,
        ethertype: be16(headers, L3 - 2),
        source_port: be16(headers, L4),
        destination_port: be16(headers, L4 + 2),
        vlan_tags: 0,
        protocol,
        fragment: Fragment::Whole,
        has_l4_header: true,
        source_routed: false,
        addresses: IpAddresses::V4 {
            source: Ipv4Addr::from(array(headers, L3 + 12)),
            destination: Ipv4Addr::from(array(headers, L3 + 16)),
        },
    };
    Some((summary, L4 + header_len))
}
