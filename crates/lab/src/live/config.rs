//! The configuration of a live run, and what its parts must have in common.
//!
//! ```toml
//! [live]            # the run: name, duration, threads
//! [settings]        # keys of scenarios that a live run uses
//! [app]             # addresses of the application
//! [tcp]             # a TCP stack in place of an application
//! [[port]]          # one for each port, counted from 0
//! ```
//!
//! The code that reads a key declares it. `nicforge list settings` lists all.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nicforge_apps::NeededAddress;
use nicforge_apps::options::{HotItemsFrom, HotOptions, RouteOptions};
use nicforge_interfaces::describe::Software;
use nicforge_options::{Allowed, ConfigError, Form, Owner, Place, SECONDS_MAX, Section, options};

use super::assemble::SegmentOptions;
use super::attach::AttachOptions;
use super::device::FullOptions;
use super::follow::{self, FollowOptions};
use super::neighbour::{AskOptions, Neighbour};
use super::pin::PinOptions;
use super::ports::{self, PortConfig};
use super::stack::{self, TcpOptions};
use super::threads::{self, ThreadOptions};
use crate::scenario::{Assignment, FILE_NAME, find_file, is_file_name};
use crate::settings::{Catalogue, Settings, of_live_run};

/// Most ports: the number of one must fit a register's device.
pub(super) const PORTS_MAX: usize = 16;

static NAME: Form = Form { says: FILE_NAME, parse: |text| is_file_name(text).then(|| text.to_owned()) };
static TITLE: Form = Form { says: "a line of text, in quotes", parse: |text| Some(text.to_owned()) };

options! {
    /// What is said of a run.
    pub struct Header {
        /// The run's name, which is also that of its output folder.
        name: String = String::new(), "", Allowed::Form(&NAME), default "none: it must be set";
        /// One line about the run.
        title: String = String::new(), "", Allowed::Form(&TITLE), default "none";
        /// How long the run takes; it ends by a signal when unset.
        duration_s: Option<f64> = None, "s", Allowed::Number(0.001, SECONDS_MAX);
    }
}

/// A live run, each key checked by itself.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    /// `[live]`.
    pub live: Section,
    /// Interface, application, sizes; `cores` is the number of workers.
    pub settings: Settings,
    /// The keys of `[settings]`, in the order of the file.
    pub assignments: Vec<Assignment>,
    /// `[app]`: addresses of the application.
    pub app: Section,
    /// `[tcp]`: a TCP stack in place of workers and their application.
    pub tcp: Option<Section>,
    /// Ports by number.
    pub ports: Vec<PortConfig>,
}

/// The owners of the keys of `[live]`.
pub(super) fn owners() -> Vec<Owner> {
    vec![
        Owner::of::<Header>("", "the run", ""),
        Owner::of::<ThreadOptions>("", "the run's threads", ""),
        Owner::of::<FullOptions>("", "the device", ""),
        Owner::of::<SegmentOptions>("", "ports", ""),
        Owner::of::<PinOptions>("", "the run's threads", ""),
        Owner::of::<AskOptions>("", "neighbours", ""),
        Owner::of::<AttachOptions>("", "workers", ""),
        Owner::of::<FollowOptions>("", "the run", ""),
    ]
}

/// A section of a live run's file.
#[derive(Clone, Debug)]
pub struct SectionOwners {
    /// How its header is written, such as `[live]`.
    pub header: &'static str,
    /// The owners of its keys.
    pub owners: Vec<Owner>,
}

/// All sections of a live run's file except `[settings]`, whose keys are those of scenarios.
pub fn sections(catalogue: &Catalogue) -> Vec<SectionOwners> {
    vec![
        SectionOwners { header: "[live]", owners: owners() },
        SectionOwners { header: "[app]", owners: app_owners(catalogue) },
        SectionOwners { header: "[tcp]", owners: tcp_owners() },
        SectionOwners { header: "[[port]]", owners: ports::owners() },
    ]
}

