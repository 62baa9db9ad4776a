//! A network for the service: a TAP device or an interface, with addresses of its own.

use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;

use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::{PacketPort, Port, TapPort};
use nicforge_tcp::Config;
pub use nicforge_tcp::congestion::Algorithm;
use nicforge_tcp::stack::{Address, HostConfig};
pub use nicforge_tcp::sysctl::{self, Sysctl};
use nicforge_wire::headers::MacAddress;
use rustix::io::Errno;

use crate::transport::groups::Groups;
use crate::transport::network::Network;
pub use crate::transport::network::ORPHANS;

/// Where frames come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A TAP device, made if there is none: the kernel's stack is at the other end.
    Tap(String),
    /// A network interface, through a packet socket. The kernel must have no address there, or it resets connections.
    Interface(String),
    /// A port that the caller opens, see [`NetworkConfig::over`].
    Given,
}

/// The service's place in a network.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Port.
    pub attachment: Attachment,
    /// Own addresses with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Routers.
    pub gateways: Vec<IpAddr>,
    /// Longest packet, bytes; the interface's when it has one.
    pub mtu: u16,
    /// Connections that nobody holds any more and that may still close, [`ORPHANS`] by default.
    pub orphans: usize,
    /// How every connection behaves: its congestion control (a window, or TIMELY's rate) among others.
    pub tcp: Config,
}

/// A port, and what a stack behind it needs.
pub struct Attached {
    /// The port.
    pub port: Box<dyn Port>,
    /// Addresses.
    pub host: HostConfig,
    /// How its connections behave.
    pub config: Config,
    /// The source of its secrets.
    pub seed: [u8; 16],
}

/// No network could be made.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The port.
    #[error(transparent)]
    Port(#[from] LiveError),
    /// An address that is none.
    #[error("`{0}` is not an address with a prefix length, such as 10.0.0.2/24")]
    Address(String),
    /// A network whose port somebody else was to give.
    #[error("the network has no port")]
    NoPort,
    /// Threads of a host that has several.
    #[error("starting fast-path threads: {0}")]
    Threads(Errno),
    /// No secrets.
    #[error("reading /dev/urandom: {0}")]
    Random(std::io::Error),
}

/// Parses `10.0.0.2/24`.
pub fn address(text: &str) -> Result<(IpAddr, u8), AttachError> {
    let wrong = || AttachError::Address(text.into());
    let (ip, prefix) = text.split_once('/').ok_or_else(wrong)?;
    let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
    let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
    if prefix <= if ip.is_ipv4() { 32 } else { 128 } { Ok((ip, prefix)) } else { Err(wrong()) }
}

impl NetworkConfig {
    /// A place with its addresses, and the usual rest.
    pub fn new(attachment: Attachment, addresses: Vec<(IpAddr, u8)>) -> NetworkConfig {
        let tcp = Config::default();
        NetworkConfig { attachment, addresses, gateways: Vec::new(), mtu: 1500, orphans: ORPHANS, tcp }
    }

    /// Opens the port and starts a stack behind it.
    pub fn open(&self) -> Result<Network, AttachError> {
        self.over(self.open_port()?)
    }

    /// Opens the port, for a caller who has a stack of its own.
    pub fn attach(&self) -> Result<Attached, AttachError> {
        let secrets = secrets()?;
        Ok(self.attached(self.open_port()?, NetworkConfig::mac(&secrets), secrets))
    }

    fn open_port(&self) -> Result<Box<dyn Port>, AttachError> {
        Ok(match &self.attachment {
            Attachment::Tap(name) => Box::new(TapPort::open(name)?),
            Attachment::Interface(name) => Box::new(PacketPort::open(name)?),
            Attachment::Given => return Err(AttachError::NoPort),
        })
    }

    /// Starts a stack behind a port that the caller has.
    pub fn over(&self, port: Box<dyn Port>) -> Result<Network, AttachError> {
        let secrets = secrets()?;
        Ok(self.stack(port, NetworkConfig::mac(&secrets), secrets, self.orphans))
    }

    /// Starts a host whose flows are split among ports that the caller has, and among as many threads at most. Each
    /// thread calls `begin` with its number first; thread 0 is the service's.
    pub fn over_all(
        &self,
        ports: Vec<Box<dyn Port>>,
        begin: Arc<dyn Fn(usize) + Send + Sync>,
    ) -> Result<Groups, AttachError> {
        let mac = NetworkConfig::mac(&secrets()?);
        let orphans = self.orphans / ports.len().max(1);
        let stack = |port| Ok(self.stack(port, mac, secrets()?, orphans));
        let networks = ports.into_iter().map(stack).collect::<Result<_, AttachError>>()?;
        Groups::new(networks, begin).map_err(AttachError::Threads)
    }

    /// Starts a stack that a thread of its own serves, and never the service's: the one of a device that does TCP. The
    /// thread calls `begin` first.
    pub fn on_device(&self, port: Box<dyn Port>, begin: Arc<dyn Fn() + Send + Sync>) -> Result<Groups, AttachError> {
        Groups::on_device(self.over(port)?, begin).map_err(AttachError::Threads)
    }

    /// A TAP's own address is the kernel's end; ours is another one, unicast and locally administered.
    fn mac(secrets: &[u8; SECRETS]) -> [u8; 6] {
        [secrets[16] & 0xfc | 2, secrets[17], secrets[18], secrets[19], secrets[20], secrets[21]]
    }

    /// A stack behind `port`, which has address `own` if the port has none that it can take.
    fn stack(&self, port: Box<dyn Port>, own: [u8; 6], secrets: [u8; SECRETS], orphans: usize) -> Network {
        let Attached { port, host, config, seed } = self.attached(port, own, secrets);
        Network::new(host, config, port, seed).with_orphans(orphans)
    }

    fn attached(&self, port: Box<dyn Port>, own: [u8; 6], secrets: [u8; SECRETS]) -> Attached {
        let mac = match &self.attachment {
            Attachment::Tap(_) => own,
            Attachment::Interface(_) | Attachment::Given => port.hardware_address().unwrap_or(own),
        };
        let addresses = self.addresses.iter().map(|(ip, prefix)| Address::new(*ip, *prefix)).collect();
        let mut host = HostConfig::ethernet(MacAddress(mac), addresses);
        host.gateways = self.gateways.clone();
        host.mtu = self.mtu.min(port.link().map_or(u16::MAX, |link| link.mtu.min(65_535) as u16));
        let mut seed = [0; 16];
        seed.copy_from_slice(&secrets[..16]);
        Attached { port, host, config: self.tcp.clone(), seed }
    }
}

/// Bytes of secrets: a stack's seed, and what a hardware address is made of.
const SECRETS: usize = 22;

fn secrets() -> Result<[u8; SECRETS], AttachError> {
    let mut secrets = [0; SECRETS];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut secrets));
    random.map_err(AttachError::Random)?;
    Ok(secrets)
}
