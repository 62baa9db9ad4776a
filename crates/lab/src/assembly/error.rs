//! Why a host cannot be put together.

use nicforge_apps::{AppError, RouteError};
use nicforge_interfaces::InterfaceError;
use nicforge_nic::NicmemError;
use nicforge_platform::SpaceError;
use nicforge_stages::StageError;

/// Why a host cannot be put together, on either ground.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The interface cannot be built.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The application cannot be built.
    #[error(transparent)]
    App(#[from] AppError),
    /// The routes cannot be read.
    #[error(transparent)]
    Routes(#[from] RouteError),
    /// Memory of a NIC that is not to be had.
    #[error(transparent)]
    Nicmem(#[from] NicmemError),
    /// A stage cannot be built.
    #[error(transparent)]
    Stage(Box<StageError>),
    /// A ring found no room.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The machine has no work cycles for the application.
    #[error("machine {machine} has no [apps.{app}] section: add `work_cycles` for it")]
    NoWorkCycles {
        /// The machine.
        machine: String,
        /// The application.
        app: String,
    },
    /// An interface without a queue.
    #[error("interface {0} gives a NIC with one queue no driver: use another interface")]
    NoQueue(String),
}

impl From<StageError> for BuildError {
    fn from(error: StageError) -> BuildError {
        BuildError::Stage(Box::new(error))
    }
}
