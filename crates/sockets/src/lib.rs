//! One TCP stack for many programs.
#![allow(unsafe_code, reason = "shared memory, and calls of C programs; each block says why it is sound")]
pub mod address;
pub mod attach;
pub mod control;
pub mod direct;
pub mod kernel;
pub mod launch;
pub mod layout;
pub mod observe;
pub mod posix;
pub mod queue;
pub mod service;
pub mod shared;
pub mod tls;
pub mod transport;
pub mod watch;
