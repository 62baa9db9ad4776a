//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use super::{MacAddress, WireError, array, be16, ethertype, put16, require};

/// Length of an ARP message for IPv4 over Ethernet, in bytes.
pub const ARP_LEN: usize = 28;

const HARDWARE_TYPE: usize = 0;
const PROTOCOL_TYPE: usize = 2;
const HARDWARE_LEN: usize = 4;
const PROTOCOL_LEN: usize = 5;
const OPERATION: usize = 6;
const SENDER_MAC: usize = 8;
const SENDER_IP: usize = 14;
const TARGET_MAC: usize = 18;
const TARGET_IP: usize = 24;
const HARDWARE_ETHERNET: u16 = 1;

/// What an ARP message asks or says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpOperation {
    /// Who has the target address?
    Request,
    /// The sender has it.
    Reply,
    /// Anything else.
    Other(u16),
}

impl From<u16> for ArpOperation {
    fn from(code: u16) -> ArpOperation {
        match code {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            other => ArpOperation::Other(other),
        }
    }
}

impl From<ArpOperation> for u16 {
    fn from(operation: ArpOperation) -> u16 {
        match operation {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
            ArpOperation::Other(code) => code,
        }
    }
}

/// A view over an ARP message.
#[derive(Clone, Copy, Debug)]
pub struct ArpView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> ArpView<B> {
    /// Views `bytes`, which begin with the hardware type; refuses all but IPv4 over Ethernet.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        let header = bytes.as_ref();
        require("ARP", header, ARP_LEN)?;
        if be16(header, HARDWARE_TYPE) != HARDWARE_ETHERNET
            || be16(header, PROTOCOL_TYPE) != ethertype::IPV4
            || header[HARDWARE_LEN] != 6
            || header[PROTOCOL_LEN] != 4
        {
            return Err(WireError::UnsupportedArp);
        }
        Ok(ArpView { bytes })
    }

    /// What the message asks or says.
    pub fn operation(&self) -> ArpOperation {
        be16(self.bytes.as_ref(), OPERATION).into()
    }

    /// Sender's Ethernet address.
    pub fn sender_mac(&self) -> MacAddress {
        MacAddress(array(self.bytes.as_ref(), SENDER_MAC))
    }

    /// Sender's IPv4 address.
    pub fn sender_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.bytes.as_ref(), SENDER_IP))
    }

    /// Target's Ethernet address; meaningless in a request.
    pub fn target_mac(&self) -> MacAddress {
        MacAddress(array(self.bytes.as_ref(), TARGET_MAC))
    }

    /// Target's IPv4 address.
    pub fn target_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.bytes.as_ref(), TARGET_IP))
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> ArpView<B> {
    /// Makes `bytes` an IPv4-over-Ethernet message with zero addresses and views it.
    pub fn init(mut bytes: B, operation: ArpOperation) -> Result<Self, WireError> {
        require("ARP", bytes.as_ref(), ARP_LEN)?;
        let header = bytes.as_mut();
        header[..ARP_LEN].fill(0);
        put16(header, HARDWARE_TYPE, HARDWARE_ETHERNET);
        put16(header, PROTOCOL_TYPE, ethertype::IPV4);
        header[HARDWARE_LEN] = 6;
        header[PROTOCOL_LEN] = 4;
        put16(header, OPERATION, operation.into());
        Ok(ArpView { bytes })
    }

    /// Sets the operation.
    pub fn set_operation(&mut self, operation: ArpOperation) {
        put16(self.bytes.as_mut(), OPERATION, operation.into());
    }

    /// Sets the sender's addresses.
    pub fn set_sender(&mut self, mac: MacAddress, ip: Ipv4Addr) {
        let header = self.bytes.as_mut();
        header[SENDER_MAC..SENDER_MAC + 6].copy_from_slice(&mac.0);
        header[SENDER_IP..SENDER_IP + 4].copy_from_slice(&ip.octets());
    }

    /// Sets the target's addresses.
    pub fn set_target(&mut self, mac: MacAddress, ip: Ipv4Addr) {
        let header = self.bytes.as_mut();
        header[TARGET_MAC..TARGET_MAC + 6].copy_from_slice(&mac.0);
        header[TARGET_IP..TARGET_IP + 4].copy_from_slice(&ip.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back() {
        let mut view = ArpView::init([0xffu8; ARP_LEN], ArpOperation::Request).unwrap();
        view.set_sender(MacAddress([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
        view.set_target(MacAddress::default(), Ipv4Addr::new(10, 0, 0, 2));
        let view = ArpView::new(view.bytes).unwrap();
        assert_eq!(view.operation(), ArpOperation::Request);
        assert_eq!(view.sender_ip(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(view.target_ip(), Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(view.sender_mac(), MacAddress([2, 0, 0, 0, 0, 1]));
    }

    #[test]
    fn other_address_families_are_refused() {
        assert_eq!(ArpView::new([0u8; ARP_LEN]).unwrap_err(), WireError::UnsupportedArp);
    }
}
