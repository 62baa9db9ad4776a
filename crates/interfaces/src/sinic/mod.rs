//! SINIC: a NIC without descriptors, whose FIFOs the CPU empties and fills by registers (integrated
//! NIC, section 6.2 and appendix A). The device serves V-SINIC too, which has several register sets.
//!
//! ```text
//!   wire ─► receive FIFO ─► copy engine ─┐            ┌◄ RxData: where to   RxDone, RxWait: how it went
//!                                        cache port ══╡
//!   wire ◄─ transmit FIFO ◄ copy engine ─┘            └◄ TxData: where from TxDone, TxWait
//! ```

mod attention;
mod driver;
mod driver_options;
mod interrupts;
mod misuse;
mod nic;
mod options;
mod receive;
pub mod registers;
#[cfg(test)]
pub(crate) mod tests;
mod transmit;
mod window;

use nicforge_platform::{AddressSpace, Vector};

pub(crate) use attention::Attention;
pub use driver::Driver;
pub use driver_options::DriverOptions;
pub use misuse::Misuse;
pub use nic::{Nic, RX_DISABLED, Surroundings};
pub use options::{FRAME_MAX, Options, OptionsError};
pub(crate) use window::{describe, flags};

use crate::InterfaceError;
use crate::kernel::{KernelPlan, Port};

/// Builds both halves.
///
/// # Errors
/// When the options cannot be had together.
pub fn build(plan: &KernelPlan, space: &mut AddressSpace) -> Result<(Nic, Driver), InterfaceError> {
    let options = Options { vnics: None, ..plan.sinic.clone() };
    Ok((nic_of(plan, &options)?, Driver::new(plan, space)))
}

/// The device of `plan` with these options.
pub(crate) fn nic_of(plan: &KernelPlan, options: &Options) -> Result<Nic, OptionsError> {
    let around = Surroundings {
        rx_fifo: plan.rx_fifo,
        tx_fifo: plan.tx_fifo,
        interrupt_delay: plan.interrupt_delay,
        vector: Vector(plan.device.into()),
    };
    Nic::new(options, &around, Port::new(plan.rate, plan.wire_overhead))
}
