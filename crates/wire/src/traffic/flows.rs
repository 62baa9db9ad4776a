//! Which flow a frame belongs to, and what a flow looks like.

use std::net::Ipv4Addr;

use nicforge_units::Time;
use rand_pcg::Pcg64;

use super::TrafficError;
use super::random::{below, nth, unit};
use super::shares::{QueuePicker, Shares};
use super::zipf::Zipf;

/// Largest Zipf exponent: with it, 999 of 1000 packets belong to flow 0 already.
const ZIPF_EXPONENT_MAX: f64 = 10.0;

/// Addresses and ports of a UDP flow over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowTuple {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Source port, 1024 or above.
    pub source_port: u16,
    /// Destination port, 1024 or above.
    pub destination_port: u16,
}

/// All flows of a source: flow i is a pure function of the seed and i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpace {
    seed: u64,
    count: u64,
}

impl FlowSpace {
    /// `count` flows; at least 1.
    pub fn new(seed: u64, count: u64) -> Result<FlowSpace, TrafficError> {
        if count == 0 {
            return Err(TrafficError::NoFlows);
        }
        Ok(FlowSpace { seed, count })
    }

    /// How many flows there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Addresses and ports of flow `index`: random-looking, unicast, and for any likely number of
    /// flows all different (they are drawn from about 2^94).
    pub fn tuple(&self, index: u64) -> FlowTuple {
        let addresses = nth(self.seed, index.wrapping_mul(2));
        let ports = nth(self.seed, index.wrapping_mul(2).wrapping_add(1));
        FlowTuple {
            source: unicast((addresses >> 32) as u32),
            destination: unicast(addresses as u32),
            source_port: high_port(ports as u16),
            destination_port: high_port((ports >> 16) as u16),
        }
    }
}

/// An address with a first byte of 1 to 223 but not 127, and a last byte of 1 to 254: neither
/// multicast nor loopback, and no network's or broadcast address.
fn unicast(bits: u32) -> Ipv4Addr {
    let [first, second, third, last] = bits.to_be_bytes();
    let first = scale(first, 222) + 1;
    let first = if first >= 127 { first + 1 } else { first };
    Ipv4Addr::new(first, second, third, scale(last, 254) + 1)
}

/// A byte spread over 0..`bound`.
fn scale(byte: u8, bound: u16) -> u8 {
    (u16::from(byte) * bound / 256) as u8
}

fn high_port(bits: u16) -> u16 {
    ((u32::from(bits) * (65_536 - 1_024)) >> 16) as u16 + 1_024
}

/// Which flow each frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowChoice {
    /// All equally likely.
    Uniform,
    /// Flow i (from 0) with probability proportional to (i + 1)^-s.
    Zipf {
        /// The exponent, 0 to 10.
        s: f64,
    },
    /// The first `flows` flows (at most all there are) get `share` of the packets, 0 to 1, the
    /// others the rest; among themselves all are equally likely.
    Hot {
        /// How many, at least 1.
        flows: u64,
        /// Their share.
        share: f64,
    },
    /// Flow 0 always.
    Single,
    /// One after the other.
    RoundRobin,
}

/// A share of packets for some of the flows, such as those that RSS sends to one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    space: FlowSpace,
    /// Share of packets that belong to target flows, 0 to 1; these are equally likely.
    share: f64,
    /// Size of the target's frames in bytes, when not as all others.
    pub(super) frame_bytes: Option<u32>,
    /// Before this time packets belong to all flows alike.
    begins: Time,
    flows: Vec<u64>,
    /// One bit per flow.
    is_target: Vec<u64>,
}

