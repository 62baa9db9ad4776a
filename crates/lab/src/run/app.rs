//! An application's configuration from a point's settings.

use nicforge_apps::options::RouteOptions;
use nicforge_apps::{AppConfig, Egress, PortMap, generate_routes, read_routes};
use nicforge_options::Values;

use crate::assembly::BuildError;
use crate::machine::Machine;
use crate::settings::Settings;

/// The application of `settings` between `ports`, as far as it is the same on either ground.
pub(crate) fn app_of_settings(settings: &Settings, ports: PortMap) -> AppConfig {
    let mut config = AppConfig::new(&settings.app(), ports);
    config.values = Values::clone(settings);
    config
}

/// The application of a point: one port for each NIC, which sends back what it gets, unless a file of
/// routes says otherwise.
pub(crate) fn app_config(machine: &Machine, settings: &Settings, seed: u64) -> Result<AppConfig, BuildError> {
    let work = settings.work(machine);
    let ports = settings.nics() as u8;
    let mut config = app_of_settings(settings, PortMap::one_armed(ports));
    config.work =
        work.ok_or_else(|| BuildError::NoWorkCycles { machine: machine.name.clone(), app: settings.app() })?;
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