pub(super) fn app_owners(catalogue: &Catalogue) -> Vec<Owner> {
    catalogue.registry().apps.entries().iter().map(|app| app.addresses.clone()).collect()
}

pub(super) fn tcp_owners() -> Vec<Owner> {
    vec![Owner::of::<TcpOptions>("", "the TCP stack", "")]
}

impl LiveConfig {
    /// The configuration of an empty file.
    pub(super) fn of_defaults(catalogue: &Arc<Catalogue>) -> LiveConfig {
        let settings = Settings::new(catalogue)
            .with("cores", 1)
            // One adapter, however many ports it has.
            .with("nics", 1)
            // A table that begins empty takes no memory before it is used, but expiry sweeps it.
            .with("table_entries", 65_536)
            // Memory that all processes share.
            .with("kvs_log_mib", 256)
            // Other hosts know its addresses: one, if the file does not say more.
            .with("external_addresses", 1)
            // What users of a NAT expect; scenarios have that of the published systems.
            .with("nat_mapping", "endpoint_independent")
            .with("nat_host_share_percent", 50)
            .with("hold_fragments", true);
        LiveConfig::blank(settings)
    }

    /// A run with `settings`, without ports.
    pub(super) fn blank(settings: Settings) -> LiveConfig {
        let place = Place::argument("a run without a file");
        LiveConfig {
            live: Section::empty(&place),
            settings,
            assignments: Vec::new(),
            app: Section::empty(&place),
            tcp: None,
            ports: Vec::new(),
        }
    }

    /// The run's name, which is also that of its output folder.
    pub fn name(&self) -> String {
        self.live.read::<Header>().name
    }

    /// The Unix socket through which worker processes attach; `None`: workers are threads of this process.
    pub fn attach(&self) -> Option<PathBuf> {
        self.live.read::<AttachOptions>().attach
    }

    /// Sets a key of `[settings]`, over the file's value.
    ///
    /// # Errors
    /// The key does not go together with the others.
    pub fn set(&mut self, set: Assignment) -> Result<(), ConfigError> {
        let place = set.place.clone();
        let found = find_file(&set, Path::new(""))?;
        self.set_unchecked(found.unwrap_or(set));
        check(self, &place)
    }

    /// Sets a key of `[settings]` unchecked, while the rest of the file is still to be read.
    pub(super) fn set_unchecked(&mut self, set: Assignment) {
        set.apply(&mut self.settings);
        self.assignments.retain(|other| other.key.name != set.key.name);
        self.assignments.push(set);
    }

    /// Keys that are set and belong to modules that this run does not use.
    pub fn notes(&self) -> Vec<String> {
        let owners = of_live_run(&self.settings);
        let unused = |set: &&Assignment| !owners.iter().any(|owner| owner.declares(set.key.name));
        let unused = self.assignments.iter().filter(unused);
        let settings = unused.map(|set| set.somebody_elses(self.settings.catalogue()));
        settings.chain(self.unused_addresses()).collect()
    }

    /// Keys of `[app]` that belong to other applications.
    fn unused_addresses(&self) -> impl Iterator<Item = String> {
        let app = self.settings.app();
        let owners = app_owners(self.settings.catalogue());
        self.app.keys().filter_map(move |(key, place)| {
            let declares = |owner: &&Owner| owner.declares(key);
            let owner = owners.iter().find(declares)?;
            let uses = owners.iter().filter(declares).any(|owner| owner.name == app);
            (!uses).then(|| format!("{place}: nothing uses `{key}` here: it belongs to {owner}; leave it out"))
        })
    }
}

