//! Assembles a live run from its configuration.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::AtomicBool;

use nicforge_apps::options::{RouteOptions, ServiceOptions};
use nicforge_apps::{AppConfig, NeededAddress, Port as AppPort, PortMap, read_routes};
use nicforge_interfaces::emulated::CoreDma;
use nicforge_nic::{DATA_BYTES_MAX, LEDGER_ENTRY_BYTES, Pool, PortId};
use nicforge_nic::{PoolOptions, TransmitOptions};
use nicforge_options::{Place, Value, choice, options};
use nicforge_platform::live::ports::{Link, Port, PortCounters};
use nicforge_platform::live::{Bell, Control, DeviceCpu, LiveCpu, LiveDma, LiveError, Stock, WakeEvent};
use nicforge_stages::responder::{Addresses, NextHop, Responder};
use nicforge_units::Time;
use nicforge_wire::headers::MacAddress;

use super::attach::{AbsentFlows, AttachOptions};
use super::config::LiveConfig;
use super::device::{Device, FullOptions, Ownership, Policy, TooLong, fill};
use super::layout::{Blueprint, Layout, packet_buffers};
use super::neighbour::{self, AskOptions, Asked, Neighbour};
use super::ports::{PortConfig, PortOptions};
use super::threads::{Idle, ThreadOptions};
use super::watch;
use super::worker::{Worker, WorkerParts};
use crate::live::{LiveRunError, Region};
use crate::run::{app_of_settings, heuristic, read_servers_of};
use crate::scenario::Assignment;
use crate::settings::Settings;

choice! {
    /// What becomes of segments of up to 64 KiB, and of checksums, that a sender on a virtual interface left to its NIC.
    pub enum Segments {
        /// They pass whole where all ports can do that and the packet buffers take at most a GiB, and are finished elsewhere.
        Auto = "auto",
        /// The port finishes them, so that frames are as on a wire.
        Cut = "cut",
        /// They pass whole, and the port that they leave by finishes them, or its kernel, or the NIC behind that
        /// (large receive offload, segmentation offload).
        Whole = "whole",
    }
}

options! {
    /// Segments.
    pub struct SegmentOptions {
        /// What becomes of segments of up to 64 KiB that their sender left to its NIC: the port cuts them, or they pass whole.
        segments: Segments = Segments::Auto, "", Segments::ALLOWED;
    }
}

/// A live run that is ready to go.
pub struct Assembly {
    /// The device, all ports open.
    pub device: Device,
    /// What the workers are made of, in order.
    pub workers: Vec<WorkerParts>,
    /// What the layout follows from.
    pub blueprint: Blueprint,
    /// The pool, to count its buffers.
    pub pool: Pool,
    /// That in memory of the NIC, if there is one.
    pub nicmem: Option<Pool>,
    /// The region.
    pub control: Control,
    /// Wakes the device.
    pub bell: Bell,
    /// Interrupts each worker, where workers wait for that.
    pub events: Vec<WakeEvent>,
}

impl Assembly {
    /// Worker `number` of this process, made of `parts`.
    pub fn worker(&self, number: usize, parts: WorkerParts) -> Worker {
        let cpu = LiveCpu::new(self.control.clone(), self.bell.clone(), number);
        Worker::new(cpu, parts, self.events.get(number).cloned())
    }

    /// All workers, as threads of this process.
    pub fn take_workers(&mut self) -> Vec<Worker> {
        let parts = std::mem::take(&mut self.workers).into_iter().enumerate();
        parts.map(|(number, parts)| self.worker(number, parts)).collect()
    }
}

/// Opens all ports of `config`, in order.
///
/// # Errors
/// What the configuration names and is not there, or cannot be had.
pub fn open_ports(config: &LiveConfig) -> Result<Vec<Box<dyn Port>>, LiveRunError> {
    config.ports.iter().map(PortConfig::open).collect()
}

/// Puts everything together, over `ports`. `stop` ends questions to neighbours.
///
/// # Errors
/// What the configuration names and is not there, or cannot be had.
pub fn assemble(
    config: &LiveConfig,
    mut ports: Vec<Box<dyn Port>>,
    stop: &AtomicBool,
) -> Result<Assembly, LiveRunError> {
    let config = &fit_buffers(config, &ports);
    let (map, responders) = addresses(config, &mut ports, stop)?;
    let blueprint = Blueprint { app: app_config(config, map)?, config: config.clone() };
    put_together(blueprint, ports, responders)
}

