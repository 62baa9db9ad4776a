//! The interfaces that a run may name, as a value: a program adds its own to the shipped ones.

use nicforge_nic::{DriverHalf, ReceiveHalf};
use nicforge_platform::{AddressSpace, Flat, Ground, Sim};

use crate::describe::{Describe, Description, Software};
use crate::emulated::CoreDma;
use crate::kernel::{KernelDriver, KernelNic, conventional};
use crate::{
    InterfaceError, Plan, emulated, in_place, nm_nfv, priv_ring, rx_bisect, sh_ring, sh_ring_dynamic, sinic, v_sinic,
};

#[cfg(target_os = "linux")]
use nicforge_platform::Live;

/// The halves of an interface for one NIC, on ground `G`.
pub enum Built<G: Ground> {
    /// Receive rings, beside the parts that NICs of rings share: MAC, parser, steering, transmit rings.
    Rings(Halves<G>),
    /// A whole device, whose driver is part of a kernel.
    Whole(WholeNic<G>),
}

/// Both halves of receive rings.
pub struct Halves<G: Ground> {
    /// The NIC's half.
    pub nic: Box<dyn ReceiveHalf<G::Dma>>,
    /// The driver's half, one for each queue of a set.
    pub drivers: Vec<Box<dyn DriverHalf<G::Cpu>>>,
}

impl<G: Ground> Halves<G> {
    /// Both halves as objects.
    pub fn new<N, D>(nic: N, drivers: Vec<D>) -> Halves<G>
    where
        N: ReceiveHalf<G::Dma>,
        D: DriverHalf<G::Cpu> + 'static,
    {
        let object = |driver| -> Box<dyn DriverHalf<G::Cpu>> { Box::new(driver) };
        Halves { nic: Box::new(nic), drivers: drivers.into_iter().map(object).collect() }
    }
}

/// Both halves of a whole device.
pub struct WholeNic<G: Ground> {
    /// The NIC's half.
    pub nic: Box<dyn KernelNic<G::Dma>>,
    /// The driver's half.
    pub driver: Box<dyn for<'a> KernelDriver<G::Reader<'a>>>,
}

impl<G: Ground> std::fmt::Debug for Halves<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rings with {} queues and {} drivers", self.nic.queues(), self.drivers.len())
    }
}

impl<G: Ground> Built<G> {
    /// Receive rings: both halves as objects.
    pub fn new<N, D>(nic: N, drivers: Vec<D>) -> Built<G>
    where
        N: ReceiveHalf<G::Dma>,
        D: DriverHalf<G::Cpu> + 'static,
    {
        Built::Rings(Halves::new(nic, drivers))
    }

    /// A whole device: both halves as objects.
    pub fn whole<N, D>(nic: N, driver: D) -> Built<G>
    where
        N: KernelNic<G::Dma> + 'static,
        D: for<'a> KernelDriver<G::Reader<'a>> + 'static,
    {
        Built::Whole(WholeNic { nic: Box::new(nic), driver: Box::new(driver) })
    }

    /// The halves of receive rings.
    ///
    /// # Errors
    /// It is a whole device.
    pub fn rings(self) -> Result<Halves<G>, InterfaceError> {
        match self {
            Built::Rings(halves) => Ok(halves),
            Built::Whole(_) => Err(InterfaceError::NeedsKernel),
        }
    }
}

/// How device and host exchange packets: what it says about itself, and how it is built.
pub trait Interface: Describe {
    /// Builds both halves for all queues of one NIC.
    ///
    /// # Errors
    /// The plan asks for what this interface cannot do, or there is no room for it.
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError>;
}

/// Builds an interface on ground `G`.
pub type Build<G> = fn(&Plan, &mut AddressSpace) -> Result<Built<G>, InterfaceError>;

/// An interface in a registry.
#[derive(Clone, Debug)]
pub struct InterfaceEntry {
    /// What it says about itself.
    pub description: Description,
    sim: Build<Sim>,
    flat: Build<Flat>,
    #[cfg(target_os = "linux")]
    live: Build<Live>,
    played_sim: Build<Played<Sim>>,
    played_flat: Build<Played<Flat>>,
    #[cfg(target_os = "linux")]
    played_live: Build<Played<Live>>,
}

