//! What every NIC has, whatever its contract with the host: packets and their buffers,
//! transmit rings, steering, counters.

mod packet;

pub use packet::{PortId, Packet, RxFlags, Segment, TxOffload, Verdict};
