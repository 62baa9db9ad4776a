//! What goes out of a NIC.

use nicforge_units::Time;

use crate::{PortId, TxOffload};

/// A frame that leaves the machine.
#[derive(Debug)]
pub struct Departure<'a> {
    /// Out of this port.
    pub port: PortId,
    /// The transmit queue that it comes from; `None` for one that a stage sent.
    pub queue: Option<u16>,
    /// The frame without FCS, in the pieces that it was gathered from.
    pub pieces: &'a [&'a [u8]; 3],
    /// What is left to do for it: nothing, but where the engine leaves that to others
    /// ([`TransmitEngine::leave_unfinished`](super::TransmitEngine::leave_unfinished)).
    pub left: TxOffload,
    /// What its descriptor carried.
    pub stamp: Time,
    /// When its last bit is on the wire.
    pub last_bit: Time,
}

impl Departure<'_> {
    /// Bytes of the frame.
    #[inline]
    pub fn frame_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }
}

/// A frame that leaves by another NIC's port.
#[derive(Debug)]
pub struct Bridged {
    /// Which.
    pub port: PortId,
    /// The frame.
    pub bytes: Vec<u8>,
    /// Carried to the wire for measurement.
    pub stamp: Time,
    /// It leaves no earlier.
    pub ready: Time,
}

/// The other end of the wire.
pub trait Egress {
    /// A frame leaves. Called in order of departure for each port.
    fn depart(&mut self, departure: Departure<'_>);

    /// A stage sends a frame out of another NIC's port: it goes to that NIC.
    fn bridge(&mut self, frame: Bridged);
}
