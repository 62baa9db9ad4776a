//! The lab: scenario → run → measurements → report.

pub mod metrics;
pub mod settings;
