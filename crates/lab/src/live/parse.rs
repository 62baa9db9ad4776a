//! From the text of a live run's file to a [`LiveConfig`]. Touches no other file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nicforge_options::{ConfigError, Field, Located, Node, Place, SECONDS_MAX, Value, parse_tree, read_text, shorten};
use nicforge_tcp::congestion::Algorithm;
use nicforge_wire::headers::MacAddress;

use super::config::{
    AppAddresses, Idle, LiveConfig, Neighbour, Pin, PortConfig, PortKind, Segments, TcpConfig, WhenFull, check,
};
use super::plugged::{PLUGGED_KEYS, Plugged};
use crate::scenario::{Assignment, file_name, find_file};
use crate::settings::Catalogue;

/// Reads and parses a live run's file.
///
/// # Errors
/// The place and the remedy.
pub fn load_live(file: &Path, catalogue: &Arc<Catalogue>) -> Result<LiveConfig, ConfigError> {
    let mut config = parse_live(&read_text(file)?, file, catalogue)?;
    // Files that it names are found beside it.
    for set in config.assignments.clone() {
        if let Some(found) = find_file(&set, file)? {
            config.set_unchecked(found);
        }
    }
    Ok(config)
}

/// Parses a live run's file; `file` is for errors only.
///
/// # Errors
/// The place and the remedy.
pub fn parse_live(text: &str, file: &Path, catalogue: &Arc<Catalogue>) -> Result<LiveConfig, ConfigError> {
    let root = parse_tree(text, file)?;
    let mut config = LiveConfig::of_defaults(catalogue);
    for field in root.table("a live run's file")? {
        match field.key.as_str() {
            "live" => read_header(&mut config, &field.value)?,
            "settings" => read_settings(&mut config, &field.value, catalogue)?,
            "app" => config.app = read_app(&field.value)?,
            "tcp" => {
                config.tcp = Some(read_tcp(&field.value)?);
                // Its packets are the stack's: this is the application that needs the least.
                config.settings.set("app", Value::from("l2fwd"));
            }
            "port" => config.ports = read_ports(&field.value)?,
            other => {
                let known = ["live", "settings", "app", "tcp", "port"];
                return Err(ConfigError::unknown(&field.place, "section", other, &known));
            }
        }
    }
    check(&config, &root.place)?;
    Ok(config)
}

fn read_header(config: &mut LiveConfig, value: &Located) -> Result<(), ConfigError> {
    for field in value.table("[live]")? {
        match field.key.as_str() {
            "name" => config.name = file_name(&field.value, "name")?,
            "title" => config.title = field.value.text("title")?.to_owned(),
            "duration_s" => config.duration_s = Some(seconds(field)?),
            "ask_again_s" => config.ask_again_s = seconds(field)?,
            "idle" => {
                let choices = [("sleep", Idle::Sleep), ("spin", Idle::Spin), ("interrupt", Idle::Interrupt)];
                config.idle = choice(field, &choices)?;
                config.idle_place = field.place.clone();
            }
            "when_full" => {
                let choices = [("wait", WhenFull::Wait), ("drop", WhenFull::Drop)];
                config.when_full = choice(field, &choices)?;
            }
            "segments" => {
                let choices = [("cut", Segments::Cut), ("whole", Segments::Whole)];
                config.segments = choice(field, &choices)?;
            }
            "pin" => {
                let choices = [("auto", Pin::Auto), ("yes", Pin::Yes), ("no", Pin::No)];
                config.pin = choice(field, &choices)?;
                config.pin_place = field.place.clone();
            }
            "attach" => {
                config.attach = Some(PathBuf::from(field.value.text("attach")?));
                config.attach_place = field.place.clone();
            }
            other => {
                let known =
                    ["name", "title", "duration_s", "idle", "when_full", "segments", "pin", "ask_again_s", "attach"];
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
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        ConfigError::new(&field.place, wrong, format!("use {}", names.join(" or ")))
    })
}

fn seconds(field: &Field) -> Result<f64, ConfigError> {
    let value = &field.value;
    let seconds = match value.node {
        Node::Integer(seconds) => seconds as f64,
        Node::Number(seconds) => seconds,
        _ => f64::NAN,
    };
    if (0.0..=SECONDS_MAX).contains(&seconds) && seconds > 0.0 {
        return Ok(seconds);
    }
    let wrong = format!("`{}` cannot be {}", field.key, value.node.show());
    Err(ConfigError::new(&value.place, wrong, format!("use a number of seconds above 0, at most {SECONDS_MAX}")))
}

fn read_settings(config: &mut LiveConfig, value: &Located, catalogue: &Arc<Catalogue>) -> Result<(), ConfigError> {
    for field in value.table("[settings]")? {
        config.set_unchecked(Assignment::of_field(field, catalogue)?);
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
                let known = ["external_address", "external_addresses", "service", "server_address"];
                return Err(ConfigError::unknown(&field.place, "key of [app]", other, &known));
            }
        }
    }
    Ok(app)
}

fn read_tcp(value: &Located) -> Result<TcpConfig, ConfigError> {
    let mut tcp = TcpConfig::default();
    for field in value.table("[tcp]")? {
        match field.key.as_str() {
            "service" => tcp.service = Some(PathBuf::from(field.value.text("service")?)),
            "address" => tcp.addresses = texts(field)?.map(|text| prefixed(&text?)).collect::<Result<_, _>>()?,
            "gateway" => tcp.gateways = texts(field)?.map(|text| router(&text?)).collect::<Result<_, _>>()?,
            "congestion" => tcp.congestion = Some(algorithm(&field.value)?),
            other => {
                let known = ["service", "address", "gateway", "congestion"];
                return Err(ConfigError::unknown(&field.place, "key of [tcp]", other, &known));
            }
        }
    }
    Ok(tcp)
}

