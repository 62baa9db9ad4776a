//! What sets two points apart, and what limits one.

use crate::metrics::{CyclesPerPacket, Metrics};
use crate::report::number::{bytes, number, percent};
use crate::report::{PointResult, Report};

/// Share of time or bandwidth from which on a resource counts as used up.
const USED_UP: f64 = 0.9;
/// Difference between two shares that is worth a word.
const SHARES_DIFFER: f64 = 0.05;
/// Ratio between two amounts that is worth a word.
const AMOUNTS_DIFFER: f64 = 1.1;
/// A difference: how telling it is, and in words.
type Difference = Option<(f64, String)>;

/// Ways in which `a` differs from `b`, causes before effects and the most telling first.
///
/// `most_causes` and `most_effects` bound how many of each are named.
pub fn differences(
    a: &Metrics,
    b: &Metrics,
    most_causes: usize,
    most_effects: usize,
) -> Vec<String> {
    let most = |differences: Vec<Difference>, count: usize| {
        let mut found: Vec<(f64, String)> = differences.into_iter().flatten().collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().take(count).map(|(_, text)| text)
    };
    most(causes(a, b), most_causes)
        .chain(most(effects(a, b), most_effects))
        .collect()
}

/// What a design does to caches, memory and the cores' time.
fn causes(a: &Metrics, b: &Metrics) -> Vec<Difference> {
    let part = |get: fn(&CyclesPerPacket) -> f64| {
        (
            a.cycles_per_packet.as_ref().map(get),
            b.cycles_per_packet.as_ref().map(get),
        )
    };
    vec![
        share((a.ddio_hit_rate, b.ddio_hit_rate), |a, b| {
            format!("software finds {a} of the received lines still in the cache, against {b}")
        }),
        share((a.io_read_hit_rate, b.io_read_hit_rate), |a, b| {
            format!("the NIC finds {a} of what it reads in the cache, against {b}")
        }),
        share((a.app_hit_rate, b.app_hit_rate), |a, b| {
            format!("{a} of the application's own look-ups hit the cache, against {b}")
        }),
        amount(
            (memory_per_packet(a), memory_per_packet(b)),
            64.0,
            |a, b| {
                format!(
                    "a packet costs {} of DRAM traffic, against {}",
                    bytes(a),
                    bytes(b)
                )
            },
        ),
        amount(part(|c| c.stall), 20.0, |a, b| {
            format!(
                "cores wait {} cycles per packet for memory, against {}",
                whole(a),
                whole(b)
            )
        }),
        amount(part(|c| c.sync), 20.0, |a, b| {
            format!(
                "locks and atomics take {} cycles per packet, against {}",
                whole(a),
                whole(b)
            )
        }),
        amount(part(|c| c.alloc), 20.0, |a, b| {
            format!(
                "buffer allocation takes {} cycles per packet, against {}",
                whole(a),
                whole(b)
            )
        }),
    ]
}

/// What follows for queues, links and packets.
fn effects(a: &Metrics, b: &Metrics) -> Vec<Difference> {
    let p99 = |metrics: &Metrics| metrics.latency_us.as_ref().map(|latency| latency.p99);
    let dropped = share((Some(a.drop_fraction), Some(b.drop_fraction)), |a, b| {
        format!("{a} of the frames are dropped, against {b}")
    });
    let more = if a.drop_fraction > b.drop_fraction {
        a
    } else {
        b
    };
    vec![
        share((a.rx_occupancy, b.rx_occupancy), |a, b| {
            format!("receive rings are {a} full, against {b}")
        }),
        share((a.idle_fraction, b.idle_fraction), |a, b| {
            format!("cores idle {a} of the time, against {b}")
        }),
        share((a.pcie_out_utilisation, b.pcie_out_utilisation), |a, b| {
            format!("{a} of the PCIe bandwidth towards the host is used, against {b}")
        }),
        share((a.pcie_in_utilisation, b.pcie_in_utilisation), |a, b| {
            format!("{a} of the PCIe bandwidth towards the NIC is used, against {b}")
        }),
        dropped.map(|(weight, text)| (weight, text + &main_drop(more))),
        amount((p99(a), p99(b)), 1.0, |a, b| {
            format!(
                "99 % of packets are through in {} µs, against {}",
                number(a),
                number(b)
            )
        }),
    ]
}

