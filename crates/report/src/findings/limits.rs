//! The resources of one point: which are used up, and which are left.

use nicforge_record::{Metrics, PointRecord, Record};

use super::differences::{main_drop, stalls_others};
use super::{SAME, whole};
use crate::number::{bytes, number, percent};

/// Share of time or bandwidth from which on a resource counts as used up.
const USED_UP: f64 = 0.9;
/// Share of its time from which on an emulating core counts as saturated.
const SATURATED: f64 = 0.95;

/// A sentence on one resource of a point, where there is something to say.
type Rule = fn(&Record, &PointRecord) -> Option<String>;

/// In the order in which the sentences stand.
const RULES: [Rule; 8] = [
    |_, point| wire(point),
    |_, point| emulating_core(point).map(|busy| format!("In {} {busy}.", point.variant)),
    |_, point| shared_ring(point),
    |_, point| cores(point),
    |_, point| bandwidth(point, &BANDWIDTHS[0]),
    |_, point| bandwidth(point, &BANDWIDTHS[1]),
    |_, point| bandwidth(point, &BANDWIDTHS[2]),
    working_set,
];

/// Sentences on one point: its wires, rings, cores, links and caches.
pub fn limits(record: &Record, point: &PointRecord) -> Vec<String> {
    RULES.iter().filter_map(|rule| rule(record, point)).collect()
}

fn wire(point: &PointRecord) -> Option<String> {
    let sent = number(point.metrics.throughput_gbps);
    wire_is_full(point).then(|| format!("The wire is the limit: {sent} Gbit/s of frames and their overhead fill it."))
}

fn cores(point: &PointRecord) -> Option<String> {
    let (metrics, name) = (&point.metrics, &point.variant);
    let (idle, cycles) = (metrics.idle_fraction?, metrics.cycles_per_packet.as_ref()?);
    let stalled = if cycles.total > 0.0 { cycles.stall / cycles.total } else { 0.0 };
    let each = format!("{} cycles per packet, {} of them stalled on memory", whole(cycles.total), percent(stalled));
    let busy = percent(1.0 - idle);
    Some(if idle >= 1.0 - USED_UP {
        format!("The cores of {name} idle {} of the time and spend {each}.", percent(idle))
    } else if wire_is_full(point) || keeps_up(metrics) {
        format!("The cores of {name} just keep up: they are busy {busy} of the time and spend {each}.")
    } else {
        format!("The cores of {name} are the limit: they are busy {busy} of the time and spend {each}.")
    })
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

/// An emulating core that has no time left. One that is always busy still has, as long as its bursts can grow.
fn emulating_core(point: &PointRecord) -> Option<String> {
    let metrics = &point.metrics;
    let busy = metrics.emulator_busy_fraction.filter(|busy| *busy > SATURATED)?;
    let burst = metrics.emulator_burst_frames?;
    let most = point.facts.emulator_burst_max?;
    (burst >= most as f64 / 2.0).then(|| {
        format!(
            "the emulating core is saturated: busy {} of the time, {} of at most {most} frames per turn",
            percent(busy),
            number(burst)
        )
    })
}

/// A shared ring in which one core's packets hold up the others'.
pub fn shared_ring(point: &PointRecord) -> Option<String> {
    let (metrics, name) = (&point.metrics, &point.variant);
    let sharing = point.facts.cores_per_ring.filter(|cores| *cores > 1)?;
    let (full, idle) = (metrics.rx_occupancy?, metrics.idle_fraction?);
    stalls_others(metrics).then(|| {
        format!(
            "{sharing} cores of {name} share a ring, and arriving frames find it {} full although cores idle {} of \
             the time: packets for a core that is behind occupy the entries that the others need.",
            percent(full),
            percent(idle)
        )
    })
}

/// A bandwidth that a point may use up.
struct Bandwidth {
    name: &'static str,
    /// Its share in use.
    used: fn(&PointRecord) -> Option<f64>,
}

const BANDWIDTHS: [Bandwidth; 3] = [
    Bandwidth { name: "PCIe towards the host", used: |point| point.metrics.pcie_out_utilisation },
    Bandwidth { name: "PCIe towards the NIC", used: |point| point.metrics.pcie_in_utilisation },
    Bandwidth { name: "DRAM", used: |point| point.facts.dram_used(&point.metrics) },
];

impl Bandwidth {
    fn used_up(&self, point: &PointRecord) -> Option<f64> {
        (self.used)(point).filter(|used| *used > USED_UP)
    }
}

fn bandwidth(point: &PointRecord, of: &Bandwidth) -> Option<String> {
    let used = percent(of.used_up(point)?);
    let is = if wire_is_full(point) { "is close to a limit" } else { "is a limit" };
    Some(format!("{} {is}: {used} of its bandwidth is used.", of.name))
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
        return vec!["no offered frame is dropped".into()];
    }
    let mut found: Vec<String> = emulating_core(point).into_iter().collect();
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
    let used = BANDWIDTHS.iter().filter_map(|of| Some((of.name, of.used_up(point)?)));
    found.extend(used.map(|(name, used)| format!("{name} is {} used", percent(used))));
    if found.is_empty() && metrics.drop_fraction > SAME {
        let dropped = percent(metrics.drop_fraction);
        found.push(format!("{dropped} of the frames are dropped{}", main_drop(metrics)));
    }
    found
}

/// How the bytes that DMA touches compare with where they can be cached; nothing where it touches none.
fn working_set(record: &Record, point: &PointRecord) -> Option<String> {
    let set = point.metrics.io_working_set_bytes.filter(|bytes| *bytes > 0)?;
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
    fn a_working_set_of_nothing_is_not_compared_with_caches() {
        let mut record = fake::single();
        assert!(working_set(&record, &record.points[0]).unwrap().contains("24 MiB"));
        record.points[0].metrics.io_working_set_bytes = Some(0);
        assert_eq!(working_set(&record, &record.points[0]), None);
    }

    #[test]
    fn a_closed_loop_is_bounded_by_more_than_the_offered_rate() {
        let mut point = fake::point("priv_ring", &[], 1.0);
        (point.metrics.drop_fraction, point.metrics.idle_fraction) = (0.0, Some(0.02));
        assert!(holds(&point)[0].contains("no offered frame is dropped"));
        point.metrics.bandwidth_gbps = Some(9.4);
        assert!(holds(&point)[0].contains("busy 98 %"));
    }

    #[test]
    fn an_emulating_core_is_named_where_it_has_no_time_left() {
        let mut record = fake::single();
        record.points[0].facts.emulator_burst_max = Some(32);
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
            let point = &record.points[0];
            let busy = emulating_core(point);
            assert_eq!(busy.is_some(), named, "{share:?}");
            assert_eq!(busy.is_some(), holds(point).first() == busy.as_ref(), "{share:?}");
        }
    }

    #[test]
    fn each_bandwidth_has_a_rule() {
        let mut record = fake::single();
        record.points[0].facts.dram_gb_per_s = Some(40.0);
        let metrics = &mut record.points[0].metrics;
        (metrics.pcie_out_utilisation, metrics.pcie_in_utilisation) = (Some(0.95), Some(0.96));
        metrics.memory_gb_per_s = Some(39.0);
        let said = limits(&record, &record.points[0]).join(" ");
        for of in &BANDWIDTHS {
            assert!(said.contains(of.name), "{}: {said}", of.name);
        }
    }
}
