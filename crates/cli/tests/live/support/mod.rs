//! Hosts, programs, workers and traffic that the tests share.

pub mod crew;
pub mod interfaces;
pub mod netns;
pub mod over;
pub mod program;
pub mod programs;
pub mod traffic;
