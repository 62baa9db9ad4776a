//! From settings to requests for the key-value store, and to what it holds before the run.

use std::net::Ipv4Addr;

use nicforge_apps::options::ValueOptions;
use nicforge_nic::RssOptions;
use nicforge_platform::sim::SimCpu;
use nicforge_wire::headers::{MacAddress, key_hash, partition_of};
use nicforge_wire::traffic::{ArrivalModel, FlowChoice, Line, PairSpace, RequestConfig, Requests, TrafficSource};

use super::build::PacketCore;
use super::hot_area::hot_keys;
use super::options::{self, HotArea, KeyChoice, KeyZipf, Pairs};
use super::traffic::{SourceError, choice, flows_of};
use crate::settings::Settings;

/// The pairs behind port `port`: each port has its own share.
pub(super) fn pairs_of(settings: &Settings, seed: u64, port: usize) -> Result<PairSpace, SourceError> {
    let Pairs { kvs_keys, kvs_key_bytes: key, .. } = settings.read();
    let share = kvs_keys.div_ceil(settings.nics() as u64);
    // Both sizes are declared with bounds below 2^16.
    let value = settings.read::<ValueOptions>().kvs_value_bytes;
    let seed = seed ^ (port as u64) << 48;
    Ok(PairSpace::new(seed, share, key as u16, value as u16)?)
}

/// The requests that arrive at port `port`, whose NIC has `queues` queues.
pub fn requests_source(
    settings: &Settings,
    line: Line,
    seed: u64,
    port: usize,
    queues: u16,
    arrival: ArrivalModel,
) -> Result<TrafficSource, SourceError> {
    let options::Requests { kvs_put_share, kvs_delete_share, kvs_key_choice } = settings.read();
    let config = RequestConfig {
        protocol: settings.app_shape().requests.unwrap_or_default(),
        seed: seed.wrapping_add(port as u64),
        line,
        arrival,
        clients: flows_of(settings, seed, port)?,
        client_choice: choice(settings),
        pairs: pairs_of(settings, seed, port)?,
        key_choice: match kvs_key_choice {
            KeyChoice::Zipf => FlowChoice::Zipf { s: settings.read::<KeyZipf>().kvs_zipf_s },
            KeyChoice::HotArea => {
                FlowChoice::Hot { flows: hot_keys(settings), share: settings.read::<HotArea>().hot_share }
            }
            KeyChoice::Uniform => FlowChoice::Uniform,
        },
        put_key_choice: settings
            .read::<HotArea>()
            .hot_put_share
            .filter(|_| kvs_key_choice == KeyChoice::HotArea)
            .map(|share| FlowChoice::Hot { flows: hot_keys(settings), share }),
        put_share: kvs_put_share,
        delete_share: kvs_delete_share,
        queues,
        rss_key: settings.read::<RssOptions>().rss_key,
        // A private address for each port, and MAC addresses as other traffic has them.
        server: Ipv4Addr::new(10, 0, port as u8, 1),
        source: MacAddress([2, 0, 0, 0, 1, port as u8]),
        destination: MacAddress([2, 0, 0, 0, 0, port as u8]),
    };
    Ok(TrafficSource::Requests(Box::new(Requests::new(config)?)))
}

/// Puts pairs into the store, the first keys of each port: under Zipf these are the likeliest.
pub fn preload_pairs(
    settings: &Settings,
    seed: u64,
    cores: &mut [PacketCore],
    cpu: &mut SimCpu,
) -> Result<(), SourceError> {
    let queues = settings.queues();
    let Pairs { kvs_keys, kvs_preload_keys, .. } = settings.read();
    let wanted = kvs_preload_keys.unwrap_or(kvs_keys);
    let share = wanted.div_ceil(settings.nics() as u64);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for port in 0..settings.nics() {
        let pairs = pairs_of(settings, seed, port)?;
        for index in 0..share.min(pairs.count()) {
            pairs.key(index, &mut key);
            pairs.value(index, 0, &mut value);
            let partition = partition_of(key_hash(&key), queues as u16);
            let owner = &mut cores[port * queues + usize::from(partition)];
            owner.software.app.store_pair(cpu, &key, &value);
        }
    }
    Ok(())
}
