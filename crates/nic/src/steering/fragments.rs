//! Fragments: the first one of a packet has the ports, and later ones go after it.
//!
//! A small direct-mapped table knows where the first fragments of the last packets went, by what all
//! fragments have in common. A later one that comes before its first one, or whose line another packet
//! took meanwhile, goes by its addresses as without a table: holding it back would take memory for
//! whatever anybody sends. Software that needs the flow drops it by name. Lines need no age: a first
//! fragment always writes its own over what was there.

use nicforge_wire::{FrameSummary, IpAddresses};

/// Packets whose fragments are known at once.
const LINES: usize = 1024;

/// What all fragments of a packet have in common (RFC 791, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    addresses: u64,
    identification: u16,
    protocol: u8,
}

impl Key {
    /// `None` for IPv6: those fragments go by addresses, and so together.
    fn of(frame: &[u8], summary: &FrameSummary) -> Option<Key> {
        let IpAddresses::V4 {
            source,
            destination,
        } = summary.addresses
        else {
            return None;
        };
        let at = usize::from(summary.l3_offset) + 4;
        let &[high, low] = frame.get(at..at + 2)? else {
            return None;
        };
        Some(Key {
            addresses: u64::from(source.to_bits()) << 32 | u64::from(destination.to_bits()),
            identification: u16::from_be_bytes([high, low]),
            protocol: summary.protocol,
        })
    }

    fn line(&self) -> usize {
        // Identifications count up: packets that follow each other get lines of their own.
        let addresses = (self.addresses ^ self.addresses >> 32) as u32;
        let number = u32::from(self.identification) + u32::from(self.protocol);
        addresses.wrapping_mul(31).wrapping_add(number) as usize % LINES
    }
}

/// Where the first fragments of the last packets went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FragmentQueues {
    /// Empty until there is one.
    lines: Vec<Option<(Key, u16)>>,
}

impl FragmentQueues {
    /// Whether later fragments of the packet in `frame` will be found again.
    pub fn knows(frame: &[u8], summary: &FrameSummary) -> bool {
        Key::of(frame, summary).is_some()
    }

    /// The first fragment in `frame` went to `queue`.
    pub fn remember(&mut self, frame: &[u8], summary: &FrameSummary, queue: u16) {
        if let Some(key) = Key::of(frame, summary) {
            self.lines.resize(LINES, None);
            self.lines[key.line()] = Some((key, queue));
        }
    }

    /// Where the first fragment of the packet went that the later one in `frame` is of.
    pub fn find(&self, frame: &[u8], summary: &FrameSummary) -> Option<u16> {
        let key = Key::of(frame, summary)?;
        let (known, queue) = (*self.lines.get(key.line())?)?;
        (known == key).then_some(queue)
    }
}
