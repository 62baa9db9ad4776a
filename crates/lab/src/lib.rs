//! The lab: scenario → run → record. [`job`] puts the three together.

mod assembly;
mod counts;
pub mod job;
pub mod kept;
mod life;
#[cfg(target_os = "linux")]
pub mod live;
pub mod machine;
mod nicmem;
pub mod packet_loop;
pub mod record;
mod registry;
pub mod run;
pub mod scenario;
pub mod settings;
pub mod storm;
pub mod systems;
pub mod tas;
pub mod tasnic;
pub mod world;

pub use assembly::BuildError;
pub use counts::LostError;
pub use registry::Registry;
