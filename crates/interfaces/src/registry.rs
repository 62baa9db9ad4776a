//! All interfaces, one line each; everything else follows from it.

use std::ops::Range;

use nicforge_nic::{Arriving, DriverHalf, DropCause, HalfJob, Lending, Packet, PoolCache, ReceiveHalf, Waiting};
use nicforge_platform::{AddressSpace, Cpu, Dma};
use nicforge_units::Time;

use crate::describe::Description;
use crate::{InterfaceError, Plan};

macro_rules! interfaces {
    ($($name:literal, $variant:ident, $($module:ident)::+, $about:literal;)*) => {
        /// The NIC half of any interface.
        #[derive(Debug)]
        pub enum AnyNic {
            $(#[doc = $about] $variant(crate::$($module)::+::NicHalf),)*
        }

        /// The driver half of any interface.
        #[derive(Debug)]
        pub enum AnyDriver {
            $(#[doc = $about] $variant(crate::$($module)::+::Driver),)*
        }

        /// Name and one line about each interface.
        pub const INTERFACES: &[(&str, &str)] = &[$(($name, $about)),*];

        /// Builds interface `name` for one NIC: its half, and a driver for each queue.
        pub fn build(
            name: &str,
            plan: &Plan,
            space: &mut AddressSpace,
        ) -> Result<(AnyNic, Vec<AnyDriver>), InterfaceError> {
            match name {
                $($name => {
                    let (nic, drivers) = crate::$($module)::+::build(plan, space)?;
                    let drivers = drivers.into_iter().map(AnyDriver::$variant).collect();
                    Ok((AnyNic::$variant(nic), drivers))
                })*
                _ => Err(InterfaceError::Unknown(name.to_owned())),
            }
        }

        impl ReceiveHalf for AnyNic {
            #[inline]
            fn with_half<J: HalfJob>(&mut self, job: J) {
                match self { $(AnyNic::$variant(half) => half.with_half(job),)* }
            }

            #[inline]
            fn receive<D: Dma>(
                &mut self,
                dma: &mut D,
                frame: &Arriving<'_>,
            ) -> Result<(), DropCause> {
                match self { $(AnyNic::$variant(half) => half.receive(dma, frame),)* }
            }

            fn write_register<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
                match self { $(AnyNic::$variant(half) => half.write_register(dma, index, value),)* }
            }

            fn queues(&self) -> u16 {
                match self { $(AnyNic::$variant(half) => half.queues(),)* }
            }

            fn sets(&self) -> &'static [&'static str] {
                match self { $(AnyNic::$variant(half) => half.sets(),)* }
            }

            fn spilled(&self) -> u64 {
                match self { $(AnyNic::$variant(half) => half.spilled(),)* }
            }

            #[inline]
            fn waiting(&self, queue: u16) -> Waiting {
                match self { $(AnyNic::$variant(half) => half.waiting(queue),)* }
            }

            fn free(&self, queue: u16) -> u64 {
                match self { $(AnyNic::$variant(half) => half.free(queue),)* }
            }

            fn holds(&self) -> u64 {
                match self { $(AnyNic::$variant(half) => half.holds(),)* }
            }

            #[inline]
            fn due(&self) -> Time {
                match self { $(AnyNic::$variant(half) => half.due(),)* }
            }

            fn advance<D: Dma>(&mut self, dma: &mut D) {
                match self { $(AnyNic::$variant(half) => half.advance(dma),)* }
            }

            fn together(&self, queue: u16) -> Range<u16> {
                match self { $(AnyNic::$variant(half) => half.together(queue),)* }
            }

            fn begin_anew<D: Dma>(
                &mut self,
                dma: &mut D,
                queues: Range<u16>,
            ) -> Option<Vec<u32>> {
                match self { $(AnyNic::$variant(half) => half.begin_anew(dma, queues),)* }
            }

            fn lending(&self, queue: u16) -> Option<Lending> {
                match self { $(AnyNic::$variant(half) => half.lending(queue),)* }
            }

            fn lent(&self, from: u16, to: u16) -> i64 {
                match self { $(AnyNic::$variant(half) => half.lent(from, to),)* }
            }

            fn blamed(&self, queue: u16) -> Range<u16> {
                match self { $(AnyNic::$variant(half) => half.blamed(queue),)* }
            }

            fn rung_by(&self, index: u32) -> Range<u16> {
                match self { $(AnyNic::$variant(half) => half.rung_by(index),)* }
            }
        }

        impl DriverHalf for AnyDriver {
            fn start<C: Cpu>(&mut self, cpu: &mut C, pool: &mut PoolCache) {
                match self { $(AnyDriver::$variant(half) => half.start(cpu, pool),)* }
            }

            #[inline]
            fn rx_burst<C: Cpu>(
                &mut self,
                cpu: &mut C,
                pool: &mut PoolCache,
                packets: &mut Vec<Packet>,
                max: usize,
            ) {
                match self {
                    $(AnyDriver::$variant(half) => half.rx_burst(cpu, pool, packets, max),)*
                }
            }

            fn taken(&self) -> u64 {
                match self { $(AnyDriver::$variant(half) => half.taken(),)* }
            }

            fn buffers_held(&self) -> i64 {
                match self { $(AnyDriver::$variant(half) => half.buffers_held(),)* }
            }
        }
    };
}

interfaces! {
    "emulated", Emulated, emulated, "another interface, whose NIC is played by a core";
    "in_place", InPlace, in_place, "a private ring whose completions overwrite its descriptors";
    "nm_nfv", NmNfv, nm_nfv,
        "payload in memory of the NIC, headers in host memory and in transmit descriptors";
    "nm_nfv_minus", NmNfvMinus, nm_nfv, "payload in memory of the NIC, headers in host memory";
    "priv_ring", PrivRing, priv_ring, "a private receive ring and completion ring per core";
    "rx_bisect", RxBisect, rx_bisect, "small allocation rings that large reception rings share";
    "sh_ring", ShRing, sh_ring::array, "a receive ring shared by cores, used in array order";
    "sh_ring_list", ShRingList, sh_ring::list, "a shared receive ring used in list order";
    "sh_ring_batched_list", ShRingBatchedList, sh_ring::batched_list,
        "a shared receive ring in list order, whose descriptors take several packets of a core";
    "sh_ring_dynamic", ShRingDynamic, sh_ring_dynamic,
        "private rings and a shared one, switched at run time by a heuristic";
    "split", Split, nm_nfv::split, "headers and payload in two buffers, both in host memory";
}

/// What each interface says about itself, in the order of the registry.
pub fn descriptions() -> Vec<Description> {
    vec![
        Description::of::<crate::emulated::EmulatedNic>(),
        Description::of::<crate::in_place::InPlace>(),
        Description::of::<crate::nm_nfv::NmNfv>(),
        Description::of::<crate::nm_nfv::NmNfvMinus>(),
        Description::of::<crate::priv_ring::PrivRing>(),
        Description::of::<crate::rx_bisect::RxBisect>(),
        Description::of::<crate::sh_ring::ShRing>(),
        Description::of::<crate::sh_ring::ShRingList>(),
        Description::of::<crate::sh_ring::ShRingBatchedList>(),
        Description::of::<crate::sh_ring_dynamic::ShRingDynamic>(),
        Description::of::<crate::nm_nfv::SplitFrames>(),
    ]
}

/// All names, in the order of the registry.
pub fn names() -> Vec<&'static str> {
    INTERFACES.iter().map(|(name, _)| *name).collect()
}
