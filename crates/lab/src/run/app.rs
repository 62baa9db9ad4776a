//! An application's configuration from a point's settings.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use nicforge_apps::lb::{Lb, read_servers};
use nicforge_apps::options::{LbOptions, RouteOptions, ServiceOptions};
use nicforge_apps::{AppConfig, AppKind, Egress, PortMap, generate_routes, read_routes};
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

/// The servers of a load balancer, as a file of `config` describes them, if there is one: the file, and how it is read.
pub(crate) fn servers_file(config: &AppConfig) -> Option<(PathBuf, Ipv4Addr, u32)> {
    let LbOptions { servers, servers_file, .. } = config.read();
    let first = config.read::<ServiceOptions>().server_address;
    servers_file.filter(|_| config.name == Lb::NAME).map(|file| (file.into(), first, servers))
}

/// Reads that file, if there is one.
pub(crate) fn read_servers_of(config: &AppConfig) -> Result<(), BuildError> {
    if let Some((file, first, count)) = servers_file(config) {
        config.servers.set(read_servers(&file, first, count)?);
    }
    Ok(())
}

/// The application of a point: one port for each NIC, which sends back what it gets, unless a file of
/// routes says otherwise.
pub(crate) fn app_config(machine: &Machine, settings: &Settings, seed: u64) -> Result<AppConfig, BuildError> {
    let work = settings.work(machine);
    let ports = settings.nics() as u8;
    let mut map = PortMap::one_armed(ports);
    map.0.iter_mut().for_each(|port| port.made_up = !settings.replays());
    let mut config = app_of_settings(settings, map);
    config.work =
        work.ok_or_else(|| BuildError::NoWorkCycles { machine: machine.name.clone(), app: settings.app() })?;
    config.copy_line = machine.hardware.core.copy_line;
    config.seed = seed;
    read_servers_of(&config)?;
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
