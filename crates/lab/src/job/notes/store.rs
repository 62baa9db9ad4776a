//! Notes on a key-value store.

use crate::run::options::{Pairs, Requests};
use crate::settings::Settings;
use nicforge_apps::kvs::{BUCKET_SLOTS, hot_place_bytes, index_keeps, item_bytes};
use nicforge_apps::options::{HotAreaOptions, HotValues, KvsOptions, ValueOptions};
use nicforge_nic::PoolOptions;

use super::range;

/// Values of a store whose PUTs or replies no buffer has room for.
pub fn about_long_values(settings: &Settings) -> Option<String> {
    if settings.app_shape().requests.is_none() || settings.replays() {
        return None;
    }
    let (put, reply, room) =
        (settings.put_bytes(), settings.get_reply_bytes(), settings.read::<PoolOptions>().buffer_room());
    let puts = settings.read::<Requests>().kvs_put_share > 0.0;
    let gets = settings.read::<Requests>().kvs_put_share + settings.read::<Requests>().kvs_delete_share < 1.0;
    // What is too long for a reply was not put by a request, which is longer.
    let stored = settings.read::<Pairs>().kvs_preload_keys != Some(0);
    let cold = match settings.read::<KvsOptions>().kvs_hot_values {
        HotValues::Nicmem => " where it is not hot",
        HotValues::Host => "",
    };
    let puts = (puts && put as usize > room).then(|| {
        let fate = "all of them will be dropped (oversized_frame)";
        (put, format!("PUTs of {put} bytes do not fit buffers of {room}: {fate}"))
    });
    let replies = (gets && stored && reply as usize > room).then(|| {
        let fate = format!("GETs will be answered without the value{cold} (requests_too_large)");
        (reply, format!("replies to GETs of {reply} bytes do not fit buffers of {room}: {fate}"))
    });
    let least = puts.iter().chain(&replies).map(|(bytes, _)| *bytes).max()?;
    let said: Vec<String> = puts.into_iter().chain(replies).map(|(_, text)| text).collect();
    Some(format!("{}; set buffer_bytes to at least {least}", said.join(", and ")))
}

/// Memory of NICs for hot values that no core gets a place of.
pub fn about_hot_places(settings: &Settings) -> Option<String> {
    if !settings.app_shape().values_in_nicmem {
        return None;
    }
    let (cores, value) = (settings.cores() as u64, settings.read::<ValueOptions>().kvs_value_bytes);
    let each = settings.read::<HotAreaOptions>().kvs_hot_kib * 1024 / cores;
    let place = hot_place_bytes(value);
    (each < place).then(|| {
        format!(
            "kvs_hot_values = \"nicmem\" has no effect: each of {cores} cores gets {each} bytes of NICs' memory, where no \
             value of {value} bytes has a place; set kvs_hot_kib to at least {}",
            (place * cores).div_ceil(1024)
        )
    })
}

/// Share of the pairs that are put into the store: losing less to full buckets is not worth a word.
const FEW_LOST: f64 = 0.1;

/// Pairs that are put into the store before traffic begins, and push each other out.
pub fn about_preloaded_pairs(settings: &Settings) -> Option<String> {
    settings.app_shape().requests?;
    let pairs = settings.read::<Pairs>().kvs_preload_keys.unwrap_or(settings.read::<Pairs>().kvs_keys);
    let short = [short_index(settings, pairs), short_log(settings, pairs as f64)];
    let short: Vec<Short> = short.into_iter().flatten().collect();
    let stay = short.iter().map(|short| short.stay).reduce(f64::min)?;
    let of_each = |part: fn(&Short) -> &String| {
        let parts: Vec<&str> = short.iter().map(|short| part(short).as_str()).collect();
        parts.join(", and ")
    };
    Some(format!(
        "of {pairs} pairs that are put into the store before traffic begins about {stay:.0} stay: {}; {}",
        of_each(|short| &short.why),
        of_each(|short| &short.remedy)
    ))
}

/// A part of the store that is too small for all pairs.
struct Short {
    /// Pairs that it keeps.
    stay: f64,
    why: String,
    remedy: String,
}

/// An index whose buckets overflow. Each core has a part of it.
fn short_index(settings: &Settings, pairs: u64) -> Option<Short> {
    let (slots, cores) = (settings.read::<KvsOptions>().kvs_index_slots, settings.cores() as u64);
    let each = pairs as f64 / cores as f64;
    let stay = index_keeps(slots.div_ceil(cores), each) * cores as f64;
    (stay < pairs as f64 * (1.0 - FEW_LOST)).then(|| Short {
        stay,
        why: format!("buckets of {BUCKET_SLOTS} overflow in an index of {slots} slots over {cores} cores"),
        // With half as many pairs as slots hardly a bucket in a hundred gets more than it has room for.
        remedy: format!("set kvs_index_slots to at least {}, which keeps nearly all", pairs * 2),
    })
}

/// Logs that are too short.
fn short_log(settings: &Settings, pairs: f64) -> Option<Short> {
    let mib = f64::from(1 << 20);
    let item = item_bytes(
        settings.read::<Pairs>().kvs_key_bytes.into(),
        settings.read::<ValueOptions>().kvs_value_bytes.into(),
    );
    let (needed, log) = ((pairs * item as f64 / mib).ceil(), f64::from(settings.read::<KvsOptions>().kvs_log_mib));
    let remedy = match range::<KvsOptions>("kvs_log_mib") {
        Some((_, largest)) if needed > largest => {
            format!("kvs_log_mib is at most {largest}: put in fewer (kvs_preload_keys)")
        }
        _ => format!("set kvs_log_mib to at least {needed}"),
    };
    (needed > log).then(|| Short {
        stay: (log * mib / item as f64).floor(),
        why: format!(
            "they take {needed} MiB with their headers, and later ones overwrite the earlier in logs of {log} MiB"
        ),
        remedy,
    })
}
