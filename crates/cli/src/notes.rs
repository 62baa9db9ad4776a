//! What is to be said about a scenario that is no error: what a replay leaves out of a capture or
//! mends in it, ring sizes that a paper advises against, settings under which all or most is lost, and windows
//! that are too short for what they are to find.

use std::path::Path;

use nicforge_apps::kvs::item_bytes;
use nicforge_interfaces::rx_bisect::{Sizing, burst_warning, sizing_warnings};
use nicforge_lab::machine::Machine;
use nicforge_lab::run::{line_of, ring_frames, topology};
use nicforge_lab::scenario::{Assignment, Point, Scenario};
use nicforge_lab::settings::Settings;
use nicforge_units::Bytes;
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, UDP_HEADER_LEN};
use nicforge_wire::traffic::{Line, Replay, ReplayCounts};

/// What speaks against a point's settings.
pub fn about_settings(point: &Point, machine: &Machine) -> Vec<String> {
    let settings = &point.settings;
    if settings.is_of_whole_systems() {
        return Vec::new();
    }
    let mut notes = about_sizes(settings, machine);
    notes.extend(about_long_frames(settings));
    notes.extend(about_long_values(settings));
    notes.extend(about_split_headers(settings));
    notes.extend(about_many_flows(settings));
    notes.extend(about_target(settings));
    notes.extend(about_lone_queues(settings));
    notes.extend(about_sharing(point));
    notes.extend(about_switching(settings, machine));
    notes.extend(about_preloaded_pairs(settings));
    notes.extend(about_short_trials(settings));
    notes
}

/// Share of the highest rate that a search without loss may say too much.
const TOO_MUCH: f64 = 0.05;

/// Trials of a search without loss in which rings take up much of what is offered: it need not be sent
/// within the window to be sent in the end.
fn about_short_trials(settings: &Settings) -> Option<String> {
    let of_one_size = settings.packet_sizes == "fixed" || settings.app == "kvs";
    let by_time = settings.measure == "no_drop_rate" && settings.arrival != "replay";
    if !by_time || !of_one_size {
        return None;
    }
    let (frames, bytes) = (ring_frames(settings), settings.frame_bytes());
    // A million bits in a millisecond are a Gbit/s.
    let megabits = frames as f64 * f64::from(bytes) * 8.0 / 1e6;
    let (held, highest) = (megabits / settings.window_ms, settings.offered_gbps);
    let enough = (megabits / (highest * TOO_MUCH)).ceil();
    (held > highest * TOO_MUCH).then(|| {
        format!(
            "receive rings hold {frames} frames of {bytes} bytes, {held:.1} Gbit/s for a window of {} ms: the rate \
             without loss may be too high by so much of {highest} Gbit/s; set window_ms to {enough} or more",
            settings.window_ms
        )
    })
}

/// Frames that no buffer has room for.
fn about_long_frames(settings: &Settings) -> Option<String> {
    let made_up = settings.makes_up_frames() && !settings.splits_frames();
    let fixed = ["fixed", "bimodal"].contains(&&*settings.packet_sizes);
    let target = match settings.target_share > 0.0 {
        true => settings.target_packet_bytes,
        false => None,
    };
    let usual = fixed.then(|| settings.frame_bytes());
    let longest = usual.into_iter().chain(target).max()?;
    (made_up && longest as usize > settings.buffer_bytes).then(|| {
        format!(
            "frames of {longest} bytes do not fit buffers of {}: all of them will be dropped \
             (oversized_frame); set buffer_bytes to at least {longest}",
            settings.buffer_bytes
        )
    })
}

