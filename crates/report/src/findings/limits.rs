//! What one point has used up, and what it has left.

use nicforge_record::{Metrics, PointRecord, Record};

use super::differences::{is_held, main_drop};
use super::{SAME, whole};
use crate::number::{bytes, number, percent};

/// Share of time or bandwidth from which on a resource counts as used up.
const USED_UP: f64 = 0.9;
/// Share of its time from which on a core that plays a NIC is named.
const SATURATED: f64 = 0.95;

/// Sentences on one point: its wires, rings, cores, links and caches.
pub fn limits(record: &Record, point: &PointRecord) -> Vec<String> {
    let (metrics, name) = (&point.metrics, &point.variant);
    let mut sentences = Vec::new();
    let on_wire = wire_is_full(point);
    if on_wire {
        sentences.push(format!(
            "The wire is the limit: {} Gbit/s of frames fill it, with what Ethernet adds to each.",
            number(metrics.throughput_gbps)
        ));
    }
    sentences.extend(emulator(point).map(|busy| format!("In {name} {busy}.")));
    sentences.extend(held(point));
    if let (Some(idle), Some(cycles)) = (metrics.idle_fraction, &metrics.cycles_per_packet) {
        let stalled = if cycles.total > 0.0 { cycles.stall / cycles.total } else { 0.0 };
        let each =
            format!("{} cycles per packet, {} of them waiting for memory", whole(cycles.total), percent(stalled));
        let busy = percent(1.0 - idle);
        sentences.push(if idle >= 1.0 - USED_UP {
            let idle = percent(idle);
            format!("The cores of {name} idle {idle} of the time and spend {each}.")
        } else if on_wire || keeps_up(metrics) {
            format!("The cores of {name} just keep up: they are busy {busy} of the time and spend {each}.")
        } else {
            format!("The cores of {name} are the limit: they are busy {busy} of the time and spend {each}.")
        });
    }
    sentences.extend(links(point, on_wire));
    sentences.extend(working_set(record, metrics));
    sentences
}

/// Whether what was sent fills the wires.
pub fn wire_is_full(point: &PointRecord) -> bool {
    let used = point.facts.wire_used(&point.metrics);
    used.is_some_and(|used| used > 1.0 - SAME)
}

/// Whether all that is offered is sent, where the rate was not sought.
fn keeps_up(metrics: &Metrics) -> bool {
    metrics.no_drop_gbps.is_none() && metrics.drop_fraction <= 0.0
}

/// That cores that play NICs have no time left: one that is always busy still has, as long as its bursts can grow.
fn emulator(point: &PointRecord) -> Option<String> {
    let metrics = &point.metrics;
    let busy = metrics.emulator_busy_fraction;
    let busy = busy.filter(|busy| *busy > SATURATED)?;
    let burst = metrics.emulator_burst_frames?;
    let most = point.facts.emulator_burst_max?;
    (burst >= most as f64 / 2.0).then(|| {
        format!(
            "the core that plays the NIC is busy {} of the time, with {} of at most {most} frames in a turn",
            percent(busy),
            number(burst)
        )
    })
}

/// That one core's packets keep the others' from a shared ring, where that shows.
pub fn held(point: &PointRecord) -> Option<String> {
    let (metrics, name) = (&point.metrics, &point.variant);
    let sharing = point.facts.cores_per_ring.filter(|cores| *cores > 1)?;
    let (full, idle) = (metrics.rx_occupancy?, metrics.idle_fraction?);
    is_held(metrics).then(|| {
        format!(
            "{sharing} cores of {name} share a ring, and arriving frames find it {} full although cores idle {} of \
             the time: packets for a core that is behind hold the entries that the others wait for.",
            percent(full),
            percent(idle)
        )
    })
}

/// Links and memory that are nearly used up.
fn links(point: &PointRecord, on_wire: bool) -> Vec<String> {
    let is = if on_wire { "is close to one" } else { "is a limit" };
    used_up(point).map(|(name, used)| format!("{name} {is}: {} of its bandwidth is used.", percent(used))).collect()
}

fn used_up(point: &PointRecord) -> impl Iterator<Item = (&'static str, f64)> {
    let metrics = &point.metrics;
    let all = [
        ("PCIe towards the host", metrics.pcie_out_utilisation),
        ("PCIe towards the NIC", metrics.pcie_in_utilisation),
        ("DRAM", point.facts.dram_used(metrics)),
    ];
    all.into_iter().filter_map(|(name, used)| Some((name, used.filter(|used| *used > USED_UP)?)))
}

