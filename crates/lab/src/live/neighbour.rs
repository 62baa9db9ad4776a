//! Neighbours on Ethernet (ARP, RFC 826; RFC 4861 for IPv6): ports ask for their next hop when a run begins.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_options::{Allowed, Form, OptionType, SECONDS_MAX, Value, options};
use nicforge_platform::live::ports::Port;
use nicforge_platform::live::{Clock, LiveError};
use nicforge_stages::responder::{Addresses, question};
use nicforge_units::Time;
use nicforge_wire::headers::{ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype};
use nicforge_wire::neighbour::{NeighbourKind, NeighbourMessage};

/// How a neighbour is written.
pub(super) static NEIGHBOUR: Form = Form {
    says: "an address, such as \"10.0.0.1\" or \"02:00:00:00:00:01\"",
    parse: |text| Some(Neighbour::parse(text)?.to_string()),
};

/// A neighbour, by either kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Its hardware address is known.
    Mac(MacAddress),
    /// Its hardware address is asked for, by ARP or neighbour discovery.
    Ip(IpAddr),
}

impl Neighbour {
    fn parse(text: &str) -> Option<Neighbour> {
        let ip = text.parse().ok().map(Neighbour::Ip);
        ip.or_else(|| text.parse().ok().map(Neighbour::Mac))
    }
}

impl std::fmt::Display for Neighbour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Neighbour::Mac(mac) => mac.fmt(f),
            Neighbour::Ip(ip) => ip.fmt(f),
        }
    }
}

impl OptionType for Neighbour {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
    fn from_value(value: &Value) -> Option<Neighbour> {
        match value {
            Value::Text(text) => Neighbour::parse(text),
            _ => None,
        }
    }
}

options! {
    /// Next hops.
    pub struct AskOptions {
        /// How often next hops are asked again for their hardware address.
        ask_again_s: f64 = 30.0, "s", Allowed::Number(0.001, SECONDS_MAX), source "Linux: base_reachable_time";
    }
}

/// How long a run waits for an answer before it begins without one, and how often the question is repeated meanwhile.
const PATIENCE: Time = Time::from_ms(2_000);
const AGAIN: Time = Time::from_ms(500);

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The neighbour's hardware address.
    Is(MacAddress),
    /// Nobody answered in time.
    Nobody,
    /// The run shall end, before anybody answered.
    Stopped,
}

/// Asks for the hardware address of `wanted` over `port`, before any NIC has it, until `stop`. Other
/// frames that come in meanwhile are lost.
pub fn ask(port: &mut dyn Port, own: &Addresses, wanted: IpAddr, stop: &AtomicBool) -> Result<Asked, LiveError> {
    let clock = Clock::start();
    let mut ask_at = Time::ZERO;
    while clock.now() < PATIENCE {
        if stop.load(Ordering::Acquire) {
            return Ok(Asked::Stopped);
        }
        if clock.now() >= ask_at {
            if let Some(question) = question(own, wanted) {
                port.send(&question, clock.now())?;
                port.flush()?;
            }
            ask_at = clock.now() + AGAIN;
        }
        let mut found = None;
        port.receive(32, &mut |frame| {
            found = found.or_else(|| reply_from(frame, wanted));
        })?;
        if let Some(mac) = found {
            return Ok(Asked::Is(mac));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(Asked::Nobody)
}

fn reply_from(frame: &[u8], wanted: IpAddr) -> Option<MacAddress> {
    if let IpAddr::V6(wanted) = wanted {
        let message = NeighbourMessage::read(frame)?;
        let is_answer = message.kind == NeighbourKind::Advertisement && message.target == wanted;
        return message.hardware.filter(|_| is_answer);
    }
    let ethernet = EthernetView::new(frame).ok()?;
    let arp = ArpView::new(frame.get(ETHERNET_HEADER_LEN..)?).ok()?;
    (ethernet.ethertype() == ethertype::ARP && arp.sender_ip() == wanted).then(|| arp.sender_mac())
}
