//! The file that `nicforge live` is given.
//!
//! ```toml
//! [live]            # name, title, duration_s, idle, when_full
//! [settings]        # keys of `nicforge list settings` that a live run uses
//! [app]             # addresses: external_address, external_addresses, service, server_address
//! [[port]]          # one for each port, counted from 0
//! ```

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nicforge_wire::headers::MacAddress;

use crate::config::{ConfigError, Field, Located, Node, Place, parse_tree, read_text, shorten};
use crate::scenario::{Assignment, file_name};
use crate::settings::{Names, Settings};

/// Keys of the settings table that mean something here.
const SETTINGS: [&str; 17] = [
    "interface",
    "app",
    "cores",
    "rx_entries",
    "sharing",
    "ax_entries",
    "bx_entries",
    "ax_choice",
    "consumption",
    "consumption_timeout_us",
    "tx_entries",
    "burst",
    "table_entries",
    "servers",
    "routes_file",
    "reads",
    "array_mib",
];
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
    /// What to do with frames that come in while receive rings are full.
    pub when_full: WhenFull,
    /// Interface, application, sizes; `cores` is the number of workers.
    pub settings: Settings,
    /// What stands in `[settings]`, in its order.
    pub assignments: Vec<Assignment>,
    /// Addresses of the application.
    pub app: AppAddresses,
    /// Ports by number.
    pub ports: Vec<PortConfig>,
}

/// What device and workers do when there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Poll a few times more, then sleep until woken.
    #[default]
    Sleep,
    /// Poll on: the shortest reaction, for a whole core each.
    Spin,
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

/// Addresses that applications need on a real network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// What is at the other end of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A network interface of the system.
    Packet(String),
    /// A TAP device.
    Tap(String),
    /// Capture files: frames come from the first and go to the second.
    Capture(Option<PathBuf>, Option<PathBuf>),
}

/// A neighbour, by either kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Known.
    Mac(MacAddress),
    /// To be asked for (ARP) when the run begins.
    Ip(Ipv4Addr),
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
            PortKind::Tap(name) => write!(f, "TAP device {name}"),
            PortKind::Capture(from, to) => {
                write!(f, "capture, reads {}, writes {}", file(from), file(to))
            }
        }
    }
}

impl LiveConfig {
    /// Sets a key of `[settings]` in spite of what the file says.
    ///
    /// # Errors
    /// The key means nothing here, or not together with the others.
    pub fn set(&mut self, set: Assignment) -> Result<(), ConfigError> {
        let place = set.place.clone();
        self.set_unchecked(set)?;
        check(self, &place)
    }

    fn set_unchecked(&mut self, set: Assignment) -> Result<(), ConfigError> {
        if !SETTINGS.contains(&set.key.name) {
            let wrong = format!("`{}` means nothing on the live ground", set.key.name);
            let right = format!("use {}", SETTINGS.join(", "));
            return Err(ConfigError::new(&set.place, wrong, right));
        }
        set.apply(&mut self.settings)?;
        self.assignments
            .retain(|other| other.key.name != set.key.name);
        self.assignments.push(set);
        Ok(())
    }
}

/// Reads and parses a live run's file.
///
/// # Errors
/// The place and the remedy.
pub fn load_live(file: &Path, names: &Names<'_>) -> Result<LiveConfig, ConfigError> {
    parse_live(&read_text(file)?, file, names)
}

/// Parses a live run's file; `file` is for errors only.
///
/// # Errors
/// The place and the remedy.
pub fn parse_live(text: &str, file: &Path, names: &Names<'_>) -> Result<LiveConfig, ConfigError> {
    let root = parse_tree(text, file)?;
    let mut config = LiveConfig {
        name: String::new(),
        title: String::new(),
        duration_s: None,
        idle: Idle::default(),
        when_full: WhenFull::default(),
        settings: Settings {
            cores: 1,
            // A table that begins empty takes no memory before it is used, but expiry sweeps it.
            table_entries: 65_536,
            ..Settings::default()
        },
        assignments: Vec::new(),
        app: AppAddresses::default(),
        ports: Vec::new(),
    };
    for field in root.table("a live run's file")? {
        match field.key.as_str() {
            "live" => read_header(&mut config, &field.value)?,
            "settings" => read_settings(&mut config, &field.value, names)?,
            "app" => config.app = read_app(&field.value)?,
            "port" => config.ports = read_ports(&field.value)?,
            other => {
                let known = ["live", "settings", "app", "port"];
                return Err(ConfigError::unknown(&field.place, "section", other, &known));
            }
        }
    }
    check(&config, &root.place)?;
    Ok(config)
}

