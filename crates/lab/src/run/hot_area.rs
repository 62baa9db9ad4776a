//! Which keys of a key-value store are in its hot area (nicmem, section 2.2.2).

use nicforge_apps::kvs::{Kvs, hot_place_bytes};
use nicforge_apps::options::{HotAreaOptions, ValueOptions};
use nicforge_platform::sim::SimCpu;

use super::build::PacketCore;
use super::requests::pairs_of;
use super::traffic::SourceError;
use crate::settings::Settings;

/// Keys in the hot area behind one port.
pub fn hot_keys(settings: &Settings) -> u64 {
    let area = settings.read::<HotAreaOptions>().kvs_hot_kib * 1024 / settings.nics() as u64;
    area / hot_place_bytes(settings.read::<ValueOptions>().kvs_value_bytes)
}

/// Makes the keys of the hot area hot, as after a long run.
pub fn preload_hot(
    settings: &Settings,
    seed: u64,
    cores: &mut [PacketCore],
    cpu: &mut SimCpu,
) -> Result<(), SourceError> {
    let queues = settings.queues();
    let mut key = Vec::new();
    for port in 0..settings.nics() {
        let pairs = pairs_of(settings, seed, port)?;
        for index in 0..hot_keys(settings).min(pairs.count()) {
            pairs.key(index, &mut key);
            // Only the core whose partition it is takes it.
            for core in &mut cores[port * queues..][..queues] {
                if let Some(store) = core.software.app.downcast::<Kvs>() {
                    store.preload_hot(cpu, &key);
                }
            }
        }
    }
    Ok(())
}
