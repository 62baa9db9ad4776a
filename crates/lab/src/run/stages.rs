//! From settings to the stages of NICs.

use std::net::SocketAddrV4;
use std::rc::Rc;

use nicforge_apps::PortMap;
use nicforge_interfaces::options::RxRing;
use nicforge_nic::PortId;
use nicforge_nic::stage::{Chain, Processor};
use nicforge_options::Values;
use nicforge_platform::AddressSpace;
use nicforge_stages::{
    BuiltStage, KnownFlow, KnownFlows, StageError, StageGround, StageKind, StagePlan, Start, fragments::FragmentsKind,
    hairpin::HairpinKind,
};
use nicforge_units::Frequency;
use nicforge_wire::headers::ip_protocol;
use nicforge_wire::traffic::FlowSpace;

use super::RunError;
use super::traffic::flows_of;
use crate::run::options::{StageOptions, StageProcessor};
use crate::settings::Settings;

/// The flows of made-up traffic.
struct MadeUp(FlowSpace);

impl KnownFlows for MadeUp {
    fn count(&self) -> u64 {
        self.0.count()
    }

    fn flow(&self, number: u64) -> KnownFlow {
        let tuple = self.0.tuple(number);
        KnownFlow {
            source: SocketAddrV4::new(tuple.source, tuple.source_port),
            destination: SocketAddrV4::new(tuple.destination, tuple.destination_port),
            protocol: ip_protocol::UDP,
        }
    }
}

/// A NIC's stages are numbered from here, where the one before is a live port's responder.
pub(crate) const BEHIND_RESPONDER: usize = 1;

/// Adds the stages of the NIC of port `port` of a simulation, in order from the wire; returns what fills their tables.
pub(super) fn add_stages<G: StageGround>(
    chain: &mut Chain<G::Dma>,
    settings: &Settings,
    seed: u64,
    port: usize,
    space: &mut AddressSpace,
) -> Result<Vec<Start<G>>, RunError> {
    if settings.stages().is_empty() {
        return Ok(Vec::new());
    }
    let ports = PortMap::one_armed(settings.nics() as u8);
    let flows = Rc::new(MadeUp(flows_of(settings, seed, port)?));
    let plan = plan_of(settings, &ports, port, settings.queues(), flows);
    Ok(build_stages::<G>(chain, settings, 0, &plan, space)?)
}

/// Adds the stages that `settings` name to `chain`, numbered from `first`; returns what fills their tables.
pub(crate) fn build_stages<G: StageGround>(
    chain: &mut Chain<G::Dma>,
    settings: &Settings,
    first: usize,
    plan: &StagePlan,
    space: &mut AddressSpace,
) -> Result<Vec<Start<G>>, StageError> {
    let stages = &settings.catalogue().registry().stages;
    let mut starts = Vec::new();
    for BuiltStage { stage, start } in stages.build::<G>(&settings.stages(), first, plan, space)? {
        chain.push(stage);
        starts.extend(start);
    }
    Ok(starts)
}

/// The NIC of port `port` of `ports`, as stages are built for it.
pub(crate) fn plan_of(
    settings: &Settings,
    ports: &PortMap,
    port: usize,
    queues: usize,
    flows: Rc<dyn KnownFlows>,
) -> StagePlan {
    let seen = &ports.0[port];
    StagePlan {
        port: PortId(port as u8),
        first_register: 0,
        mac: seen.mac,
        next_hop: seen.next_hop,
        queues: queues as u16,
        rx_entries: settings.read::<RxRing>().rx_entries,
        flows,
        values: Values::clone(settings),
    }
}

/// What the stages of each NIC compute on.
pub(crate) fn processor_of(settings: &Settings) -> Processor {
    let StageProcessor { stage_ghz, stage_cores } = settings.read();
    Processor::new(stage_ghz.map_or(Frequency::INFINITE, Frequency::from_ghz), stage_cores)
}

impl Settings {
    /// The stages of each NIC, in order from the wire.
    pub fn stages(&self) -> Vec<String> {
        let listed = self.read::<StageOptions>().stages.unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        let offloaded = self.app_shape().offloads_flows.then(|| HairpinKind::NAME.to_owned());
        let holds = self.app_shape().holds_fragments.then(|| FragmentsKind::NAME.to_owned());
        let mut names: Vec<String> = holds.into_iter().chain(offloaded).collect();
        for name in listed {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
