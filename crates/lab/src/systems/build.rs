//! From a machine and the settings of a point to systems on their links.

use std::net::Ipv4Addr;

use nicforge_nic::DriverCosts;
use nicforge_units::{Bytes, Cycles, Frequency, Time};

use super::attachment::Attachment;
use super::process::{AnyProcess, Direction, Stream};
use super::stack::{ConnectionPlan, Endpoint, KernelCosts};
use super::system::{System, SystemPlan};
use super::wire::{Wire, WirePlan};
use super::world::World;
use crate::machine::{Integrated, Machine, Placement};
use crate::run::RunError;
use crate::settings::Settings;

/// Largest IP packet (integrated_nic, section 4.3).
const MTU: usize = 1500;
/// The first port of those that wait for connections, one for each.
const LISTENING_PORT: u16 = 5000;
/// The first port of those that open them.
const OPENING_PORT: u16 = 30000;

/// What all systems of a point are made from.
struct Parts<'a> {
    machine: &'a Integrated,
    placement: &'a Placement,
    settings: &'a Settings,
    seed: u64,
}

/// The systems of a point; the first is the one that is looked at.
pub fn build(machine: &Machine, settings: &Settings, seed: u64) -> Result<World, RunError> {
    let no_placement = || RunError::NoPlacement {
        machine: machine.name.clone(),
        placement: settings.placement.clone(),
    };
    let integrated = machine.integrated.as_ref().ok_or_else(no_placement)?;
    let placement = integrated.placement(&settings.placement);
    let parts = Parts {
        machine: integrated,
        placement: placement.ok_or_else(no_placement)?,
        settings,
        seed,
    };
    let systems = vec![parts.looked_at()?, parts.stressor()?];
    Ok(World::new(systems, vec![vec![(1, 0)], vec![(0, 0)]]))
}

impl Parts<'_> {
    /// The system that is looked at.
    fn looked_at(&self) -> Result<System, RunError> {
        let machine = self.machine;
        let clock = self
            .settings
            .cpu_ghz
            .map_or(machine.frequency, Frequency::from_ghz);
        let cache = self.settings.cache_mib;
        let cache = cache.map_or(machine.l2.size, |mib| Bytes((mib as u64) << 20));
        let attachment = Attachment::new(machine, self.placement, clock, cache);
        let costs = KernelCosts {
            controller: Cycles(clock.cycles_in(attachment.controller) as u64),
            ..machine.kernel.clone()
        };
        let plan = SystemPlan {
            attachment: &attachment,
            costs,
            driver: machine.driver,
            interface: &self.settings.interface,
            nic: machine.nic,
            sinic: machine.sinic.clone(),
            connections: self.connections(0, true),
            incoming: vec![self.wire(0)],
            process_bytes: self.call_bytes(),
        };
        let direction = match self.settings.workload.as_str() {
            "tcp_transmit" => Direction::Out,
            _ => Direction::In,
        };
        System::new(plan, |memory| self.stream(direction, memory))
    }

    /// The system that loads it: no work, a perfect memory, a conventional NIC without latencies.
    fn stressor(&self) -> Result<System, RunError> {
        let attachment = Attachment::perfect(self.machine, self.placement);
        let none = Cycles(0);
        let costs = KernelCosts {
            interrupt: none,
            controller: none,
            rx_data: none,
            rx_ack: none,
            tx_data: none,
            tx_ack: none,
            system_call: none,
            wake: none,
            copy_bytes_per_cycle: f64::INFINITY,
            poll_round: self.machine.kernel.poll_round,
        };
        let plan = SystemPlan {
            attachment: &attachment,
            costs,
            driver: DriverCosts::default(),
            interface: "conventional",
            nic: self.machine.nic,
            sinic: self.machine.sinic.clone(),
            connections: self.connections(1, false),
            incoming: vec![self.wire(1)],
            process_bytes: self.call_bytes(),
        };
        let direction = match self.settings.workload.as_str() {
            "tcp_transmit" => Direction::In,
            _ => Direction::Out,
        };
        System::new(plan, |memory| self.stream(direction, memory))
    }

    fn call_bytes(&self) -> u64 {
        (self.settings.call_kib as u64) << 10
    }

    fn stream(&self, direction: Direction, memory: nicforge_platform::Addr) -> AnyProcess {
        // The benchmark's own loop is next to nothing (section 4.2.1).
        let work = Cycles(0);
        let connections = self.settings.streams;
        let len = self.call_bytes();
        AnyProcess::Stream(Stream::new(direction, connections, memory, len, work))
    }

    /// The connections of system `system`, which `opens` them.
    fn connections(&self, system: u8, opens: bool) -> Vec<ConnectionPlan> {
        let end = |system: u8, port: u16, number: u16| Endpoint {
            address: Ipv4Addr::new(10, 0, 0, system + 1),
            port: port + number,
        };
        let ports = match opens {
            true => (OPENING_PORT, LISTENING_PORT),
            false => (LISTENING_PORT, OPENING_PORT),
        };
        let plan = |number: u16| ConnectionPlan {
            local: end(system, ports.0, number),
            remote: end(1 - system, ports.1, number),
            opens,
            nagle: true,
            buffer_bytes: (self.settings.socket_kib as u64) << 10,
            mtu: MTU,
            seed: self.seed ^ u64::from(number) << 8 ^ u64::from(system),
            nic: 0,
        };
        (0..self.settings.streams as u16).map(plan).collect()
    }

    /// The link that ends at system `system`.
    fn wire(&self, system: u64) -> Wire {
        let us = |us: f64| Time::from_seconds(us * 1e-6);
        let plan = WirePlan {
            delay: us(self.settings.link_delay_us),
            loss: self.settings.link_loss,
            duplicates: self.settings.link_duplicates,
            reordered: self.settings.link_reordered,
            reordered_by: us(self.settings.link_reordered_by_us),
        };
        Wire::new(&plan, self.seed.wrapping_mul(2).wrapping_add(system))
    }
}
