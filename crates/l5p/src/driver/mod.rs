//! The driver's half, which every layer-5 protocol shares: shadow context and recovery on transmit, resync requests
//! on receive, and assembly of messages out of packets that were processed in part.

mod assemble;
mod map;
mod resync;
mod transmit;

pub use assemble::{Assembler, Message, Part};
pub use map::{MessageMap, TxMessageState};
pub use resync::{ResyncAnswer, ResyncRequests};
pub use transmit::TxDriver;

use crate::sequence::Seq;

/// What a layer-5 protocol provides to the NIC's driver (listing 3.2 of the paper).
pub trait Layer5 {
    /// `l5o_get_tx_msgstate`: the message that holds the byte at `tcpsn`. Linux: `tls_get_record`.
    fn l5o_get_tx_msgstate(&self, tcpsn: Seq) -> TxMessageState;

    /// `l5o_resync_rx_req`: the NIC believes that a message begins at `tcpsn`. The protocol answers with
    /// [`Engine::resync_response`](crate::engine::Engine::resync_response) when it gets there. Linux:
    /// `tls_offload_rx_resync_request`, ULP DDP `resync_request`.
    fn l5o_resync_rx_req(&mut self, tcpsn: Seq);
}
