//! V-SINIC: a SINIC with a register set per virtual NIC (integrated NIC, sections 7.1 and A.2).

mod driver;
#[cfg(test)]
mod tests;

use nicforge_options::Finding;
use nicforge_platform::AddressSpace;

pub use crate::sinic::Nic;
pub use driver::Driver;

use crate::describe::{Describe, ONLY_KERNELS, Queues, Shape, Software};
use crate::kernel::KernelPlan;
use crate::register_map::{Field, RegisterMap};
use crate::sinic::registers::{ROWS, SET_BYTES, VNICS_MAX, config};
use crate::sinic::{DriverOptions, Options, OptionsError, kernel_plan, nic_of};
use crate::{Built, Interface, InterfaceError, KnownGround, Plan};

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
    ($($(#[$about:meta])* $mode:ident, $interface:ident, $name:literal, $says:literal, [$($copy:ident)?];)*) => { $(
        $(#[$about])*
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
        }

        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $interface;

        impl Describe for $interface {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $says;
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

        impl Interface for $interface {
            fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
                let (nic, driver) = $mode::build(&kernel_plan(plan)?, space)?;
                Ok(Built::whole(nic, driver))
            }
        }
    )* };
}

modes! {
    /// Packets are copied whole.
    whole, VSinic, "v_sinic", "the same with a register set for each of several packets", [];
    /// Payload stays in the FIFO until a process wants it, and then goes there.
    zero_copy, VSinicZeroCopy, "v_sinic_zero_copy",
        "the same, which leaves payload in the FIFO until a process wants it", [ZERO_COPY];
    /// Payload stays in the FIFO until a process wants it, and then goes to the kernel's buffer.
    delayed_copy, VSinicDelayedCopy, "v_sinic_delayed_copy",
        "the same, whose payload then goes by a buffer of the kernel", [DELAY_COPY];
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
