//! What threads of a live run do without work.

use nicforge_options::{choice, options};
use serde::{Deserialize, Serialize};

choice! {
    /// What device and workers do without work.
    #[derive(Serialize, Deserialize)]
    pub enum Idle {
        /// Poll a few times more, then sleep until a wake-up.
        Sleep = "sleep",
        /// Poll on: the shortest reaction, for a whole core each.
        Spin = "spin",
        /// Workers poll no empty ring twice: the device interrupts them by an eventfd.
        Interrupt = "interrupt",
    }
}

options! {
    /// Threads without work.
    pub struct IdleOptions {
        /// What device and workers do without work: sleep until a wake-up, poll on, or wait for the device's interrupt.
        idle: Idle = Idle::Sleep, "", Idle::ALLOWED;
    }
}