fn share(pair: (Option<f64>, Option<f64>), text: fn(&str, &str) -> String) -> Difference {
    let (a, b) = (pair.0?, pair.1?);
    let telling = (a - b).abs();
    (telling > SHARES_DIFFER).then(|| (telling, text(&percent(a), &percent(b))))
}

/// `least` is an amount that does not matter, so that nothing is many times nothing.
fn amount(
    pair: (Option<f64>, Option<f64>),
    least: f64,
    text: fn(f64, f64) -> String,
) -> Difference {
    let (a, b) = (pair.0?, pair.1?);
    let ratio = a.max(b) / a.min(b).max(least);
    // A factor of two weighs as much as a difference of a third between shares.
    (ratio > AMOUNTS_DIFFER).then(|| ((ratio.log2() / 3.0).min(1.0), text(a, b)))
}

fn whole(value: f64) -> String {
    number(value.round())
}

/// Sentences on what one point has used up.
pub fn limits(report: &Report, point: &PointResult) -> Vec<String> {
    let (metrics, name) = (&point.metrics, &point.variant);
    let mut sentences = Vec::new();
    if let (Some(idle), Some(cycles)) = (metrics.idle_fraction, &metrics.cycles_per_packet) {
        let stalled = if cycles.total > 0.0 {
            cycles.stall / cycles.total
        } else {
            0.0
        };
        let each = format!(
            "{} cycles per packet, {} of them waiting for memory",
            whole(cycles.total),
            percent(stalled)
        );
        sentences.push(if idle < 1.0 - USED_UP {
            format!(
                "The cores of {name} are the limit: they are busy {} of the time and spend {each}.",
                percent(1.0 - idle)
            )
        } else {
            format!(
                "The cores of {name} have room: they idle {} of the time and spend {each}.",
                percent(idle)
            )
        });
    }
    let links = [
        ("towards the host", metrics.pcie_out_utilisation),
        ("towards the NIC", metrics.pcie_in_utilisation),
    ];
    for (direction, used) in links {
        if let Some(used) = used.filter(|used| *used > USED_UP) {
            sentences.push(format!(
                "PCIe {direction} is a limit: {} of its bandwidth is used.",
                percent(used)
            ));
        }
    }
    sentences.extend(working_set(report, metrics));
    sentences
}

/// How the bytes that DMA touches compare with where they can be cached.
fn working_set(report: &Report, metrics: &Metrics) -> Option<String> {
    let set = metrics.io_working_set_bytes?;
    let ways = report.io_way_bytes?;
    let shown = |value: u64| bytes(value as f64);
    Some(match report.llc_bytes {
        _ if set <= ways => format!(
            "DMA touches {}, which fits in the {} of I/O ways.",
            shown(set),
            shown(ways)
        ),
        Some(llc) if set > llc => {
            format!(
                "DMA touches {}, more than the whole LLC of {}.",
                shown(set),
                shown(llc)
            )
        }
        _ => format!(
            "DMA touches {}, more than the {} of I/O ways.",
            shown(set),
            shown(ways)
        ),
    })
}

/// The cause of most drops, as the end of a sentence.
pub fn main_drop(metrics: &Metrics) -> String {
    let most = metrics
        .drops
        .iter()
        .max_by_key(|(_, count)| **count)
        .filter(|(_, count)| **count > 0);
    most.map_or(String::new(), |(cause, _)| format!(", mostly as {cause}"))
}

/// DRAM bytes per delivered packet.
fn memory_per_packet(metrics: &Metrics) -> Option<f64> {
    let packets = metrics.throughput_mpps * 1e6;
    metrics
        .memory_gb_per_s
        .filter(|_| packets > 0.0)
        .map(|gb| gb * 1e9 / packets)
}
