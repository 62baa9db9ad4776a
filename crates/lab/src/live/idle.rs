//! What threads of a live run do when there is nothing to do.

use serde::{Deserialize, Serialize};

/// What device and workers do when there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Idle {
    /// Poll a few times more, then sleep until woken.
    #[default]
    Sleep,
    /// Poll on: the shortest reaction, for a whole core each.
    Spin,
    /// Workers poll no empty ring twice: the device interrupts them by an eventfd.
    Interrupt,
}
