//! The file that `nicforge live` is given.
//!
//! ```toml
//! [live]            # name, title, duration_s, idle, when_full, segments, pin, ask_again_s, attach
//! [settings]        # keys of `nicforge list settings` that a live run uses
//! [app]             # addresses: external_address, external_addresses, service, server_address
//! [[port]]          # one for each port, counted from 0
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nicforge_apps::NeededAddress;
use nicforge_apps::options::RouteOptions;
use nicforge_interfaces::describe::Software;
use nicforge_options::{ConfigError, Place};
use nicforge_platform::live::ports::{MemifRole, MemifTerms};
use nicforge_wire::headers::MacAddress;
use serde::{Deserialize, Serialize};

pub use super::idle::Idle;

use crate::scenario::{Assignment, find_file};
use crate::settings::{Catalogue, Settings, of_live_run};

/// As often as Linux looks after neighbours that it uses (base_reachable_time).
const ASK_AGAIN_S: f64 = 30.0;
/// Most ports: the number of one must fit a register's device.
const PORTS_MAX: usize = 16;

/// A live run, each key checked by itself.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    /// Its name, which is also that of its output folder.
    pub name: String,
    /// One line.
    pub title: String,
    /// Seconds after which it ends; `None`: when it is told to.
    pub duration_s: Option<f64>,
    /// What to do when there is nothing to do.
    pub idle: Idle,
    /// Where that stands.
    pub idle_place: Place,
    /// What to do with frames that come in while receive rings are full.
    pub when_full: WhenFull,
    /// What becomes of segments that their sender left to its NIC to cut.
    pub segments: Segments,
    /// Whether each thread gets a core of its own.
    pub pin: Pin,
    /// Where that stands.
    pub pin_place: Place,
    /// After so many seconds next hops are asked again where they are.
    pub ask_again_s: f64,
    /// Workers are processes that attach through this Unix socket; `None`: threads of this one.
    pub attach: Option<PathBuf>,
    /// Where that stands.
    pub attach_place: Place,
    /// Interface, application, sizes; `cores` is the number of workers.
    pub settings: Settings,
    /// What stands in `[settings]`, in its order.
    pub assignments: Vec<Assignment>,
    /// Addresses of the application.
    pub app: AppAddresses,
    /// A TCP stack is the only worker, in place of an application.
    pub tcp: Option<TcpConfig>,
    /// Ports by number.
    pub ports: Vec<PortConfig>,
}

/// What happens to frames that come in while receive rings are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// They wait in the port, as in a FIFO of some megabytes, which drops when it is full.
    #[default]
    Wait,
    /// The NIC takes them and drops them, as one on a fast wire must. Files wait all the same.
    Drop,
}

/// What becomes of segments of up to 64 KiB, and of checksums, that their sender left to its NIC:
/// there are such on virtual interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segments {
    /// The port finishes them, so that frames are as on a wire.
    #[default]
    Cut,
    /// They go through whole, and the port that they leave by finishes them, or its kernel, or the
    /// NIC behind that (large receive offload, segmentation offload).
    Whole,
}

/// Whether each thread of a run, the device's and every worker's, gets a core of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// When there are more cores than threads.
    #[default]
    Auto,
    /// In any case; with fewer cores than threads there is no run.
    Yes,
    /// The system puts threads where it likes.
    No,
}

/// Addresses that applications need on a real network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppAddresses {
    /// `nat`: the first external address.
    pub external_address: Option<Ipv4Addr>,
    /// `nat`: how many, counted on from the first.
    pub external_addresses: Option<u32>,
    /// `lb`: the address that is balanced.
    pub service: Option<Ipv4Addr>,
    /// `lb`: the first server's address.
    pub server_address: Option<Ipv4Addr>,
}

/// The host whose TCP stack is behind the NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpConfig {
    /// Path of the Unix socket at which programs find the stack; `None`: the usual one.
    pub service: Option<PathBuf>,
    /// Own addresses with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Routers.
    pub gateways: Vec<IpAddr>,
    /// Congestion control of every connection; `None`: the stack's default.
    pub congestion: Option<nicforge_tcp::congestion::Algorithm>,
}

