//! What a port says and hears in its own name, before any NIC: neighbours on Ethernet (ARP, RFC 826; RFC 4861
//! for IPv6), and echo requests to its own addresses.
//!
//! No worker has a part in it, so neighbours know the gateway as long as the device runs, whoever of
//! the workers is dead or hangs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::Port;
use nicforge_units::Time;
use nicforge_wire::headers::{ArpOperation, ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype};

use crate::live::neighbour::{FRAME_LEN, question};

mod echo;
mod ndp;
mod next_hop;
#[cfg(test)]
mod tests;
mod too_long;

pub use next_hop::{Moved, NextHop};
pub use too_long::note_of_mtus;

/// What a station counted. Frames that it took = answers + drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounts {
    /// Frames that came in and that no NIC saw.
    pub taken: u64,
    /// ARP frames among them that asked for nothing that is its own.
    pub arp: u64,
    /// Answers to its own questions for IPv6 neighbours among them.
    pub ndp: u64,
    /// Questions for its next hop: frames that go out without one that came in.
    pub asked: u64,
    /// Those that nobody had answered when the next was due.
    pub unanswered: u64,
    /// How often the next hop had another hardware address than before.
    pub moved: u64,
}

/// The station of one port.
pub struct Station {
    mac: MacAddress,
    address: Option<Ipv4Addr>,
    /// The one beside its link-local one.
    address6: Option<Ipv6Addr>,
    /// Whether echo requests to its address are its own to answer, and not the application's.
    echoes: bool,
    /// Whether every frame is the worker's.
    deaf: bool,
    next_hop: Option<NextHop>,
    /// What it has still to send.
    outgoing: Vec<Vec<u8>>,
    /// Errors to come in by its port, and when all so far would have come at the pace of the long run.
    errors: Vec<Vec<u8>>,
    paid_until: Time,
    events: Vec<String>,
    counts: StationCounts,
}

impl Station {
    /// That of a port with these addresses, which answers for no more than its hardware address.
    pub fn new(mac: MacAddress, address: Option<Ipv4Addr>) -> Station {
        Station {
            mac,
            address,
            address6: None,
            echoes: false,
            deaf: false,
            next_hop: None,
            outgoing: Vec::new(),
            errors: Vec::new(),
            paid_until: Time::ZERO,
            events: Vec::new(),
            counts: StationCounts::default(),
        }
    }

    /// The same, which answers echo requests to its address too.
    pub fn that_echoes(self) -> Station {
        Station { echoes: true, ..self }
    }

    /// The same, which leaves everything to a worker that speaks for itself.
    pub fn that_is_deaf(self) -> Station {
        Station { deaf: true, ..self }
    }

    /// The same, which has IPv6 address `address` too, if that is one.
    pub fn with_address6(self, address: Option<Ipv6Addr>) -> Station {
        Station { address6: address, ..self }
    }

    /// The same, which keeps an eye on its next hop.
    pub fn with_next_hop(self, next_hop: NextHop) -> Station {
        Station { next_hop: Some(next_hop), ..self }
    }

    /// What it counted.
    pub fn counts(&self) -> StationCounts {
        self.counts
    }

    /// What people want to know, since the last time.
    pub fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    /// Where frames to the next hop go, if not where applications think.
    pub fn moved(&self) -> Option<Moved> {
        self.next_hop.as_ref()?.moved()
    }

    /// Hears `frame`, which came in at `now`; whether it is not for the NIC.
    #[inline]
    pub fn takes(&mut self, frame: &[u8], now: Time) -> bool {
        const KIND: std::ops::Range<usize> = 12..14;
        if self.deaf {
            return false;
        }
        if frame.get(KIND) == Some(&ethertype::ARP.to_be_bytes()) {
            // What is cut off is the NIC's to count.
            return frame.len() >= FRAME_LEN && self.hear_arp(frame, now);
        }
        if Station::is_icmpv6(frame) {
            return self.hear_icmpv6(frame, now);
        }
        self.echoes && self.echo(frame)
    }

    #[cold]
    fn hear_arp(&mut self, frame: &[u8], now: Time) -> bool {
        self.counts.taken += 1;
        self.hear_of_next_hop(frame, now);
        match self.answer(frame[..FRAME_LEN].to_vec()) {
            Some(answer) => self.outgoing.push(answer),
            None => self.counts.arp += 1,
        }
        true
    }

    /// Whoever sends ARP says where it is: by an answer, a question, or unasked (RFC 5227, section 3).
    fn hear_of_next_hop(&mut self, frame: &[u8], now: Time) {
        if let Ok(arp) = ArpView::new(&frame[ETHERNET_HEADER_LEN..]) {
            self.hear_of(arp.sender_ip().into(), arp.sender_mac(), now);
        }
    }

    /// `address` is at `mac`, as somebody says.
    fn hear_of(&mut self, address: IpAddr, mac: MacAddress, now: Time) {
        let Some(next_hop) = &mut self.next_hop else {
            return;
        };
        let (moved, event) = next_hop.hear(address, mac, now);
        self.counts.moved += u64::from(moved);
        self.events.extend(event);
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

    /// Sends over its `port` what it has to say at `now`; whether that was anything.
    pub fn speak(&mut self, port: &mut dyn Port, now: Time) -> Result<bool, LiveError> {
        self.ask(now);
        if self.outgoing.is_empty() {
            return Ok(false);
        }
        for frame in self.outgoing.drain(..) {
            port.send(&frame, now)?;
        }
        port.flush()?;
        Ok(true)
    }

    /// Asks for the next hop again, if it is time.
    fn ask(&mut self, now: Time) {
        let own = (self.mac, self.address, self.address6);
        let Some(next_hop) = self.next_hop.as_mut().filter(|hop| hop.is_due(now)) else {
            return;
        };
        let asked = next_hop.ask(now);
        let Some(frame) = question(own, asked.address) else {
            return;
        };
        self.counts.asked += 1;
        self.counts.unanswered += u64::from(asked.unanswered);
        self.events.extend(asked.event);
        self.outgoing.push(frame);
    }
}
