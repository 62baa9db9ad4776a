//! Who has which address: ARP (RFC 826) and neighbour discovery (RFC 4861), a cache with a bound.

use std::collections::BTreeMap;
use std::net::IpAddr;

use nicforge_units::Time;
use nicforge_wire::headers::{
    ARP_LEN, ArpOperation, ArpView, ETHERNET_HEADER_LEN, EthernetView, MacAddress, ethertype,
};
use nicforge_wire::neighbour::{NeighbourKind, NeighbourMessage};

use super::demux::{Deadline, Owner};
use super::{FourTuple, Stack};
use crate::conn::{ConnectionError, State};
use crate::ring::Buffers;

const ENTRIES_MOST: usize = 1024;
const ASK_AGAIN: Time = Time::from_ms(1_000);
const ASK_MOST: u8 = 3;
/// An entry is asked for again after this time.
const FRESH: Time = Time::from_ms(60_000);

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: Option<MacAddress>,
    asked: u8,
    next_at: Time,
    used: bool,
}

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    table: BTreeMap<IpAddr, Neighbour>,
    /// Earliest deadline of the cache in the stack's heap; later ones in the heap are stale.
    armed: Option<Time>,
}

impl<B: Buffers> Stack<B> {
    pub(super) fn known_neighbour(&self, hop: IpAddr) -> Option<MacAddress> {
        self.neighbours.table.get(&hop)?.mac
    }

    /// The hardware address of `hop`, or nothing and a question on its way.
    pub(super) fn resolve(&mut self, hop: IpAddr, now: Time) -> Option<MacAddress> {
        if let Some(neighbour) = self.neighbours.table.get_mut(&hop) {
            neighbour.used = true;
            return neighbour.mac;
        }
        if self.neighbours.table.len() >= ENTRIES_MOST {
            self.neighbours.table.retain(|_, neighbour| neighbour.mac.is_some() && neighbour.used);
            if self.neighbours.table.len() >= ENTRIES_MOST {
                self.neighbours.table.clear();
            }
        }
        let neighbour = Neighbour { mac: None, asked: 1, next_at: now + ASK_AGAIN, used: true };
        self.neighbours.table.insert(hop, neighbour);
        self.arm_neighbours(now + ASK_AGAIN);
        self.ask(hop);
        None
    }

    fn ask(&mut self, hop: IpAddr) {
        let mac = self.host.mac;
        let frame = match (hop, self.host.source_for(hop)) {
            (IpAddr::V4(target), Some(IpAddr::V4(source))) => {
                arp(ArpOperation::Request, (mac, source), (MacAddress([0; 6]), target), MacAddress::BROADCAST)
            }
            (IpAddr::V6(target), Some(IpAddr::V6(source))) => Some(NeighbourMessage::solicitation(mac, source, target)),
            _ => None,
        };
        if let Some(frame) = frame {
            self.queue_answer(frame);
        }
    }

    /// Sets the cache's timer unless it fires before `at` anyway.
    fn arm_neighbours(&mut self, at: Time) {
        if self.neighbours.armed.is_none_or(|armed| at < armed) {
            self.neighbours.armed = Some(at);
            self.deadlines.push(Deadline { at, owner: Owner::Neighbours });
        }
    }

    pub(super) fn neighbour_timer(&mut self, at: Time, now: Time) {
        if self.neighbours.armed != Some(at) {
            return;
        }
        self.neighbours.armed = None;
        let mut again = Vec::new();
        let mut lost = Vec::new();
        let mut next: Option<Time> = None;
        for (ip, neighbour) in self.neighbours.table.iter_mut() {
            if neighbour.next_at <= now {
                if neighbour.asked >= ASK_MOST || !neighbour.used {
                    lost.push(*ip);
                    continue;
                }
                neighbour.asked += 1;
                neighbour.used = neighbour.mac.is_none();
                neighbour.next_at = now + if neighbour.mac.is_some() { FRESH } else { ASK_AGAIN };
                again.push(*ip);
            }
            next = Some(next.map_or(neighbour.next_at, |at| at.min(neighbour.next_at)));
        }
        again.into_iter().for_each(|ip| self.ask(ip));
        for ip in lost {
            self.neighbours.table.remove(&ip);
            self.fail_waiting(ip);
        }
        if let Some(at) = next {
            self.arm_neighbours(at);
        }
    }

    /// Connections that wait for a neighbour that does not answer have no route.
    fn fail_waiting(&mut self, hop: IpAddr) {
        for index in 0..self.connections.len() as u32 {
            let Some(entry) = self.entry_at(index).filter(|entry| entry.next_hop == Some(hop)) else { continue };
            if entry.connection.state() == State::SynSent {
                entry.connection.end(Some(ConnectionError::HostUnreachable));
                self.after(index);
            }
        }
    }

