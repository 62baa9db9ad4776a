//! An application's configuration from a point's settings.

use nicforge_apps::options::{FlowTableOptions, KvsOptions, LbOptions, RouteOptions, SyntheticOptions, ValueOptions};
use nicforge_apps::{AppConfig, Egress, PortMap, generate_routes, read_routes};
use nicforge_options::Values;
use nicforge_units::Bytes;

use super::RunError;
use crate::machine::Machine;
use crate::settings::Settings;

/// The application of `settings` between `ports`, as far as it is the same on either ground.
pub(crate) fn app_of_settings(settings: &Settings, ports: PortMap) -> AppConfig {
    let mut config = AppConfig::new(&settings.app(), ports);
    config.table_entries = settings.read::<FlowTableOptions>().table_entries;
    config.servers = settings.read::<LbOptions>().servers;
    let SyntheticOptions { reads, reads_in_flight, array_mib, .. } = settings.read();
    config.reads = reads;
    config.reads_in_flight = reads_in_flight;
    config.array = Bytes(u64::from(array_mib) << 20);
    config.values = Values::clone(settings);
    config.kvs.hot_value_bytes = settings.read::<ValueOptions>().kvs_value_bytes;
    config
}

/// The application of a point: one port for each NIC, which sends back what it gets, unless a file of
/// routes says otherwise.
pub(crate) fn app_config(machine: &Machine, settings: &Settings, seed: u64) -> Result<AppConfig, RunError> {
    let work = settings.work(machine);
    let ports = settings.nics() as u8;
    let mut config = app_of_settings(settings, PortMap::one_armed(ports));
    config.work = work.ok_or_else(|| RunError::NoWorkCycles { machine: machine.name.clone(), app: settings.app() })?;
    config.payload = settings.read::<SyntheticOptions>().payload;
    let KvsOptions { kvs_index_slots, kvs_log_mib, .. } = settings.read();
    config.kvs.index_slots = kvs_index_slots;
    config.kvs.log = Bytes(u64::from(kvs_log_mib) << 20);
    config.seed = seed;
    if settings.app_shape().routes {
        let RouteOptions { routes_file, routes } = settings.read();
        config.egress = if settings.routes_by_port() { Egress::Route } else { Egress::Peer };
        config.routes = match &routes_file {
            Some(file) => read_routes(file.as_ref(), ports)?.into(),
            // Of IPv6 a default only, which takes no memory.
            None => generate_routes(seed, routes as usize, 1, ports).into(),
        };
    }
    Ok(config)
}
