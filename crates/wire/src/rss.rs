//! Receive-side scaling: the Toeplitz hash and the indirection table (Microsoft, "RSS hashing
//! functions", Windows driver documentation), as NICs implement it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;

use nicforge_options::{Form, OptionType, Value};

use crate::parse::{FrameSummary, IpAddresses};

/// Length of a Toeplitz key in bytes: longest input (36 bytes) plus one window (4).
pub const KEY_LEN: usize = 40;
const INPUT_MAX: usize = 36;

/// A Toeplitz key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RssKey(pub [u8; KEY_LEN]);

impl RssKey {
    /// The key of Microsoft's verification suite, the default of many drivers.
    pub const MICROSOFT: RssKey = RssKey([
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca,
        0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b,
        0xbe, 0xac, 0x01, 0xfa,
    ]);
    /// The key that gives both directions of a flow the same hash: it repeats after 16 bits, the length of a port (Woo and
    /// Park, "Scalable TCP session monitoring with symmetric receive-side scaling", KAIST 2012).
    pub const SYMMETRIC: RssKey = {
        let mut key = [0x6d; KEY_LEN];
        let mut at = 1;
        while at < KEY_LEN {
            key[at] = 0x5a;
            at += 2;
        }
        RssKey(key)
    };
}

impl Default for RssKey {
    fn default() -> RssKey {
        RssKey::MICROSOFT
    }
}

impl fmt::Display for RssKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RssKey::MICROSOFT => f.write_str("microsoft"),
            RssKey::SYMMETRIC => f.write_str("symmetric"),
            RssKey(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// A text that is no Toeplitz key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is \"microsoft\", \"symmetric\" or 80 hexadecimal digits")]
pub struct NoKey;

impl FromStr for RssKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<RssKey, NoKey> {
        match text {
            "microsoft" => return Ok(RssKey::MICROSOFT),
            "symmetric" => return Ok(RssKey::SYMMETRIC),
            _ if text.len() != 2 * KEY_LEN || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                return Err(NoKey);
            }
            _ => {}
        }
        let mut key = [0; KEY_LEN];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| NoKey)?;
        }
        Ok(RssKey(key))
    }
}

/// How options take Toeplitz keys.
pub static RSS_KEY: Form = Form {
    says: "\"microsoft\", \"symmetric\" or 80 hexadecimal digits",
    parse: |text| Some(text.parse::<RssKey>().ok()?.to_string()),
};

impl OptionType for RssKey {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }

    fn from_value(value: &Value) -> Option<RssKey> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// The Toeplitz hash with one key. The hash is linear over xor, so what each value of each half of an input
/// byte contributes is computed once, and hashing is two look-ups per byte. (Tables of whole bytes would fill half of
/// a first-level cache, of which each hash looks at other lines.)
#[derive(Clone, Debug)]
pub struct Toeplitz {
    /// By place in the input, then by value: of the upper half of a byte, then of the lower.
    tables: Box<[[[u32; 16]; 2]; INPUT_MAX]>,
}

impl Default for Toeplitz {
    fn default() -> Toeplitz {
        Toeplitz::new(&RssKey::MICROSOFT)
    }
}

impl Toeplitz {
    /// A hash with this key.
    pub fn new(RssKey(key): &RssKey) -> Toeplitz {
        let mut tables = Box::new([[[0u32; 16]; 2]; INPUT_MAX]);
        for (place, halves) in tables.iter_mut().enumerate() {
            // The 40 key bits from bit 8 * place on; bit b of the byte sees 32 from its own on.
            let window = key[place..place + 5].iter().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
            for (first, table) in [0, 4].into_iter().zip(halves) {
                for (value, entry) in table.iter_mut().enumerate() {
                    *entry = (0..4)
                        .filter(|bit| value & (8 >> bit) != 0)
                        .fold(0, |hash, bit| hash ^ (window >> (8 - first - bit)) as u32);
                }
            }
        }
        Toeplitz { tables }
    }

    /// The hash of an IPv4 packet by addresses.
    #[inline]
    pub fn hash_ipv4(&self, source: Ipv4Addr, destination: Ipv4Addr) -> u32 {
        self.part(0, source.octets()) ^ self.part(4, destination.octets())
    }

    /// The hash of a TCP or UDP packet over IPv4 by addresses and ports.
    pub fn hash_ipv4_ports(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        source_port: u16,
        destination_port: u16,
    ) -> u32 {
        self.hash_ipv4(source, destination) ^ self.ports(8, source_port, destination_port)
    }

    /// The hash of an IPv6 packet by addresses.
    pub fn hash_ipv6(&self, source: Ipv6Addr, destination: Ipv6Addr) -> u32 {
        self.part(0, source.octets()) ^ self.part(16, destination.octets())
    }