/// What is at the other end of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A network interface of the system, through a packet socket.
    Packet(String),
    /// The same through an AF_XDP socket, and which of its queues.
    Xdp(String, Option<u32>),
    /// A TAP device.
    Tap(String),
    /// Shared memory with another data plane.
    Memif(MemifPlace),
    /// A guest's network adapter.
    VhostUser(VhostUserPlace),
    /// Capture files: frames come from the first and go to the second.
    Capture(Option<PathBuf>, Option<PathBuf>),
}

/// Where a memif port is, and what both ends agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemifPlace {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Which end of it this is.
    pub role: MemifRole,
    /// Interface, rings, secret.
    pub terms: MemifTerms,
    /// Bytes that a frame may have behind its Ethernet header.
    pub mtu: usize,
}

/// Where a guest is plugged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostUserPlace {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Pairs of queues, at most.
    pub queues: u16,
    /// Bytes that a frame may have behind its Ethernet header.
    pub mtu: usize,
}

/// A neighbour, by either kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Known.
    Mac(MacAddress),
    /// To be asked for (ARP, or neighbour discovery) when the run begins, and now and then.
    Ip(IpAddr),
}

/// One port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// What is at the other end.
    pub kind: PortKind,
    /// Where it stands.
    pub place: Place,
    /// Its own address, for which it answers ARP requests.
    pub address: Option<Ipv4Addr>,
    /// Its own IPv6 address beside the link-local one, which it always has.
    pub address6: Option<Ipv6Addr>,
    /// Its hardware address, where it is not that of the interface.
    pub mac: Option<MacAddress>,
    /// Who its frames go to.
    pub next_hop: Option<Neighbour>,
    /// Where frames go that come in here, unless a route says otherwise.
    pub peer: Option<usize>,
    /// Whether the private network of a NAT is behind it.
    pub inside: Option<bool>,
}

impl std::fmt::Display for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = |file: &Option<PathBuf>| match file {
            Some(file) => file.display().to_string(),
            None => "nothing".to_string(),
        };
        match self {
            PortKind::Packet(name) => write!(f, "interface {name}"),
            PortKind::Xdp(name, _) => write!(f, "interface {name} (AF_XDP)"),
            PortKind::Tap(name) => write!(f, "TAP device {name}"),
            PortKind::VhostUser(place) => write!(f, "vhost-user {}", place.socket.display()),
            PortKind::Memif(memif) => write!(f, "memif {}", memif.socket.display()),
            PortKind::Capture(from, to) => {
                write!(f, "capture, reads {}, writes {}", file(from), file(to))
            }
        }
    }
}

impl LiveConfig {
    /// What a file begins with that says nothing.
    pub(super) fn of_defaults(catalogue: &Arc<Catalogue>) -> LiveConfig {
        let settings = Settings::new(catalogue)
            .with("cores", 1)
            // One adapter, however many ports it has.
            .with("nics", 1)
            // A table that begins empty takes no memory before it is used, but expiry sweeps it.
            .with("table_entries", 65_536)
            // What users of a NAT expect; scenarios have that of the published systems.
            .with("nat_mapping", "endpoint_independent")
            .with("nat_host_share_percent", 50);
        LiveConfig::blank(settings)
    }

    /// A run with `settings`, without ports.
    pub(super) fn blank(settings: Settings) -> LiveConfig {
        LiveConfig {
            name: String::new(),
            title: String::new(),
            duration_s: None,
            idle: Idle::default(),
            idle_place: Place::argument("idle"),
            when_full: WhenFull::default(),
            segments: Segments::default(),
            pin: Pin::default(),
            pin_place: Place::argument("pin"),
            ask_again_s: ASK_AGAIN_S,
            attach: None,
            attach_place: Place::argument("attach"),
            settings,
            assignments: Vec::new(),
            app: AppAddresses::default(),
            tcp: None,
            ports: Vec::new(),
        }
    }

    /// Sets a key of `[settings]` in spite of what the file says.
    ///
    /// # Errors
    /// The key does not go together with the others.
    pub fn set(&mut self, set: Assignment) -> Result<(), ConfigError> {
        let place = set.place.clone();
        let found = find_file(&set, Path::new(""))?;
        self.set_unchecked(found.unwrap_or(set));
        check(self, &place)
    }

