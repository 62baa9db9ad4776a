//! The settings of one point: values, and the modules that read them.
//!
//! ```text
//! Catalogue: all owners of keys ──► scenario file, --set ──► Settings: values
//!                                                               │ chosen(): the owners that this point uses
//!                                                               └ read::<T>(): one owner's typed options
//! ```
//!
//! Which owners a point uses follows from its choices: interface, application, arrival and so on (`owners.rs`). A key counts
//! where one of them declares it.

mod catalogue;
mod check;
mod check_records;
mod cores;
mod derived;
mod owners;
#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use nicforge_apps::AppShape;
use nicforge_interfaces::describe::{Description, Queues, Shape};
use nicforge_options::{Key, Owner, Value, Values};
use nicforge_units::Cycles;

use crate::machine::Machine;
use crate::run::options::{Application, Cores, Nics, Run, Workload};

pub use catalogue::Catalogue;
pub use derived::to_the_ns;
#[cfg(target_os = "linux")]
pub(crate) use owners::of_live_run;

/// The settings of one point, after defaults, variant, sweep and `--set` are applied.
#[derive(Clone, Debug)]
pub struct Settings {
    values: Values,
    catalogue: Arc<Catalogue>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new(&Catalogue::shipped())
    }
}

/// By their values.
impl PartialEq for Settings {
    fn eq(&self, other: &Settings) -> bool {
        self.values == other.values
    }
}

impl Deref for Settings {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.values
    }
}

impl DerefMut for Settings {
    fn deref_mut(&mut self) -> &mut Values {
        &mut self.values
    }
}

impl Settings {
    /// The defaults of all owners in `catalogue`.
    pub fn new(catalogue: &Arc<Catalogue>) -> Settings {
        Settings { values: Values::default(), catalogue: Arc::clone(catalogue) }
    }

    /// The defaults on `machine`: all of its cores and NICs, its I/O ways and NIC memory.
    pub fn for_machine(catalogue: &Arc<Catalogue>, machine: &Machine) -> Settings {
        let hardware = &machine.hardware;
        Settings::new(catalogue)
            .with("cores", hardware.cores)
            .with("nics", hardware.nics)
            .with("io_ways", hardware.io_ways)
            .with("nicmem_kib", hardware.nic.nicmem.0 / 1024)
    }

    /// The same settings with one value more, or another one.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Settings {
        self.values.set(name, value);
        self
    }

    /// All owners that there are.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The owners that this point uses, in the order in which their keys are listed.
    pub fn chosen(&self) -> Vec<&Owner> {
        owners::of_simulation(self)
    }

    /// The owners that describe what arrives.
    pub fn of_traffic(&self) -> Vec<&Owner> {
        owners::of_traffic(self)
    }

    /// Whether an owner that this point uses declares key `name`.
    pub fn counts(&self, name: &str) -> bool {
        self.chosen().iter().any(|owner| owner.declares(name))
    }

    /// The keys that count, each with its owner and its value.
    pub fn effective(&self) -> Vec<(&Owner, &'static Key, Option<Value>)> {
        let mut all: Vec<(&Owner, &'static Key, Option<Value>)> = Vec::new();
        for owner in self.chosen() {
            for key in &owner.keys {
                if !all.iter().any(|(_, known, _)| known.name == key.name) {
                    all.push((owner, key, self.value(key)));
                }
            }
        }
        all
    }

    /// The value of `key`, or its default.
    pub fn value(&self, key: &Key) -> Option<Value> {
        self.values.get(key.name).cloned().or_else(|| (key.default)())
    }

    /// The name of the interface.
    pub fn interface(&self) -> String {
        self.read::<Run>().interface
    }

    /// The name of the application.
    pub fn app(&self) -> String {
        self.read::<Application>().app
    }

    /// What the application says about itself.
    pub fn app_shape(&self) -> AppShape {
        let found = self.catalogue.registry().apps.find(&self.app());
        found.map(|app| app.shape(&self.values)).unwrap_or_default()
    }

    /// What the application's instructions take for each packet on `machine`: the machine's word, or else the application's.
    pub(crate) fn work(&self, machine: &Machine) -> Option<Cycles> {
        let app = self.app();
        let own = || self.catalogue.registry().apps.find(&app).ok()?.work;
        machine.work_cycles.get(&app).copied().map(Cycles).or_else(own)
    }

    /// Cores that run the application.
    pub fn cores(&self) -> usize {
        self.read::<Cores>().cores
    }

    /// NICs in use.
    pub fn nics(&self) -> usize {
        self.read::<Nics>().nics
    }

    /// Queues of each NIC.
    pub fn queues(&self) -> usize {
        self.cores() / self.nics()
    }

    /// Whether whole systems run, and not one server at which frames are sent.
    pub fn is_of_whole_systems(&self) -> bool {
        !matches!(self.read::<Run>().workload, Workload::Frames | Workload::RpcEcho | Workload::FlexStorm)
    }

    /// Whether frames are sent at one server.
    pub fn is_of_frames(&self) -> bool {
        self.read::<Run>().workload == Workload::Frames
    }

    /// Whether workers on three machines exchange tuples.
    pub fn is_of_storm(&self) -> bool {
        self.read::<Run>().workload == Workload::FlexStorm
    }

    /// Whether RPCs run over TCP as a service.
    pub fn is_of_rpcs(&self) -> bool {
        self.read::<Run>().workload == Workload::RpcEcho
    }

    /// What the interface says about itself, if it is known.
    pub fn description(&self) -> Option<&Description> {
        self.catalogue.interface(&self.interface())
    }

    /// What the interface that it builds on says about itself, if it builds on one.
    pub fn inner_description(&self) -> Option<&Description> {
        let inner = self.description()?.inner(&self.values)?;
        self.catalogue.interface(&inner)
    }

    /// The rings of each NIC, if the interface is known.
    pub fn shape(&self) -> Option<Shape> {
        self.shape_of(self.queues())
    }

    /// The same of a NIC with `queues` queues.
    pub fn shape_of(&self, queues: usize) -> Option<Shape> {
        let queues = Queues { nics: self.nics(), each: queues, inner: None };
        let inner = self.inner_description().map(|inner| inner.shape(&self.values, &queues));
        Some(self.description()?.shape(&self.values, &Queues { inner: inner.as_ref(), ..queues }))
    }
}
