//! Whether a point can run, found out before any does: rings and tables against the memory that
//! there is, flows for all who get a share, and what files say. And which keys are at fault if not.

use nicforge_apps::AppError;
use nicforge_apps::options::{FlowTableOptions, KvsOptions, SyntheticOptions};
use nicforge_interfaces::InterfaceError;
use nicforge_interfaces::options::RxRing;
use nicforge_interfaces::rx_bisect::RxBisectOptions;
use nicforge_nic::{NicmemOptions, PoolOptions, TransmitOptions};
use nicforge_platform::SpaceError;
use nicforge_platform::sim::{Hardware, Hierarchy};
use nicforge_stages::StageError;
use nicforge_units::CACHE_LINE_BYTES;

use super::RunError;
use super::build::{Parts, hardware_of, parts};
use super::traffic::{SourceError, check_shares};
use crate::assembly::BuildError;
use crate::machine::Machine;
use crate::run::options::{Copies, Flows};
use crate::settings::Settings;

/// Builds everything but memory and traffic, and throws it away.
///
/// # Errors
/// What [`run_point`](super::run_point) would fail with before its first packet; see [`at_fault`].
/// What captures and size files say shows [`traffic_source`](super::traffic_source).
pub fn check_point(machine: &Machine, settings: &Settings, seed: u64) -> Result<(), RunError> {
    if !settings.is_of_frames() {
        return Ok(());
    }
    plan(machine, settings, &hardware_of(machine, settings), seed)?;
    Ok(check_shares(settings, seed)?)
}

/// All parts, with room in the address space.
pub(super) fn plan(machine: &Machine, settings: &Settings, hardware: &Hardware, seed: u64) -> Result<Parts, RunError> {
    let parts = parts(machine, settings, hardware, seed)?;
    let (needs, most) = (parts.space.end(), Hierarchy::bytes_max(hardware));
    if needs > most {
        return Err(RunError::AddressSpace { needs, most });
    }
    Ok(parts)
}

/// The keys that an error is about, the likeliest to be at fault first.
pub fn at_fault(settings: &Settings, error: &RunError) -> Vec<&'static str> {
    match error {
        RunError::Build(error) => at_fault_in_host(settings, error),
        RunError::AddressSpace { .. } | RunError::Memory { .. } => memory_keys(settings),
        RunError::Source(error) => at_fault_in_source(error),
        _ => Vec::new(),
    }
}

fn at_fault_in_source(error: &SourceError) -> Vec<&'static str> {
    match error {
        SourceError::Sizes { .. } | SourceError::File { .. } => vec!["size_file"],
        SourceError::Capture { .. } | SourceError::ReplayTooLong { .. } => vec!["pcap"],
        SourceError::Traffic(_) => vec!["target_share", "busiest_to_idlest", "flows", "flow_choice", "arrival"],
    }
}

fn at_fault_in_host(settings: &Settings, error: &BuildError) -> Vec<&'static str> {
    match error {
        BuildError::Space(SpaceError::ControlFull)
        | BuildError::Interface(InterfaceError::Space(SpaceError::ControlFull)) => ring_keys(settings),
        BuildError::Interface(_) => {
            let mut keys = ring_keys(settings);
            keys.extend(["sharing", "emulates", "interface"]);
            keys
        }
        BuildError::Nicmem(_) => vec!["nicmem_kib", "copy_kib", "kvs_hot_kib"],
        BuildError::Routes(_) => vec!["routes_file"],
        BuildError::Stage(error) => match **error {
            StageError::Space(_) | StageError::TableFull(_) => memory_keys(settings),
            _ => vec!["stages"],
        },
        BuildError::App(AppError::Servers { .. }) => vec!["servers_file"],
        BuildError::App(_) => vec!["app", "table_entries", "servers", "kvs_index_slots"],
        BuildError::NoQueue(_) | BuildError::NoWorkCycles { .. } => Vec::new(),
    }
}

/// Sizes of rings, the largest first.
fn ring_keys(settings: &Settings) -> Vec<&'static str> {
    largest_first(
        settings,
        &[
            ("rx_entries", settings.read::<RxRing>().rx_entries as u64),
            ("bx_entries", settings.read::<RxBisectOptions>().bx_entries as u64),
            ("ax_entries", settings.read::<RxBisectOptions>().ax_entries as u64),
            ("tx_entries", settings.read::<TransmitOptions>().tx_entries as u64),
        ],
    )
}

/// What takes memory, the most first.
fn memory_keys(settings: &Settings) -> Vec<&'static str> {
    let (cores, store) = (settings.cores() as u64, settings.read::<KvsOptions>());
    let PoolOptions { buffer_bytes, .. } = settings.read();
    largest_first(
        settings,
        &[
            ("kvs_log_mib", u64::from(store.kvs_log_mib) << 20),
            ("kvs_index_slots", store.kvs_index_slots * 8),
            ("table_entries", settings.read::<FlowTableOptions>().table_entries * CACHE_LINE_BYTES),
            ("array_mib", u64::from(settings.read::<SyntheticOptions>().array_mib) << 20),
            (
                "flows",
                settings.read::<Flows>().flows * CACHE_LINE_BYTES * u64::from(settings.app_shape().offloads_flows),
            ),
            ("copy_kib", settings.read::<Copies>().copy_kib * 1024),
            ("nicmem_kib", settings.read::<NicmemOptions>().nicmem_kib * 1024 * settings.nics() as u64),
            ("rx_entries", (settings.read::<RxRing>().rx_entries * buffer_bytes) as u64 * cores),
            ("tx_entries", (settings.read::<TransmitOptions>().tx_entries * buffer_bytes) as u64 * cores),
        ],
    )
}

/// Those of `keys` that matter in a point with `settings`, by what each takes.
fn largest_first(settings: &Settings, keys: &[(&'static str, u64)]) -> Vec<&'static str> {
    let mut keys = keys.to_vec();
    keys.retain(|(name, _)| settings.counts(name));
    keys.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    keys.into_iter().map(|(name, _)| name).collect()
}
