//! A port's own IPv4 address, with or without its prefix length.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use nicforge_options::{Form, OptionType, Value};

/// The longest prefix of a subnet that has a broadcast address (RFC 3021).
const LONGEST_WITH_BROADCAST: u8 = 30;

/// How a port's own address is written.
pub(super) static OWN_ADDRESS: Form = Form {
    says: "an IPv4 address, such as \"10.0.0.1\" or \"10.0.0.1/24\"",
    parse: |text| Some(text.parse::<OwnAddress>().ok()?.to_string()),
};

/// A port's own IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// The address.
    pub ip: Ipv4Addr,
    /// Bits of it that name its subnet.
    prefix: Option<u8>,
}

impl OwnAddress {
    /// The address of all hosts of its subnet, if the prefix is known and has one.
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        let prefix = self.prefix.filter(|prefix| *prefix <= LONGEST_WITH_BROADCAST)?;
        Some(Ipv4Addr::from_bits(self.ip.to_bits() | u32::MAX >> prefix))
    }
}

impl fmt::Display for OwnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix {
            Some(prefix) => write!(f, "{}/{prefix}", self.ip),
            None => self.ip.fmt(f),
        }
    }
}

impl FromStr for OwnAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<OwnAddress, ()> {
        let (ip, prefix) = match text.split_once('/') {
            Some((ip, prefix)) => (ip, Some(prefix.parse().ok().filter(|prefix| *prefix <= 32).ok_or(())?)),
            None => (text, None),
        };
        Ok(OwnAddress { ip: ip.parse().map_err(|_| ())?, prefix })
    }
}

impl OptionType for OwnAddress {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
    fn from_value(value: &Value) -> Option<OwnAddress> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_names_the_broadcast_address() {
        let broadcast =
            |text: &str| text.parse::<OwnAddress>().ok().map(|own| own.broadcast().map(|ip| ip.to_string()));
        let all = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(broadcast("10.99.1.1/24"), all("10.99.1.255"));
        assert_eq!(broadcast("10.99.1.1/0"), all("255.255.255.255"));
        assert_eq!(broadcast("10.99.1.1/30"), all("10.99.1.3"));
        for without in ["10.99.1.1", "10.99.1.1/31", "10.99.1.1/32"] {
            assert_eq!(broadcast(without), Some(None), "{without}");
        }
        for wrong in ["10.99.1.1/33", "10.99.1/24", "10.99.1.1/", "10.99.1.1/24/24", ""] {
            assert_eq!(broadcast(wrong), None, "{wrong}");
        }
    }
}
