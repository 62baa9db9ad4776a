//! What is to be said about a scenario that is no error: what a replay leaves out of a capture or
//! mends in it, ring sizes that a paper advises against, settings under which all or most is lost, and windows
//! that are too short for what they are to find.

mod captures;
mod store;

use crate::machine::Machine;
use crate::run::options::{
    Arrival, Arrivals, Flows, Llc, Measure, Measurement, PacketBytes, PacketSizes, Rate, Requests, Shares, Sizes,
    TargetTime, WindowOptions,
};
use crate::run::{line_of, ring_frames};
use crate::scenario::{Assignment, Point, Scenario};
use crate::settings::Settings;
use nicforge_apps::options::FlowTableOptions;
use nicforge_apps::{FullTable, Reads};
use nicforge_interfaces::describe::{Around, Queues, Received};
use nicforge_nic::PoolOptions;
use nicforge_options::{Key, Options};
use nicforge_units::{BitRate, Bytes};
use nicforge_wire::headers::{ETHERNET_HEADER_LEN, IPV4_MIN_HEADER_LEN, UDP_HEADER_LEN};
use nicforge_wire::traffic::Line;

pub use captures::{about, about_checksums, about_long_replay};
use store::{about_hot_places, about_long_values, about_preloaded_pairs};

/// What speaks against a point's settings.
pub fn about_settings(point: &Point, machine: &Machine) -> Vec<String> {
    let settings = &point.settings;
    if !settings.is_of_frames() {
        return Vec::new();
    }
    let mut notes = of_interface(point, machine);
    notes.extend(about_long_frames(settings));
    notes.extend(about_fifo(settings, machine));
    notes.extend(about_long_values(settings));
    notes.extend(about_split_headers(settings));
    notes.extend(about_many_flows(settings));
    notes.extend(about_target(settings));
    notes.extend(about_lone_queues(settings));
    notes.extend(about_preloaded_pairs(settings));
    notes.extend(about_hot_places(settings));
    notes.extend(about_short_trials(settings));
    notes
}

/// What the interface says against its own options, and what it builds on against its own.
fn of_interface(point: &Point, machine: &Machine) -> Vec<String> {
    let (settings, hardware) = (&point.settings, &machine.hardware);
    let (llc, nic) = (&hardware.llc, &hardware.nic);
    let is_set = |key: &str| point.sets(key);
    let around = Around {
        queues: Queues { nics: settings.nics(), each: settings.queues(), inner: None },
        played: settings.shape().is_some_and(|shape| shape.played),
        burst_entries: nic.burst_entries,
        entries_min: nic.ring_entries_min,
        frame: Bytes(settings.frame_bytes().into()),
        io_capacity: Bytes(llc.size.0 / llc.ways as u64 * settings.read::<Llc>().io_ways as u64),
        link: hardware.pcie.rate,
        received: received(settings, machine),
        ends_ms: settings.ends_ms(),
        is_set: &is_set,
    };
    let descriptions = settings.description().into_iter().chain(settings.inner_description());
    descriptions.flat_map(|interface| interface.advice(settings, &around)).collect()
}

/// The most frame bytes that can come in over all NICs.
fn received(settings: &Settings, machine: &Machine) -> Received {
    let Line { rate, overhead } = line_of(&machine.hardware);
    let frame = f64::from(settings.frame_bytes());
    // Before a target begins, frames are of another mean.
    let of_one_mean = settings.target_frame_bytes().is_none() || settings.read::<TargetTime>().target_begins_ms == 0.0;
    let fixed = settings.read::<Sizes>().packet_sizes == PacketSizes::Fixed;
    let known = fixed && settings.makes_up_frames() && of_one_mean;
    // What Ethernet adds to frames is known where their mean is; elsewhere it counts for nothing.
    let frames = if known { frame / (frame + overhead.0 as f64) } else { 1.0 };
    let wires = settings.nics() as f64 * rate.as_bits_per_second() as f64 / 1e9 * frames;
    // Other traffic is offered by its mean only, or as answers come.
    let even = matches!(settings.read::<Arrivals>().arrival, Arrival::Constant | Arrival::Poisson);
    let offered = settings.read::<Rate>().offered_gbps;
    if even && offered <= wires {
        Received::Offered(BitRate::from_gbps(offered))
    } else {
        Received::Wires(BitRate::from_gbps(wires))
    }
}

