//! TX events: the next segment of a flow that may send.

use super::{Flow, FlowFlags};
use crate::segment::Flags;

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitted {
    /// Sequence number.
    pub seq: u32,
    /// Place of the payload in the transmit ring.
    pub at: u32,
    /// Payload in bytes; zero for a FIN alone.
    pub len: u32,
    /// ACK, PSH, FIN.
    pub flags: Flags,
}

/// Gives the next bytes sequence numbers: as many as `mss`, the peer's window and the congestion window allow.
#[inline]
pub fn transmit(flow: &mut Flow, mss: u32) -> Option<Transmitted> {
    let (protocol, room) = (&flow.protocol, flow.room());
    let len = protocol.tx_avail.min(room).min(mss);
    let drains = len == protocol.tx_avail;
    let fin = drains && flow.has(FlowFlags::CLOSING) && !flow.has(FlowFlags::FIN_SENT) && room > len;
    if len == 0 && !fin {
        return None;
    }
    let sent = Transmitted {
        seq: protocol.seq,
        at: protocol.tx_pos,
        len,
        flags: Flags::ACK.with_if(drains && len > 0, Flags::PSH).with_if(fin, Flags::FIN),
    };
    flow.tx_take(len);
    if fin {
        take_fin(flow);
    }
    Some(sent)
}

/// Our FIN gets its number.
pub(super) fn take_fin(flow: &mut Flow) {
    flow.set(FlowFlags::FIN_SENT, true);
    flow.protocol.seq = flow.protocol.seq.wrapping_add(1);
    flow.protocol.tx_sent += 1;
}

impl Flow {
    /// Sequence numbers that the peer's window and the congestion window leave.
    #[inline]
    fn room(&self) -> u32 {
        let window = match self.post.window {
            0 => self.protocol.remote_win,
            window => window.min(self.protocol.remote_win),
        };
        window.saturating_sub(self.protocol.tx_sent)
    }

    /// Sequence numbers that [`transmit`] would send now, a FIN's included: what a queue manager has to know.
    #[inline]
    pub fn sendable(&self) -> u32 {
        let fin = self.has(FlowFlags::CLOSING) && !self.has(FlowFlags::FIN_SENT);
        (self.protocol.tx_avail + u32::from(fin)).min(self.room())
    }

    /// The window field for an outgoing segment.
    #[inline]
    pub fn window_field(&mut self) -> u16 {
        let window = self.protocol.rx_avail >> self.local_shift();
        self.set(FlowFlags::WINDOW_CLOSED, window == 0);
        window.min(u32::from(u16::MAX)) as u16
    }
}
