//! A flow's entries in the table.

use bytemuck::{Pod, Zeroable};

use super::waiting::{Kind, Links};
use crate::tables::{Entry, FlowKey};

/// One direction of a flow, in one line.
///
/// | bytes | field | |
/// | --- | --- | --- |
/// | 0–15 | `key` | 5-tuple as it arrives, and the side it arrives from |
/// | 16–23 | `seen` | time of the last packet in this direction, ps; 0: none yet |
/// | 24–29 | `address`, `port` | what replaces the inner end |
/// | 30 | `state` | bit 0: in use, bit 1: saw FIN or RST, bit 2: shares its external port |
/// | 31 | `waits` | why it may give way ([`Kind`]), 0: it may not; from inside only, as what follows `peer` |
/// | 32–35 | `peer` | number of the other direction's entry |
/// | 36–43 | `of_all` | its neighbours among all flows that may give way so |
/// | 44–51 | `of_host` | its neighbours among those of its inside host |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NatEntry {
    /// The 5-tuple as it arrives.
    pub key: FlowKey,
    /// Time of the last packet in this direction, ps; 0: none yet.
    pub seen: u64,
    /// The replacing address.
    pub address: u32,
    /// The replacing port or echo identifier.
    pub port: u16,
    /// [`IN_USE`], [`CLOSING`], [`SHARED`].
    pub state: u8,
    /// Why the flow may give way, as [`NatEntry::waits`] reads it.
    pub waits: u8,
    /// The entry of the other direction.
    pub peer: u32,
    /// Neighbours among all flows that may give way so.
    pub of_all: Links,
    /// Neighbours among those of the inside host.
    pub of_host: Links,
    /// 0.
    pub unused: [u32; 3],
}

/// Where `seen` is.
pub const SEEN: u64 = 16;
/// Where `state` is.
pub const STATE: u64 = 30;
/// Where `waits` is.
pub const WAITS: u64 = 31;
/// Where `peer` is.
pub const PEER: u64 = 32;
/// Where `of_all` is.
pub const OF_ALL: u64 = std::mem::offset_of!(NatEntry, of_all) as u64;
/// Where `of_host` is.
pub const OF_HOST: u64 = std::mem::offset_of!(NatEntry, of_host) as u64;
/// The flow exists.
pub const IN_USE: u8 = 1;
/// It saw a FIN or RST.
pub const CLOSING: u8 = 2;
/// Its external port is one that flows to other destinations have, too.
pub const SHARED: u8 = 4;

impl NatEntry {
    /// Which lists of flows that may give way the flow is in.
    pub fn waits(&self) -> Option<Kind> {
        [Kind::Closing, Kind::Unanswered].into_iter().find(|&kind| kind as u8 == self.waits)
    }
}

impl Entry for NatEntry {
    type Key = FlowKey;

    #[inline]
    fn key(&self) -> FlowKey {
        self.key
    }

    #[inline]
    fn hash(key: &FlowKey) -> u64 {
        key.hash()
    }

    #[inline]
    fn in_use(&self) -> bool {
        self.state & IN_USE != 0
    }
}
