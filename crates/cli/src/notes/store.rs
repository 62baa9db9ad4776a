//! Notes on a key-value store.

use nicforge_apps::kvs::item_bytes;
use nicforge_lab::settings::Settings;

use super::range;

/// Values of a store whose PUTs or replies no buffer has room for.
pub fn about_long_values(settings: &Settings) -> Option<String> {
    if settings.app != "kvs" || settings.arrival == "replay" {
        return None;
    }
    let (put, reply, room) = (
        settings.put_bytes(),
        settings.get_reply_bytes(),
        settings.buffer_room(),
    );
    let splits = settings.splits_frames();
    let puts = settings.kvs_put_share > 0.0;
    let gets = settings.kvs_put_share + settings.kvs_delete_share < 1.0;
    let stored = settings.kvs_preload_keys != Some(0) || puts && splits;
    let cold = match settings.kvs_hot_values.as_str() {
        "nicmem" => " where it is not hot",
        _ => "",
    };
    let puts = (puts && !splits && put as usize > room).then(|| {
        let fate = "all of them will be dropped (oversized_frame)";
        (
            put,
            format!("PUTs of {put} bytes do not fit buffers of {room}: {fate}"),
        )
    });
    let replies = (gets && stored && reply as usize > room).then(|| {
        let fate = format!("GETs will be answered without the value{cold} (requests_too_large)");
        (
            reply,
            format!("replies to GETs of {reply} bytes do not fit buffers of {room}: {fate}"),
        )
    });
    let least = puts.iter().chain(&replies).map(|(bytes, _)| *bytes).max()?;
    let said: Vec<String> = puts
        .into_iter()
        .chain(replies)
        .map(|(_, text)| text)
        .collect();
    Some(format!(
        "{}; set buffer_bytes to at least {least}",
        said.join(", and ")
    ))
}

/// Pairs that are put into the store before traffic begins, and push each other out.
pub fn about_preloaded_pairs(settings: &Settings) -> Option<String> {
    const MIB: u64 = 1 << 20;
    if settings.app != "kvs" {
        return None;
    }
    let pairs = settings.kvs_preload_keys.unwrap_or(settings.kvs_keys);
    if settings.kvs_index_slots < pairs {
        return Some(format!(
            "of {pairs} pairs that are put into the store before traffic begins at most {} stay: its index has no more \
             slots; set kvs_index_slots to at least {pairs}",
            settings.kvs_index_slots
        ));
    }
    let (key, value) = (settings.kvs_key_bytes, settings.kvs_value_bytes);
    let bytes = pairs * item_bytes(key.into(), value.into());
    let needed = bytes.div_ceil(MIB);
    let remedy = match range("kvs_log_mib") {
        Some((_, largest)) if needed as f64 > largest => {
            format!("kvs_log_mib is at most {largest}: put in fewer (kvs_preload_keys)")
        }
        _ => format!("set kvs_log_mib to at least {needed}"),
    };
    (needed > settings.kvs_log_mib as u64).then(|| {
        format!(
            "{pairs} pairs that are put into the store before traffic begins take {needed} MiB with their headers: \
             later ones overwrite the earlier in logs of {} MiB; {remedy}",
            settings.kvs_log_mib
        )
    })
}
