//! What goes over the socket: one JSON value a line.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use nicforge_apps::PortMap;
use nicforge_nic::{DropCounters, PortId};
use nicforge_options::{ConfigError, Place, Section, parse_tree};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;
use serde::{Deserialize, Serialize};

use crate::live::LiveRunError;
use crate::live::assemble::app_config;
use crate::live::config::{LiveConfig, app_owners};
use crate::live::layout::Blueprint;
use crate::live::ports::PortConfig;
use crate::live::threads::{Idle, ThreadOptions};
use crate::live::worker::WorkerCounts;
use crate::scenario::parse_override;
use crate::settings::Catalogue;

/// The version of the program. That both lay the region out alike, [`Invitation::layout`] says.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest line; a peer that sends more is refused.
pub const LINE_MAX: usize = 64 << 10;
/// Names of counters that are learnt from others, at most.
const NAMES_MAX: usize = 256;

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It wants to work, at this place if it names one.
    Hello {
        /// Its [`VERSION`].
        version: String,
        /// The place.
        worker: Option<usize>,
    },
    /// Its tables are as in the beginning, and all that is left are its queues.
    Prepared,
    /// Its queues are up.
    Ready,
    /// What it counted in period `period`.
    Counts {
        /// The order that it followed.
        period: u64,
        /// The counts.
        counts: Told,
    },
    /// It stopped as it was told to: its last counts, and the buffers that it answers for.
    Ended {
        /// The order that it followed.
        period: u64,
        /// The counts.
        counts: Told,
        /// Buffers.
        buffers: i64,
    },
}

/// What a worker is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It has a place. The region and the bell come with it.
    Welcome(Box<Invitation>),
    /// Rings are ready for its queues; the order that it follows.
    Begin(u64),
    /// There is no place for it, and why; or it has to go.
    Refused(String),
    /// The run ends.
    Stop,
}

/// All that a worker has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Invitation {
    /// Its place.
    pub worker: usize,
    /// Whether tables of a worker that was there before must be wiped.
    pub wipes: bool,
    /// The core that it shall stand on, if it shall on one.
    pub core: Option<usize>,
    /// The fingerprint of the region's layout.
    pub layout: u64,
    /// `key=value` of all settings that were made.
    settings: Vec<String>,
    /// The lines of `[app]`.
    app: String,
    idle: Idle,
    ports: Vec<PortPlan>,
}

/// A port as workers see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PortPlan {
    mac: [u8; 6],
    next_hop: [u8; 6],
    peer: u8,
    inside: bool,
    address: Option<Ipv4Addr>,
    address6: Option<Ipv6Addr>,
    broadcast: Option<Ipv4Addr>,
    hears_all: bool,
}

impl Invitation {
    /// For place `worker` in a run that is laid out by `blueprint`.
    pub fn new(blueprint: &Blueprint, layout: u64, worker: usize, wipes: bool) -> Invitation {
        let config = &blueprint.config;
        let made = |name| config.assignments.iter().any(|set| set.key.name == name);
        let keys = config.settings.catalogue().vocabulary().keys().into_iter();
        let settings = keys.filter(|key| made(key.name)).filter_map(|key| {
            let value = config.settings.value(key)?;
            Some(format!("{}={value}", key.name))
        });
        let ports = blueprint.app.ports.0.iter();
        let ports = ports.map(|port| PortPlan {
            mac: port.mac.0,
            next_hop: port.next_hop.0,
            peer: port.peer.0,
            inside: port.inside,
            address: port.address,
            address6: port.address6,
            broadcast: port.broadcast,
            hears_all: port.hears_all,
        });
        Invitation {
            worker,
            wipes,
            core: None,
            layout,
            settings: settings.collect(),
            app: config.app.values().iter().map(|(key, value)| format!("{key} = {value}\n")).collect(),
            idle: config.live.read::<ThreadOptions>().idle,
            ports: ports.collect(),
        }
    }

    /// What the run is laid out by.
    ///
    /// # Errors
    /// A setting that this program does not know, or a file that is not here.
    pub fn blueprint(&self, catalogue: &Arc<Catalogue>) -> Result<Blueprint, LiveRunError> {
        let wrong = |error: ConfigError| LiveRunError::Attach(error.to_string());
        let place = Place::argument("attach");
        let mut config = LiveConfig::of_defaults(catalogue);
        config.live.set("idle", self.idle, place.clone());
        // That there is one is what counts: workers may die.
        config.live.set("attach", "the run's", place.clone());
        let app = parse_tree(&self.app, Path::new("attach")).map_err(wrong)?;
        config.app = Section::of(&app, "[app]", &app_owners(catalogue)).map_err(wrong)?;
        for text in &self.settings {
            let set = parse_override(text, catalogue).map_err(wrong)?;
            config.set_unchecked(set);
        }
        // Rings that do not go together are the other side's mistake.
        let checked = config.settings.check_interface();
        checked.map_err(|finding| LiveRunError::Attach(format!("{}; {}", finding.wrong, finding.right)))?;
        let mut map = PortMap::paired(self.ports.len() as u8);
        for (port, plan) in map.0.iter_mut().zip(&self.ports) {
            port.mac = MacAddress(plan.mac);
            port.next_hop = MacAddress(plan.next_hop);
            port.peer = PortId(plan.peer);
            port.inside = plan.inside;
            port.address = plan.address;
            port.address6 = plan.address6;
            port.broadcast = plan.broadcast;
            port.hears_all = plan.hears_all;
            config.ports.push(PortConfig::given(&place));
        }
        Ok(Blueprint { app: app_config(&config, map)?, config })
    }
}

/// Counts of a worker on their way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    taken: u64,
    pushed: u64,
    kept: u64,
    drops: Vec<(String, u64)>,
    transmit: (u64, u64),
    idle_ps: u64,
    app: Vec<(String, u64)>,
    gauges: Vec<(String, u64)>,
}

impl Told {
    /// As they are sent.
    pub fn of(counts: &WorkerCounts) -> Told {
        let named = |list: &[(&'static str, u64)]| {
            let entries = list.iter();
            entries.map(|(name, count)| (name.to_string(), *count)).collect()
        };
        Told {
            taken: counts.taken,
            pushed: counts.pushed,
            kept: counts.kept,
            drops: named(counts.drops.causes()),
            transmit: counts.transmit,
            idle_ps: counts.idle.as_ps(),
            app: named(&counts.app),
            gauges: named(&counts.gauges),
        }
    }

    /// As they are counted with.
    pub fn counts(&self) -> WorkerCounts {
        let mut drops = DropCounters::default();
        for (cause, count) in &self.drops {
            drops.add(known(cause), *count);
        }
        let known_here = |told: &[(String, u64)]| told.iter().map(|(name, count)| (known(name), *count)).collect();
        WorkerCounts {
            taken: self.taken,
            pushed: self.pushed,
            kept: self.kept,
            made: 0,
            drops,
            transmit: self.transmit,
            absent: false,
            silent: Time::ZERO,
            idle: Time::from_ps(self.idle_ps),
            app: known_here(&self.app),
            gauges: known_here(&self.gauges),
        }
    }
}

/// Counters are named by texts that live for ever. A name from another process is kept from then
/// on; there are few, and not more than [`NAMES_MAX`] whatever the other process says.
fn known(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(known) => known,
        None if names.len() == NAMES_MAX => "other",
        None => {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(kept);
            kept
        }
    }
}