fn check(config: &LiveConfig, place: &Place) -> Result<(), ConfigError> {
    if config.name.is_empty() {
        let right = "add name = \"my-gateway\" under [live]";
        return Err(ConfigError::new(place, "[live] has no `name`", right));
    }
    if config.ports.is_empty() || config.ports.len() > PORTS_MAX {
        let wrong = format!("there are {} ports", config.ports.len());
        let right = format!("write [[port]] for each, 1 to {PORTS_MAX}");
        return Err(ConfigError::new(place, wrong, right));
    }
    let unused = |set: &&Assignment| !set.key.is_used(&config.settings);
    if let Some(set) = config.assignments.iter().find(unused) {
        return Err(set.unused());
    }
    let routed = matches!(config.settings.app.as_str(), "l3fwd" | "synthetic");
    if routed && config.settings.routes_file.is_none() {
        let wrong = format!("`{}` has no routes", config.settings.app);
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
        if matches!(port.next_hop, Some(Neighbour::Ip(_))) && port.address.is_none() {
            let right = "add `address`, which the question is asked from, or write next_hop as a \
                         hardware address";
            return Err(ConfigError::new(
                &port.place,
                "`next_hop` is to be asked for",
                right,
            ));
        }
    }
    Ok(())
}

fn read_header(config: &mut LiveConfig, value: &Located) -> Result<(), ConfigError> {
    for field in value.table("[live]")? {
        match field.key.as_str() {
            "name" => config.name = file_name(&field.value, "name")?,
            "title" => config.title = field.value.text("title")?.to_owned(),
            "duration_s" => config.duration_s = Some(seconds(&field.value)?),
            "idle" => {
                let choices = [("sleep", Idle::Sleep), ("spin", Idle::Spin)];
                config.idle = choice(field, &choices)?;
            }
            "when_full" => {
                let choices = [("wait", WhenFull::Wait), ("drop", WhenFull::Drop)];
                config.when_full = choice(field, &choices)?;
            }
            other => {
                let known = ["name", "title", "duration_s", "idle", "when_full"];
                let what = "key of [live]";
                return Err(ConfigError::unknown(&field.place, what, other, &known));
            }
        }
    }
    Ok(())
}

fn choice<T: Copy>(field: &Field, choices: &[(&str, T)]) -> Result<T, ConfigError> {
    let text = field.value.text(&field.key)?;
    let found = choices.iter().find(|(name, _)| *name == text);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let wrong = format!("`{}` cannot be \"{}\"", field.key, shorten(text));
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        ConfigError::new(&field.place, wrong, format!("use {}", names.join(" or ")))
    })
}

fn seconds(value: &Located) -> Result<f64, ConfigError> {
    let seconds = match value.node {
        Node::Integer(seconds) => seconds as f64,
        Node::Number(seconds) => seconds,
        _ => f64::NAN,
    };
    if (0.0..=1e9).contains(&seconds) && seconds > 0.0 {
        return Ok(seconds);
    }
    let wrong = format!("`duration_s` cannot be {}", value.node.show());
    Err(ConfigError::new(
        &value.place,
        wrong,
        "use a number of seconds above 0",
    ))
}

fn read_settings(
    config: &mut LiveConfig,
    value: &Located,
    names: &Names<'_>,
) -> Result<(), ConfigError> {
    for field in value.table("[settings]")? {
        config.set_unchecked(Assignment::of_field(field, names)?)?;
    }
    Ok(())
}

fn read_app(value: &Located) -> Result<AppAddresses, ConfigError> {
    let mut app = AppAddresses::default();
    for field in value.table("[app]")? {
        match field.key.as_str() {
            "external_address" => app.external_address = Some(address(field)?),
            "external_addresses" => app.external_addresses = Some(count(field)?),
            "service" => app.service = Some(address(field)?),
            "server_address" => app.server_address = Some(address(field)?),
            other => {
                let known = [
                    "external_address",
                    "external_addresses",
                    "service",
                    "server_address",
                ];
                return Err(ConfigError::unknown(
                    &field.place,
                    "key of [app]",
                    other,
                    &known,
                ));
            }
        }
    }
    Ok(app)
}

