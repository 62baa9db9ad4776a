//! The fate of packets: outputs, causes of loss, counters.

use std::collections::BTreeMap;

use super::ir::Ir;

/// Why a packet did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketGone {
    /// The program dropped it.
    Dropped,
    /// It was for the NIC itself, which has it.
    Consumed,
    /// It made too many steps in loops.
    LoopLimit,
    /// It was cloned, resubmitted or recirculated too often.
    TooManyPasses,
    /// Its multicast group has no members.
    EmptyGroup,
    /// Its mirroring session does not exist.
    NoSession,
    /// An `assert` or `assume` failed.
    Assertion,
    /// It asked the DMA engine for more transfers than a packet may.
    TooManyTransfers,
}

impl PacketGone {
    /// Name for counters and traces.
    pub fn name(self) -> &'static str {
        match self {
            PacketGone::Dropped => "dropped by the program",
            PacketGone::Consumed => "consumed by the program",
            PacketGone::LoopLimit => "loop limit",
            PacketGone::TooManyPasses => "too many passes",
            PacketGone::EmptyGroup => "empty multicast group",
            PacketGone::NoSession => "no mirroring session",
            PacketGone::Assertion => "failed assertion",
            PacketGone::TooManyTransfers => "too many transfers",
        }
    }
}

/// The counts of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came in.
    pub received: u64,
    /// Packets that left, copies included.
    pub sent: u64,
    /// Parser errors by number, in the order of the program's errors.
    pub parser_errors: Vec<u64>,
    /// Packets that did not leave, by cause.
    pub gone: BTreeMap<&'static str, u64>,
}

impl Counters {
    pub(crate) fn new(ir: &Ir) -> Counters {
        Counters { parser_errors: vec![0; ir.errors.len().max(1)], ..Counters::default() }
    }
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<'a> {
    /// Port; none for the host.
    pub port: Option<u32>,
    /// Its bytes.
    pub packet: &'a [u8],
    /// Word for the host (`set_mark`).
    pub mark: u64,
    /// 24 bits for the host (`set_flags`).
    pub flags: u32,
    /// Receive queue of the host (`set_queue`).
    pub queue: Option<u16>,
}

impl Output<'_> {
    /// A copy that owns its bytes.
    pub fn to_owned(self) -> OwnedOutput {
        let Output { port, packet, mark, flags, queue } = self;
        OwnedOutput { port, packet: packet.to_vec(), mark, flags, queue }
    }
}

/// A packet that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedOutput {
    /// Port; none for the host.
    pub port: Option<u32>,
    /// Its bytes.
    pub packet: Vec<u8>,
    /// Word for the host.
    pub mark: u64,
    /// 24 bits for the host.
    pub flags: u32,
    /// Receive queue of the host.
    pub queue: Option<u16>,
}
