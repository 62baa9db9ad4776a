//! AC events: an application's entry of a context queue.

use thiserror::Error;

use super::{Flow, FlowFlags};

/// What an application says about a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bump {
    /// Bytes that it has read.
    pub rx: u32,
    /// Bytes that it has written behind those written before.
    pub tx: u32,
    /// It writes no more.
    pub close: bool,
}

/// A bump that cannot be true: the flow is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadBump {
    /// More read than there was.
    #[error("the application says that it read {said} bytes of {have}")]
    Read {
        /// Bytes that it says.
        said: u32,
        /// Bytes that there were.
        have: u32,
    },
    /// More written than there was room for.
    #[error("the application says that it wrote {said} bytes into {room}")]
    Written {
        /// Bytes that it says.
        said: u32,
        /// Bytes that were free.
        room: u32,
    },
    /// Written after it had closed.
    #[error("the application wrote after it had closed")]
    Closed,
}

/// What follows from a bump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The flow was idle and has something to send now: the queue manager has to know.
    pub may_send: bool,
    /// The window opened from zero: the peer has to know, once.
    pub window_update: bool,
}

/// Takes a bump.
#[inline]
pub fn application(flow: &mut Flow, bump: Bump) -> Result<Applied, BadBump> {
    let (have, room) = (flow.rx_waiting(), flow.tx_free());
    if bump.rx > have {
        return Err(BadBump::Read { said: bump.rx, have });
    }
    if bump.tx > room {
        return Err(BadBump::Written { said: bump.tx, room });
    }
    if flow.has(FlowFlags::CLOSING) && bump.tx > 0 {
        return Err(BadBump::Closed);
    }
    let idle = flow.protocol.tx_avail == 0;
    flow.protocol.rx_avail += bump.rx;
    flow.protocol.tx_avail += bump.tx;
    let closes = bump.close && !flow.has(FlowFlags::CLOSING);
    if closes {
        flow.set(FlowFlags::CLOSING, true);
    }
    let window_update = flow.has(FlowFlags::WINDOW_CLOSED) && flow.protocol.rx_avail >> flow.local_shift() > 0;
    if window_update {
        flow.set(FlowFlags::WINDOW_CLOSED, false);
    }
    Ok(Applied { may_send: idle && (bump.tx > 0 || closes), window_update })
}
