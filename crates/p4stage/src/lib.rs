//! Stage `p4`: a P4 program between the wire and any interface, simulated and live; interface `flexnic`.
//!
//! | file | what is in it |
//! | --- | --- |
//! | kind.rs | options, and building the stage of one NIC |
//! | stage.rs | frames in and out of the program |
//! | counts.rs | counters of tables and parser errors by name |
//! | flexnic/ | interface `flexnic`: a program that does the DMA, too |

mod counts;
pub mod flexnic;
mod kind;
mod stage;

pub use kind::{P4Error, P4Kind, P4Options};
pub use stage::P4Stage;
