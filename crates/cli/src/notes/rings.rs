//! Notes on rings: sizes, and when they are shared.

use nicforge_interfaces::options::RxRing;
use nicforge_interfaces::rx_bisect::RxBisectOptions;
use nicforge_interfaces::rx_bisect::{Sizing, burst_warning, sizing_warnings};
use nicforge_interfaces::sh_ring::batched_list::batch;
use nicforge_interfaces::sh_ring::{BatchedListOptions, SharedRing};
use nicforge_interfaces::sh_ring_dynamic::DynamicOptions;
use nicforge_lab::machine::Machine;
use nicforge_lab::run::options::{Arrivals, Llc, Rate, Sizes, TargetTime};
use nicforge_lab::run::{line_of, topology};
use nicforge_lab::settings::{Settings, to_the_ns};
use nicforge_units::Bytes;
use nicforge_wire::traffic::Line;

use super::range;

/// What speaks against the sizes of a point's rings.
pub fn about_sizes(settings: &Settings, machine: &Machine) -> Vec<String> {
    let (llc, nic) = (&machine.hardware.llc, &machine.hardware.nic);
    match settings.seen_by_drivers() {
        "rx_bisect" => {}
        name if name.starts_with("sh_ring") => {
            let of_all = burst_warning("Shared rings", settings.read::<RxRing>().rx_entries, nic.burst_entries);
            return of_all.into_iter().collect();
        }
        _ => return Vec::new(),
    }
    let topology = topology(settings);
    let written = settings.read::<RxBisectOptions>().associations.is_some()
        || settings.read::<RxBisectOptions>().ax_links.is_some();
    sizing_warnings(&Sizing {
        nics: settings.nics(),
        queues: topology.bx.len(),
        ax_rings: topology.ax.len(),
        sets: settings.read::<RxBisectOptions>().association_sets,
        written: written.then_some(&topology),
        ax_entries: settings.read::<RxBisectOptions>().ax_entries,
        bx_entries: settings.read::<RxBisectOptions>().bx_entries,
        burst_entries: nic.burst_entries,
        entries_min: nic.ring_entries_min,
        emulated: settings.interface() == "emulated",
        // The mean: what fills the cache is frames of all kinds.
        frame: Bytes(settings.frame_bytes().into()),
        io_capacity: Bytes(llc.size.0 / llc.ways as u64 * settings.read::<Llc>().io_ways as u64),
    })
}

