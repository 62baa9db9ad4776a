//! A host whose NIC runs TCP.

use std::cell::RefCell;
use std::rc::Rc;

use nicforge_apps::PortMap;
use nicforge_nic::PortId;
use nicforge_nic::stage::{Alone, Chain, Processor};
use nicforge_options::{ConfigError, Place as FilePlace};
use nicforge_platform::sim::npu::NpuConfig;
use nicforge_platform::sim::{DmaPort, Host as SimHost, Lent, SimCore, SimCpu, SimDma};
use nicforge_platform::{AddressSpace, Owner, Register, Sim};
use nicforge_stages::Start;
use nicforge_tcp::conn::Tuning;
use nicforge_tcp::rate::{RateControl, RateLaw};
use nicforge_tcp::stack::{Address, HostConfig, Stack};
use nicforge_units::{Cycles, Time};

use super::contexts::{Context, Contexts, freed_register, written_register};
use super::device::TasnicDevice;
use super::flow::NicFlow;
use super::nic::{Nic, NicPlan};
use super::options::{Payload, TasnicOptions};
use super::slow::{SlowPath, SlowPlan, SlowProgram};
use super::slow_queues::SlowQueues;
use crate::run::stages::{build_stages, plan_of};
use crate::run::{RunError, core_of};
use crate::systems::options::{Congestion, TcpOptions};
use crate::tas::app::{Role, RpcApp};
use crate::tas::build::{Carried, HostPlan, Software};
use crate::tas::options::{RpcOptions, TasOptions};
use crate::tas::pages::{PAGE_BYTES, Pages, SharedPages};
use crate::tas::program::{Map, SharedApp};
use crate::tas::queue::{Place, Receiver, Sender};
use crate::tas::records::Buffers;
use crate::tas::rings::{Ring, Rings};
use crate::tas::source::Source;
use crate::world::{Core, Host};

/// The network's prefix, in bits: both hosts are on it.
const PREFIX_BITS: u8 = 8;
/// Bytes of IP packet that the link takes.
const MTU: u16 = 1500;
/// The slow path's core; applications are on those behind it.
const SLOW_CORE: usize = 0;
/// Frames that stages may have in hand: who waits for whom is decided by the FPCs' threads.
const STAGE_CORES: usize = 64;
/// Connections in a number's place at a time: one that is open, others that linger.
const GENERATIONS: usize = 4;
/// Idle contexts are looked at every so many cycles.
const IDLE_CYCLES: Cycles = Cycles(1 << 20);

/// Builds the host of `plan`.
pub fn host(plan: &HostPlan<'_>) -> Result<(Host, Software), RunError> {
    let Some(npu) = &plan.machine.npu else {
        let place = FilePlace::file(&plan.machine.file);
        let right = "use one with [npu.core], such as xeon-6138-nfp4000";
        return Err(ConfigError::new(&place, "the machine's NIC has no processor for TCP", right).into());
    };
    let mut space = AddressSpace::default();
    let (rpc, tas): (RpcOptions, TasOptions) = (plan.settings.read(), plan.settings.read());
    let (rings, pages) = payload(plan, &mut space);
    let (mut contexts, mut apps) = (Vec::new(), Vec::new());
    for number in 0..rpc.rpc_app_cores {
        let inbound = Place::new(&mut space, tas.tas_queue_entries, Owner((SLOW_CORE + 1 + number) as u16))?;
        let outbound = Place::new(&mut space, tas.tas_queue_entries, Owner::NOBODY)?;
        let register = |index| Register { device: 0, index };
        let receiver = Receiver::new(inbound).with_doorbell(register(freed_register(number)));
        let sender = Sender::new(outbound).with_doorbell(register(written_register(number)));
        contexts.push(Context::new(inbound, outbound));
        let mut app = RpcApp::new(plan.role, plan.rpcs(Source::Memory), vec![receiver], vec![sender]);
        app.pages = pages.clone();
        apps.push(Rc::new(RefCell::new(app)));
    }
    let slow_at = space.control(SlowQueues::BYTES, Owner(SLOW_CORE as u16))?;
    let queues = SlowQueues::new(slow_at, plan.hardware.pcie.write_latency);
    let contexts = Contexts::new(contexts, npu.core.clock.time_for(IDLE_CYCLES));
    let options: TasnicOptions = plan.settings.read();
    let (stages, starts) = stages(plan, npu, &mut space)?;
    let nic = NicPlan { npu, nic: &plan.hardware.nic, options, stages, pages: pages.clone(), seed: plan.seed };
    let nic = Rc::new(RefCell::new(Nic::new(nic, contexts, queues)));
    let slow = Rc::new(RefCell::new(slow_path(plan, rings, Rc::clone(&nic))));
    let mut machine = Lent::new(SimHost::new(&plan.hardware, &space));
    let mut core = Lent::new(SimCore::untimed(&plan.hardware.core));
    for start in starts {
        start(&mut SimCpu::on(&mut machine, &mut core))?;
    }
    let port = Lent::new(DmaPort::new(&plan.hardware.pcie, 0));
    let device = TasnicDevice::new(Rc::clone(&nic), port, plan.incoming());
    let mapped = Rc::clone(&nic);
    let map: Map = Rc::new(move |name| {
        let nic = mapped.borrow();
        nic.flows.get(name.flow()).filter(|flow| flow.state.post.opaque == name.0).map(NicFlow::mapped)
    });
    let slow_program = SlowProgram::new(Rc::clone(&slow));
    let mut cores = vec![Core::new(core_of(&plan.hardware, SLOW_CORE), Box::new(slow_program))];
    let apps: Vec<SharedApp> = apps;
    cores.extend(plan.app_cores(&apps, SLOW_CORE + 1, &map));
    let carried = Carried::Nic { nic, slow };
    Ok((Host::new(machine, vec![Box::new(device)], cores), Software { carried, apps }))
}

