//! `[tcp]`: a TCP stack in place of all workers.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use nicforge_options::{Allowed, ConfigError, Form, IP, PATH, choice, options};
use nicforge_tcp::sysctl::Sysctl;

use super::assemble::{SegmentOptions, Segments};
use super::config::{LiveConfig, place_of};
use crate::systems::options::Congestion;

/// An address with its prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixed {
    /// The address.
    pub address: IpAddr,
    /// Bits of it that name its network.
    pub length: u8,
}

impl fmt::Display for Prefixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefixed {
    type Err = ();

    fn from_str(text: &str) -> Result<Prefixed, ()> {
        let (address, length) = text.split_once('/').ok_or(())?;
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.parse().ok().filter(|length| *length <= most).ok_or(())?;
        Ok(Prefixed { address, length })
    }
}

static PREFIXED: Form = Form {
    says: "an address with its prefix length, such as \"10.0.0.2/24\"",
    parse: |text| Some(text.parse::<Prefixed>().ok()?.to_string()),
};

static SYSCTL: Form = Form {
    says: "a setting of TCP with its value, such as \"tcp_ecn=1\"",
    parse: |text| Some(text.parse::<Sysctl>().ok()?.to_string()),
};

/// Fast-path threads at most: each has a bit of connections' names.
const CORES_MOST: usize = 64;

choice! {
    /// Where the stack runs.
    pub enum FastPath {
        /// On cores of the host, behind the NIC's rings (TAS).
        Host = "host",
        /// On the device's thread (TASNIC).
        Card = "card",
    }
}

options! {
    /// The host whose TCP stack is behind the NIC.
    pub struct TcpOptions {
        /// The Unix socket at which programs find the stack.
        service: Option<PathBuf> = None, "", Allowed::Form(&PATH), default "that of `nicforge sockets`";
        /// The stack's own addresses with their prefix lengths.
        address: Vec<Prefixed> = Vec::new(), "", Allowed::List(&PREFIXED), default "none";
        /// Where TCP runs: on cores of the host, behind the NIC's rings, or on the card, which is the device's thread.
        fast_path: FastPath = FastPath::Host, "", FastPath::ALLOWED;
        /// Congestion control of every connection.
        congestion: Option<Congestion> = None, "", Congestion::ALLOWED, default "the stack's";
        /// Settings of TCP by Linux's names below net.ipv4, such as "tcp_ecn=1".
        sysctl: Vec<Sysctl> = Vec::new(), "", Allowed::List(&SYSCTL), default "none";
        /// Routers.
        gateway: Vec<IpAddr> = Vec::new(), "", Allowed::List(&IP), default "none";
    }
}

/// A TCP stack is behind one port, and takes frames as on a wire.
pub(super) fn check(config: &LiveConfig) -> Result<(), ConfigError> {
    let Some(tcp) = &config.tcp else { return Ok(()) };
    let wrong = |wrong: &str, right: &str| Err(ConfigError::new(tcp.place(), wrong, right));
    if tcp.read::<TcpOptions>().address.is_empty() {
        return wrong("[tcp] has no address", "add address = [\"10.0.0.2/24\"] under [tcp]");
    }
    if config.ports.len() != 1 {
        return wrong("[tcp] with several ports", "write one [[port]]");
    }
    let on_card = tcp.read::<TcpOptions>().fast_path == FastPath::Card;
    if on_card && config.settings.cores() > 1 {
        let place = place_of(config, "cores", tcp.place());
        return Err(ConfigError::new(place, "a card has one thread for TCP", "leave `cores` out"));
    }
    if on_card && !config.settings.stages().is_empty() {
        let place = place_of(config, "stages", tcp.place());
        return Err(ConfigError::new(place, "a card that runs TCP has no stages live", "leave `stages` out"));
    }
    if config.settings.cores() > CORES_MOST {
        let place = place_of(config, "cores", tcp.place());
        let right = format!("set cores to {CORES_MOST} or less");
        return Err(ConfigError::new(place, "[tcp] with too many cores", right));
    }
    if config.attach().is_some() {
        return wrong("[tcp] with `attach`", "leave `attach` out: programs find the stack at its service");
    }
    if config.live.read::<SegmentOptions>().segments == Segments::Whole {
        return wrong("[tcp] with segments = \"whole\"", "leave `segments` out");
    }
    if let Some(set) = config.assignments.iter().find(|set| set.key.name == "app") {
        return Err(ConfigError::new(&set.place, "[tcp] and an `app`", "leave one of them out"));
    }
    Ok(())
}
