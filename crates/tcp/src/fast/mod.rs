//! The fast path: the four events of the paper's pipeline on a compact state.
//!
//! [`receive()`], [`application()`], [`transmit()`] and [`retransmit()`] are the protocol stage for RX, AC, TX and RETX
//! events (paper 3.6.5). Each takes values, changes a [`Flow`] and returns values: no payload byte is touched, nothing
//! is allocated and nothing waits. What the fast path does not take goes to the slow path ([`crate::conn`]), which works
//! on the same [`Flow`].
//!
//! A flow with [`FlowFlags::GO_BACK_N`] is served by these four alone, as the paper's is: one out-of-order interval,
//! duplicate acknowledgments counted, everything unacknowledged sent again. Any other flow only has its common case
//! here: in-order data, acknowledgments that advance. [`crate::conn::Connection::on_segment`] tries the fast path first.

mod application;
mod flow;
mod receive;
mod retransmit;
#[cfg(test)]
mod tests;
mod transmit;

pub use application::{Applied, BadBump, Bump, application};
pub use flow::{Flow, FlowFlags, Post, Pre, Protocol};
pub use receive::{Outcome, Received, SlowReason, Summary, receive};
pub use retransmit::{probe, retransmit};
pub use transmit::{Transmitted, transmit};