/// What keeps a point from sending more, in clauses; none where nothing is used up and none dropped.
pub fn holds(point: &PointRecord) -> Vec<String> {
    let metrics = &point.metrics;
    if wire_is_full(point) {
        return vec!["the wire is full".into()];
    }
    // TCP and clients that wait for answers offer no more than comes through.
    let waits = metrics.bandwidth_gbps.is_some() || metrics.requests_timed_out.is_some();
    if !waits && keeps_up(metrics) {
        return vec!["nothing that is offered is dropped".into()];
    }
    let mut found: Vec<String> = emulator(point).into_iter().collect();
    if let Some(full) = metrics.tx_occupancy.filter(|full| *full > USED_UP) {
        let dropped = metrics.drops.get("tx_ring_full").filter(|count| **count > 0);
        let dropped = dropped.map_or(String::new(), |count| {
            format!(", and {} frames are dropped as tx_ring_full", number(*count as f64))
        });
        found.push(format!("transmit rings are {} full{dropped}", percent(full)));
    }
    let idle = metrics.cpu_time.as_ref().map(|time| time.idle);
    if let Some(idle) = metrics.idle_fraction.or(idle).filter(|idle| *idle < 1.0 - USED_UP) {
        found.push(format!("cores are busy {} of the time", percent(1.0 - idle)));
    }
    found.extend(used_up(point).map(|(name, used)| format!("{name} is {} used", percent(used))));
    if found.is_empty() && metrics.drop_fraction > SAME {
        let dropped = percent(metrics.drop_fraction);
        found.push(format!("{dropped} of the frames are dropped{}", main_drop(metrics)));
    }
    found
}

/// How the bytes that DMA touches compare with where they can be cached; nothing where it touches none.
fn working_set(record: &Record, metrics: &Metrics) -> Option<String> {
    let set = metrics.io_working_set_bytes.filter(|bytes| *bytes > 0)?;
    let ways = record.io_way_bytes?;
    let shown = |value: u64| bytes(value as f64);
    Some(match record.llc_bytes {
        _ if set <= ways => format!("DMA touches {}, which fits in the {} of I/O ways.", shown(set), shown(ways)),
        Some(llc) if set > llc => {
            format!("DMA touches {}, more than the whole LLC of {}.", shown(set), shown(llc))
        }
        _ => format!("DMA touches {}, more than the {} of I/O ways.", shown(set), shown(ways)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn where_dma_touches_nothing_nothing_is_said_of_its_caches() {
        let mut record = fake::single();
        let said = |record: &Record| limits(record, &record.points[0]).join(" ");
        assert!(said(&record).contains("DMA touches"));
        record.points[0].metrics.io_working_set_bytes = Some(0);
        assert!(!said(&record).contains("DMA touches"));
    }

    #[test]
    fn whoever_waits_for_answers_is_held_by_more_than_what_is_offered() {
        let mut point = fake::point("priv_ring", &[], 1.0);
        (point.metrics.drop_fraction, point.metrics.idle_fraction) = (0.0, Some(0.02));
        assert_eq!(holds(&point), ["nothing that is offered is dropped"]);
        point.metrics.bandwidth_gbps = Some(9.4);
        assert_eq!(holds(&point), ["cores are busy 98 % of the time"]);
    }

    #[test]
    fn a_core_that_plays_the_nic_is_named_where_it_has_no_time_left() {
        let mut record = fake::single();
        record.points[0].facts.emulator_burst_max = Some(32);
        let said = |record: &Record| limits(record, &record.points[0]).join(" ");
        let busy = "the core that plays the NIC is busy 99 % of the time, with 30.5 of at most 32 frames in a turn";
        for (share, burst, named) in [
            (None, None, false),
            (Some(0.95), Some(30.5), false),
            // It could take more in each turn.
            (Some(0.99), Some(4.7), false),
            (Some(0.99), Some(30.5), true),
        ] {
            let metrics = &mut record.points[0].metrics;
            (metrics.emulator_busy_fraction, metrics.emulator_burst_frames) = (share, burst);
            metrics.drop_fraction = 0.2;
            assert_eq!(said(&record).contains(busy), named, "{share:?}");
            let first = holds(&record.points[0]).first() == Some(&busy.to_owned());
            assert_eq!(first, named, "{share:?}");
        }
    }
}
