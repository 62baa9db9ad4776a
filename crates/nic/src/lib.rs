//! What every NIC has, whatever its contract with the host.
//!
//! ```text
//!  wire ─► fifo ─► parse · verify · RSS (nic.rs) ─► ReceiveHalf of an interface ══► host
//!  wire ◄─ internal buffer ◄─ TransmitEngine (transmit/) ◄════════════════════════ host
//! ```
//!
//! Beside the device stand the parts that drivers share: packet buffers (mbuf.rs, pool.rs), also on
//! memory of the NIC (nicmem/), completion rings (completion.rs) and transmit rings (transmit/). An interface composes them
//! and adds its own receive contract.

mod completion;
mod counters;
mod device;
mod exchange;
mod fifo;
mod halves;
mod ledger;
mod mbuf;
#[cfg(any(test, feature = "mock"))]
pub mod mock;
mod nicmem;
mod options;
mod packet;
mod pool;
pub mod stage;
mod steering;
pub mod transmit;

pub use completion::{
    COMPLETION_BYTES, Completion, CompletionReader, CompletionWriter, RX_INLINE_BYTES, completion_ring,
    inlining_completion_ring,
};
pub use counters::DropCounters;
pub use device::{Nic, NicCounters, NicSpec, QueueState, registers};
pub use exchange::exchange;
pub use fifo::MacFifo;
pub use halves::{Arriving, DriverCosts, DriverHalf, DropCause, Lending, Queues, ReceiveHalf, Recoverable, Waiting};
pub use ledger::{LEDGER_ENTRY_BYTES, Ledger};
pub use mbuf::{
    DATA_BYTES_MAX, HEADROOM_BYTES, METADATA_BYTES, NEXT_OFFSET, REFERENCES_OFFSET, data_of, mbuf_room, room_for,
};
pub use nicforge_wire::unfinished::TxOffload;
pub use nicmem::{Allocation, Application, Key, KeyTable, Nicmem, NicmemError, Refusal};
pub use options::{NicmemOptions, PoolOptions, PoolSize, RssOptions, TransmitOptions};
pub use packet::{Packet, PortId, RxFlags, Segment, Verdict};
pub use pool::{Fit, Pool, PoolCache, PoolOrder};
pub use steering::{ForwardedPort, OwnedPorts, PortOwners, PortQueues, PortRule, Steering};
