//! The limits that a point's metrics meet: lines in plots, marks in the picture of the cause.

use nicforge_record::{PointRecord, Record};
use serde_json::Value;

/// A value that a metric cannot pass, or that it passes at a price.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Its name, to stand beside its mark.
    pub name: &'static str,
    /// In the unit in which the metric is stored.
    pub value: f64,
}

/// The limits of the metric `key` at `point`, lowest first; none where they are not known.
pub fn limits(key: &str, record: &Record, point: &PointRecord) -> Vec<Limit> {
    let found = match key {
        "io_working_set_bytes" => vec![("I/O ways", io_way_bytes(record, point)), ("LLC", llc_bytes(record, point))],
        "throughput_gbps" | "no_drop_gbps" => vec![("offered", offered_gbps(point)), ("link", link_gbps(point))],
        "memory_gb_per_s" => vec![("DRAM", point.facts.dram_gb_per_s)],
        "cycles_per_packet.total" => vec![("cycle budget", cycle_budget(record, point))],
        "pcie_out_utilisation" | "pcie_in_utilisation" => vec![("link", Some(1.0))],
        "rx_occupancy" | "tx_occupancy" => vec![("full", Some(1.0))],
        _ => Vec::new(),
    };
    let known = found.into_iter().filter_map(|(name, value)| Some(Limit { name, value: value.filter(|v| *v > 0.0)? }));
    let mut limits: Vec<Limit> = known.collect();
    limits.sort_by(|a, b| a.value.total_cmp(&b.value));
    limits
}

/// Capacity of the ways that DMA may allocate into. Where points differ in it, the number of ways tells.
fn io_way_bytes(record: &Record, point: &PointRecord) -> Option<f64> {
    if let Some(bytes) = record.io_way_bytes {
        return Some(bytes as f64);
    }
    let ways = setting(record, point, "io_ways")?;
    Some(ways / machine(record, "llc.ways")? * llc_bytes(record, point)?)
}

fn llc_bytes(record: &Record, point: &PointRecord) -> Option<f64> {
    let own = || Some(setting(record, point, "cache_mib")? * f64::from(1 << 20));
    record.llc_bytes.map(|bytes| bytes as f64).or_else(own)
}

/// What arrived, where clients do not wait for answers and no rate was sought.
fn offered_gbps(point: &PointRecord) -> Option<f64> {
    is_open_loop(point).then_some(point.metrics.offered_gbps)
}

/// Frame bytes that the wires carry, of frames of the mean length.
fn link_gbps(point: &PointRecord) -> Option<f64> {
    let used = point.facts.wire_used(&point.metrics).filter(|used| *used > 0.0)?;
    Some(point.metrics.throughput_gbps / used)
}

/// Cycles that all cores together have for an arriving packet.
pub fn cycle_budget(record: &Record, point: &PointRecord) -> Option<f64> {
    let cores = match point.cores.len() {
        0 => setting(record, point, "cores")?,
        count => count as f64,
    };
    let mpps = Some(point.metrics.offered_mpps).filter(|mpps| *mpps > 0.0 && is_open_loop(point))?;
    Some(cores * machine(record, "core.frequency_ghz")? * 1e3 / mpps)
}

fn is_open_loop(point: &PointRecord) -> bool {
    let metrics = &point.metrics;
    metrics.no_drop_gbps.is_none()
        && metrics.requests_timed_out.is_none()
        && metrics.bandwidth_gbps.is_none()
        && metrics.rpc_mps.is_none()
        && metrics.tuples_mps.is_none()
}

/// A number that the point is set to.
fn setting(record: &Record, point: &PointRecord, key: &str) -> Option<f64> {
    let of_settings = || {
        let mut all = point.settings.iter().chain(&record.settings);
        all.find(|setting| setting.key == key).map(|setting| &setting.value)
    };
    point.params.get(key).or_else(of_settings).and_then(Value::as_f64)
}

/// A number of the machine.
fn machine(record: &Record, key: &str) -> Option<f64> {
    record.machine_parameters.iter().find(|row| row.key == key).map(|row| row.value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    fn named(key: &str, record: &Record) -> Vec<(&'static str, f64)> {
        limits(key, record, &record.points[0]).into_iter().map(|limit| (limit.name, limit.value)).collect()
    }

    #[test]
    fn limits_follow_from_machine_facts_and_load() {
        let mut record = fake::ties();
        record.points[0].params.insert("cores".into(), json!(16));
        let row =
            |key: &str, value: f64| nicforge_record::MachineParameter { key: key.into(), value, ..Default::default() };
        record.machine_parameters = vec![row("core.frequency_ghz", 2.1), row("llc.ways", 11.0)];
        let mib = f64::from(1 << 20);
        assert_eq!(named("io_working_set_bytes", &record), [("I/O ways", 4.0 * mib), ("LLC", 22.0 * mib)]);
        assert_eq!(named("memory_gb_per_s", &record), [("DRAM", 45.5)]);
        let budget = named("cycles_per_packet.total", &record)[0].1;
        assert!((budget - 16.0 * 2100.0 / 16.67).abs() < 1e-6, "{budget}");
        let of_rate = named("throughput_gbps", &record);
        assert!(of_rate.iter().any(|(name, gbps)| *name == "link" && (gbps - 200.0).abs() < 0.1), "{of_rate:?}");
        // Where points differ in their ways, each has its own capacity; without any, there is none.
        record.io_way_bytes = None;
        record.points[0].params.insert("io_ways".into(), json!(4));
        assert_eq!(named("io_working_set_bytes", &record)[0], ("I/O ways", 8.0 * mib));
        record.points[0].params.insert("io_ways".into(), json!(0));
        assert_eq!(named("io_working_set_bytes", &record)[0].0, "LLC");
    }

    #[test]
    fn clients_that_wait_for_answers_offer_no_more_than_comes_through() {
        let mut record = fake::ties();
        record.points[0].metrics.requests_timed_out = Some(0);
        assert_eq!(named("throughput_gbps", &record).len(), 1);
        assert!(named("cycles_per_packet.total", &record).is_empty());
    }
}