/// What `blueprint` describes, over `ports` with their `responders`.
///
/// # Errors
/// What the interface or the application cannot be built with, and memory that cannot be had.
pub fn put_together(
    blueprint: Blueprint,
    ports: Vec<Box<dyn Port>>,
    responders: Vec<Responder>,
) -> Result<Assembly, LiveRunError> {
    let config = &blueprint.config;
    let Layout { space, shape, pool, nicmem, ledgers, mut nics, mut workers, mut fills, starts } =
        blueprint.lay_out()?;
    let mut control = Control::new(&space, &shape)?;
    let interrupted = if interrupts(config) { workers.len() } else { 0 };
    let events = (0..interrupted).map(|worker| control.wake_by_event(worker)).collect::<Result<Vec<_>, _>>()?;
    let bell = Bell::new()?;
    let cpu = |number| LiveCpu::new(control.clone(), bell.clone(), number);
    for pool in std::iter::once(&pool).chain(&nicmem) {
        pool.start(&mut cpu(0));
    }
    for (number, worker) in workers.iter_mut().enumerate() {
        worker.software.app.start(&mut cpu(number));
    }
    for start in starts {
        start(&mut cpu(0))?;
    }
    let mut dma = LiveDma::new(control.clone(), &space);
    let ownership = ledgers.first().map(|of_pool| {
        // What lies on memory of a NIC comes into rings of those only who took it themselves.
        dma.keep_book(Stock {
            begin: pool.buffer(0),
            stride: pool.stride(),
            count: pool.count() as u64,
            ledger: of_pool.at,
        });
        const { assert!(LEDGER_ENTRY_BYTES == size_of::<u16>() as u64) };
        Ownership {
            ledgers: ledgers.clone(),
            workers: config.settings.cores(),
            holders: config.settings.cores() + fills.len(),
        }
    });
    let mut way = CoreDma::new(DeviceCpu::new(cpu(config.settings.cores()), dma));
    for (nic, pool) in nics.iter_mut().zip(&mut fills) {
        fill(nic, &mut way, pool);
    }
    let whole = config.live.read::<SegmentOptions>().segments == Segments::Whole;
    if whole {
        let nics = nics.iter_mut();
        nics.for_each(|nic| nic.transmit.leave_unfinished());
    }
    let too_long = responders.iter().map(|responder| TooLong::new(responder.mac())).collect();
    for (nic, responder) in nics.iter_mut().zip(responders) {
        nic.stages.push_first(Box::new(responder));
    }
    let region = Region { control: control.clone(), bell: bell.clone() };
    let policy = policy(config, if whole { pool.room() as usize } else { 0 });
    Ok(Assembly {
        device: Device::new(nics, ports, too_long, way, region, policy, ownership),
        workers,
        blueprint,
        pool,
        nicmem,
        control,
        bell,
        events,
    })
}

/// How the device of `config` behaves at its limits, where segments up to `longest_segment` pass whole.
fn policy(config: &LiveConfig, longest_segment: usize) -> Policy {
    Policy {
        longest_segment,
        idle: config.live.read::<ThreadOptions>().idle,
        when_full: config.live.read::<FullOptions>().when_full,
        window: window(&config.settings),
        heuristic: heuristic(&config.settings),
        spreads: config.live.read::<AttachOptions>().absent_flows == AbsentFlows::Others,
    }
}

/// Whether the device interrupts workers.
fn interrupts(config: &LiveConfig) -> bool {
    config.tcp.is_some() || config.live.read::<ThreadOptions>().idle == Idle::Interrupt
}

/// How many frames of a port may wait for software at once: so few that none is dropped for want
/// of room in any ring.
fn window(settings: &Settings) -> usize {
    let receive = settings.shape().map_or(0, |shape| shape.smallest);
    (receive.min(settings.read::<TransmitOptions>().tx_entries) / 2).max(1)
}

/// Packet buffers that are sized for segments without being asked for take at most as much: 1 GiB.
const SEGMENT_BUFFERS_MAX: usize = 1 << 30;

/// Says whether segments pass whole, where the file leaves that open. Buffers hold the longest frame of any port, or
/// segment that is to come whole, unless the file says what they hold.
fn fit_buffers(config: &LiveConfig, ports: &[Box<dyn Port>]) -> LiveConfig {
    const KEY: &str = "buffer_bytes";
    let mut config = config.clone();
    let is_set = config.assignments.iter().any(|set| set.key.name == KEY);
    let mut segments = config.live.read::<SegmentOptions>().segments;
    if segments == Segments::Auto {
        let bytes = packet_buffers(&config).saturating_mul(DATA_BYTES_MAX as usize);
        let can = config.tcp.is_none() && !is_set && ports.iter().all(|port| port.takes_segments());
        segments = if can && bytes <= SEGMENT_BUFFERS_MAX { Segments::Whole } else { Segments::Cut };
        config.live.set("segments", segments, Place::argument("the kinds of ports"));
    }
    let longest = ports.iter().filter_map(|port| port.link());
    let longest = longest.map(Link::frame_bytes_max).max().unwrap_or(0);
    let longest = if segments == Segments::Whole { DATA_BYTES_MAX as usize } else { longest };
    if is_set || longest <= config.settings.read::<PoolOptions>().buffer_bytes {
        return config;
    }
    let value = Value::from(longest.min(DATA_BYTES_MAX as usize));
    config.settings.set(KEY, value.clone());
    // Workers that attach receive what was set.
    if let Some(key) = config.settings.catalogue().vocabulary().key(KEY) {
        let place = Place::argument("the MTU of the ports");
        config.assignments.push(Assignment { key, value, place });
    }
    config
}

