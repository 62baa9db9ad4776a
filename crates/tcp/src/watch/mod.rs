//! What an observer sees of a frame, and which frames it wants.

pub mod filter;
pub mod frame;
