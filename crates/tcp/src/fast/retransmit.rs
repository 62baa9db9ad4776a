//! RETX events: back to the left edge, and probes of a closed window.

use super::{Flow, FlowFlags};

/// Makes everything unacknowledged unsent again, a FIN included. Returns the bytes that go out again.
pub fn retransmit(flow: &mut Flow) -> u32 {
    let fin = flow.has(FlowFlags::FIN_SENT) && flow.protocol.tx_sent > 0;
    let bytes = flow.protocol.tx_sent - u32::from(fin);
    flow.protocol.tx_pos = flow.tx_before(bytes);
    flow.protocol.seq = flow.protocol.seq.wrapping_sub(flow.protocol.tx_sent);
    flow.protocol.tx_avail += bytes;
    flow.protocol.tx_sent = 0;
    flow.protocol.dupack_cnt = 0;
    if fin {
        flow.set(FlowFlags::FIN_SENT, false);
    }
    bytes
}

/// Lets one number pass a window that the peer closed. The peer answers with its window, so a lost update does no harm.
/// Returns whether there was need for it.
pub fn probe(flow: &mut Flow) -> bool {
    let stalled = flow.is_stalled();
    if stalled {
        flow.protocol.remote_win = flow.protocol.tx_sent + 1;
    }
    stalled
}