/// Stages before and behind the pipeline, if there are any, and what fills their tables.
type Stages = (Option<Alone<SimDma>>, Vec<Start<Sim>>);

/// The scenario's stages of the server's NIC.
fn stages(plan: &HostPlan<'_>, npu: &NpuConfig, space: &mut AddressSpace) -> Result<Stages, RunError> {
    if plan.role != Role::Server || plan.settings.stages().is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut chain = Chain::new(PortId(0));
    chain.set_processor(Processor::new(npu.core.clock, STAGE_CORES));
    let stage_plan = plan_of(plan.settings, &PortMap::one_armed(1), 0, 1, Rc::new(()));
    let starts = build_stages::<Sim>(&mut chain, plan.settings, 0, &stage_plan, space)?;
    Ok((Some(Alone::new(chain)), starts))
}

/// Connections that there may be at a time; of those that come and go a few generations linger.
fn at_once(rpc: &RpcOptions) -> usize {
    rpc.rpc_connections * if rpc.rpc_requests > 0 { GENERATIONS } else { 1 }
}

/// Both rings of all connections, and the pages that stand for received payload where they share it. NIC memory comes
/// before all else.
fn payload(plan: &HostPlan<'_>, space: &mut AddressSpace) -> (Vec<Ring>, Option<SharedPages>) {
    let (rpc, tas): (RpcOptions, TasOptions) = (plan.settings.read(), plan.settings.read());
    let len = tas.tas_buffer_kib << 10;
    let (count, all) = (2 * at_once(&rpc) as u64, 2 * at_once(&rpc) as u64 * u64::from(len));
    let place = plan.settings.read::<TasnicOptions>().tasnic_payload;
    let first = if place == Payload::Nic { space.nicmem(0, all) } else { space.data(all, 4096) };
    let rings = (0..count).map(|number| Ring { at: first + number * u64::from(len), len }).collect();
    let pages = (place == Payload::Shared).then(|| {
        let free = (0..all / 2 / PAGE_BYTES).rev().map(|_| space.data(PAGE_BYTES, PAGE_BYTES)).collect();
        Rc::new(RefCell::new(Pages::new(free)))
    });
    (rings, pages)
}

fn slow_path(plan: &HostPlan<'_>, free: Vec<Ring>, nic: super::SharedNic) -> SlowPath {
    let (rpc, tas, tcp): (RpcOptions, TasOptions, TcpOptions) =
        (plan.settings.read(), plan.settings.read(), plan.settings.read());
    let config = plan.tcp_config();
    let ring_bytes = tas.tas_buffer_kib << 10;
    let tuning =
        Tuning { no_delay: true, receive_buffer: ring_bytes * 2, send_buffer: ring_bytes, ..Tuning::new(&config) };
    let mut host = HostConfig::ip(vec![Address::new(plan.address(), PREFIX_BITS)]);
    host.mtu = MTU;
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&plan.seed.wrapping_mul(2).wrapping_add(plan.address().octets()[3].into()).to_le_bytes());
    let law = match tcp.congestion_control {
        Congestion::Dctcp => RateLaw::Dctcp,
        Congestion::Timely => RateLaw::Timely,
        Congestion::Cubic | Congestion::Reno | Congestion::None => RateLaw::None,
    };
    let control = RateControl::new(law, at_once(&rpc)).bypassing();
    let linger = Time::from_seconds(plan.settings.read::<TasnicOptions>().tasnic_linger_ms * 1e-3);
    // Answers lie where TCP put them: the NIC does not place them elsewhere.
    let records = plan.records(0, Buffers::NONE);
    let (address, contexts, opening) = (plan.address(), rpc.rpc_app_cores, rpc.rpc_opening);
    let slow = SlowPlan { address, contexts, tuning, opening, linger, records };
    SlowPath::new(slow, nic, Stack::new(host, config, Rings { free }, seed), control)
}
