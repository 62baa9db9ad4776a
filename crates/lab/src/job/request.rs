//! What somebody asks for: a scenario file, and what is to be otherwise than it says.

use std::path::{Path, PathBuf};

use nicforge_options::{ConfigError, Place};

use crate::machine::{Machine, load_machine};
use crate::scenario::{Assignment, Scenario, load_scenario};
use crate::settings::Catalogue;

/// A scenario and what is changed of it.
#[derive(Debug)]
pub struct Request {
    /// The scenario file.
    pub scenario: PathBuf,
    /// A machine file, or the name of a machine, in place of the scenario's.
    pub machine: Option<PathBuf>,
    /// A seed in place of the scenario's.
    pub seed: Option<u64>,
    /// How many seeds each point runs with.
    pub seeds: u64,
    /// Settings that replace the scenario's wherever it sets, varies or sweeps them.
    pub overrides: Vec<Assignment>,
    /// Keys with the values that each is swept over, likewise.
    pub sweeps: Vec<Vec<Assignment>>,
    /// The overrides, as they were given.
    pub said: Vec<String>,
    /// The only variants that are to run; all if there are none.
    pub variants: Vec<String>,
}

impl Request {
    /// The scenario in `file` as it is.
    pub fn of(file: &Path) -> Request {
        Request {
            scenario: file.to_path_buf(),
            machine: None,
            seed: None,
            seeds: 1,
            overrides: Vec::new(),
            sweeps: Vec::new(),
            said: Vec::new(),
            variants: Vec::new(),
        }
    }

    /// The scenario and the machine.
    pub(super) fn files(&self, catalogue: &Catalogue) -> Result<(Scenario, Machine), ConfigError> {
        let mut scenario = load_scenario(&self.scenario, catalogue)?;
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        if !self.variants.is_empty() {
            scenario.keep_variants(&self.variants)?;
        }
        if !self.sweeps.is_empty() {
            scenario = scenario.swept_over(&self.sweeps)?;
        }
        let machine = self.machine.as_deref();
        if let Some(name) = machine.and_then(name_of_machine) {
            scenario.machine_place = Place::argument(&format!("--machine {name}"));
            scenario.machine = name;
        }
        let machine = match machine.filter(|file| name_of_machine(file).is_none()) {
            Some(file) => load_machine(file)?,
            None => load_machine(&scenario.machine_file()?)?,
        };
        Ok((scenario, machine))
    }
}

/// The name of a machine, as scenarios have it, where `machine` is no file.
fn name_of_machine(machine: &Path) -> Option<String> {
    let name = machine.to_str()?;
    let bare = machine.extension().is_none() && machine.components().count() == 1;
    (bare && !machine.exists()).then(|| name.to_string())
}
