//! What an application is, and the applications that a run may name.

use std::any::Any;
use std::net::SocketAddrV4;

use nicforge_nic::{Packet, PortId, Steering, Verdict};
use nicforge_options::{Options, Owner, Values};
use nicforge_platform::{AddressSpace, Cpu, Flat, Ground, Part, Sim};
use nicforge_units::Cycles;
use nicforge_wire::FrameSummary;

#[cfg(target_os = "linux")]
use nicforge_platform::Live;

use crate::counter::Counter;
use crate::flexkvs::FlexKvs;
use crate::ids::Ids;
use crate::kvs::Kvs;
use crate::l2fwd::L2Fwd;
use crate::l3fwd::L3Fwd;
use crate::lb::Lb;
use crate::nat::Nat;
use crate::synthetic::Synthetic;
use crate::tables::LookUp;
use crate::vswitch::VSwitch;
use crate::{AppConfig, AppError, AppShape, SharedTables};

/// An IPv4 flow with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Where its packets come from.
    pub source: SocketAddrV4,
    /// Where they go.
    pub destination: SocketAddrV4,
    /// The IP protocol.
    pub protocol: u8,
}

/// An application on one core: a run-to-completion function per packet.
pub trait Application<C: Cpu>: Any + Send {
    /// Fills tables that all cores share, before any core [starts](Self::start); core 0 does it.
    fn fill_shared(&mut self, _cpu: &mut C) {}

    /// Fills its own tables, before the first packet.
    fn start(&mut self, _cpu: &mut C) {}

    /// Handles one packet to completion: the frame is rewritten in place.
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict;

    /// The first look-up in a table for a frame with these headers that `port` received, if there is one. A
    /// simulator prefetches its lines. The model charges nothing for it.
    fn first_look_up(&self, _summary: &FrameSummary, _port: PortId) -> Option<LookUp> {
        None
    }

    /// Puts a flow into the tables without a packet, for runs that begin with known flows. An error is the name of the
    /// drop that the flow's first packet would have met.
    fn learn(&mut self, _cpu: &mut C, _flow: &Flow) -> Result<(), &'static str> {
        Ok(())
    }

    /// Stores a pair without a request, for runs that begin with a filled store. A pair that is too large for the store is
    /// missing when it is asked for, and counted there; the store of another core ignores it.
    fn store_pair(&mut self, _cpu: &mut C, _key: &[u8], _value: &[u8]) {}

    /// Work of each packet, if it is not the machine's: an application may charge it itself.
    fn work(&self) -> Option<Cycles> {
        None
    }
    /// The application's own counters by name; the packet loop counts drops by verdict.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Its gauges by name: values of now. They end with the software that they are of, while counters add up.
    fn gauges(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Which core an application runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The core.
    pub core: usize,
    /// Cores that run it.
    pub cores: usize,
}

/// An application that a registry can hold.
pub trait AppKind {
    /// Its name in scenarios.
    const NAME: &'static str;
    /// One line about it.
    const ABOUT: &'static str;
    /// Whether it forwards by IP header, and so drops packets whose header checksum is wrong, as `ip_checksum`.
    const ROUTER: bool = false;
    /// Cycles per packet beyond its memory accesses, for machines whose file has no `[apps.NAME]`.
    const WORK: Option<Cycles> = None;
    /// Its keys.
    type Options: Options;

    /// The properties that `options` give the application.
    fn shape(_options: &Self::Options) -> AppShape {
        AppShape::default()
    }

    /// The owner of the keys in a live file's `[app]`: addresses that other hosts know.
    fn addresses() -> Owner {
        Owner::of::<()>("application", Self::NAME, Self::ABOUT)
    }

    /// Takes address space for tables that all cores share.
    fn share(_config: &AppConfig, _space: &mut AddressSpace) -> SharedTables {
        SharedTables::default()
    }

    /// Has a NIC bring packets to the core that has their flow, as `shared` tables may say, where RSS does not. Core `first` of `cores` serves queue 0
    /// of that NIC, the cores after it the others.
    ///
    /// # Errors
    /// Addresses or tables of `config` are out of range.
    fn steer(
        _config: &AppConfig,
        _shared: &SharedTables,
        _steering: &mut Steering,
        _first: usize,
        _cores: usize,
    ) -> Result<(), AppError> {
        Ok(())
    }

    /// The application of `config` at `place`. Hands out addresses only; the memory must be zero when the application
    /// starts.
    ///
    /// # Errors
    /// A setting out of range, or shared tables made for another application.
    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError>;
}

/// Builds an application for cores of ground `G`.
pub type Build<G> = fn(
    &AppConfig,
    Place,
    &mut AddressSpace,
    &SharedTables,
) -> Result<Box<dyn Application<<G as Ground>::Cpu>>, AppError>;

/// An application in a registry.
#[derive(Clone, Debug)]
pub struct AppEntry {
    /// Its name and its keys.
    pub owner: Owner,
    /// See [`AppKind::addresses`].
    pub addresses: Owner,
    /// Whether it forwards by IP header.
    pub router: bool,
    /// See [`AppKind::WORK`].
    pub work: Option<Cycles>,
    shape: fn(&Values) -> AppShape,
    share: fn(&AppConfig, &mut AddressSpace) -> SharedTables,
    steer: fn(&AppConfig, &SharedTables, &mut Steering, usize, usize) -> Result<(), AppError>,
    sim: Build<Sim>,
    flat: Build<Flat>,
    #[cfg(target_os = "linux")]
    live: Build<Live>,
}

