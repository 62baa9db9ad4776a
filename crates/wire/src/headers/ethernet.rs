//! Ethernet II header (IEEE 802.3 clause 3): destination, source, type.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use nicforge_options::{Form, OptionType, Value};

use super::{WireError, array, be16, put16, require};

/// Length of an Ethernet header without tags, in bytes.
pub const ETHERNET_HEADER_LEN: usize = 14;

const DESTINATION: usize = 0;
const SOURCE: usize = 6;
const ETHERTYPE: usize = 12;

/// EtherType values that we act on.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// 802.1ad service tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// Service tag as used before 802.1ad.
    pub const OLD_SERVICE_VLAN: u16 = 0x9100;
}

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);

    /// Whether the group bit is set (multicast and broadcast).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// The IPv6 address that whoever has it has without being given one (RFC 4291, section 2.5.6 and appendix A).
    pub fn link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        let halves = [[a ^ 2, b], [c, 0xff], [0xfe, d], [e, f]];
        let [first, second, third, last] = halves.map(u16::from_be_bytes);
        Ipv6Addr::new(0xfe80, 0, 0, 0, first, second, third, last)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// As [`MacAddress`] is displayed.
impl FromStr for MacAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<MacAddress, ()> {
        let bytes: Result<Vec<u8>, _> = text.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
        <[u8; 6]>::try_from(bytes.map_err(|_| ())?).map(MacAddress).map_err(|_| ())
    }
}

/// How keys take hardware addresses.
pub static MAC: Form = Form {
    says: "a hardware address, such as \"02:00:00:00:00:01\"",
    parse: |text| Some(text.parse::<MacAddress>().ok()?.to_string()),
};

impl OptionType for MacAddress {
    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
    fn from_value(value: &Value) -> Option<MacAddress> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// A view over an Ethernet frame.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> EthernetView<B> {
    /// Views `bytes`, which begin with the destination address.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        require("Ethernet", bytes.as_ref(), ETHERNET_HEADER_LEN)?;
        Ok(EthernetView { bytes })
    }

    /// Destination address.
    pub fn destination(&self) -> MacAddress {
        MacAddress(array(self.bytes.as_ref(), DESTINATION))
    }

    /// Source address.
    pub fn source(&self) -> MacAddress {
        MacAddress(array(self.bytes.as_ref(), SOURCE))
    }

    /// Type of what follows; below 0x600 it is an 802.3 length.
    pub fn ethertype(&self) -> u16 {
        be16(self.bytes.as_ref(), ETHERTYPE)
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[ETHERNET_HEADER_LEN..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> EthernetView<B> {
    /// Sets the destination address.
    pub fn set_destination(&mut self, to: MacAddress) {
        self.bytes.as_mut()[DESTINATION..DESTINATION + 6].copy_from_slice(&to.0);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, from: MacAddress) {
        self.bytes.as_mut()[SOURCE..SOURCE + 6].copy_from_slice(&from.0);
    }

    /// Sets the type of what follows.
    pub fn set_ethertype(&mut self, ethertype: u16) {
        put16(self.bytes.as_mut(), ETHERTYPE, ethertype);
    }

    /// Exchanges source and destination, as a layer-2 forwarder does.
    pub fn swap_addresses(&mut self) {
        let (destination, source) = (self.destination(), self.source());
        self.set_destination(source);
        self.set_source(destination);
    }

    /// What follows the header, writable.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut()[ETHERNET_HEADER_LEN..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_802_3_has_them() {
        let mut bytes = [0u8; 15];
        let mut view = EthernetView::new(&mut bytes[..]).unwrap();
        view.set_destination(MacAddress([1, 2, 3, 4, 5, 6]));
        view.set_source(MacAddress([7, 8, 9, 10, 11, 12]));
        view.set_ethertype(ethertype::IPV4);
        view.swap_addresses();
        assert_eq!(view.source().to_string(), "01:02:03:04:05:06");
        assert_eq!(view.payload(), [0]);
        assert_eq!(bytes, [7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 8, 0, 0]);
    }

    #[test]
    fn thirteen_bytes_are_refused() {
        let error = EthernetView::new([0u8; 13]).unwrap_err();
        assert_eq!(error.to_string(), "Ethernet header needs 14 bytes and has 13");
    }
}
