//! What a port says and hears in its own name: neighbours on Ethernet (ARP, RFC 826; RFC 4861 for IPv6), and echo
//! requests to its own addresses.
//!
//! No core has a part in it, so neighbours know the gateway as long as the device runs, whichever of the cores is dead or
//! hangs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nicforge_nic::DropCause;
use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_platform::Dma;
use nicforge_units::Time;
use nicforge_wire::headers::{ArpOperation, ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype};

mod echo;
mod ndp;
mod next_hop;
mod question;
#[cfg(test)]
mod tests;

pub use next_hop::{Moved, NextHop};
pub use question::{Addresses, QUESTION_LEN, question, request};

/// ARP that asks for nothing of the port's own.
const ARP: DropCause = DropCause("arp");
/// Frames to a next hop that nobody has heard of.
const NEXT_HOP_UNKNOWN: DropCause = DropCause("next_hop_unknown");
/// Answers to the port's own questions for IPv6 neighbours.
const NDP: DropCause = DropCause("ndp");

/// What a responder counted. Frames that it took = answers + drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounts {
    /// Frames that came in and that were for the port itself.
    pub taken: u64,
    /// Questions for its next hop: frames that go out without one that came in.
    pub asked: u64,
    /// Those that nobody had answered when the next was due.
    pub unanswered: u64,
    /// How often the next hop had another hardware address than before.
    pub moved: u64,
}

/// What becomes of a frame for the port itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is not for the port.
    NotOurs,
    /// It is answered by this frame.
    Answer(Vec<u8>),
    /// It needs no answer.
    Done(DropCause),
}

/// The responder of one port, the stage nearest to the wire.
pub struct Responder {
    mac: MacAddress,
    address: Option<Ipv4Addr>,
    /// The one beside its link-local one.
    address6: Option<Ipv6Addr>,
    /// Whether echo requests to its address are its own to answer, and not the application's.
    echoes: bool,
    /// Whether every frame is for software.
    deaf: bool,
    /// Whether what neighbours say about each other goes on to the NIC.
    bridges: bool,
    next_hop: Option<NextHop>,
    events: Vec<String>,
    counts: ResponderCounts,
}

impl Responder {
    /// That of a port with these addresses, which answers for no more than its hardware address.
    pub fn new(mac: MacAddress, address: Option<Ipv4Addr>) -> Responder {
        Responder {
            mac,
            address,
            address6: None,
            echoes: false,
            deaf: false,
            bridges: false,
            next_hop: None,
            events: Vec::new(),
            counts: ResponderCounts::default(),
        }
    }

    /// The same, which answers echo requests to its address too.
    pub fn that_echoes(self) -> Responder {
        Responder { echoes: true, ..self }
    }

    /// The same, which leaves everything to software that speaks for itself.
    pub fn that_is_deaf(self) -> Responder {
        Responder { deaf: true, ..self }
    }

    /// The same of a bridge: ARP about others goes on.
    pub fn that_bridges(self) -> Responder {
        Responder { bridges: true, ..self }
    }

    /// The same, which has IPv6 address `address` too, if that is one.
    pub fn with_address6(self, address: Option<Ipv6Addr>) -> Responder {
        Responder { address6: address, ..self }
    }

    /// The same, which keeps an eye on its next hop.
    pub fn with_next_hop(self, next_hop: NextHop) -> Responder {
        Responder { next_hop: Some(next_hop), ..self }
    }

    /// The port's hardware address.
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// What it counted.
    pub fn counts(&self) -> ResponderCounts {
        self.counts
    }

    /// Where frames to the next hop go, if not where applications think.
    pub fn moved(&self) -> Option<Moved> {
        self.next_hop.as_ref()?.moved()
    }

    /// Hears `frame`, which came in at `now`.
    #[inline]
    pub fn hear(&mut self, frame: &[u8], now: Time) -> Heard {
        const KIND: std::ops::Range<usize> = 12..14;
        if self.deaf {
            return Heard::NotOurs;
        }
        let heard = if frame.get(KIND) == Some(&ethertype::ARP.to_be_bytes()) {
            // What is cut off is for software to refuse.
            if frame.len() < QUESTION_LEN { Heard::NotOurs } else { self.hear_arp(frame, now) }
        } else if Responder::is_icmpv6(frame) {
            self.hear_icmpv6(frame, now)
        } else if self.echoes {
            self.echo(frame)
        } else {
            Heard::NotOurs
        };
        self.counts.taken += u64::from(heard != Heard::NotOurs);
        heard
    }

    #[cold]
    fn hear_arp(&mut self, frame: &[u8], now: Time) -> Heard {
        self.hear_of_next_hop(frame, now);
        match self.answer(frame[..QUESTION_LEN].to_vec()) {
            Some(answer) => Heard::Answer(answer),
            None if self.bridges && frame[..6] != self.mac.0 => Heard::NotOurs,
            None => Heard::Done(ARP),
        }
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

    /// Follows somebody who claims to be the next hop, if that one has not contradicted in time.
    fn settle(&mut self, now: Time) {
        let event = self.next_hop.as_mut().and_then(|hop| hop.settle(now));
        self.counts.moved += u64::from(event.is_some());
        self.events.extend(event);
    }

    /// The question for the next hop, if it is time to ask again.
    fn ask(&mut self, now: Time) -> Option<Vec<u8>> {
        let own = Addresses { mac: self.mac, address: self.address, address6: self.address6 };
        let next_hop = self.next_hop.as_mut().filter(|hop| hop.due() <= now)?;
        let asked = next_hop.ask(now);
        let frame = question(&own, asked.address)?;
        self.counts.asked += 1;
        self.counts.unanswered += u64::from(asked.unanswered);
        self.events.extend(asked.event);
        Some(frame)
    }
}

impl<D: Dma> Stage<D> for Responder {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        match self.hear(frame.bytes(), nic.now()) {
            Heard::NotOurs => Verdict::Pass,
            Heard::Answer(answer) => {
                nic.injector.send(answer, frame.arrival, nic.now());
                Verdict::Consume
            }
            Heard::Done(cause) => Verdict::Drop(cause),
        }
    }

    /// Frames to a next hop that has moved follow it; those to one that nobody has heard of go nowhere.
    fn egress(&mut self, _nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        if self.next_hop.as_ref().is_some_and(|hop| hop.is_missed_by(frame.bytes())) {
            return Verdict::Drop(NEXT_HOP_UNKNOWN);
        }
        if let Some(moved) = self.moved() {
            // Addresses are of one length, so what was read can be read.
            let _ = frame.edit(|bytes| moved.redirect(bytes));
        }
        Verdict::Pass
    }

    fn sees_egress(&self) -> bool {
        self.moved().is_some() || self.next_hop.as_ref().is_some_and(NextHop::is_unknown)
    }

    fn due(&self) -> Time {
        self.next_hop.as_ref().map_or(Time::NEVER, |hop| hop.due().min(hop.settled_at()))
    }

    fn advance(&mut self, nic: &mut Services<'_, D>) {
        let now = nic.now();
        self.settle(now);
        if let Some(question) = self.ask(now) {
            nic.injector.send(question, now, now);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let ResponderCounts { taken, asked, unanswered, moved } = self.counts;
        vec![
            ("responder_taken", taken),
            ("next_hop_asked", asked),
            ("next_hop_unanswered", unanswered),
            ("next_hop_moved", moved),
        ]
    }

    fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }
}