    /// Notes that `ip` is at `mac`. Only an answer to a question, or a question to us, makes a new entry.
    fn learn(&mut self, ip: IpAddr, mac: MacAddress, to_us: bool, now: Time) {
        if mac.0[0] & 1 != 0 || self.host.owns(ip) {
            return;
        }
        let known = self.neighbours.table.get(&ip).copied();
        if known.is_none() && (!to_us || self.neighbours.table.len() >= ENTRIES_MOST) {
            return;
        }
        let neighbour = Neighbour { mac: Some(mac), asked: 0, next_at: now + FRESH, used: true };
        self.neighbours.table.insert(ip, neighbour);
        self.arm_neighbours(now + FRESH);
        if known.is_some_and(|known| known.mac.is_some()) {
            // No connection waits for it; a new address is read when a frame leaves.
            return;
        }
        for index in 0..self.connections.len() as u32 {
            if self.entry_at(index).is_some_and(|entry| entry.next_hop == Some(ip) && !entry.queued) {
                self.after(index);
            }
        }
    }

    pub(super) fn receive_arp(&mut self, message: &[u8], now: Time) {
        let Ok(view) = ArpView::new(message) else {
            self.counters.malformed += 1;
            return;
        };
        let (sender, target) = (view.sender_ip(), view.target_ip());
        let sender_mac = view.sender_mac();
        let to_us = self.host.owns(target.into());
        if !sender.is_unspecified() {
            self.learn(sender.into(), sender_mac, to_us, now);
        }
        if to_us && view.operation() == ArpOperation::Request {
            let answer = arp(ArpOperation::Reply, (self.host.mac, target), (sender_mac, sender), sender_mac);
            if let Some(frame) = answer {
                self.queue_answer(frame);
            }
        }
    }

    /// Takes a message of neighbour discovery; returns whether the frame was one.
    pub(super) fn receive_neighbour(&mut self, frame: &[u8], from: MacAddress, now: Time) -> bool {
        let Some(message) = NeighbourMessage::read(frame) else { return false };
        let to_us = self.host.owns(message.target.into());
        match message.kind {
            NeighbourKind::Solicitation if to_us => {
                if let Some(mac) = message.hardware.filter(|_| !message.source.is_unspecified()) {
                    self.learn(message.source.into(), mac, true, now);
                }
                let answer = message.answer(self.host.mac, from);
                self.queue_answer(answer);
            }
            NeighbourKind::Advertisement => {
                if let Some(mac) = message.hardware {
                    self.learn(message.target.into(), mac, false, now);
                }
            }
            NeighbourKind::Solicitation => {}
        }
        true
    }

    /// The sender of a SYN is worth remembering: its answer must find it.
    pub(super) fn learn_peer(&mut self, tuple: &FourTuple, mac: Option<MacAddress>, now: Time) {
        if let (Some(mac), Some(hop)) = (mac, self.host.next_hop(tuple.remote))
            && self.known_neighbour(hop).is_none()
        {
            self.learn(hop, mac, true, now);
        }
    }
}

fn arp(
    operation: ArpOperation,
    sender: (MacAddress, std::net::Ipv4Addr),
    target: (MacAddress, std::net::Ipv4Addr),
    to: MacAddress,
) -> Option<Vec<u8>> {
    let mut frame = vec![0; ETHERNET_HEADER_LEN + ARP_LEN];
    let (link, message) = frame.split_at_mut(ETHERNET_HEADER_LEN);
    let mut ethernet = EthernetView::new(link).ok()?;
    ethernet.set_destination(to);
    ethernet.set_source(sender.0);
    ethernet.set_ethertype(ethertype::ARP);
    let mut view = ArpView::init(message, operation).ok()?;
    view.set_sender(sender.0, sender.1);
    view.set_target(target.0, target.1);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::Config;
    use crate::ring::HeapBuffers;
    use crate::stack::{Address, HostConfig};

    #[test]
    fn questions_of_neighbours_leave_one_timer() {
        let ours = Ipv4Addr::new(10, 0, 0, 1);
        let host = HostConfig::ethernet(MacAddress([2, 0, 0, 0, 0, 1]), vec![Address::new(ours, 24)]);
        let mut stack = Stack::new(host, Config::default(), HeapBuffers, [1; 16]);
        let mut buffer = [0; 2048];
        let mut now = Time::ZERO;
        for n in 0..3000u32 {
            let sender = (MacAddress([2, 0, 0, 0, 1, n as u8]), Ipv4Addr::new(10, 0, 0, 2 + (n % 100) as u8));
            let question = arp(ArpOperation::Request, sender, (MacAddress([0; 6]), ours), MacAddress::BROADCAST);
            now += Time::from_ms(50);
            stack.receive(&question.unwrap(), now);
            stack.on_timer(now);
            while stack.transmit(now, &mut buffer).is_some() {}
            assert!(stack.deadlines.len() <= 2, "{} timers after {n} questions", stack.deadlines.len());
        }
        // Without any more the cache empties, and so does the heap.
        while let Some(at) = stack.poll_at() {
            stack.on_timer(at);
            while stack.transmit(at, &mut buffer).is_some() {}
            assert!(at < now + FRESH + FRESH + FRESH, "the cache never empties");
        }
        assert!(stack.neighbours.table.is_empty());
    }
}
