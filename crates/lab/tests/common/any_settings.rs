//! Settings of one server as random as they can be, of runs that are short.

use nicforge_interfaces::emulated::EMULATED;
use nicforge_lab::settings::{RingGroups, Settings};
use proptest::prelude::*;

use super::machine::small;

/// Any interface, application, machine share, rings and traffic.
pub fn any_settings() -> impl Strategy<Value = Settings> {
    server().prop_flat_map(rings).prop_flat_map(target).prop_flat_map(traffic)
}

/// Interface, application, cores over NICs, ring sizes, burst.
fn server() -> impl Strategy<Value = Settings> {
    (
        prop::sample::select(nicforge_interfaces::Interfaces::shipped().names()),
        prop::sample::select(nicforge_apps::Apps::shipped().names()),
        (1..=4usize, 1..=2usize),
        (1..=9u32, 3..=9u32),
        1..=32usize,
        0..=4usize,
        0..=1usize,
        prop::sample::select(vec!["ring", "stack"]),
    )
        .prop_map(|(interface, app, (share, nics), (rx, tx), burst, io_ways, stream_cores, order)| Settings {
            interface: interface.to_owned(),
            app: app.to_owned(),
            cores: share * nics,
            nics,
            rx_entries: 1 << rx,
            tx_entries: 1 << tx,
            burst,
            io_ways,
            stream_cores,
            pool_order: order.to_owned(),
            ..small()
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
        match named.is_empty() {
            true => "0".to_owned(),
            false => named.join(" "),
        }
    };
    // The first has all that no other has.
    let others = masks[1..].iter().fold(0, |all, mask| all | mask);
    let groups: Vec<String> = std::iter::once(&!others).chain(&masks[1..]).map(group).collect();
    groups.join(",")
}

/// Rings that are shared or divided, and how.
fn rings(settings: Settings) -> impl Strategy<Value = Settings> {
    let queues = settings.cores / settings.nics;
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
        prop::sample::select(EMULATED.to_vec()),
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
            )| Settings {
                ax_entries: 1 << ax,
                bx_entries: 1 << bx,
                ax_rings,
                // Sets with as many rings as queues: one without a ring is refused.
                association_sets: match ax_rings.is_multiple_of(queues) && written.is_none() {
                    true => sets,
                    false => 1,
                },
                associations: written.and_then(|masks| {
                    let rings = if ax_rings == 0 { queues } else { ax_rings };
                    RingGroups::parse(&groups(&masks, rings))
                }),
                ax_choice: choice.to_owned(),
                ax_own: own.to_owned(),
                consumption: consumption.to_owned(),
                consumption_timeout_us: timeout,
                sharing,
                list_batch: 1 << batch,
                emulates: inner.to_owned(),
                emulator_socket: socket.to_owned(),
                ..settings.clone()
            },
        )
}

/// One core of each NIC is slower than the others, or stops for the rest of the run with its first
/// packet in hand.
fn target(settings: Settings) -> impl Strategy<Value = Settings> {
    let accesses = prop::sample::select(vec![0, 30, 10_000]);
    accesses.prop_map(move |target_accesses| match settings.app.as_str() {
        "synthetic" => Settings { target_accesses, ..settings.clone() },
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
        .prop_map(move |(arrival, rate, (sizes, bytes), choice, flows, batch, polling)| Settings {
            arrival: arrival.to_owned(),
            offered_gbps: rate,
            packet_sizes: sizes.to_owned(),
            packet_bytes: bytes,
            flow_choice: choice.to_owned(),
            flows: flows.0,
            preload_flows: flows.1,
            table_entries: flows.2,
            burst_packets: batch.0,
            in_flight: batch.1,
            request_timeout_us: batch.2,
            polling_starts_ms: polling,
            ..settings.clone()
        })
}
