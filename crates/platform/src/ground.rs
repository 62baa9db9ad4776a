//! The grounds: what cores and devices are, and how they reach the one memory.

use crate::{Cpu, Dma, FlatCpu, FlatDma, sim};

/// The pair of [`Cpu`] and [`Dma`] over one memory. Halves, applications and stages are objects of one ground.
pub trait Ground: Sized + 'static {
    /// Software on a core.
    type Cpu: Cpu + 'static;
    /// A device.
    type Dma: Dma;
    /// Software on a core in whose steps devices answer register reads.
    type Reader<'a>: Cpu;
    /// A core that plays a device (interface `emulated`).
    type Player: Cpu + 'static;
}

/// Deterministic virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Sim;

impl Ground for Sim {
    type Cpu = sim::SimCpu;
    type Dma = sim::SimDma;
    type Reader<'a> = sim::DeviceReader<'a>;
    type Player = sim::SimCpu;
}

/// Shared memory and threads or processes.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
pub struct Live;

#[cfg(target_os = "linux")]
impl Ground for Live {
    type Cpu = crate::live::LiveCpu;
    type Dma = crate::live::LiveDma;
    // A read shows what was written last.
    type Reader<'a> = crate::live::LiveCpu;
    type Player = crate::live::DeviceCpu;
}

/// Plain memory without a model: for tests.
#[derive(Clone, Copy, Debug)]
pub struct Flat;

impl Ground for Flat {
    type Cpu = FlatCpu;
    type Dma = FlatDma;
    type Reader<'a> = FlatCpu;
    type Player = FlatCpu;
}