/// Dynamic shRing that cannot share its rings, or not for longer than a look.
pub fn about_switching(settings: &Settings, machine: &Machine) -> Option<String> {
    if settings.seen_by_drivers() != "sh_ring_dynamic" {
        return None;
    }
    let (looks, part) =
        (settings.read::<DynamicOptions>().dynamic_window, settings.read::<DynamicOptions>().dynamic_on_share);
    if settings.read::<DynamicOptions>().dynamic_off_share == 0.0 {
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
    about_nothing_to_share(settings)
        .or_else(|| about_gaps(settings))
        .or_else(|| about_little_traffic(settings, machine))
        .or_else(|| about_little_memory_traffic(settings, machine))
        .or_else(|| about_late_looks(settings, needed))
}

/// Dynamic shRing whose shared rings have one core each.
fn about_nothing_to_share(settings: &Settings) -> Option<String> {
    let said = match settings.queues() {
        _ if settings.read::<SharedRing>().sharing == 1 => {
            "sharing = 1: shared rings have one core each; set sharing to 2 or more"
        }
        1 => "each NIC has one queue, whose ring no other can share; use more cores",
        _ => return None,
    };
    Some(format!("dynamic shRing has nothing to share: {said}"))
}

/// Dynamic shRing to which any difference between cores is an overload.
fn about_gaps(settings: &Settings) -> Option<String> {
    (settings.read::<DynamicOptions>().dynamic_gap_ratio == 0.0).then(|| {
        "dynamic_gap_ratio = 0: rings stay private unless all cores receive equally often, to the last call, as any \
         difference counts as an overload; the paper has 32 (shRing, section 5.1.6)"
            .to_string()
    })
}

/// Dynamic shRing whose NICs never read and write as much memory as it takes to share.
fn about_little_memory_traffic(settings: &Settings, machine: &Machine) -> Option<String> {
    // A core that plays a NIC has no link.
    if settings.interface() == "emulated" {
        return None;
    }
    let needed = settings.read::<DynamicOptions>().dynamic_memory_gib_per_s;
    let link = machine.hardware.pcie.rate.as_bits_per_second() as f64;
    let gibibytes = link / 8.0 / f64::from(1 << 30);
    let most = 2.0 * settings.nics() as f64 * gibibytes;
    (most <= needed).then(|| {
        format!(
            "rings stay private: at most {most:.1} GiB/s fit the PCIe links of the NICs in use, both ways together, and \
             sharing needs more than dynamic_memory_gib_per_s = {needed}; set it to less (the paper has 25; shRing, \
             section 5.1.6)"
        )
    })
}

/// Dynamic shRing that cannot have looked `needed` times when the run ends.
fn about_late_looks(settings: &Settings, needed: f64) -> Option<String> {
    let first = needed * settings.read::<DynamicOptions>().dynamic_step_ms;
    let ends = settings.ends_ms();
    // Down, so that the run has not ended with it either.
    let most = (ends / needed * 1000.0).floor() / 1000.0;
    let remedy = match range("dynamic_step_ms") {
        Some((least, _)) if most < least => String::new(),
        _ => format!(", or set dynamic_step_ms to at most {most}"),
    };
    (first > ends).then(|| {
        format!(
            "rings stay private: the control core can share them after {needed} looks at the earliest, {} ms, \
             when the run has ended ({} ms); let the run last longer{remedy}",
            to_the_ns(first),
            ends
        )
    })
}

/// A batched list whose rings are so small that its descriptors take fewer packets.
pub fn about_small_batches(settings: &Settings) -> Option<String> {
    if settings.seen_by_drivers() != "sh_ring_batched_list" {
        return None;
    }
    let sharing = settings.read::<SharedRing>().sharing.min(settings.queues()) as u64;
    let (entries, asked) =
        (settings.read::<RxRing>().rx_entries as u64, settings.read::<BatchedListOptions>().list_batch as u64);
    let batch = batch(entries, sharing, asked);
    (batch < asked).then(|| {
        format!(
            "rx_entries = {entries} with {sharing} cores a ring: its descriptors take {batch} instead of {asked} packets \
             each, so that each core has two of them; {} entries have room for {asked}",
            (2 * sharing * asked).next_power_of_two()
        )
    })
}

/// Rings or queues that do not come out even over what they are divided between.
pub fn about_uneven_sets(settings: &Settings) -> Vec<String> {
    let written = settings.read::<RxBisectOptions>().associations.is_some()
        || settings.read::<RxBisectOptions>().ax_links.is_some();
    if settings.seen_by_drivers() != "rx_bisect" || written {
        return Vec::new();
    }
    let (queues, sets) = (settings.queues(), settings.read::<RxBisectOptions>().association_sets);
    let topology = topology(settings);
    let rings = topology.ax.len();
    let mut notes = Vec::new();
    let of_sets = topology.association_sets();
    let uneven = |counts: &[usize]| counts.iter().any(|count| *count != counts[0]);
    let by_set = [
        ("queues", of_sets.iter().map(|set| set.queues.len()).collect::<Vec<_>>()),
        ("Ax rings", of_sets.iter().map(|set| set.ax.len()).collect()),
    ];
    // One ring for each queue is as uneven as the queues, and need not be said again.
    if let Some((what, counts)) = by_set.iter().find(|(_, counts)| uneven(counts)) {
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        let all = if *what == "queues" { queues } else { rings };
        notes.push(format!(
            "{all} {what} of each NIC do not come out even over association_sets = {sets}: its sets have {}",
            counts.join(", ")
        ));
    }
    if rings > queues && !rings.is_multiple_of(queues) {
        let each = rings / queues;
        notes.push(format!(
            "ax_rings = {rings} do not come out even over {queues} queues of each NIC: some cores fill {} of them, the \
             others {each}",
            each + 1
        ));
    }
    notes
}

/// Dynamic shRing that never sees as much traffic as it takes to share.
fn about_little_traffic(settings: &Settings, machine: &Machine) -> Option<String> {
    let Line { rate, overhead } = line_of(&machine.hardware);
    let nics = settings.nics() as f64;
    let frame = settings.frame_bytes() as f64;
    // Before a target begins, frames are of another mean.
    let of_one_mean = settings.target_frame_bytes().is_none() || settings.read::<TargetTime>().target_begins_ms == 0.0;
    let known = settings.read::<Sizes>().packet_sizes == "fixed" && settings.makes_up_frames() && of_one_mean;
    // What Ethernet adds to frames is known where their mean is; elsewhere it counts for nothing.
    let frames = match known {
        true => frame / (frame + overhead.0 as f64),
        false => 1.0,
    };
    let wires = nics * rate.as_bits_per_second() as f64 / 1e9 * frames;
    // Other traffic is offered by its mean only, or as answers come.
    let even = ["constant", "poisson"].contains(&settings.read::<Arrivals>().arrival.as_str());
    let offered = settings.read::<Rate>().offered_gbps;
    let (most, whose, remedy) = match even && offered <= wires {
        true => (offered, "are offered", "offer more"),
        false => (wires, "fit the wires of the NICs in use", "use more NICs"),
    };
    let needed = settings.read::<DynamicOptions>().dynamic_gbps;
    (most <= needed).then(|| {
        format!(
            "rings stay private: at most {most:.1} Gbit/s {whose}, and sharing needs more than dynamic_gbps = {needed}; \
             {remedy}, or set dynamic_gbps to less"
        )
    })
}