impl Target {
    /// `share` of the packets go to flows for which `is_target` says so, the rest to the others.
    /// With `frame_bytes`, the target's frames have this size.
    pub fn new(
        space: &FlowSpace,
        share: f64,
        frame_bytes: Option<u32>,
        mut is_target: impl FnMut(&FlowTuple) -> bool,
    ) -> Result<Target, TrafficError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(TrafficError::Share(share));
        }
        let mut bits = vec![0u64; space.count.div_ceil(64) as usize];
        let flows: Vec<u64> = (0..space.count).filter(|&flow| is_target(&space.tuple(flow))).collect();
        for flow in &flows {
            bits[(flow / 64) as usize] |= 1 << (flow % 64);
        }
        let all = flows.len() as u64 == space.count;
        if (share > 0.0 && flows.is_empty()) || (share < 1.0 && all) {
            return Err(TrafficError::TargetFlows);
        }
        Ok(Target { space: *space, share, frame_bytes, begins: Time::ZERO, flows, is_target: bits })
    }

    /// The same from `time` on; before, there is no target.
    pub fn beginning_at(mut self, time: Time) -> Target {
        self.begins = time;
        self
    }

    fn contains(&self, flow: u64) -> bool {
        self.is_target[(flow / 64) as usize] >> (flow % 64) & 1 == 1
    }
}

/// Draws flows.
#[derive(Clone, Debug)]
pub(super) struct FlowPicker {
    count: u64,
    choice: FlowChoice,
    zipf: Zipf,
    next: u64,
    shaping: Shaping,
    random: Pcg64,
}

/// What decides beside the choice.
#[derive(Clone, Debug)]
enum Shaping {
    None,
    Target(Target),
    Queues(QueuePicker),
}

/// A drawn flow.
pub(super) struct Picked {
    pub(super) flow: u64,
    pub(super) is_target: bool,
}

impl FlowPicker {
    pub(super) fn new(
        space: &FlowSpace,
        choice: FlowChoice,
        shares: Option<Shares>,
        random: Pcg64,
    ) -> Result<FlowPicker, TrafficError> {
        let exponent = match choice {
            FlowChoice::Zipf { s } if !(0.0..=ZIPF_EXPONENT_MAX).contains(&s) => {
                return Err(TrafficError::ZipfExponent(s));
            }
            FlowChoice::Zipf { s } => s,
            FlowChoice::Hot { share, .. } if !(0.0..=1.0).contains(&share) => {
                return Err(TrafficError::Share(share));
            }
            FlowChoice::Hot { flows: 0, .. } => return Err(TrafficError::NoFlows),
            _ => 0.0,
        };
        let zipf = Zipf::new(space.count, exponent);
        let shaping = match shares {
            None => Shaping::None,
            Some(Shares::Target(target)) => {
                if choice == FlowChoice::Single || target.space != *space {
                    return Err(TrafficError::TargetFlows);
                }
                Shaping::Target(target)
            }
            Some(Shares::Queues(shares)) => Shaping::Queues(QueuePicker::new(shares, space, choice, &zipf)?),
        };
        Ok(FlowPicker { count: space.count, choice, zipf, next: 0, shaping, random })
    }

    /// The flow of a frame at `now`.
    #[inline(always)]
    pub(super) fn draw(&mut self, now: Time) -> Picked {
        let other = |flow| Picked { flow, is_target: false };
        let target = match &mut self.shaping {
            Shaping::Target(target) if target.begins <= now => target,
            Shaping::Queues(queues) => return other(queues.draw(&mut self.random)),
            _ => return other(self.draw_any()),
        };
        if unit(&mut self.random) < target.share {
            let index = below(&mut self.random, target.flows.len() as u64);
            let flow = target.flows[index as usize];
            return Picked { flow, is_target: true };
        }
        let mut flow = self.draw_any();
        // Draw again a few times, which keeps the others' distribution; then take the next other.
        for _ in 0..64 {
            if !self.is_target(flow) {
                break;
            }
            flow = self.draw_any();
        }
        while self.is_target(flow) {
            flow = (flow + 1) % self.count;
        }
        other(flow)
    }

    fn is_target(&self, flow: u64) -> bool {
        matches!(&self.shaping, Shaping::Target(target) if target.contains(flow))
    }

