//! V-SINIC: a SINIC with a register set per virtual NIC (integrated NIC, sections 7.1 and A.2).

mod driver;
#[cfg(test)]
mod tests;

use nicforge_platform::AddressSpace;

pub use crate::sinic::Nic;
pub use driver::Driver;

use crate::InterfaceError;
use crate::kernel::KernelPlan;
use crate::register_map::{Field, RegisterMap};
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

/// Ways to receive, each a device whose Config tells the driver so.
macro_rules! modes {
    ($($(#[$about:meta])* $mode:ident: [$($copy:ident)?];)*) => {
        $($(#[$about])*
        pub mod $mode {
            use super::{AddressSpace, InterfaceError, KernelPlan};

            pub use super::{Driver, Nic};

            /// Builds both halves.
            ///
            /// # Errors
            /// When the options cannot be had together.
            pub fn build(
                plan: &KernelPlan,
                space: &mut AddressSpace,
            ) -> Result<(Nic, Driver), InterfaceError> {
                super::build_with(plan, space, &[$(super::config::$copy)?])
            }
        })*
    };
}

modes! {
    /// Packets are copied whole.
    whole: [];
    /// Payload stays in the FIFO until a process wants it, and then goes there.
    zero_copy: [ZERO_COPY];
    /// Payload stays in the FIFO until a process wants it, and then goes to the kernel's buffer.
    delayed_copy: [DELAY_COPY];
}

fn build_with(plan: &KernelPlan, space: &mut AddressSpace, copies: &[Field]) -> Result<(Nic, Driver), InterfaceError> {
    let vnics = plan.sinic.vnics.unwrap_or(0);
    if !(1..=VNICS_MAX).contains(&vnics) {
        return Err(OptionsError::Vnics(vnics).into());
    }
    let options = Options {
        advice: copies.iter().fold(plan.sinic.advice & !COPIES, |all, copy| all | copy.mask()),
        ..plan.sinic.clone()
    };
    let nic = nic_of(plan, &options)?;
    Ok((nic, Driver::new(plan, vnics as u16, space)))
}
