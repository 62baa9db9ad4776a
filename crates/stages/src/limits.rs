//! Stage `limits`: so many TCP connections, and so many bytes a second of each that come in.

use std::collections::BTreeMap;

use nicforge_nic::DropCause;
use nicforge_nic::stage::{Frame, Services, Stage, Verdict};
use nicforge_options::{Allowed, options};
use nicforge_platform::{AddressSpace, Dma, Ground};
use nicforge_tcp::segment::{Flags, Header};
use nicforge_tcp::stack::FourTuple;
use nicforge_tcp::watch::frame::Seen;
use nicforge_units::{Cycles, Time};

use crate::{BuiltStage, StageError, StageKind, StagePlan};

/// Another connection than may be.
const CONNECTIONS: DropCause = DropCause("limits_connections");
/// More bytes than a connection may have.
const RATE: DropCause = DropCause("limits_rate");
/// Bytes that a connection may have at once.
const BURST: f64 = 65_536.0;
/// Connections that are known at most.
const KNOWN: usize = 1 << 20;
/// Instructions for a frame: the connection found, its bucket filled and emptied.
const FRAME_CYCLES: Cycles = Cycles(90);

options! {
    /// NICs that limit connections.
    pub struct LimitsOptions {
        /// TCP connections that hosts may open to this one at a time; 0: any number.
        limits_connections: usize = 0, "connections", Allowed::Whole(0, KNOWN as u64);
        /// Rate of each connection's frames that come in; what is more is dropped. 0: any.
        limits_mbps: f64 = 0.0, "Mbit/s", Allowed::Number(0.0, 1e6);
    }
}

/// Stage `limits`.
#[derive(Clone, Copy, Debug)]
pub struct LimitsKind;

impl StageKind for LimitsKind {
    const NAME: &'static str = "limits";
    const ABOUT: &'static str = "bounds the number and the rate of TCP connections that come in";
    type Options = LimitsOptions;

    fn build<G: Ground>(
        options: &LimitsOptions,
        _plan: &StagePlan,
        _space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        let most = if options.limits_connections == 0 { KNOWN } else { options.limits_connections };
        Ok(BuiltStage::new(Limits { most, rate: options.limits_mbps * 1e6 / 8.0, flows: BTreeMap::new(), refused: 0 }))
    }
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Bytes that it may have now, as of a time.
    has: f64,
    at: Time,
    /// FINs: of the peer, of the host.
    closed: [bool; 2],
}

/// Limits connections.
struct Limits {
    most: usize,
    /// Bytes a second; 0: any.
    rate: f64,
    flows: BTreeMap<FourTuple, Flow>,
    refused: u64,
}

impl Limits {
    /// Follows what a segment does to its connection; whether it may pass.
    fn follow(&mut self, tuple: FourTuple, header: &Header, goes: bool, now: Time) -> Result<(), DropCause> {
        let opens = header.flags.has(Flags::SYN) && !header.flags.has(Flags::ACK);
        if header.flags.has(Flags::RST) {
            self.flows.remove(&tuple);
            return Ok(());
        }
        if opens && !goes && !self.flows.contains_key(&tuple) {
            if self.flows.len() >= self.most {
                self.refused += 1;
                return Err(CONNECTIONS);
            }
            self.flows.insert(tuple, Flow { has: BURST, at: now, closed: [false; 2] });
        }
        if header.flags.has(Flags::FIN)
            && let Some(flow) = self.flows.get_mut(&tuple)
        {
            flow.closed[usize::from(goes)] = true;
            if flow.closed == [true; 2] {
                self.flows.remove(&tuple);
            }
        }
        Ok(())
    }

    /// Whether a connection may have so many bytes now.
    fn may_have(&mut self, tuple: &FourTuple, bytes: usize, now: Time) -> Result<(), DropCause> {
        let Some(flow) = self.flows.get_mut(tuple).filter(|_| self.rate > 0.0) else { return Ok(()) };
        let passed = now.saturating_sub(flow.at).as_seconds();
        (flow.has, flow.at) = ((flow.has + passed * self.rate).min(BURST), now);
        if flow.has < bytes as f64 {
            return Err(RATE);
        }
        flow.has -= bytes as f64;
        Ok(())
    }

    fn look<D: Dma>(&mut self, nic: &mut Services<'_, D>, frame: &Frame<'_>, goes: bool) -> Verdict {
        nic.work(FRAME_CYCLES);
        let seen = Seen::parse(frame.bytes());
        let tuple = if goes { seen.outgoing() } else { seen.incoming() };
        let (Some(tuple), Some(header)) = (tuple, seen.tcp) else { return Verdict::Pass };
        let now = nic.now();
        let fits = if goes { Ok(()) } else { self.may_have(&tuple, frame.bytes().len(), now) };
        match fits.and_then(|()| self.follow(tuple, &header, goes, now)) {
            Ok(()) => Verdict::Pass,
            Err(cause) => Verdict::Drop(cause),
        }
    }
}

impl<D: Dma> Stage<D> for Limits {
    fn ingress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.look(nic, frame, false)
    }

    fn egress(&mut self, nic: &mut Services<'_, D>, frame: &mut Frame<'_>) -> Verdict {
        self.look(nic, frame, true)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("limits_refused", self.refused)]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        vec![("limits_open", self.flows.len() as u64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(port: u16) -> FourTuple {
        let here = std::net::Ipv4Addr::LOCALHOST.into();
        FourTuple { local: here, remote: here, local_port: 80, remote_port: port }
    }

    fn with(flags: Flags) -> Header {
        Header { flags, ..Header::default() }
    }

    #[test]
    fn frames_whole_and_damaged_pass() {
        crate::suite::check::<LimitsKind>();
    }

    #[test]
    fn a_connection_more_waits_until_one_has_closed_both_ways() {
        let mut limits = Limits { most: 2, rate: 0.0, flows: BTreeMap::new(), refused: 0 };
        let mut follow = |port, flags, goes| limits.follow(tuple(port), &with(flags), goes, Time::ZERO);
        assert_eq!([1, 2, 3].map(|port| follow(port, Flags::SYN, false).is_ok()), [true, true, false]);
        assert!(follow(1, Flags::FIN.with(Flags::ACK), false).is_ok());
        assert!(follow(3, Flags::SYN, false).is_err(), "half closed");
        assert!(follow(1, Flags::FIN.with(Flags::ACK), true).is_ok());
        assert!(follow(3, Flags::SYN, false).is_ok());
        assert!(follow(2, Flags::RST, true).is_ok());
        assert!(follow(4, Flags::SYN, false).is_ok());
        assert_eq!(limits.refused, 2);
    }

    #[test]
    fn a_connection_has_its_rate_and_a_burst() {
        let mut limits = Limits { most: 1, rate: 1e6, flows: BTreeMap::new(), refused: 0 };
        limits.follow(tuple(1), &with(Flags::SYN), false, Time::ZERO).unwrap();
        let mut bytes = 0;
        for step in 0..200_000u64 {
            let now = Time::from_us(step);
            bytes += if limits.may_have(&tuple(1), 1500, now).is_ok() { 1500 } else { 0 };
        }
        assert!((f64::from(bytes) - 200_000.0 - BURST).abs() < 3000.0, "{bytes}");
    }
}
