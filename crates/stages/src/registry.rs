//! The stages that a run may name, as a value: whoever assembles a program adds its own to those that are shipped.

use std::net::SocketAddrV4;
use std::rc::Rc;

use nicforge_nic::stage::{STAGE_REGISTERS, Stage};
use nicforge_nic::{PortId, registers};
use nicforge_options::{ConfigError, Options, Owner, Values};
use nicforge_platform::{AddressSpace, Flat, Ground, Sim, SpaceError};
use nicforge_wire::headers::MacAddress;

#[cfg(target_os = "linux")]
use nicforge_platform::Live;

use crate::fragments::FragmentsKind;
use crate::hairpin::{HairpinKind, TableFull};
use crate::l5p::L5pKind;
use crate::limits::LimitsKind;
use crate::tcpdump::TcpdumpKind;
use crate::trace::TraceKind;

/// A stage's declaration, and how it is built.
pub trait StageKind {
    /// Its name in scenarios.
    const NAME: &'static str;
    /// One line about it.
    const ABOUT: &'static str;
    /// Its keys.
    type Options: Options;

    /// Builds the stage of one NIC. Hands out addresses only; the memory is zero when the stage starts.
    ///
    /// # Errors
    /// The stage cannot read or use a file that its options name.
    fn build<G: Ground>(
        options: &Self::Options,
        plan: &StagePlan,
        space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError>;
}

/// The NIC that a stage is built for.
#[derive(Clone)]
pub struct StagePlan {
    /// The NIC's port.
    pub port: PortId,
    /// The first of its registers ([`Stage::registers`]), as drivers write them.
    pub first_register: u32,
    /// The port's hardware address.
    pub mac: MacAddress,
    /// Where frames go that leave by it, as far as that is known.
    pub next_hop: MacAddress,
    /// Receive queues.
    pub queues: u16,
    /// Entries of a receive ring.
    pub rx_entries: usize,
    /// Flows that will arrive at the port, where that is known.
    pub flows: Rc<dyn KnownFlows>,
    /// The scenario's settings.
    pub values: Values,
}

/// Flows that will arrive at a port.
pub trait KnownFlows {
    /// How many there are.
    fn count(&self) -> u64;

    /// Flow `number`, below [`count`](Self::count).
    fn flow(&self, number: u64) -> KnownFlow;
}

/// A flow that will arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFlow {
    /// Who sends it.
    pub source: SocketAddrV4,
    /// Who receives it.
    pub destination: SocketAddrV4,
    /// Its IP protocol.
    pub protocol: u8,
}

/// No flow is known.
impl KnownFlows for () {
    fn count(&self) -> u64 {
        0
    }

    fn flow(&self, _number: u64) -> KnownFlow {
        let nobody = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0);
        KnownFlow { source: nobody, destination: nobody, protocol: 0 }
    }
}

/// Fills a stage's tables in host memory before traffic begins.
pub type Start<G> = Box<dyn FnOnce(&mut <G as Ground>::Cpu) -> Result<(), StageError>>;

/// A stage on ground `G`.
pub struct BuiltStage<G: Ground> {
    /// The stage.
    pub stage: Box<dyn Stage<G::Dma>>,
    /// Software's part of the start-up, before traffic begins; `None` without one.
    pub start: Option<Start<G>>,
}

impl<G: Ground> BuiltStage<G> {
    /// `stage`, which needs nothing of software.
    pub fn new(stage: impl Stage<G::Dma>) -> BuiltStage<G> {
        BuiltStage { stage: Box::new(stage), start: None }
    }

    /// The same, with what software does for it before traffic begins.
    pub fn starting(self, start: impl FnOnce(&mut G::Cpu) -> Result<(), StageError> + 'static) -> BuiltStage<G> {
        BuiltStage { start: Some(Box::new(start)), ..self }
    }
}

