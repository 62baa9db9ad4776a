//! Settings of one server as random as they can be, of runs that are short.

use nicforge_interfaces::emulated::played_by_cores;
use nicforge_lab::settings::Settings;
use proptest::prelude::*;

use super::machine::small;

/// Any interface, application, machine share, rings and traffic.
pub fn any_settings() -> impl Strategy<Value = Settings> {
    server().prop_flat_map(rings).prop_flat_map(target).prop_flat_map(traffic)
}

/// Interface, application, cores over NICs, ring sizes, burst.
fn server() -> impl Strategy<Value = Settings> {
    (
        prop::sample::select(nicforge_interfaces::Interfaces::shipped().of_rings()),
        prop::sample::select(nicforge_apps::Apps::shipped().names()),
        (1..=4usize, 1..=2usize),
        (1..=9u32, 3..=9u32),
        1..=32usize,
        0..=4usize,
        0..=1usize,
        (
            prop::sample::select(vec!["ring", "stack"]),
            prop::sample::select(vec![None, Some(1.0), Some(1.5), Some(4.0)]),
        ),
    )
        .prop_map(|(interface, app, (share, nics), (rx, tx), burst, io_ways, stream_cores, (order, per_entry))| {
            let small = per_entry.into_iter().fold(small(), |small, buffers| small.with("pool_per_entry", buffers));
            small
                .with("interface", interface)
                .with("app", app)
                .with("cores", share * nics)
                .with("nics", nics)
                .with("rx_entries", 1 << rx)
                .with("tx_entries", 1 << tx)
                .with("burst", burst)
                .with("io_ways", io_ways)
                .with("stream_cores", stream_cores)
                .with("pool_order", order)
        })
}

/// Which rings each queue is associated with, a bit for each, if that is said.
fn written(queues: usize) -> impl Strategy<Value = Option<Vec<u32>>> {
    prop::option::of(prop::collection::vec(any::<u32>(), queues))
}

/// The rings below `rings` that `masks` name, at least one for each.
fn groups(masks: &[u32], rings: usize) -> String {
    let group = |mask: &u32| {
        let named = (0..rings).filter(|ring| mask >> ring & 1 == 1);
        let named: Vec<String> = named.map(|ring| ring.to_string()).collect();
        if named.is_empty() { "0".to_owned() } else { named.join(" ") }
    };
    // The first has all that no other has.
    let others = masks[1..].iter().fold(0, |all, mask| all | mask);
    let groups: Vec<String> = std::iter::once(&!others).chain(&masks[1..]).map(group).collect();
    groups.join(",")
}

/// Rings that are shared or divided, and how.
fn rings(settings: Settings) -> impl Strategy<Value = Settings> {
    let queues = settings.queues();
    (
        (1..=9u32, 1..=9u32),
        (0..=6usize, 1..=queues, written(queues)),
        (
            prop::sample::select(vec!["random", "round_robin", "fullest"]),
            prop::sample::select(vec!["at_hand", "first"]),
        ),
        prop::sample::select(vec!["parallel", "batched"]),
        0.1..20.0f64,
        (1..=8usize, 1..=2u32),
        prop::sample::select(played_by_cores()),
        prop::sample::select(vec!["same", "other"]),
    )
        .prop_map(
            move |(
                (ax, bx),
                (ax_rings, sets, written),
                (choice, own),
                consumption,
                timeout,
                (sharing, batch),
                inner,
                socket,
            )| {
                let sets = if ax_rings.is_multiple_of(queues) && written.is_none() { sets } else { 1 };
                let rings = if ax_rings == 0 { queues } else { ax_rings };
                let associations = written.map(|masks| groups(&masks, rings));
                let settings = associations
                    .into_iter()
                    .fold(settings.clone(), |settings, groups| settings.with("associations", groups));
                settings
                    .with("ax_entries", 1 << ax)
                    .with("bx_entries", 1 << bx)
                    .with("ax_rings", ax_rings)
                    // Sets with as many rings as queues: one without a ring is refused.
                    .with("association_sets", sets)
                    .with("ax_choice", choice)
                    .with("ax_own", own)
                    .with("consumption", consumption)
                    .with("consumption_timeout_us", timeout)
                    .with("sharing", sharing)
                    .with("list_batch", 1 << batch)
                    .with("emulates", inner)
                    .with("emulator_socket", socket)
            },
        )
}

/// One core of each NIC is slower than the others, or stops for the rest of the run with its first
/// packet in hand.
fn target(settings: Settings) -> impl Strategy<Value = Settings> {
    let accesses = prop::sample::select(vec![0, 30, 10_000]);
    accesses.prop_map(move |target_accesses| match settings.app().as_str() {
        "synthetic" => settings.clone().with("target_accesses", target_accesses),
        _ => settings.clone(),
    })
}

/// Arrivals, rate, sizes, flows, when cores begin to poll.
fn traffic(settings: Settings) -> impl Strategy<Value = Settings> {
    (
        prop::sample::select(vec!["constant", "poisson", "bursts", "ping_pong"]),
        1.0..260.0f64,
        (prop::sample::select(vec!["fixed", "imix", "bimodal"]), 60..=9216u32),
        prop::sample::select(vec!["uniform", "zipf", "single", "round_robin"]),
        (1..=2000u64, any::<bool>(), 16..=4096u64),
        (1..=200u32, 1..=300u32, 5.0..200.0f64),
        prop::sample::select(vec![0.0, 0.01]),
    )
        .prop_map(move |(arrival, rate, (sizes, bytes), choice, flows, batch, polling)| {
            settings
                .clone()
                .with("arrival", arrival)
                .with("offered_gbps", rate)
                .with("packet_sizes", sizes)
                .with("packet_bytes", bytes)
                .with("flow_choice", choice)
                .with("flows", flows.0)
                .with("preload_flows", flows.1)
                .with("table_entries", flows.2)
                .with("burst_packets", batch.0)
                .with("in_flight", batch.1)
                .with("request_timeout_us", batch.2)
                .with("polling_starts_ms", polling)
        })
}
