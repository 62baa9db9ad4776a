//! Fragments: the first one of a packet has the ports, and later ones go after it.
//!
//! A small direct-mapped table knows where the first fragments of the last packets went, by what all
//! fragments have in common. A later one that comes before its first one, or whose line another packet
//! took meanwhile, goes by its addresses as without a table: holding it back would take memory for
//! whatever arrives. Software that needs the flow drops it by name. Lines need no age: a first
//! fragment always writes its own over what was there.

use nicforge_wire::PacketId;

/// Packets whose fragments are known at once.
const LINES: usize = 1024;

fn line(id: PacketId) -> usize {
    // Identifications count up: packets that follow each other get lines of their own.
    let addresses = (id.addresses ^ id.addresses >> 32) as u32;
    let number = u32::from(id.identification) + u32::from(id.protocol);
    addresses.wrapping_mul(31).wrapping_add(number) as usize % LINES
}

/// Where the first fragments of the last packets went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FragmentQueues {
    /// Empty until there is one.
    lines: Vec<Option<(PacketId, u16)>>,
}

impl FragmentQueues {
    /// The first fragment of packet `id` went to `queue`.
    pub fn remember(&mut self, id: PacketId, queue: u16) {
        self.lines.resize(LINES, None);
        self.lines[line(id)] = Some((id, queue));
    }

    /// Where the first fragment of packet `id` went.
    pub fn find(&self, id: PacketId) -> Option<u16> {
        let (known, queue) = (*self.lines.get(line(id))?)?;
        (known == id).then_some(queue)
    }
}