/// Why a stage cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// There is no such stage.
    #[error("no stage named {name:?}; known: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// An option, or a file that an option names, is invalid. The error has file, line and remedy.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its table is full.
    #[error(transparent)]
    TableFull(#[from] TableFull),
    /// No room for its tables.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// An error of the stage's own.
    #[error(transparent)]
    Own(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// Builds a stage on ground `G`.
pub type Build<G> = fn(&StagePlan, &mut AddressSpace) -> Result<BuiltStage<G>, StageError>;

fn build<K: StageKind, G: Ground>(plan: &StagePlan, space: &mut AddressSpace) -> Result<BuiltStage<G>, StageError> {
    K::build::<G>(&plan.values.read(), plan, space)
}

/// A stage in a registry.
#[derive(Clone, Debug)]
pub struct StageEntry {
    /// Its name and its keys.
    pub owner: Owner,
    sim: Build<Sim>,
    flat: Build<Flat>,
    #[cfg(target_os = "linux")]
    live: Build<Live>,
}

impl StageEntry {
    /// The entry of stage `K`.
    pub fn of<K: StageKind>() -> StageEntry {
        StageEntry {
            owner: Owner::of::<K::Options>("stage", K::NAME, K::ABOUT),
            sim: build::<K, Sim>,
            flat: build::<K, Flat>,
            #[cfg(target_os = "linux")]
            live: build::<K, Live>,
        }
    }

    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        self.owner.name
    }

    /// One line about it.
    pub fn about(&self) -> &'static str {
        self.owner.about
    }

    /// Builds the stage of one NIC.
    ///
    /// # Errors
    /// See [`StageKind::build`].
    pub fn build<G: StageGround>(
        &self,
        plan: &StagePlan,
        space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        G::builder(self)(plan, space)
    }
}

/// A ground that stages are built for.
pub trait StageGround: Ground {
    /// How the stage of `entry` is built here.
    fn builder(entry: &StageEntry) -> Build<Self>;
}

impl StageGround for Sim {
    fn builder(entry: &StageEntry) -> Build<Sim> {
        entry.sim
    }
}

impl StageGround for Flat {
    fn builder(entry: &StageEntry) -> Build<Flat> {
        entry.flat
    }
}

#[cfg(target_os = "linux")]
impl StageGround for Live {
    fn builder(entry: &StageEntry) -> Build<Live> {
        entry.live
    }
}

/// The stages that a run may name.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    entries: Vec<StageEntry>,
}

impl Stages {
    /// Those that are shipped with Nicforge.
    pub fn shipped() -> Stages {
        let mut all = Stages::default();
        all.add::<HairpinKind>();
        all.add::<FragmentsKind>();
        all.add::<L5pKind>();
        all.add::<TcpdumpKind>();
        all.add::<TraceKind>();
        all.add::<LimitsKind>();
        all
    }

    /// Adds stage `K`; one of the same name is replaced.
    pub fn add<K: StageKind>(&mut self) -> &mut Stages {
        self.entries.retain(|entry| entry.name() != K::NAME);
        self.entries.push(StageEntry::of::<K>());
        self
    }

    /// All of them.
    pub fn entries(&self) -> &[StageEntry] {
        &self.entries
    }

    /// All names, in the order of the registry.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries.iter().map(StageEntry::name).collect()
    }

    /// The stage of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<&StageEntry, StageError> {
        let found = self.entries.iter().find(|entry| entry.name() == name);
        found.ok_or_else(|| StageError::Unknown { name: name.to_owned(), known: self.names() })
    }

    /// The stages `names` of one NIC, in this order from the wire, where the first of them is number `first` of its chain.
    ///
    /// # Errors
    /// There is none of a name, or it cannot be built.
    pub fn build<G: StageGround>(
        &self,
        names: &[String],
        first: usize,
        plan: &StagePlan,
        space: &mut AddressSpace,
    ) -> Result<Vec<BuiltStage<G>>, StageError> {
        let each = (first as u32..).zip(names);
        let built = each.map(|(number, name)| {
            let first_register = registers::STAGES + number * STAGE_REGISTERS;
            self.find(name)?.build(&StagePlan { first_register, ..plan.clone() }, space)
        });
        built.collect()
    }
}
