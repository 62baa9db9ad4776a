//! Ports of a live run: what `[[port]]` says, and how each kind is opened.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use nicforge_options::{
    Allowed, ConfigError, Form, IPV6, Located, NAME, Node, Options, Owner, PATH, Place, Section, choice, options,
};
use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::{
    CapturePort, MEMIF_QUEUES_MAX, MemifPort, MemifRole, MemifTerms, PacketPort, Port, TapPort, VhostUserPort, XdpPort,
};
use nicforge_wire::headers::{MAC, MacAddress};

use super::config::PORTS_MAX;
use super::neighbour::{NEIGHBOUR, Neighbour};
use super::own_address::{OWN_ADDRESS, OwnAddress};
use crate::live::LiveRunError;

/// The MTU of Ethernet.
const MTU: u32 = 1500;
/// The least that IPv6 needs.
const MTU_MIN: u64 = 1280;
/// The most that a frame can carry.
const MTU_MAX: u64 = 65_535;
const SECRET_BYTES_MAX: usize = 23;

static SECRET: Form = Form {
    says: "a text of at most 23 bytes",
    parse: |text| (text.len() <= SECRET_BYTES_MAX).then(|| text.to_owned()),
};

options! {
    /// What every port has.
    pub struct PortOptions {
        /// The port's own IPv4 address, for which it answers ARP requests. With its prefix length, routers know the
        /// subnet's broadcast address, to which they do not forward.
        address: Option<OwnAddress> = None, "", Allowed::Form(&OWN_ADDRESS);
        /// The port's own IPv6 address, beside the link-local one.
        address6: Option<Ipv6Addr> = None, "", Allowed::Form(&IPV6);
        /// The port's hardware address.
        mac: Option<MacAddress> = None, "", Allowed::Form(&MAC), default "the interface's";
        /// Where frames go that leave by this port: an IP address, whose hardware address is asked for, or a hardware address.
        next_hop: Option<Neighbour> = None, "", Allowed::Form(&NEIGHBOUR);
        /// The port by which frames leave that come in here, unless a route says otherwise.
        peer: Option<u32> = None, "", Allowed::Whole(0, PORTS_MAX as u64 - 1), default "0 and 1, 2 and 3 and so on";
        /// Whether the private network of a NAT is behind the port.
        inside: Option<bool> = None, "", Allowed::Flag, default "true for ports of even number";
    }
}

options! {
    /// A network interface of the system.
    struct PacketOptions {
        /// The network interface that a packet socket opens.
        interface: Option<String> = None, "", Allowed::Form(&NAME);
    }
}

options! {
    /// A network interface with AF_XDP.
    struct XdpOptions {
        /// The network interface that an AF_XDP socket opens.
        xdp: Option<String> = None, "", Allowed::Form(&NAME);
        /// The only queue of the interface that is taken.
        queue: Option<u32> = None, "", Allowed::Whole(0, 65_535), default "all";
    }
}

options! {
    /// A TAP device.
    struct TapOptions {
        /// The TAP device.
        tap: Option<String> = None, "", Allowed::Form(&NAME);
    }
}

options! {
    /// Capture files.
    struct CaptureOptions {
        /// The capture that frames come from.
        read: Option<PathBuf> = None, "", Allowed::Form(&PATH);
        /// The capture that frames go to.
        write: Option<PathBuf> = None, "", Allowed::Form(&PATH);
    }
}

choice! {
    /// The end of a memif that a port is.
    enum Role {
        /// It waits at the socket.
        Server = "server",
        /// It connects.
        Client = "client",
    }
}

options! {
    /// Shared memory with another data plane.
    struct MemifOptions {
        /// The Unix socket of a memif.
        memif: Option<PathBuf> = None, "", Allowed::Form(&PATH);
        /// Which end of the memif the port is.
        role: Role = Role::Server, "", Role::ALLOWED;
        /// The memif's number at its socket.
        id: u32 = 0, "", Allowed::Whole(0, u32::MAX as u64);
        /// Pairs of queues, at most.
        queues: u32 = 1, "", Allowed::Whole(1, MEMIF_QUEUES_MAX as u64);
        /// The secret that both ends know.
        secret: String = String::new(), "", Allowed::Form(&SECRET);
        /// Bytes that a frame may have behind its Ethernet header.
        mtu: u32 = MTU, "bytes", Allowed::Whole(MTU_MIN, MTU_MAX);
    }
}