    #[inline(always)]
    fn draw_any(&mut self) -> u64 {
        match self.choice {
            FlowChoice::Uniform => below(&mut self.random, self.count),
            FlowChoice::Zipf { .. } => self.zipf.draw(&mut self.random),
            FlowChoice::Hot { flows, share } => {
                let hot = flows.min(self.count);
                let is_hot = unit(&mut self.random) < share;
                if is_hot || hot == self.count {
                    below(&mut self.random, hot)
                } else {
                    hot + below(&mut self.random, self.count - hot)
                }
            }
            FlowChoice::Single => 0,
            FlowChoice::RoundRobin => {
                let flow = self.next;
                self.next = if flow + 1 == self.count { 0 } else { flow + 1 };
                flow
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::random::generator;
    use super::*;

    #[test]
    fn flows_are_different_and_unicast() {
        let space = FlowSpace::new(42, 100_000).unwrap();
        let tuples: BTreeSet<FlowTuple> = (0..space.count()).map(|i| space.tuple(i)).collect();
        assert_eq!(tuples.len(), 100_000);
        for tuple in tuples {
            for address in [tuple.source, tuple.destination] {
                assert!(!address.is_multicast() && !address.is_loopback());
                assert!((1..=223).contains(&address.octets()[0]));
                assert!((1..=254).contains(&address.octets()[3]));
            }
            assert!(tuple.source_port >= 1024 && tuple.destination_port >= 1024);
        }
        assert_eq!(space.tuple(7), FlowSpace::new(42, 8).unwrap().tuple(7));
    }

    #[test]
    fn a_target_gets_its_share_and_nothing_more() {
        let space = FlowSpace::new(1, 1000).unwrap();
        let is_target = |tuple: &FlowTuple| tuple.source_port.is_multiple_of(16);
        for choice in [FlowChoice::Uniform, FlowChoice::RoundRobin] {
            let target = Target::new(&space, 0.25, None, is_target).unwrap();
            let random = generator(1, 1);
            let mut picker = FlowPicker::new(&space, choice, Some(Shares::Target(target)), random).unwrap();
            let hits = (0..40_000).filter(|_| is_target(&space.tuple(picker.draw(Time::ZERO).flow))).count();
            assert!((9_700..10_300).contains(&hits), "{hits}");
        }
    }

    #[test]
    fn hot_flows_get_their_share_and_all_are_drawn() {
        let space = FlowSpace::new(1, 100).unwrap();
        let pick = |flows, share| {
            let choice = FlowChoice::Hot { flows, share };
            FlowPicker::new(&space, choice, None, generator(1, 1))
        };
        let mut picker = pick(10, 0.75).unwrap();
        let mut drawn = [0u32; 100];
        for _ in 0..40_000 {
            drawn[picker.draw(Time::ZERO).flow as usize] += 1;
        }
        let hot: u32 = drawn[..10].iter().sum();
        assert!((29_500..30_500).contains(&hot), "{hot}");
        assert!(drawn.iter().all(|&count| count > 50), "{drawn:?}");
        for (flows, share) in [(0, 0.5), (10, 1.1), (10, f64::NAN)] {
            assert!(pick(flows, share).is_err());
        }
        let mut all = pick(1_000, 0.0).unwrap();
        assert!((0..1_000).all(|_| all.draw(Time::ZERO).flow < 100));
    }

    #[test]
    fn a_target_that_begins_later_is_none_before() {
        let space = FlowSpace::new(1, 1000).unwrap();
        let is_target = |tuple: &FlowTuple| tuple.source_port.is_multiple_of(16);
        let picker = |shares| FlowPicker::new(&space, FlowChoice::Uniform, shares, generator(1, 1)).unwrap();
        let target = Target::new(&space, 1.0, Some(64), is_target).unwrap();
        let target = target.beginning_at(Time::from_us(1));
        let mut with = picker(Some(Shares::Target(target)));
        let mut without = picker(None);
        for ns in 0..1_000 {
            let now = Time::from_ns(ns);
            let (drawn, expected) = (with.draw(now), without.draw(now));
            assert_eq!((drawn.flow, drawn.is_target), (expected.flow, false));
        }
        for _ in 0..1_000 {
            let drawn = with.draw(Time::from_us(1));
            assert!(drawn.is_target && is_target(&space.tuple(drawn.flow)));
        }
    }

    #[test]
    fn a_target_without_flows_is_refused() {
        let space = FlowSpace::new(1, 10).unwrap();
        assert!(Target::new(&space, 0.1, None, |_| false).is_err());
        assert!(Target::new(&space, 0.1, None, |_| true).is_err());
        assert!(Target::new(&space, 1.1, None, |_| true).is_err());
        assert!(FlowSpace::new(1, 0).is_err());
    }
}