impl InterfaceEntry {
    /// The entry of interface `I`.
    pub fn of<I: Interface>() -> InterfaceEntry {
        InterfaceEntry {
            description: Description::of::<I>(),
            sim: I::build::<Sim>,
            flat: I::build::<Flat>,
            #[cfg(target_os = "linux")]
            live: I::build::<Live>,
            played_sim: I::build::<Played<Sim>>,
            played_flat: I::build::<Played<Flat>>,
            #[cfg(target_os = "linux")]
            played_live: I::build::<Played<Live>>,
        }
    }

    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        self.description.owner.name
    }

    /// One line about it.
    pub fn about(&self) -> &'static str {
        self.description.owner.about
    }

    /// Whether a core can play its NIC; else why not.
    ///
    /// # Errors
    /// The reason.
    pub fn played(&self) -> Result<(), &'static str> {
        self.description.played
    }

    /// Whether cores play all of its NIC.
    pub fn played_whole(&self) -> bool {
        self.description.played_whole
    }

    /// Builds both halves for all queues of one NIC.
    ///
    /// # Errors
    /// See [`Interface::build`].
    pub fn build<G: KnownGround>(&self, plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let build = G::builder(self).ok_or_else(|| InterfaceError::NotEmulated {
            wanted: self.name().to_owned(),
            why: "a core plays its NIC already",
        })?;
        build(plan, space)
    }
}

/// A ground that interfaces are built on.
pub trait KnownGround: Ground {
    /// How `entry` is built here.
    fn builder(entry: &InterfaceEntry) -> Option<Build<Self>>;

    /// How the NIC of `entry` is built where a core plays it; `None` where that core's NIC is played itself.
    fn played_builder(entry: &InterfaceEntry) -> Option<Build<Played<Self>>>;
}

/// Ground `G` for a NIC that a core plays: the device is that core.
#[derive(Clone, Copy, Debug)]
pub struct Played<G>(std::marker::PhantomData<G>);

impl<G: Ground> Ground for Played<G> {
    type Cpu = G::Cpu;
    type Dma = CoreDma<G::Player>;
    type Reader<'a> = G::Reader<'a>;
    type Player = G::Player;
}

impl<G: KnownGround> KnownGround for Played<G> {
    fn builder(entry: &InterfaceEntry) -> Option<Build<Played<G>>> {
        G::played_builder(entry)
    }

    fn played_builder(_entry: &InterfaceEntry) -> Option<Build<Played<Played<G>>>> {
        None
    }
}

impl KnownGround for Sim {
    fn builder(entry: &InterfaceEntry) -> Option<Build<Sim>> {
        Some(entry.sim)
    }

    fn played_builder(entry: &InterfaceEntry) -> Option<Build<Played<Sim>>> {
        Some(entry.played_sim)
    }
}

impl KnownGround for Flat {
    fn builder(entry: &InterfaceEntry) -> Option<Build<Flat>> {
        Some(entry.flat)
    }

    fn played_builder(entry: &InterfaceEntry) -> Option<Build<Played<Flat>>> {
        Some(entry.played_flat)
    }
}

#[cfg(target_os = "linux")]
impl KnownGround for Live {
    fn builder(entry: &InterfaceEntry) -> Option<Build<Live>> {
        Some(entry.live)
    }

    fn played_builder(entry: &InterfaceEntry) -> Option<Build<Played<Live>>> {
        Some(entry.played_live)
    }
}

/// The interfaces that a run may name.
#[derive(Clone, Debug, Default)]
pub struct Interfaces {
    entries: Vec<InterfaceEntry>,
}

impl Interfaces {
    /// Those that are shipped with Nicforge.
    pub fn shipped() -> Interfaces {
        let mut all = Interfaces::default();
        all.add::<emulated::Emulated>()
            .add::<in_place::InPlace>()
            .add::<nm_nfv::NmNfv>()
            .add::<nm_nfv::NmNfvMinus>()
            .add::<priv_ring::PrivRing>()
            .add::<rx_bisect::RxBisect>()
            .add::<sh_ring::ShRing>()
            .add::<sh_ring::ShRingList>()
            .add::<sh_ring::ShRingBatchedList>()
            .add::<sh_ring_dynamic::ShRingDynamic>()
            .add::<nm_nfv::SplitRings>()
            .add::<conventional::Conventional>()
            .add::<sinic::Sinic>()
            .add::<v_sinic::VSinic>()
            .add::<v_sinic::VSinicZeroCopy>()
            .add::<v_sinic::VSinicDelayedCopy>();
        all
    }

    /// Adds interface `I`; one of the same name is replaced.
    pub fn add<I: Interface>(&mut self) -> &mut Interfaces {
        self.entries.retain(|entry| entry.name() != I::NAME);
        self.entries.push(InterfaceEntry::of::<I>());
        self
    }

    /// All of them.
    pub fn entries(&self) -> &[InterfaceEntry] {
        &self.entries
    }

    /// The names of those with receive rings, in the order of the registry.
    pub fn of_rings(&self) -> Vec<&'static str> {
        let rings = self.entries.iter().filter(|entry| entry.description.software == Software::PacketLoop);
        rings.map(|entry| entry.name()).collect()
    }

    /// The interface of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<InterfaceEntry, InterfaceError> {
        let found = self.entries.iter().find(|entry| entry.name() == name);
        found.cloned().ok_or_else(|| InterfaceError::Unknown(name.to_owned()))
    }
}