fn algorithm(value: &Located) -> Result<Algorithm, ConfigError> {
    let name = value.text("congestion")?;
    Algorithm::named(name).ok_or_else(|| {
        let wrong = format!("congestion = \"{name}\"");
        let names = Algorithm::ALL.map(Algorithm::name).join(", ");
        ConfigError::new(&value.place, wrong, format!("write one of {names}"))
    })
}

/// A text of a list, and where it stands.
type Text<'a> = (&'a str, &'a Place);

fn texts(field: &Field) -> Result<impl Iterator<Item = Result<Text<'_>, ConfigError>>, ConfigError> {
    let Node::List(list) = &field.value.node else {
        let wrong = format!("`{}` is {}", field.key, field.value.node.show());
        return Err(ConfigError::new(&field.value.place, wrong, "write a list, such as [\"10.0.0.2/24\"]"));
    };
    Ok(list.iter().map(|item| Ok((item.text(&field.key)?, &item.place))))
}

/// An address with its prefix length.
fn prefixed((text, place): &Text<'_>) -> Result<(IpAddr, u8), ConfigError> {
    let parsed = text.split_once('/').and_then(|(ip, len)| Some((ip.parse::<IpAddr>().ok()?, len.parse::<u8>().ok()?)));
    let parsed = parsed.filter(|(ip, len)| *len <= if ip.is_ipv4() { 32 } else { 128 });
    parsed.ok_or_else(|| {
        ConfigError::new(place, format!("`{text}` is no address with a prefix"), "write it as \"10.0.0.2/24\"")
    })
}

fn router((text, place): &Text<'_>) -> Result<IpAddr, ConfigError> {
    text.parse().map_err(|_| ConfigError::new(place, format!("`{text}` is no address"), "write it as \"10.0.0.1\""))
}

fn read_ports(value: &Located) -> Result<Vec<PortConfig>, ConfigError> {
    let Node::List(tables) = &value.node else {
        let right = "head each port with [[port]], in double brackets";
        return Err(ConfigError::new(&value.place, "`port` is no list of tables", right));
    };
    tables.iter().map(read_port).collect()
}

fn read_port(table: &Located) -> Result<PortConfig, ConfigError> {
    const KEYS: [&str; 12] = [
        "interface",
        "xdp",
        "queue",
        "tap",
        "read",
        "write",
        "address",
        "address6",
        "mac",
        "next_hop",
        "peer",
        "inside",
    ];
    let mut kinds: Vec<PortKind> = Vec::new();
    let (mut read, mut write, mut queue) = (None, None, None);
    let mut plugged = Plugged::default();
    let mut port = PortConfig {
        kind: PortKind::Capture(None, None),
        place: table.place.clone(),
        address: None,
        address6: None,
        mac: None,
        next_hop: None,
        peer: None,
        inside: None,
    };
    for field in table.table("[[port]]")? {
        let text = || field.value.text(&field.key);
        match field.key.as_str() {
            "interface" => kinds.push(PortKind::Packet(text()?.to_owned())),
            "xdp" => kinds.push(PortKind::Xdp(text()?.to_owned(), None)),
            "queue" => queue = Some(count(field)?),
            "memif" => kinds.push(Plugged::memif(text()?)),
            "vhost_user" => kinds.push(Plugged::vhost_user(text()?)),
            "tap" => kinds.push(PortKind::Tap(text()?.to_owned())),
            "read" => read = Some(PathBuf::from(text()?)),
            "write" => write = Some(PathBuf::from(text()?)),
            "address" => port.address = Some(address(field)?),
            "address6" => port.address6 = Some(address6(field)?),
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
            _ if plugged.read(field)? => {}
            other => {
                let known = [&KEYS[..], &PLUGGED_KEYS].concat();
                return Err(ConfigError::unknown(&field.place, "key of [[port]]", other, &known));
            }
        }
    }
    if read.is_some() || write.is_some() {
        kinds.push(PortKind::Capture(read, write));
    }
    let kind = other_end(kinds, queue, &table.place)?;
    Ok(PortConfig { kind: plugged.complete(kind)?, ..port })
}

/// The one of `kinds` that a port has.
fn other_end(kinds: Vec<PortKind>, queue: Option<u32>, place: &Place) -> Result<PortKind, ConfigError> {
    match <[PortKind; 1]>::try_from(kinds) {
        Ok([PortKind::Xdp(name, _)]) => Ok(PortKind::Xdp(name, queue)),
        Ok(_) if queue.is_some() => Err(ConfigError::new(
            place,
            "a `queue` of a port that has none",
            "leave it out, or name the interface with `xdp`",
        )),
        Ok([kind]) => Ok(kind),
        Err(kinds) => Err(ConfigError::new(
            place,
            format!("a port with {} other ends", kinds.len()),
            "give it one: `interface`, `xdp`, `tap`, `memif`, `vhost_user`, or `read` and `write`",
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

fn address6(field: &Field) -> Result<Ipv6Addr, ConfigError> {
    let text = field.value.text(&field.key)?;
    text.parse().map_err(|_| {
        let wrong = format!("`{}` is no IPv6 address", field.key);
        ConfigError::new(&field.value.place, wrong, "write it as \"fd00::1\"")
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

pub(super) fn count(field: &Field) -> Result<u32, ConfigError> {
    let count = match field.value.node {
        Node::Integer(count) => u32::try_from(count).ok(),
        _ => None,
    };
    count.ok_or_else(|| {
        let wrong = format!("`{}` is {}", field.key, field.value.node.show());
        ConfigError::new(&field.value.place, wrong, "use a whole number from 0")
    })
}