/// Checks what sections must have in common; an error without a key of its own points to `place`.
pub fn check(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    if config.name().is_empty() {
        let right = "add name = \"my-gateway\" under [live]";
        return Err(ConfigError::new(place, "[live] has no `name`", right));
    }
    if config.ports.is_empty() || config.ports.len() > PORTS_MAX {
        let wrong = format!("there are {} ports", config.ports.len());
        let right = format!("write [[port]] for each, 1 to {PORTS_MAX}");
        return Err(ConfigError::new(place, wrong, right));
    }
    check_interface(config, place)?;
    check_hot_items(config, place)?;
    threads::check(config)?;
    follow::check(config)?;
    stack::check(config)?;
    let found = config.settings.check_interface().and_then(|()| config.settings.check_nicmem());
    if let Err(finding) = found {
        let concerned = |set: &&Assignment| finding.keys.contains(&set.key.name);
        let found = config.assignments.iter().rfind(concerned);
        let place = found.map_or(place, |set| &set.place);
        return Err(ConfigError::new(place, finding.wrong, finding.right));
    }
    let settings = &config.settings;
    if settings.app_shape().routes && settings.read::<RouteOptions>().routes_file.is_none() {
        let wrong = format!("`{}` has no routes", settings.app());
        let right = "set routes_file under [settings] to a file of `prefix/length port` lines";
        return Err(ConfigError::new(place, wrong, right));
    }
    for port in &config.ports {
        let options = port.options();
        let known = options.peer.is_none_or(|peer| (peer as usize) < config.ports.len());
        if !known {
            let last = config.ports.len() - 1;
            let right = format!("name a port from 0 to {last}");
            return Err(ConfigError::new(port.section.place_of("peer"), "`peer` is no port", right));
        }
        if matches!(options.next_hop, Some(Neighbour::Ip(IpAddr::V4(_)))) && options.address.is_none() {
            let right = "add `address`, which the question is asked from, or write next_hop as a \
                         hardware address";
            return Err(ConfigError::new(port.section.place_of("next_hop"), "`next_hop` is to be asked for", right));
        }
    }
    check_addresses(config, place)
}

/// Where `key` of `[settings]` was set; else `place`.
pub(super) fn place_of<'a>(config: &'a LiveConfig, key: &str, place: &'a Place) -> &'a Place {
    let mut sets = config.assignments.iter();
    sets.find(|set| set.key.name == key).map_or(place, |set| &set.place)
}

/// Interfaces of whole systems are simulated only.
fn check_interface(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    let (name, catalogue) = (config.settings.interface(), config.settings.catalogue());
    let live = catalogue.interfaces_of(Software::PacketLoop);
    if live.contains(&name.as_str()) {
        return Ok(());
    }
    let wrong = format!("`{name}` is one of whole systems, which are simulated only");
    let right = format!("use one of {}", live.join(", "));
    let place = place_of(config, "interface", place);
    Err(ConfigError::new(place, wrong, right))
}

/// Clients of a live store say beforehand neither which items they will ask for nor what these are.
fn check_hot_items(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    let settings = &config.settings;
    if !settings.app_shape().values_in_nicmem || settings.read::<HotOptions>().kvs_hot_items == HotItemsFrom::Sketch {
        return Ok(());
    }
    let wrong = "hot items cannot be given to a live store, which is empty at first";
    let place = place_of(config, "kvs_hot_items", place);
    Err(ConfigError::new(place, wrong, "set kvs_hot_items to \"sketch\""))
}

/// An application needs the addresses that other hosts know.
fn check_addresses(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    if config.tcp.is_some() {
        return Ok(());
    }
    let place = place_of(config, "app", place);
    let (app, needed) = (config.settings.app(), config.settings.app_shape().needs_address);
    let (wrong, right) = match needed {
        Some(NeededAddress::External) if !config.app.sets("external_address") => (
            format!("`{app}` does not know the address that it shall send from"),
            "add external_address = \"192.0.2.1\", the outside's, under [app]",
        ),
        Some(NeededAddress::Server) if !config.app.sets("server_address") => (
            format!("`{app}` does not know its servers"),
            "add server_address = \"192.0.2.1\", the first one's, under [app]",
        ),
        _ => return Ok(()),
    };
    Err(ConfigError::new(place, wrong, right))
}
