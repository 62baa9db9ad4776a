//! TCP flows that give way when a new flow finds no room: closing ones first, then unanswered ones.
//!
//! Each stands in two lists, the oldest first: of all flows of its kind, and of those of its inside host. The links lie in
//! the entry of its direction from inside, so that a flow leaves its lists at once, wherever it stands.

use bytemuck::{Pod, Zeroable};
use nicforge_platform::Cpu;
use nicforge_wire::headers::ip_protocol;

use super::entry::{CLOSING, NatEntry};
use crate::tables::Cuckoo;

/// Why a flow may give way, in the order in which flows do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It saw a FIN or RST.
    Closing = 1,
    /// It has packets one way only.
    Unanswered = 2,
}

impl Kind {
    /// That of the flow with these two entries, if it may give way.
    pub fn of(entry: &NatEntry, peer: &NatEntry) -> Option<Kind> {
        if entry.key.protocol() != ip_protocol::TCP {
            None
        } else if (entry.state | peer.state) & CLOSING != 0 {
            Some(Kind::Closing)
        } else {
            (entry.seen == 0 || peer.seen == 0).then_some(Kind::Unanswered)
        }
    }
}

/// The neighbours of a flow in a list, by the numbers of their entries, plus 1; 0: none.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Links {
    older: u32,
    newer: u32,
}

const OLDER: u64 = std::mem::offset_of!(Links, older) as u64;
const NEWER: u64 = std::mem::offset_of!(Links, newer) as u64;

/// The ends of a list, numbered likewise.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct Ends {
    oldest: u32,
    newest: u32,
}

/// The flows that may give way, by kind.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Waiting {
    of_kind: [Ends; 2],
}

impl Waiting {
    /// The flow that is missed least, by the number of its entry.
    pub fn first(&self) -> Option<u32> {
        self.of_kind.iter().find_map(|ends| ends.oldest.checked_sub(1))
    }

    fn ends(&mut self, kind: Kind) -> &mut Ends {
        &mut self.of_kind[kind as usize - 1]
    }

    /// Puts `flow` behind all others of its kind. `links` says where in an entry those of this list are.
    pub fn append<C: Cpu>(&mut self, cpu: &mut C, table: &Cuckoo<NatEntry>, links: u64, kind: Kind, flow: u32) {
        let ends = self.ends(kind);
        cpu.store(table.at(flow) + links, Links { older: ends.newest, newer: 0 });
        match ends.newest.checked_sub(1) {
            Some(before) => cpu.store(table.at(before) + links + NEWER, flow + 1),
            None => ends.oldest = flow + 1,
        }
        ends.newest = flow + 1;
    }

    /// Takes `flow` out of the list of `kind`.
    pub fn unlink<C: Cpu>(&mut self, cpu: &mut C, table: &Cuckoo<NatEntry>, links: u64, kind: Kind, flow: u32) {
        let ends = self.ends(kind);
        let Links { older, newer } = cpu.load(table.at(flow) + links);
        match older.checked_sub(1) {
            Some(before) => cpu.store(table.at(before) + links + NEWER, newer),
            None => ends.oldest = newer,
        }
        match newer.checked_sub(1) {
            Some(after) => cpu.store(table.at(after) + links + OLDER, older),
            None => ends.newest = older,
        }
    }
}
