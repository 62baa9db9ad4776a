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

use nicforge_options::Finding;
use nicforge_platform::{AddressSpace, Vector};

pub(crate) use attention::Attention;
pub use driver::Driver;
pub use driver_options::DriverOptions;
pub use misuse::Misuse;
pub use nic::{Nic, RX_DISABLED, Surroundings};
pub use options::{FRAME_MAX, Options, OptionsError};
pub(crate) use window::{describe, flags};

use crate::describe::{Describe, ONLY_KERNELS, Queues, Shape, Software};
use crate::kernel::{KernelPlan, Port};
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};

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

/// The plan of a SINIC whose Config asks of its driver what the scenario says, and the machine.
pub(crate) fn kernel_plan(plan: &Plan) -> Result<KernelPlan, InterfaceError> {
    let kernel = plan.kernel()?;
    let asked: DriverOptions = plan.values.read();
    let advice = kernel.sinic.advice | asked.advice();
    Ok(KernelPlan { sinic: Options { advice, ..kernel.sinic.clone() }, ..kernel.clone() })
}

/// Interface `sinic`.
#[derive(Clone, Copy, Debug)]
pub struct Sinic;

impl Describe for Sinic {
    const NAME: &'static str = "sinic";
    const ABOUT: &'static str = "FIFOs that the CPU empties and fills by registers";
    const PLAYED: Result<(), &'static str> = ONLY_KERNELS;
    const SOFTWARE: Software = Software::Kernel;
    type Options = DriverOptions;

    fn shape(_options: &DriverOptions, _queues: &Queues<'_>) -> Shape {
        Shape::without_rings()
    }

    fn check(options: &DriverOptions, _queues: &Queues<'_>) -> Result<(), Finding> {
        options.check()
    }
}

impl Interface for Sinic {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, driver) = build(&kernel_plan(plan)?, space)?;
        Ok(Built::whole(nic, driver))
    }
}
