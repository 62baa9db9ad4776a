//! The fast path: the four events of the paper's pipeline on a compact state.
//!
//! [`receive`](receive::receive), [`application`](application::application), [`transmit`](transmit::transmit) and
//! [`retransmit`](retransmit::retransmit) are the protocol stage for RX, AC, TX and RETX events (paper 3.6.5). Each
//! takes values, changes a [`Flow`] and returns values: no payload byte is touched and nothing waits. What the fast path
//! does not take goes to the slow path ([`crate::conn`]), which works on the same [`Flow`].

// application
mod flow;
// receive
pub mod retransmit;
// transmit

pub use flow::{Flow, FlowFlags, Post, Pre, Protocol};
