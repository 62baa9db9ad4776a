//! All interfaces of this kind, one line each.

use nicforge_nic::{DropCause, PoolCache};
use nicforge_options::Owner;
use nicforge_platform::{Addr, AddressSpace, Cpu, Dma};
use nicforge_units::Time;

use super::{
    Advice, Between, Deferred, Frame, KernelDriver, KernelNic, KernelPlan, Port, Received, Sending, TransmitBusy,
};
use crate::InterfaceError;
use crate::sinic::DriverOptions;

macro_rules! kernel_interfaces {
    ($($name:literal, $variant:ident, $($module:ident)::+, $about:literal;)*) => {
        /// The NIC's half of any of these interfaces.
        #[derive(Debug)]
        pub enum AnyKernelNic {
            $(#[doc = $about] $variant(crate::$($module)::+::Nic),)*
        }

        /// The driver's half of any of these interfaces.
        #[derive(Debug)]
        pub enum AnyKernelDriver {
            $(#[doc = $about] $variant(crate::$($module)::+::Driver),)*
        }

        /// Name and one line about each.
        pub const KERNEL_INTERFACES: &[(&str, &str)] = &[$(($name, $about)),*];

        /// Builds interface `name`.
        ///
        /// # Errors
        /// When there is no such interface, or it cannot be built as `plan` says.
        pub fn build(
            name: &str,
            plan: &KernelPlan,
            space: &mut AddressSpace,
        ) -> Result<(AnyKernelNic, AnyKernelDriver), InterfaceError> {
            match name {
                $($name => {
                    let (nic, driver) = crate::$($module)::+::build(plan, space)?;
                    Ok((AnyKernelNic::$variant(nic), AnyKernelDriver::$variant(driver)))
                })*
                _ => Err(InterfaceError::Unknown(name.to_owned())),
            }
        }

        impl KernelNic for AnyKernelNic {
            fn set_memory_end(&mut self, end: Addr) {
                match self { $(AnyKernelNic::$variant(half) => half.set_memory_end(end),)* }
            }

            fn receive<D: Dma>(&mut self, dma: &mut D, frame: &mut Frame) -> Result<(), DropCause> {
                match self { $(AnyKernelNic::$variant(half) => half.receive(dma, frame),)* }
            }

            fn write_register<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) {
                match self { $(AnyKernelNic::$variant(half) => half.write_register(dma, index, value),)* }
            }

            fn read_register<D: Dma>(&mut self, dma: &mut D, index: u32) -> (u64, Time) {
                match self { $(AnyKernelNic::$variant(half) => half.read_register(dma, index),)* }
            }

            fn blocks(&self, index: u32) -> Option<Time> {
                match self { $(AnyKernelNic::$variant(half) => half.blocks(index),)* }
            }

            fn due(&self) -> Time {
                match self { $(AnyKernelNic::$variant(half) => half.due(),)* }
            }

            fn advance<D: Dma>(&mut self, dma: &mut D) {
                match self { $(AnyKernelNic::$variant(half) => half.advance(dma),)* }
            }

            fn port(&mut self) -> &mut Port {
                match self { $(AnyKernelNic::$variant(half) => half.port(),)* }
            }

            fn frames_inside(&self) -> u64 {
                match self { $(AnyKernelNic::$variant(half) => half.frames_inside(),)* }
            }

            fn received_inside(&self) -> u64 {
                match self { $(AnyKernelNic::$variant(half) => half.received_inside(),)* }
            }

            fn counters(&self) -> Vec<(&'static str, u64)> {
                match self { $(AnyKernelNic::$variant(half) => half.counters(),)* }
            }
        }

        impl KernelDriver for AnyKernelDriver {
            fn start<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
                match self { $(AnyKernelDriver::$variant(half) => half.start(cpu, pool),)* }
            }

            fn interrupt<C: Cpu>(&mut self, cpu: &mut C) -> bool {
                match self { $(AnyKernelDriver::$variant(half) => half.interrupt(cpu),)* }
            }

            fn poll<C: Cpu>(
                &mut self,
                cpu: &mut C,
                pool: &mut PoolCache,
                received: &mut Vec<Received>,
                budget: usize,
            ) -> bool {
                match self {
                    $(AnyKernelDriver::$variant(half) => half.poll(cpu, pool, received, budget),)*
                }
            }

            fn transmit<C: Cpu>(
                &mut self,
                cpu: &mut C,
                pool: &mut PoolCache,
                frame: &Sending,
                core: usize,
            ) -> Result<(), TransmitBusy> {
                match self {
                    $(AnyKernelDriver::$variant(half) => half.transmit(cpu, pool, frame, core),)*
                }
            }

            fn copy_deferred<C: Cpu>(
                &mut self,
                cpu: &mut C,
                deferred: &mut Deferred,
                to: Addr,
                len: u32,
            ) {
                match self {
                    $(AnyKernelDriver::$variant(half) => half.copy_deferred(cpu, deferred, to, len),)*
                }
            }

            fn drop_deferred<C: Cpu>(&mut self, cpu: &mut C, deferred: Deferred) {
                match self { $(AnyKernelDriver::$variant(half) => half.drop_deferred(cpu, deferred),)* }
            }

            fn is_pressed(&self) -> bool {
                match self { $(AnyKernelDriver::$variant(half) => half.is_pressed(),)* }
            }

            fn advice(&self) -> Advice {
                match self { $(AnyKernelDriver::$variant(half) => half.advice(),)* }
            }

            fn buffers_held(&self) -> u64 {
                match self { $(AnyKernelDriver::$variant(half) => half.buffers_held(),)* }
            }

            fn between<C: Cpu>(&self, cpu: &mut C) -> Between {
                match self { $(AnyKernelDriver::$variant(half) => half.between(cpu),)* }
            }
        }
    };
}

kernel_interfaces! {
    "conventional", Conventional, kernel::conventional,
        "descriptor lists, scatter-gather DMA, interrupts held back by a timer";
    "sinic", Sinic, sinic,
        "FIFOs that the CPU empties and fills by registers";
    "v_sinic", VSinic, v_sinic::whole,
        "the same with a register set for each of several packets";
    "v_sinic_zero_copy", VSinicZeroCopy, v_sinic::zero_copy,
        "the same, which leaves payload in the FIFO until a process wants it";
    "v_sinic_delayed_copy", VSinicDelayedCopy, v_sinic::delayed_copy,
        "the same, whose payload then goes by a buffer of the kernel";
}

/// Each interface with its keys, in the order of the registry.
pub fn owners() -> Vec<Owner> {
    let owner = |&(name, about): &(&'static str, &'static str)| {
        if name == "conventional" {
            Owner::of::<()>("interface", name, about)
        } else {
            Owner::of::<DriverOptions>("interface", name, about)
        }
    };
    KERNEL_INTERFACES.iter().map(owner).collect()
}

/// All names, in the order of the registry.
pub fn names() -> Vec<&'static str> {
    KERNEL_INTERFACES.iter().map(|(name, _)| *name).collect()
}