/// What numbers key `name` of `O` takes: what a note proposes is one of them.
fn range<O: Options>(name: &str) -> Option<(f64, f64)> {
    O::keys().into_iter().find(|key| key.name == name).and_then(Key::range)
}

/// Share of the highest rate that a search without loss may say too much.
const TOO_MUCH: f64 = 0.05;

/// Trials of a search without loss in which rings take up much of what is offered: it need not be sent
/// within the window to be sent in the end.
fn about_short_trials(settings: &Settings) -> Option<String> {
    let of_one_size =
        settings.read::<Sizes>().packet_sizes == PacketSizes::Fixed || settings.app_shape().requests.is_some();
    let by_time = settings.read::<Measurement>().measure == Measure::NoDropRate && !settings.replays();
    if !by_time || !of_one_size {
        return None;
    }
    let (frames, bytes) = (ring_frames(settings), settings.frame_bytes());
    // A million bits in a millisecond are a Gbit/s.
    let megabits = frames as f64 * f64::from(bytes) * 8.0 / 1e6;
    let (held, highest) = (megabits / settings.read::<WindowOptions>().window_ms, settings.read::<Rate>().offered_gbps);
    let enough = (megabits / (highest * TOO_MUCH)).ceil();
    let remedy = match range::<WindowOptions>("window_ms") {
        Some((_, longest)) if enough > longest => {
            format!("the longest window_ms, {longest}, is too short for them: use smaller rings, or offer more")
        }
        _ => format!("set window_ms to {enough} or more"),
    };
    (held > highest * TOO_MUCH).then(|| {
        format!(
            "receive rings hold {frames} frames of {bytes} bytes, {held:.1} Gbit/s for a window of {} ms: the rate \
             without loss may be too high by so much of {highest} Gbit/s; {remedy}",
            settings.read::<WindowOptions>().window_ms
        )
    })
}

/// The longest frames that are made up, where their size is known before a run.
fn longest_made_up(settings: &Settings) -> Option<u32> {
    if !settings.makes_up_frames() {
        return None;
    }
    let sizes = settings.read::<Sizes>().packet_sizes;
    let fixed = matches!(sizes, PacketSizes::Fixed | PacketSizes::Bimodal);
    let usual = fixed.then_some(settings.read::<PacketBytes>().packet_bytes);
    usual.into_iter().chain(settings.target_frame_bytes()).max()
}

/// Frames that no buffer has room for; one that is split is no longer than one buffer either.
fn about_long_frames(settings: &Settings) -> Option<String> {
    let longest = longest_made_up(settings)?;
    let room = settings.read::<PoolOptions>().buffer_room();
    (longest as usize > room).then(|| {
        format!(
            "frames of {longest} bytes do not fit buffers of {room}: all of them will be dropped \
             (oversized_frame); set buffer_bytes to at least {longest}"
        )
    })
}

/// Frames that the FIFO of a NIC has no room for, however slowly they come.
fn about_fifo(settings: &Settings, machine: &Machine) -> Option<String> {
    let puts = settings.app_shape().requests.is_some()
        && !settings.replays()
        && settings.read::<Requests>().kvs_put_share > 0.0;
    let longest = if puts { settings.put_bytes() } else { longest_made_up(settings)? };
    let (fifo, remedy) = fifo_of(machine, longest);
    (longest as usize > fifo).then(|| {
        format!(
            "frames of {longest} bytes do not fit the NIC's receive FIFO of {fifo}: all of them will be dropped \
             (longer_than_fifo); {remedy}"
        )
    })
}

