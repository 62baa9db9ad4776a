//! Rates of flows that the fast path serves: the slow path's control loop, and the wheel that keeps them.
//!
//! ```text
//!  fast path ── bytes acknowledged, bytes with ECN echo, fast retransmissions, RTT ──► [`RateControl`]   each flow every 2 RTT
//!     ▲                                                                                     │ rate, or RETX
//!     └── whose turn it is ◄── [`Carousel`]: deadlines from rates ◄────────────────────────┘
//! ```
//!
//! Numbers are the supplement's (slow path, protocol rules): TAS's rate form of DCTCP, and TIMELY.

mod carousel;
mod control;
#[cfg(test)]
mod tests;

pub use carousel::{Carousel, Wheel};
pub use control::{RateControl, RateLaw, TURN_FLOWS};