/// The ports as applications see them, and their responders.
fn addresses(
    config: &LiveConfig,
    ports: &mut [Box<dyn Port>],
    stop: &AtomicBool,
) -> Result<(PortMap, Vec<Responder>), LiveRunError> {
    let mut map = PortMap::paired(config.ports.len() as u8);
    let mut responders = Vec::new();
    let each = config.ports.iter().zip(ports).zip(&mut map.0).enumerate();
    for (number, ((port_config, port), seen)) in each {
        let set = port_config.options();
        let hardware = port.hardware_address().map(MacAddress);
        seen.mac = set.mac.or(hardware).unwrap_or(seen.mac);
        seen.inside = set.inside.unwrap_or(seen.inside);
        seen.address = set.address.map(|own| own.ip);
        seen.address6 = set.address6;
        seen.broadcast = set.address.and_then(|own| own.broadcast());
        let bridges = config.settings.app_shape().bridges;
        // A port on a link hears frames for others too. Hosts can ask for its hardware address if it has one of IP; captures are played whole.
        let is_asked = set.address.is_some() || set.address6.is_some();
        seen.hears_all = hardware.is_some() || set.mac.is_some() || port_config.is_link() && (bridges || is_asked);
        if let Some(peer) = set.peer {
            seen.peer = PortId(peer as u8);
        }
        let mut found = true;
        if let Some(next_hop) = set.next_hop {
            let mac = resolve(port_config, &mut **port, seen.mac, next_hop, stop)?;
            found = mac.is_some();
            seen.next_hop = mac.unwrap_or(seen.next_hop);
            // Questions are no frames of the run.
            *port.counters_mut() = PortCounters::default();
        }
        let responder = responder(config, number, &set, seen, found);
        let is_bridge = bridges && usize::from(seen.peer.0) != number;
        responders.push(if is_bridge { responder.that_bridges() } else { responder });
    }
    Ok((map, responders))
}

/// The responder of port `number`, which applications see as `seen`; whether its next hop was `found`.
fn responder(config: &LiveConfig, number: usize, set: &PortOptions, seen: &AppPort, found: bool) -> Responder {
    let (mac, next_hop) = (seen.mac, seen.next_hop);
    if config.tcp.is_some() {
        // The stack has neighbours of its own.
        return Responder::new(mac, None).that_is_deaf();
    }
    let address = set.address.map(|own| own.ip);
    let mut responder = Responder::new(mac, address).with_address6(set.address6);
    if let Some(Neighbour::Ip(wanted)) = set.next_hop {
        let every = Time::from_seconds(config.live.read::<AskOptions>().ask_again_s);
        let hop = if found { NextHop::new } else { NextHop::unknown };
        responder = responder.with_next_hop(hop(number, wanted, next_hop, every));
    }
    let balances = config.settings.app_shape().needs_address == Some(NeededAddress::Server);
    // Who balances all addresses, or this one, has servers that answer.
    let balanced = |address| config.app.read::<ServiceOptions>().service.is_none_or(|service| service == address);
    match address {
        Some(address) if balances && balanced(address) => responder,
        _ => responder.that_echoes(),
    }
}

/// The hardware address of `next_hop`; `None` if nobody answers for now, which is said, or the run was stopped.
fn resolve(
    set: &PortConfig,
    port: &mut dyn Port,
    mac: MacAddress,
    next_hop: Neighbour,
    stop: &AtomicBool,
) -> Result<Option<MacAddress>, LiveRunError> {
    let wanted = match next_hop {
        Neighbour::Mac(mac) => return Ok(Some(mac)),
        Neighbour::Ip(wanted) => wanted,
    };
    let PortOptions { address, address6, .. } = set.options();
    let own = Addresses { mac, address: address.map(|own| own.ip), address6 };
    match neighbour::ask(port, &own, wanted, stop)? {
        Asked::Is(mac) => Ok(Some(mac)),
        Asked::Stopped => Ok(None),
        Asked::Nobody => Ok(None),
    }
}

/// The application that `config` wants, between the ports `map`.
pub fn app_config(config: &LiveConfig, map: PortMap) -> Result<AppConfig, LiveRunError> {
    let settings = &config.settings;
    let mut app = app_of_settings(settings, map);
    app.seed = unforeseen()?;
    app.values.extend(config.app.values());
    read_servers_of(&app)?;
    watch::follow(&app)?;
    if let Some(file) = &settings.read::<RouteOptions>().routes_file {
        app.routes = read_routes(file.as_ref(), config.ports.len() as u8)?.into();
    }
    Ok(app)
}

/// A number that nobody outside can foresee: it decides which external ports a NAT gives out (RFC 6056).
fn unforeseen() -> Result<u64, LiveError> {
    const SOURCE: &str = "/dev/urandom";
    let mut bytes = [0; 8];
    let read = File::open(SOURCE).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(LiveError::of(SOURCE))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests;