/// Bytes of a NIC's receive FIFO, and how it takes frames of `longest` bytes.
fn fifo_of(machine: &Machine, longest: u32) -> (usize, String) {
    let remedy = format!("set rx_fifo_kib of machine {} to at least {}", machine.name, longest.div_ceil(1024));
    (machine.hardware.nic.rx_fifo.0 as usize, remedy)
}

/// Headers of which only the first part lies where applications read them.
fn about_split_headers(settings: &Settings) -> Option<String> {
    let needed = match settings.app_shape().reads {
        Reads::Ethernet => ETHERNET_HEADER_LEN,
        // What made-up traffic has.
        Reads::Headers => ETHERNET_HEADER_LEN + IPV4_MIN_HEADER_LEN + UDP_HEADER_LEN,
    };
    let at = settings.split()?.at;
    let made_up = !settings.replays();
    (made_up && at > 0 && at < needed).then(|| {
        format!(
            "split_at = {at} cuts frames within the {needed} bytes of headers that {} reads: all of them will be \
             dropped (headers_split); set split_at to at least {needed}, or to 0, which splits where headers end",
            settings.app()
        )
    })
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
        let of = points.iter().filter(|point| point.variant == second).count();
        let where_equal = if count == of { String::new() } else { format!(" in {count} of {of} points") };
        format!(
            "{second} is {first} again{where_equal}: no setting that counts differs, so both measure the same; \
             let them differ (does --set replace what they vary?), or leave one out"
        )
    };
    pairs.into_iter().map(said).collect()
}

/// Keys that somebody set, and that belong to modules which no point uses.
pub fn about_unused_keys(scenario: &Scenario, overrides: &[Assignment], points: &[Point]) -> Vec<String> {
    let varied = scenario.variants.iter().flat_map(|variant| &variant.settings);
    let swept = scenario.sweep.iter().filter_map(|sweep| sweep.values.first());
    // What a file sets may lose its use by an override: then the file is not at fault.
    let written = scenario.settings.iter().chain(varied).chain(swept).filter(|_| overrides.is_empty());
    let unused = |set: &&Assignment| !points.iter().any(|point| point.settings.counts(set.key.name));
    let unused = overrides.iter().chain(written).filter(unused);
    let catalogue = points.first().map(|point| point.settings.catalogue());
    unused.flat_map(|set| catalogue.map(|catalogue| set.somebody_elses(catalogue))).collect()
}

/// More flows than a table has room for.
fn about_many_flows(settings: &Settings) -> Option<String> {
    let fate = match settings.app_shape().full_table? {
        FullTable::Drops => "packets of the others will be dropped (table_full)",
        FullTable::ForwardsUncounted => "packets of the others will not be counted",
    };
    let (flows, room) = (settings.read::<Flows>().flows, settings.read::<FlowTableOptions>().table_entries);
    (!settings.replays() && flows > room).then(|| {
        format!(
            "of {flows} flows at most {room} have room in the table: {fate}; set table_entries to at least \
             {flows}"
        )
    })
}

/// A target whose time never comes.
fn about_target(settings: &Settings) -> Option<String> {
    let ends = settings.ends_ms();
    let late = !settings.replays() && settings.read::<TargetTime>().target_begins_ms >= ends;
    (settings.has_target() && late).then(|| {
        format!(
            "the target begins at {} ms, when the run has ended ({} ms), and has no effect; set \
             target_begins_ms below warmup_ms + window_ms",
            settings.read::<TargetTime>().target_begins_ms,
            ends
        )
    })
}

/// Shares of queues where each NIC has but one.
fn about_lone_queues(settings: &Settings) -> Option<String> {
    let lone = settings.cores() == settings.nics();
    let wanted = settings.read::<Shares>().busiest_to_idlest > 0.0 && settings.makes_up_frames();
    (wanted && lone).then(|| {
        format!(
            "busiest_to_idlest has no effect with {} cores for {} NICs, as each NIC has one queue; use more \
             cores, or leave it out",
            settings.cores(),
            settings.nics()
        )
    })
}