    /// The hash of a TCP or UDP packet over IPv6 by addresses and ports.
    pub fn hash_ipv6_ports(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        source_port: u16,
        destination_port: u16,
    ) -> u32 {
        self.hash_ipv6(source, destination) ^ self.ports(32, source_port, destination_port)
    }

    /// The hash that a NIC gives a frame: addresses and ports for TCP and UDP that are not
    /// fragmented, addresses only for other IP packets, 0 for everything else.
    #[inline]
    pub fn hash(&self, summary: &FrameSummary) -> u32 {
        self.hash_by(summary, summary.has_ports() && !summary.is_fragment())
    }

    /// As [`hash`](Self::hash), with the ports of a first fragment, which are those of its packet.
    pub fn hash_as_whole(&self, summary: &FrameSummary) -> u32 {
        self.hash_by(summary, summary.has_ports())
    }

    #[inline]
    fn hash_by(&self, summary: &FrameSummary, by_ports: bool) -> u32 {
        let (by_addresses, ports_at) = match summary.addresses {
            IpAddresses::None => return 0,
            IpAddresses::V4 { source, destination } => (self.hash_ipv4(source, destination), 8),
            IpAddresses::V6 { source, destination } => (self.hash_ipv6(source, destination), 32),
        };
        if by_ports {
            by_addresses ^ self.ports(ports_at, summary.source_port, summary.destination_port)
        } else {
            by_addresses
        }
    }

    /// The hash of a TCP or UDP packet over IPv4: by source and destination, as they stand in its
    /// header, and its ports, as they stand in theirs.
    #[inline]
    pub(crate) fn hash_octets(&self, addresses: &[u8; 8], ports: &[u8; 4]) -> u32 {
        self.part(0, *addresses) ^ self.part(8, *ports)
    }

    #[inline]
    fn part<const N: usize>(&self, at: usize, bytes: [u8; N]) -> u32 {
        let tables = self.tables[at..at + N].iter();
        tables.zip(bytes).fold(0, |hash, ([upper, lower], byte)| {
            hash ^ upper[usize::from(byte >> 4)] ^ lower[usize::from(byte & 15)]
        })
    }

    #[inline]
    fn ports(&self, at: usize, source: u16, destination: u16) -> u32 {
        self.part(at, source.to_be_bytes()) ^ self.part(at + 2, destination.to_be_bytes())
    }
}

/// Entries of an indirection table.
pub const INDIRECTION_ENTRIES: usize = 128;

/// Which queue each hash goes to: by its low 7 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectionTable {
    queues: [u16; INDIRECTION_ENTRIES],
}

impl IndirectionTable {
    /// Entry i goes to queue i mod `queues` (at least 1).
    pub fn spread_over(queues: u16) -> IndirectionTable {
        IndirectionTable::spread(0..queues)
    }

    /// Entry i goes to the queue that is i mod their number (at least 1) after the first of
    /// `queues`.
    pub fn spread(queues: Range<u16>) -> IndirectionTable {
        let count = queues.len().max(1);
        IndirectionTable { queues: std::array::from_fn(|entry| queues.start + (entry % count) as u16) }
    }

    /// The entry that a hash selects.
    pub const fn entry(hash: u32) -> usize {
        hash as usize % INDIRECTION_ENTRIES
    }

    /// The queue that a hash goes to.
    pub fn queue(&self, hash: u32) -> u16 {
        self.queues[IndirectionTable::entry(hash)]
    }

    /// Sends an entry to another queue; entries beyond the table wrap around, as hashes do.
    pub fn set(&mut self, entry: usize, queue: u16) {
        self.queues[entry % INDIRECTION_ENTRIES] = queue;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_as_they_are_written() {
        let mut other = RssKey::MICROSOFT;
        other.0[39] = 0;
        for key in [RssKey::MICROSOFT, RssKey::SYMMETRIC, other] {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "6d5a", &"zz".repeat(KEY_LEN), &"é".repeat(KEY_LEN)] {
            assert_eq!(text.parse::<RssKey>(), Err(NoKey));
        }
    }

    #[test]
    fn the_symmetric_key_hashes_both_directions_alike() {
        let (a, b) = (Ipv4Addr::new(66, 9, 149, 187), Ipv4Addr::new(161, 142, 100, 80));
        let both = |key| {
            let rss = Toeplitz::new(&key);
            [rss.hash_ipv4_ports(a, b, 2794, 1766), rss.hash_ipv4_ports(b, a, 1766, 2794)]
        };
        let [there, back] = both(RssKey::SYMMETRIC);
        assert_eq!(there, back);
        let [there, back] = both(RssKey::MICROSOFT);
        assert_ne!(there, back);
    }

    #[test]
    fn the_table_spreads_round_robin_and_can_be_changed() {
        let mut table = IndirectionTable::spread_over(16);
        assert_eq!(table.queue(0x0000_0081), 1);
        assert_eq!(table.queue(0xffff_ff92), 2);
        table.set(1, 9);
        assert_eq!(table.queue(0x81), 9);
    }
}