impl AppEntry {
    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        self.owner.name
    }

    /// One line about it.
    pub fn about(&self) -> &'static str {
        self.owner.about
    }

    /// The properties that the scenario's `values` give the application.
    pub fn shape(&self, values: &Values) -> AppShape {
        (self.shape)(values)
    }

    /// The entry of application `A`.
    pub fn of<A: AppKind>() -> AppEntry {
        AppEntry {
            owner: Owner::of::<A::Options>("application", A::NAME, A::ABOUT),
            addresses: A::addresses(),
            router: A::ROUTER,
            work: A::WORK,
            shape: |values| A::shape(&values.read()),
            share: A::share,
            steer: A::steer,
            sim: A::build::<<Sim as Ground>::Cpu>,
            flat: A::build::<<Flat as Ground>::Cpu>,
            #[cfg(target_os = "linux")]
            live: A::build::<<Live as Ground>::Cpu>,
        }
    }
}

/// A ground that applications are built for.
pub trait AppGround: Ground {
    /// How the application of `entry` is built here.
    fn builder(entry: &AppEntry) -> Build<Self>;
}

impl AppGround for Sim {
    fn builder(entry: &AppEntry) -> Build<Sim> {
        entry.sim
    }
}

impl AppGround for Flat {
    fn builder(entry: &AppEntry) -> Build<Flat> {
        entry.flat
    }
}

#[cfg(target_os = "linux")]
impl AppGround for Live {
    fn builder(entry: &AppEntry) -> Build<Live> {
        entry.live
    }
}

/// The applications that a run may name.
#[derive(Clone, Debug, Default)]
pub struct Apps {
    entries: Vec<AppEntry>,
}

impl Apps {
    /// Those that are shipped with Nicforge.
    pub fn shipped() -> Apps {
        let mut all = Apps::default();
        all.add::<L2Fwd>()
            .add::<L3Fwd>()
            .add::<Nat>()
            .add::<Lb>()
            .add::<Synthetic>()
            .add::<Counter>()
            .add::<Kvs>()
            .add::<FlexKvs>()
            .add::<Ids>()
            .add::<VSwitch>();
        all
    }

    /// Adds application `A`; one of the same name is replaced.
    pub fn add<A: AppKind>(&mut self) -> &mut Apps {
        self.entries.retain(|entry| entry.name() != A::NAME);
        self.entries.push(AppEntry::of::<A>());
        self
    }

    /// All of them.
    pub fn entries(&self) -> &[AppEntry] {
        &self.entries
    }

    /// All names, in the order of the registry.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries.iter().map(|entry| entry.name()).collect()
    }

    /// The application of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<AppEntry, AppError> {
        let found = self.entries.iter().find(|entry| entry.name() == name);
        found.cloned().ok_or_else(|| AppError::UnknownName { name: name.to_owned(), known: self.names() })
    }

    /// Takes address space for what the application that `config` names shares between cores.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn share(&self, config: &AppConfig, space: &mut AddressSpace) -> Result<SharedTables, AppError> {
        Ok((self.find(&config.name)?.share)(config, space))
    }

    /// See [`AppKind::steer`].
    ///
    /// # Errors
    /// There is no application of this name, or as there.
    pub fn steer(
        &self,
        config: &AppConfig,
        shared: &SharedTables,
        steering: &mut Steering,
        first: usize,
        cores: usize,
    ) -> Result<(), AppError> {
        (self.find(&config.name)?.steer)(config, shared, steering, first, cores)
    }

    /// The application that `config` names, at `place`.
    ///
    /// # Errors
    /// There is none of this name; else see [`AppKind::build`].
    pub fn build<G: AppGround>(
        &self,
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        shared: &SharedTables,
    ) -> Result<App<G::Cpu>, AppError> {
        let entry = self.find(&config.name)?;
        let application = G::builder(&entry)(config, place, space, shared)?;
        Ok(App { work: application.work().unwrap_or(config.work), application })
    }
}

/// An application on one core, with the work that its instructions are.
pub struct App<C: Cpu> {
    work: Cycles,
    application: Box<dyn Application<C>>,
}

impl<C: Cpu + 'static> App<C> {
    /// `application`, whose packets cost `work` beyond its memory accesses.
    pub fn new(work: Cycles, application: impl Application<C>) -> App<C> {
        App { work, application: Box::new(application) }
    }

    /// Fills all tables before the run. Core 0 fills the shared ones, so all cores start before
    /// the first packet.
    pub fn start(&mut self, cpu: &mut C) {
        self.application.fill_shared(cpu);
        self.application.start(cpu);
    }

    /// As [`start`](Self::start), where shared tables are filled already.
    pub fn start_own(&mut self, cpu: &mut C) {
        self.application.start(cpu);
    }

    /// Handles one packet to completion: the frame is rewritten in place.
    #[inline]
    pub fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        cpu.enter(Part::App);
        cpu.work(self.work);
        self.application.packet(cpu, packet)
    }

    /// See [`Application::first_look_up`].
    #[inline]
    pub fn first_look_up(&self, summary: &FrameSummary, port: PortId) -> Option<LookUp> {
        self.application.first_look_up(summary, port)
    }

    /// See [`Application::store_pair`].
    pub fn store_pair(&mut self, cpu: &mut C, key: &[u8], value: &[u8]) {
        self.application.store_pair(cpu, key, value);
    }

    /// See [`Application::learn`].
    pub fn learn(&mut self, cpu: &mut C, flow: &Flow) -> Result<(), &'static str> {
        self.application.learn(cpu, flow)
    }

    /// See [`Application::counters`].
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.application.counters()
    }

    /// See [`Application::gauges`].
    pub fn gauges(&self) -> Vec<(&'static str, u64)> {
        self.application.gauges()
    }

    /// The application, if it is an `A`.
    pub fn downcast<A: Application<C>>(&mut self) -> Option<&mut A> {
        let application: &mut dyn Any = &mut *self.application;
        application.downcast_mut()
    }
}