/// Values of a store whose PUTs or replies no buffer has room for.
fn about_long_values(settings: &Settings) -> Option<String> {
    if settings.app != "kvs" || settings.arrival == "replay" {
        return None;
    }
    let (put, reply, room) = (
        settings.put_bytes(),
        settings.get_reply_bytes(),
        settings.buffer_bytes,
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

/// Headers of which only the first part lies where applications read them.
fn about_split_headers(settings: &Settings) -> Option<String> {
    let needed = match settings.app.as_str() {
        "l2fwd" => ETHERNET_HEADER_LEN,
        // What made-up traffic has.
        _ => ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + UDP_HEADER_LEN,
    };
    let at = settings.split_at;
    let made_up = settings.arrival != "replay" && settings.splits_frames();
    (made_up && at > 0 && at < needed).then(|| {
        format!(
            "split_at = {at} cuts frames within the {needed} bytes of headers that {} reads: all of them will be \
             dropped (headers_split); set split_at to at least {needed}, or to 0, which splits where headers end",
            settings.app
        )
    })
}

/// Frames of a capture that no buffer has room for.
pub fn about_long_replay(capture: &Path, replay: &Replay, settings: &Settings) -> Option<String> {
    let long = replay.longer_than(settings.buffer_bytes);
    let first = long.first.filter(|_| !settings.splits_frames())?;
    Some(format!(
        "{}: {} of {} frames do not fit buffers of {} bytes and will be dropped (oversized_frame), the first is \
         number {first}, the longest has {} bytes; set buffer_bytes to at least {}",
        capture.display(),
        long.count,
        replay.frames(),
        settings.buffer_bytes,
        long.longest,
        long.longest
    ))
}

/// Variants that are compared, and differ in nothing that counts.
pub fn about_equal_points(points: &[Point]) -> Vec<String> {
    let mut pairs: Vec<((&str, &str), usize)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let again = |other: &&Point| other.variant != point.variant && other.equals(point);
        if let Some(first) = points[..index].iter().find(again) {
            let pair = (first.variant.as_str(), point.variant.as_str());
            match pairs.iter_mut().find(|(known, _)| *known == pair) {
                Some((_, count)) => *count += 1,
                None => pairs.push((pair, 1)),
            }
        }
    }
    let said = |((first, second), count): ((&str, &str), usize)| {
        let of = points
            .iter()
            .filter(|point| point.variant == second)
            .count();
        let where_equal = match count == of {
            true => String::new(),
            false => format!(" in {count} of {of} points"),
        };
        format!(
            "{second} is {first} again{where_equal}: no setting that counts differs, so both measure the same; \
             let them differ (does --set replace what they vary?), or leave one out"
        )
    };
    pairs.into_iter().map(said).collect()
}

/// Keys that somebody asked for on the command line, or sweeps, and that change nothing in any point.
/// Those of `[settings]` may: variants share them.
pub fn about_moot_keys(
    scenario: &Scenario,
    overrides: &[Assignment],
    points: &[Point],
) -> Vec<String> {
    let is_overridden = |name| overrides.iter().any(|set| set.key.name == name);
    let swept = scenario
        .sweep
        .iter()
        .filter_map(|sweep| sweep.values.first());
    let swept = swept.filter(|set| !is_overridden(set.key.name));
    let said = |set: &Assignment| {
        let counts = |point: &Point| set.key.counts(&point.settings);
        let first = points.first().filter(|_| !points.iter().any(counts))?;
        let why = set.key.why_moot(&first.settings)?;
        let (place, name) = (&set.place, set.key.name);
        Some(format!(
            "{place}: `{name}` has no effect: {why}; leave it out"
        ))
    };
    overrides.iter().chain(swept).filter_map(said).collect()
}

/// More flows than a table has room for.
fn about_many_flows(settings: &Settings) -> Option<String> {
    let fate = match settings.app.as_str() {
        "nat" | "lb" => "packets of the others will be dropped (table_full)",
        "counter" => "packets of the others will not be counted",
        _ => return None,
    };
    let (flows, room) = (settings.flows, settings.table_entries);
    (settings.arrival != "replay" && flows > room).then(|| {
        format!(
            "of {flows} flows at most {room} have room in the table: {fate}; set table_entries to at least \
             {flows}"
        )
    })
}

/// A target whose time never comes.
fn about_target(settings: &Settings) -> Option<String> {
    let ends = settings.warmup_ms + settings.window_ms;
    let wanted = settings.target_share > 0.0 || settings.target_accesses > 0;
    let late = settings.arrival != "replay" && settings.target_begins_ms >= ends;
    (wanted && late).then(|| {
        format!(
            "the target begins at {} ms, when the run has ended ({ends} ms), and has no effect; set \
             target_begins_ms below warmup_ms + window_ms",
            settings.target_begins_ms
        )
    })
}

/// Shares of queues where each NIC has but one.
fn about_lone_queues(settings: &Settings) -> Option<String> {
    let lone = settings.cores == settings.nics;
    let wanted = settings.busiest_to_idlest > 0.0 && settings.makes_up_frames();
    (wanted && lone).then(|| {
        format!(
            "busiest_to_idlest has no effect with {} cores for {} NICs, as each NIC has one queue; use more \
             cores, or leave it out",
            settings.cores, settings.nics
        )
    })
}

/// Groups of cores that do not come out even, where somebody asked for them.
fn about_sharing(point: &Point) -> Option<String> {
    let settings = &point.settings;
    let interface = settings.seen_by_drivers();
    let (sharing, queues) = (settings.sharing, settings.cores / settings.nics);
    if !interface.starts_with("sh_ring") || !point.sets("sharing") || queues.is_multiple_of(sharing)
    {
        return None;
    }
    let last = queues % sharing;
    Some(match sharing > queues {
        true => format!(
            "each NIC has {queues} queues, so its ring is shared by {queues} and not by {sharing}"
        ),
        false => format!(
            "{queues} queues of each NIC do not divide by sharing = {sharing}: its last ring is shared by {last}"
        ),
    })
}

/// Dynamic shRing that cannot share its rings, or not for longer than a look.
fn about_switching(settings: &Settings, machine: &Machine) -> Option<String> {
    if settings.seen_by_drivers() != "sh_ring_dynamic" {
        return None;
    }
    let (looks, part) = (settings.dynamic_window, settings.dynamic_on_share);
    if settings.dynamic_off_share == 0.0 {
        return Some(
            "dynamic_off_share = 0: rings are private again at the next look whatever it sees; the paper has 0.875 \
             (shRing, section 5.1.5)"
                .to_string(),
        );
    }
    // More than this part of all looks.
    let needed = (part * looks as f64).floor() + 1.0;
    if needed > looks as f64 {
        return Some(format!(
            "dynamic_on_share = {part}: rings stay private, as never more than all looks speak for sharing; the \
             paper has 0.5 (shRing, section 5.1.5)"
        ));
    }
    if let Some(little) = about_little_traffic(settings, machine) {
        return Some(little);
    }
    let first = needed * settings.dynamic_step_ms;
    let ends = settings.warmup_ms + settings.window_ms;
    (first > ends).then(|| {
        format!(
            "rings stay private: the control core can share them after {needed} looks at the earliest, {first} ms, \
             when the run has ended ({ends} ms); let the run last longer, or set dynamic_step_ms below {:.2}",
            ends / needed
        )
    })
}

/// Dynamic shRing that never sees as much traffic as it takes to share.
fn about_little_traffic(settings: &Settings, machine: &Machine) -> Option<String> {
    let Line { rate, overhead } = line_of(&machine.hardware);
    let nics = settings.nics as f64;
    let frame = settings.frame_bytes() as f64;
    let alike = settings.packet_sizes == "fixed" && settings.app != "kvs";
    let made_alike =
        alike && settings.arrival != "replay" && settings.target_packet_bytes.is_none();
    // What Ethernet adds to each frame is known where all are alike; elsewhere it counts for nothing.
    let frames = match made_alike {
        true => frame / (frame + overhead.0 as f64),
        false => 1.0,
    };
    let wires = nics * rate.as_bits_per_second() as f64 / 1e9 * frames;
    // Other traffic is offered by its mean only, or as answers come.
    let even = ["constant", "poisson"].contains(&settings.arrival.as_str());
    let offered = settings.offered_gbps;
    let (most, whose, remedy) = match even && offered <= wires {
        true => (offered, "are offered", "offer more"),
        false => (wires, "fit the wires of the NICs in use", "use more NICs"),
    };
    let needed = settings.dynamic_gbps;
    (most <= needed).then(|| {
        format!(
            "rings stay private: at most {most:.1} Gbit/s {whose}, and sharing needs more than dynamic_gbps = {needed}; \
             {remedy}, or set dynamic_gbps to less"
        )
    })
}

/// Pairs that are put into the store before traffic begins, and push each other out.
fn about_preloaded_pairs(settings: &Settings) -> Option<String> {
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
    (needed > settings.kvs_log_mib as u64).then(|| {
        format!(
            "{pairs} pairs that are put into the store before traffic begins take {needed} MiB with their headers: \
             later ones overwrite the earlier in logs of {} MiB; set kvs_log_mib to at least {needed}",
            settings.kvs_log_mib
        )
    })
}

/// What speaks against the sizes of a point's rings.
fn about_sizes(settings: &Settings, machine: &Machine) -> Vec<String> {
    let (llc, nic) = (&machine.hardware.llc, &machine.hardware.nic);
    match settings.seen_by_drivers() {
        "rx_bisect" => {}
        name if name.starts_with("sh_ring") => {
            let of_all = burst_warning("Shared rings", settings.rx_entries, nic.burst_entries);
            return of_all.into_iter().collect();
        }
        _ => return Vec::new(),
    }
    let topology = topology(settings);
    let written = settings.associations.is_some() || settings.ax_links.is_some();
    sizing_warnings(&Sizing {
        nics: settings.nics,
        queues: topology.bx.len(),
        ax_rings: topology.ax.len(),
        sets: settings.association_sets,
        written: written.then_some(&topology),
        ax_entries: settings.ax_entries,
        bx_entries: settings.bx_entries,
        burst_entries: nic.burst_entries,
        entries_min: nic.ring_entries_min,
        emulated: settings.interface == "emulated",
        // Of a store the mean: what fills the cache is requests of all kinds.
        frame: Bytes(settings.frame_bytes().into()),
        io_capacity: Bytes(llc.size.0 / llc.ways as u64 * settings.io_ways as u64),
    })
}

/// One line about `capture`; `None` when all of it is replayed as it is.
pub fn about(capture: &Path, counts: &ReplayCounts) -> Option<String> {
    let reader = &counts.reader;
    let mended = [
        (counts.padded, "captured short, filled up with zeros"),
        (reader.time_went_back, "from before the one before them"),
        (
            reader.time_out_of_range,
            "more than 106 days after the first",
        ),
        (reader.fraction_out_of_range, "with a broken time stamp"),
    ];
    let mended = mended.map(|(count, cause)| (count, cause.to_string()));
    let parts = [("left out", counts.left_out()), ("mended", mended.to_vec())];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(what, causes)| list(what, &causes))
        .collect();
    (!parts.is_empty()).then(|| format!("{}: records {}", capture.display(), parts.join("; ")))
}

fn list(what: &str, causes: &[(u64, String)]) -> Option<String> {
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes: Vec<String> = causes
        .map(|(count, cause)| format!("{count} {cause}"))
        .collect();
    (!causes.is_empty()).then(|| format!("{what}: {}", causes.join(", ")))
}
