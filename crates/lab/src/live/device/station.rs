//! What a port says and hears in its own name, before any NIC: neighbours on Ethernet (ARP, RFC 826).
//!
//! No worker has a part in it, so neighbours know the gateway as long as the device runs, whoever of
//! the workers is dead or hangs.

use std::net::Ipv4Addr;

use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::Port;
use nicforge_units::Time;
use nicforge_wire::headers::{
    ArpOperation, ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype,
};

use crate::live::neighbour::FRAME_LEN;

/// What a station counted. Frames that it took = answers + drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounts {
    /// Frames that came in and that no NIC saw.
    pub taken: u64,
    /// ARP frames among them that asked for nothing that is its own.
    pub arp: u64,
}

/// The station of one port.
pub struct Station {
    mac: MacAddress,
    address: Option<Ipv4Addr>,
    /// What it has still to send.
    answers: Vec<Vec<u8>>,
    counts: StationCounts,
}

impl Station {
    /// That of a port with these addresses.
    pub fn new(mac: MacAddress, address: Option<Ipv4Addr>) -> Station {
        Station {
            mac,
            address,
            answers: Vec::new(),
            counts: StationCounts::default(),
        }
    }

    /// What it counted.
    pub fn counts(&self) -> StationCounts {
        self.counts
    }

    /// Hears `frame`, which came in; whether it is not for the NIC.
    #[inline]
    pub fn takes(&mut self, frame: &[u8]) -> bool {
        let is_arp = frame.get(12..14) == Some(&ethertype::ARP.to_be_bytes());
        // What is cut off is the NIC's to count.
        is_arp && frame.len() >= FRAME_LEN && self.hear_arp(frame)
    }

    #[cold]
    fn hear_arp(&mut self, frame: &[u8]) -> bool {
        self.counts.taken += 1;
        match self.answer(frame[..FRAME_LEN].to_vec()) {
            Some(answer) => self.answers.push(answer),
            None => self.counts.arp += 1,
        }
        true
    }

    /// The answer to a request for its own address.
    fn answer(&self, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let (ethernet, arp) = frame.split_at_mut(ETHERNET_HEADER_LEN);
        let mut arp = ArpView::new(arp).ok()?;
        if arp.operation() != ArpOperation::Request || Some(arp.target_ip()) != self.address {
            return None;
        }
        let (asker, asker_ip, own_ip) = (arp.sender_mac(), arp.sender_ip(), arp.target_ip());
        arp.set_operation(ArpOperation::Reply);
        arp.set_target(asker, asker_ip);
        arp.set_sender(self.mac, own_ip);
        let mut ethernet = EthernetView::new(ethernet).ok()?;
        ethernet.set_source(self.mac);
        ethernet.set_destination(asker);
        Some(frame)
    }

    /// Sends over its `port` what it has to say.
    pub fn speak(&mut self, port: &mut dyn Port, now: Time) -> Result<(), LiveError> {
        if self.answers.is_empty() {
            return Ok(());
        }
        for answer in self.answers.drain(..) {
            port.send(&answer, now)?;
        }
        port.flush()
    }
}
