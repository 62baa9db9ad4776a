//! The receive side of a socket: packets by their place in the stream, each in its kernel buffer
//! or, as far as its payload was not copied yet, in the NIC.

use std::collections::VecDeque;

use nicforge_interfaces::kernel::Deferred;
use nicforge_nic::Segment;
use nicforge_platform::sim::DeviceReader;
use nicforge_platform::{Addr, copy};

use super::Driver;

/// Payload of a received packet.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    /// The packet's buffer.
    pub mbuf: Addr,
    /// The part in host memory; what is in the NIC will lie right behind it.
    pub here: Segment,
    /// Bytes that came from the NIC to somewhere else, not to host memory behind `here`.
    passed: u32,
    /// The rest.
    pub deferred: Option<Deferred>,
}

impl Payload {
    /// Payload of which `here` is in memory and the rest in the NIC.
    pub fn new(mbuf: Addr, here: Segment, deferred: Option<Deferred>) -> Payload {
        Payload { mbuf, here, passed: 0, deferred }
    }

    /// Bytes of it.
    pub fn len(&self) -> u64 {
        let in_nic = self.deferred.map_or(0, |deferred| deferred.len);
        u64::from(self.here.len + self.passed + in_nic)
    }

    /// Copies what is in the NIC to the packet's buffer.
    pub fn fetch(&mut self, cpu: &mut DeviceReader<'_>, driver: &mut Driver) {
        if let Some(mut deferred) = self.deferred.take() {
            let to = self.here.at + u64::from(self.here.len + self.passed);
            let len = deferred.len;
            driver.copy_deferred(cpu, &mut deferred, to, len);
            self.here.len += self.passed + len;
            self.passed = 0;
        }
    }
}

/// Packets of one connection that nobody has read.
#[derive(Debug, Default)]
pub struct ReceiveQueue {
    /// Each with the place of its first byte in the stream, in that order.
    packets: VecDeque<(u64, Payload)>,
    /// Bytes of the stream that were read.
    read: u64,
    /// The sequence number of the stream's first byte, once it is known.
    first: Option<u32>,
}

impl ReceiveQueue {
    /// The stream's first byte has sequence number `first`.
    pub fn begin(&mut self, first: u32) {
        self.first.get_or_insert(first);
    }

    /// Bytes of the stream that were read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Adds a packet whose payload begins at `sequence`, at least a part of which TCP took.
    /// Gives back the packet that is not needed, if there is one: this one, or one that it holds
    /// all of.
    pub fn add(&mut self, sequence: u32, payload: Payload) -> Option<Payload> {
        let Some(first) = self.first else {
            return Some(payload);
        };
        let expected = first.wrapping_add(self.read as u32);
        let ahead = i64::from(sequence.wrapping_sub(expected) as i32);
        let Ok(place) = u64::try_from(self.read as i64 + ahead) else {
            return Some(payload);
        };
        let end = place + payload.len();
        if end <= self.read {
            return Some(payload);
        }
        let (number, all) = (self.packets_until(place), self.packets.len());
        match number.checked_sub(1).map(|last| &mut self.packets[last]) {
            Some((there, before)) if *there == place => {
                if before.len() >= payload.len() {
                    Some(payload)
                } else {
                    Some(std::mem::replace(before, payload))
                }
            }
            _ if number == all => {
                self.packets.push_back((place, payload));
                None
            }
            _ => {
                self.packets.insert(number, (place, payload));
                None
            }
        }
    }

    /// Packets that begin at `place` or before: nearly always all.
    fn packets_until(&self, place: u64) -> usize {
        let behind = self.packets.iter().rev();
        self.packets.len() - behind.take_while(|(there, _)| *there > place).count()
    }

    /// The packet that has the next byte to read, and how many of its bytes come before that.
    pub fn next(&mut self) -> Option<(&mut Payload, u64)> {
        let read = self.read;
        let begun = self.packets.partition_point(|(place, _)| *place <= read);
        let holds = |(place, payload): &&mut (u64, Payload)| *place + payload.len() > read;
        let found = self.packets.range_mut(..begun).rev().find(holds);
        found.map(|(place, payload)| (payload, read - *place))
    }

    /// `len` bytes were read.
    pub fn advance(&mut self, len: u64) {
        self.read += len;
    }

    /// A packet of which nothing is left to read, if there is one.
    pub fn finished(&mut self) -> Option<Payload> {
        let (place, payload) = self.packets.front()?;
        if place + payload.len() > self.read {
            return None;
        }
        self.packets.pop_front().map(|(_, payload)| payload)
    }

    /// All packets whose payload is still in the NIC, in the order of the stream.
    pub fn in_nic(&mut self) -> impl Iterator<Item = &mut Payload> {
        let packets = self.packets.iter_mut().map(|(_, payload)| payload);
        packets.filter(|payload| payload.deferred.is_some())
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.packets.len()
    }
}

/// Copies the next bytes of `payload`, `skip` bytes of which were read, to `to`: at most as many as
/// fit, and only what can go at once. Returns how many, and whether the core copied them.
pub fn copy_next(
    cpu: &mut DeviceReader<'_>,
    driver: &mut Driver,
    payload: &mut Payload,
    skip: u64,
    to: Segment,
) -> (u32, bool) {
    if driver.advice().delays_copy {
        payload.fetch(cpu, driver);
    }
    let here = u64::from(payload.here.len);
    if skip >= here && skip == here + u64::from(payload.passed) {
        if let Some(deferred) = &mut payload.deferred {
            let len = to.len.min(deferred.len);
            driver.copy_deferred(cpu, deferred, to.at, len);
            payload.passed += len;
            if deferred.len == 0 {
                payload.deferred = None;
            }
            return (len, false);
        }
        return (0, false);
    }
    if skip >= here {
        // Out of step with the NIC: bytes of this packet were read from another one.
        payload.fetch(cpu, driver);
    }
    let len = u64::from(to.len).min(u64::from(payload.here.len).saturating_sub(skip));
    copy(cpu, payload.here.at + skip, to.at, len as usize);
    (len as u32, true)
}
