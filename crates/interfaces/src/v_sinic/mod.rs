//! V-SINIC: a SINIC with a register set per virtual NIC (integrated NIC, sections 7.1 and A.2).

mod driver;
#[cfg(test)]
mod tests;

use nicforge_platform::AddressSpace;

pub use crate::sinic::Nic;
pub use driver::Driver;

use crate::InterfaceError;
use crate::kernel::KernelPlan;
use crate::register_map::RegisterMap;
use crate::sinic::registers::{ROWS, SET_BYTES, VNICS_MAX, config};
use crate::sinic::{Options, OptionsError, nic_of};

/// V-SINIC's map.
pub const MAP: RegisterMap = RegisterMap {
    name: "v_sinic",
    about: "Virtual SINIC: virtual NIC n, of up to 256, has its own registers where `virtual` says yes \
            (integrated NIC, chapter 7 and appendix A).",
    rows: ROWS,
    stride: Some(SET_BYTES),
};

/// What Config says of copies.
const COPIES: u64 = config::ZERO_COPY.mask() | config::DELAY_COPY.mask();

/// Builds both halves, of a device that tells its driver to copy packets whole.
///
/// # Errors
/// When the options cannot be had together.
pub fn build(plan: &KernelPlan, space: &mut AddressSpace) -> Result<(Nic, Driver), InterfaceError> {
    build_with(plan, space, plan.sinic.advice & !COPIES)
}

fn build_with(
    plan: &KernelPlan,
    space: &mut AddressSpace,
    advice: u64,
) -> Result<(Nic, Driver), InterfaceError> {
    let vnics = plan.sinic.vnics.unwrap_or(0);
    if !(1..=VNICS_MAX).contains(&vnics) {
        return Err(OptionsError::Vnics(vnics).into());
    }
    let options = Options {
        advice,
        ..plan.sinic.clone()
    };
    let nic = nic_of(plan, &options)?;
    Ok((nic, Driver::new(plan, vnics as u16, space)))
}

/// The same device, which tells its driver to receive without a copy in the kernel.
pub mod zero_copy {
    use super::{AddressSpace, COPIES, InterfaceError, KernelPlan, build_with, config};

    pub use super::{Driver, Nic};

    /// Builds both halves.
    ///
    /// # Errors
    /// When the options cannot be had together.
    pub fn build(
        plan: &KernelPlan,
        space: &mut AddressSpace,
    ) -> Result<(Nic, Driver), InterfaceError> {
        let others = plan.sinic.advice & !COPIES;
        build_with(plan, space, others | config::ZERO_COPY.mask())
    }
}

/// The same device, which tells its driver to copy payload to the kernel's buffer only when somebody
/// wants it.
pub mod delayed_copy {
    use super::{AddressSpace, COPIES, InterfaceError, KernelPlan, build_with, config};

    pub use super::{Driver, Nic};

    /// Builds both halves.
    ///
    /// # Errors
    /// When the options cannot be had together.
    pub fn build(
        plan: &KernelPlan,
        space: &mut AddressSpace,
    ) -> Result<(Nic, Driver), InterfaceError> {
        let others = plan.sinic.advice & !COPIES;
        build_with(plan, space, others | config::DELAY_COPY.mask())
    }
}
