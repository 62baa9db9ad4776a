//! A connection on the NIC.

use nicforge_platform::sim::npu::ThreadId;
use nicforge_tcp::fast::Flow;
use nicforge_tcp::stack::FourTuple;
use nicforge_units::Time;

use crate::tas::records::SharedRecords;
use crate::tas::rings::{Mapped, SharedFlow};

/// A connection on the NIC.
#[derive(Debug)]
pub struct NicFlow {
    /// Its state: the fast path's.
    pub state: Flow,
    /// Both ends, ours first.
    pub tuple: FourTuple,
    /// Its rings in host memory.
    pub rings: SharedFlow,
    /// Its records, where messages lie in some.
    pub records: Option<SharedRecords>,
    /// Where the NIC's state of the record that it sends goes on.
    pub sealed_to: u32,
    /// Payload of a segment at most.
    pub mss: u32,
    /// Its flow-group.
    pub group: usize,
    /// The clock of its time stamps when it was installed, and when that was.
    pub clock: (u32, Time),
    /// Entries of its application so far, and how many come before the last, which closes: entries pass one another.
    pub entries: u16,
    pub closes_after: Option<u16>,
    /// Turns at its state: the next to give, the next to take.
    pub tickets: (u64, u64),
    /// Events whose turn has not come.
    pub waiting: Vec<(u64, ThreadId, u32)>,
    /// TX events at the protocol stage so far, and events of all kinds.
    pub departed: u64,
    pub version: u64,
    /// Events and messages of it that are under way.
    pub held: u64,
    /// The slow path has taken it away; its number is free once nothing is under way.
    pub is_gone: bool,
}

impl NicFlow {
    /// A connection without events, of the first flow-group, whose clock was something at some time.
    pub fn new(state: Flow, tuple: FourTuple, rings: SharedFlow, clock: (u32, Time)) -> NicFlow {
        NicFlow {
            state,
            tuple,
            rings,
            records: None,
            sealed_to: 0,
            mss: 0,
            group: 0,
            clock,
            entries: 0,
            closes_after: None,
            tickets: (0, 0),
            waiting: Vec::new(),
            departed: 0,
            version: 0,
            held: 0,
            is_gone: false,
        }
    }
}

impl NicFlow {
    /// The connection as its application maps it.
    pub fn mapped(&self) -> Mapped {
        Mapped { records: self.records.clone(), ..Mapped::from(self.rings) }
    }
}