options! {
    /// A guest's network adapter.
    struct VhostUserOptions {
        /// The Unix socket at which a guest's network adapter is plugged in.
        vhost_user: Option<PathBuf> = None, "", Allowed::Form(&PATH);
        /// Pairs of queues, at most.
        queues: u32 = 1, "", Allowed::Whole(1, MEMIF_QUEUES_MAX as u64);
        /// Bytes that a frame may have behind its Ethernet header.
        mtu: u32 = MTU, "bytes", Allowed::Whole(MTU_MIN, MTU_MAX);
    }
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

/// A kind of port: its options, and the port that they describe if one of its head keys is set.
struct Kind {
    owner: fn() -> Owner,
    of: fn(&Section) -> Option<PortKind>,
}

fn owner_of<O: Options>(name: &'static str) -> Owner {
    Owner::of::<O>("port", name, "")
}

const KINDS: [Kind; 6] = [
    Kind {
        owner: || owner_of::<PacketOptions>("interface"),
        of: |section| Some(PortKind::Packet(section.read::<PacketOptions>().interface?)),
    },
    Kind {
        owner: || owner_of::<XdpOptions>("xdp"),
        of: |section| {
            let XdpOptions { xdp, queue } = section.read();
            Some(PortKind::Xdp(xdp?, queue))
        },
    },
    Kind {
        owner: || owner_of::<TapOptions>("tap"),
        of: |section| Some(PortKind::Tap(section.read::<TapOptions>().tap?)),
    },
    Kind {
        owner: || owner_of::<MemifOptions>("memif"),
        of: |section| {
            let MemifOptions { memif, role, id, queues, secret, mtu } = section.read();
            let role = if role == Role::Client { MemifRole::Client } else { MemifRole::Server };
            let terms = MemifTerms { id, queues: queues as u16, secret };
            Some(PortKind::Memif(MemifPlace { socket: memif?, role, terms, mtu: mtu as usize }))
        },
    },
    Kind {
        owner: || owner_of::<VhostUserOptions>("vhost_user"),
        of: |section| {
            let VhostUserOptions { vhost_user, queues, mtu } = section.read();
            let place = VhostUserPlace { socket: vhost_user?, queues: queues as u16, mtu: mtu as usize };
            Some(PortKind::VhostUser(place))
        },
    },
    Kind {
        owner: || owner_of::<CaptureOptions>("capture"),
        of: |section| {
            let CaptureOptions { read, write } = section.read();
            (read.is_some() || write.is_some()).then_some(PortKind::Capture(read, write))
        },
    },
];

/// The owners of the keys of `[[port]]`.
pub(super) fn owners() -> Vec<Owner> {
    let every = owner_of::<PortOptions>("of every kind");
    std::iter::once(every).chain(KINDS.iter().map(|kind| (kind.owner)())).collect()
}

/// One port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// What is at the other end.
    pub kind: PortKind,
    /// Its keys.
    pub section: Section,
}

impl PortConfig {
    /// A port of a capture that is handed over by a program, without keys.
    pub(super) fn given(place: &Place) -> PortConfig {
        PortConfig { kind: PortKind::Capture(None, None), section: Section::empty(place) }
    }