    /// The same, while the rest of the file is still to be read.
    pub(super) fn set_unchecked(&mut self, set: Assignment) {
        set.apply(&mut self.settings);
        self.assignments.retain(|other| other.key.name != set.key.name);
        self.assignments.push(set);
    }

    /// What is set and belongs to modules that this run does not use.
    pub fn notes(&self) -> Vec<String> {
        let owners = of_live_run(&self.settings);
        let unused = |set: &&Assignment| !owners.iter().any(|owner| owner.declares(set.key.name));
        let unused = self.assignments.iter().filter(unused);
        unused.map(|set| set.somebody_elses(self.settings.catalogue())).collect()
    }
}

/// Whether what the file says goes together; `place` is where to point in doubt.
pub fn check(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    if config.name.is_empty() {
        let right = "add name = \"my-gateway\" under [live]";
        return Err(ConfigError::new(place, "[live] has no `name`", right));
    }
    if config.ports.is_empty() || config.ports.len() > PORTS_MAX {
        let wrong = format!("there are {} ports", config.ports.len());
        let right = format!("write [[port]] for each, 1 to {PORTS_MAX}");
        return Err(ConfigError::new(place, wrong, right));
    }
    check_interface(config, place)?;
    if config.idle == Idle::Interrupt && config.attach.is_some() {
        let wrong = "workers that attach cannot be interrupted: the event is this process's";
        return Err(ConfigError::new(&config.idle_place, wrong, "set idle to \"sleep\", or leave `attach` out"));
    }
    check_tcp(config, place)?;
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
        let known = port.peer.is_none_or(|peer| peer < config.ports.len());
        if !known {
            let last = config.ports.len() - 1;
            let right = format!("name a port from 0 to {last}");
            return Err(ConfigError::new(&port.place, "`peer` is no port", right));
        }
        if matches!(port.next_hop, Some(Neighbour::Ip(IpAddr::V4(_)))) && port.address.is_none() {
            let right = "add `address`, which the question is asked from, or write next_hop as a \
                         hardware address";
            return Err(ConfigError::new(&port.place, "`next_hop` is to be asked for", right));
        }
    }
    check_addresses(config, place)
}

/// Where `key` of `[settings]` was set; else `place`.
fn place_of<'a>(config: &'a LiveConfig, key: &str, place: &'a Place) -> &'a Place {
    let mut sets = config.assignments.iter();
    sets.find(|set| set.key.name == key).map_or(place, |set| &set.place)
}

/// A TCP stack is one thread behind one port, which takes frames as on a wire.
fn check_tcp(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    let Some(tcp) = &config.tcp else { return Ok(()) };
    let wrong = |wrong: &str, right: &str| Err(ConfigError::new(place, wrong, right));
    if tcp.addresses.is_empty() {
        return wrong("[tcp] has no address", "add address = [\"10.0.0.2/24\"] under [tcp]");
    }
    if config.ports.len() != 1 || config.settings.cores() != 1 {
        return wrong("[tcp] with several ports or cores", "write one [[port]] and leave `cores` out");
    }
    if config.attach.is_some() {
        return wrong("[tcp] with `attach`", "leave `attach` out: programs find the stack at its service");
    }
    if config.segments == Segments::Whole {
        return wrong("[tcp] with segments = \"whole\"", "leave `segments` out");
    }
    if let Some(set) = config.assignments.iter().find(|set| set.key.name == "app") {
        return Err(ConfigError::new(&set.place, "[tcp] and an `app`", "leave one of them out"));
    }
    Ok(())
}

/// Some interfaces are there in simulations only.
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

/// Addresses that other hosts know cannot be guessed.
fn check_addresses(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    if config.tcp.is_some() {
        return Ok(());
    }
    let place = place_of(config, "app", place);
    let (app, needed) = (config.settings.app(), config.settings.app_shape().needs_address);
    let (wrong, right) = match needed {
        Some(NeededAddress::External) if config.app.external_address.is_none() => (
            format!("`{app}` does not know the address that it shall send from"),
            "add external_address = \"192.0.2.1\", the outside's, under [app]",
        ),
        Some(NeededAddress::Server) if config.app.server_address.is_none() => (
            format!("`{app}` does not know its servers"),
            "add server_address = \"192.0.2.1\", the first one's, under [app]",
        ),
        _ => return Ok(()),
    };
    Err(ConfigError::new(place, wrong, right))
}
