//! The line that frames come in on: how long each one keeps it busy.

use nicforge_units::{BitRate, Bytes, Time};

use super::sizes::FRAME_BYTES_MIN;

/// FCS (4 bytes), preamble and start delimiter (8), inter-packet gap (12): IEEE 802.3 clause 4.4.
const ETHERNET_OVERHEAD: Bytes = Bytes(24);

/// A line: its rate, and what each frame needs beyond its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bits per second on the wire.
    pub rate: BitRate,
    /// Bytes per frame that the frame's length does not count.
    pub overhead: Bytes,
}

impl Line {
    /// An Ethernet line, frames counted without FCS.
    pub const fn ethernet(rate: BitRate) -> Line {
        Line { rate, overhead: ETHERNET_OVERHEAD }
    }

    /// How long a frame of `bytes` keeps the line busy; short frames are padded on the wire.
    pub fn time_for(self, bytes: u32) -> Time {
        let padded = Bytes(u64::from(bytes.max(FRAME_BYTES_MIN)));
        self.rate.time_for(padded + self.overhead)
    }
}