    /// Reads a table `[[port]]`.
    ///
    /// # Errors
    /// A wrong key or value, not exactly one other end, or a key of another kind of port.
    pub(super) fn of(table: &Located) -> Result<PortConfig, ConfigError> {
        let section = Section::of(table, "[[port]]", &owners())?;
        let mut found = KINDS.iter().filter_map(|kind| Some(((kind.of)(&section)?, (kind.owner)())));
        let (kind, owner) = match (found.next(), found.count()) {
            (Some(only), 0) => only,
            (first, more) => {
                let count = usize::from(first.is_some()) + more;
                return Err(ConfigError::new(
                    section.place(),
                    format!("a port with {count} other ends"),
                    "give it one: `interface`, `xdp`, `tap`, `memif`, `vhost_user`, or `read` and `write`",
                ));
            }
        };
        let foreign = |key: &str| !owner.declares(key) && !owner_of::<PortOptions>("").declares(key);
        if let Some((key, place)) = section.keys().find(|(key, _)| foreign(key)) {
            let theirs = KINDS.iter().map(|kind| (kind.owner)()).filter(|owner| owner.declares(key));
            let theirs: Vec<String> = theirs.map(|owner| format!("`{}`", owner.name)).collect();
            return Err(ConfigError::new(
                place,
                format!("`{key}` of a port that has none"),
                format!("leave it out: it belongs to ports of {}", theirs.join(" and ")),
            ));
        }
        Ok(PortConfig { kind, section })
    }

    /// Whether hosts are at its other end, and no files.
    pub(super) fn is_link(&self) -> bool {
        !matches!(self.kind, PortKind::Capture(..))
    }

    /// What every port has.
    pub fn options(&self) -> PortOptions {
        self.section.read()
    }

    /// Opens the port.
    ///
    /// # Errors
    /// It is not there, or cannot be had; with what helps.
    pub(super) fn open(&self) -> Result<Box<dyn Port>, LiveRunError> {
        self.kind.open().map_err(|error| self.cannot_open(error))
    }

    fn cannot_open(&self, error: LiveError) -> LiveRunError {
        let (wrong, right) = match error {
            LiveError::Interface { name, problem, remedy } => (format!("interface {name}: {problem}"), remedy),
            LiveError::System { what, cause } => {
                let denied = cause.kind() == std::io::ErrorKind::PermissionDenied;
                let right = match self.kind {
                    PortKind::Capture(..) => "name captures that can be read and written",
                    _ if denied => "run it as root, or with CAP_NET_ADMIN and CAP_NET_RAW",
                    PortKind::Memif(_) | PortKind::VhostUser(_) => {
                        "name a path for a Unix socket that no other program waits at"
                    }
                    PortKind::Tap(_) => "name a TAP device that no other program has",
                    _ => "name an interface that `ip link` lists",
                };
                (format!("{what}: {cause}"), right.to_string())
            }
            other => return other.into(),
        };
        ConfigError::new(self.section.place(), wrong, right).into()
    }
}

/// Reads the ports of a file.
///
/// # Errors
/// See [`PortConfig::of`].
pub(super) fn read_ports(value: &Located) -> Result<Vec<PortConfig>, ConfigError> {
    let Node::List(tables) = &value.node else {
        let right = "head each port with [[port]], in double brackets";
        return Err(ConfigError::new(&value.place, "`port` is no list of tables", right));
    };
    tables.iter().map(PortConfig::of).collect()
}

impl PortKind {
    fn open(&self) -> Result<Box<dyn Port>, LiveError> {
        Ok(match self {
            PortKind::Packet(name) => Box::new(PacketPort::open(name)?),
            PortKind::Xdp(name, queue) => Box::new(XdpPort::open(name, *queue)?),
            PortKind::Tap(name) => Box::new(TapPort::open(name)?),
            PortKind::Memif(memif) => {
                Box::new(MemifPort::open(&memif.socket, memif.role, memif.terms.clone(), memif.mtu)?)
            }
            PortKind::VhostUser(place) => Box::new(VhostUserPort::open(&place.socket, place.queues, place.mtu)?),
            PortKind::Capture(from, to) => {
                if let Some(folder) = to.as_deref().and_then(std::path::Path::parent) {
                    let what = format!("folder {}", folder.display());
                    std::fs::create_dir_all(folder).map_err(LiveError::of(what))?;
                }
                Box::new(CapturePort::open(from.as_deref(), to.as_deref())?)
            }
        })
    }
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

#[cfg(test)]
mod tests;