fn read_ports(value: &Located) -> Result<Vec<PortConfig>, ConfigError> {
    let Node::List(tables) = &value.node else {
        let right = "head each port with [[port]], in double brackets";
        return Err(ConfigError::new(
            &value.place,
            "`port` is no list of tables",
            right,
        ));
    };
    tables.iter().map(read_port).collect()
}

fn read_port(table: &Located) -> Result<PortConfig, ConfigError> {
    const KEYS: [&str; 9] = [
        "interface",
        "tap",
        "read",
        "write",
        "address",
        "mac",
        "next_hop",
        "peer",
        "inside",
    ];
    let mut kinds: Vec<PortKind> = Vec::new();
    let (mut read, mut write) = (None, None);
    let mut port = PortConfig {
        kind: PortKind::Capture(None, None),
        place: table.place.clone(),
        address: None,
        mac: None,
        next_hop: None,
        peer: None,
        inside: None,
    };
    for field in table.table("[[port]]")? {
        let text = || field.value.text(&field.key);
        match field.key.as_str() {
            "interface" => kinds.push(PortKind::Packet(text()?.to_owned())),
            "tap" => kinds.push(PortKind::Tap(text()?.to_owned())),
            "read" => read = Some(PathBuf::from(text()?)),
            "write" => write = Some(PathBuf::from(text()?)),
            "address" => port.address = Some(address(field)?),
            "mac" => port.mac = Some(mac(field)?),
            "next_hop" => {
                port.next_hop = Some(match text()?.parse() {
                    Ok(address) => Neighbour::Ip(address),
                    Err(_) => Neighbour::Mac(mac(field)?),
                });
            }
            "peer" => port.peer = Some(count(field)? as usize),
            "inside" => match field.value.node {
                Node::Flag(inside) => port.inside = Some(inside),
                _ => {
                    let right = "use true or false";
                    return Err(ConfigError::new(&field.place, "`inside` is neither", right));
                }
            },
            other => {
                return Err(ConfigError::unknown(
                    &field.place,
                    "key of [[port]]",
                    other,
                    &KEYS,
                ));
            }
        }
    }
    if read.is_some() || write.is_some() {
        kinds.push(PortKind::Capture(read, write));
    }
    match <[PortKind; 1]>::try_from(kinds) {
        Ok([kind]) => Ok(PortConfig { kind, ..port }),
        Err(kinds) => Err(ConfigError::new(
            &table.place,
            format!("a port with {} other ends", kinds.len()),
            "give it one: `interface`, `tap`, or `read` and `write`",
        )),
    }
}

fn address(field: &Field) -> Result<Ipv4Addr, ConfigError> {
    let text = field.value.text(&field.key)?;
    text.parse().map_err(|_| {
        let wrong = format!("`{}` is no IPv4 address", field.key);
        ConfigError::new(&field.value.place, wrong, "write it as \"10.0.0.1\"")
    })
}

fn mac(field: &Field) -> Result<MacAddress, ConfigError> {
    let text = field.value.text(&field.key)?;
    let bytes = text.split(':').map(|part| u8::from_str_radix(part, 16));
    let bytes: Option<Vec<u8>> = bytes.collect::<Result<_, _>>().ok();
    match bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok()) {
        Some(bytes) => Ok(MacAddress(bytes)),
        None => {
            let wrong = format!("`{}` is no address that can be used", field.key);
            let right = "write a hardware address as \"02:00:00:00:00:01\"";
            Err(ConfigError::new(&field.value.place, wrong, right))
        }
    }
}

fn count(field: &Field) -> Result<u32, ConfigError> {
    let count = match field.value.node {
        Node::Integer(count) => u32::try_from(count).ok(),
        _ => None,
    };
    count.ok_or_else(|| {
        let wrong = format!("`{}` is {}", field.key, field.value.node.show());
        ConfigError::new(&field.value.place, wrong, "use a whole number from 0")
    })
}
