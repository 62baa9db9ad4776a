//! From settings to NICs that handle flows without software.

use nicforge_apps::options::HairpinOptions;
use nicforge_interfaces::options::RxRing;
use nicforge_nic::hairpin::{FlowAction, FlowMatch, FlowTable, Hairpin, HairpinSpec};
use nicforge_platform::AddressSpace;
use nicforge_platform::sim::SimCpu;
use nicforge_units::Bytes;
use nicforge_wire::headers::{MacAddress, ip_protocol};

use super::RunError;
use super::traffic::flows_of;
use crate::run::options::Flows;
use crate::settings::Settings;

/// A table for each NIC, or none where software does it all.
pub fn flow_tables(settings: &Settings, space: &mut AddressSpace) -> Vec<FlowTable> {
    let wanted = settings.app_shape().offloads_flows;
    let nics = if wanted { settings.nics() } else { 0 };
    let share = settings.read::<Flows>().flows.div_ceil(settings.nics() as u64);
    (0..nics).map(|_| FlowTable::allocate(space, share)).collect()
}

/// The stage of NIC `device`, if it has a `table`.
pub fn hairpin_of(settings: &Settings, table: Option<&FlowTable>, device: usize) -> Option<Hairpin> {
    let &table = table?;
    let port = device as u8;
    Some(Hairpin::new(HairpinSpec {
        table,
        memory: Bytes(settings.read::<HairpinOptions>().flow_memory_kib * 1024),
        fetches: settings.read::<HairpinOptions>().flow_fetches,
        queue: settings.read::<RxRing>().rx_entries,
        // As applications have them: the port's own, and that of whatever is behind its cable.
        addresses: (MacAddress([2, 0, 0, 0, 0, port]), MacAddress([2, 0, 0, 0, 1, port])),
    }))
}

/// Puts the flows behind each port into its table, as software does when it offloads them.
pub fn install_flows(settings: &Settings, seed: u64, tables: &[FlowTable], cpu: &mut SimCpu) -> Result<(), RunError> {
    for (port, table) in tables.iter().enumerate() {
        let flows = flows_of(settings, seed, port)?;
        for flow in 0..flows.count() {
            let tuple = flows.tuple(flow);
            let from = (tuple.source.to_bits(), tuple.source_port);
            let to = (tuple.destination.to_bits(), tuple.destination_port);
            // Forwarded as it is, as the software counter does.
            let action = FlowAction::default();
            table.install(cpu, FlowMatch::new(from, to, ip_protocol::UDP), action)?;
        }
    }
    Ok(())
}
