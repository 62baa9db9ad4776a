//! The lab: scenario → run → measurements → report.

pub mod by_core;
#[cfg(target_os = "linux")]
pub mod live;
pub mod machine;
pub mod metrics;
mod nicmem;
mod packet_loop;
mod registry;
pub mod report;
pub mod run;
pub mod scenario;
pub mod settings;
pub mod systems;
pub mod timeline;

pub use registry::Registry;
