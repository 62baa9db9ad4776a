//! Every metric once: its key, its words, its unit and how to get it from a point.

use Good::{Less, More, Neither};
use nicforge_record::{CpuTime, CyclesPerPacket, Latency, Metrics};

/// How values of a metric are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As stored, with the unit's name.
    Plain(&'static str),
    /// Stored as a share of one, shown in percent.
    Share,
    /// Stored in bytes, shown in MiB.
    Bytes,
}

impl Unit {
    /// The unit's name as shown.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Plain(name) => name,
            Unit::Share => "%",
            Unit::Bytes => "MiB",
        }
    }

    /// A stored value in the unit shown.
    pub fn shown(self, value: f64) -> f64 {
        match self {
            Unit::Plain(_) => value,
            Unit::Share => value * 100.0,
            Unit::Bytes => value / f64::from(1 << 20),
        }
    }
}

/// Which way a metric points when two points are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Good {
    /// More of it is better.
    More,
    /// Less of it is better.
    Less,
    /// It says nothing by itself.
    Neither,
}

/// One metric; parts of maps count as metrics of their own, as `map.part`.
pub struct Metric {
    /// Key in `report.json`.
    pub key: &'static str,
    /// Words for a table's head.
    pub label: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Which way it points.
    pub good: Good,
    /// Its head in the short tables, if it stands there.
    pub brief: Option<&'static str>,
    /// Its value, if it was measured.
    pub get: fn(&Metrics) -> Option<f64>,
}

const fn metric(
    key: &'static str,
    label: &'static str,
    unit: Unit,
    good: Good,
    brief: Option<&'static str>,
    get: fn(&Metrics) -> Option<f64>,
) -> Metric {
    Metric { key, label, unit, good, brief, get }
}

fn latency(metrics: &Metrics, get: fn(&Latency) -> f64) -> Option<f64> {
    metrics.latency_us.as_ref().map(get)
}

fn cycles(metrics: &Metrics, get: fn(&CyclesPerPacket) -> f64) -> Option<f64> {
    metrics.cycles_per_packet.as_ref().map(get)
}

fn cpu_time(metrics: &Metrics, get: fn(&CpuTime) -> f64) -> Option<f64> {
    metrics.cpu_time.as_ref().map(get)
}

const GBPS: Unit = Unit::Plain("Gbit/s");
const MPPS: Unit = Unit::Plain("Mpps");
const MICROS: Unit = Unit::Plain("µs");
const CYCLES: Unit = Unit::Plain("cycles");
const LINES: Unit = Unit::Plain("lines");
const GB_PER_S: Unit = Unit::Plain("GB/s");

/// All metrics in the schema's order; drops by cause are apart, since causes are open-ended.
#[rustfmt::skip]
pub const METRICS: [Metric; 57] = [
    metric("rpc_mps", "RPCs", Unit::Plain("M/s"), More, Some("RPCs"), |m| m.rpc_mps),
    metric("tuples_mps", "tuples", Unit::Plain("M/s"), More, Some("tuples"), |m| m.tuples_mps),
    metric("counted_mps", "counted", Unit::Plain("M/s"), More, Some("counted"), |m| m.counted_mps),
    metric("tuple_us.input", "tuple waits", MICROS, Less, Some("input"), |m| m.tuple_us.as_ref().map(|t| t.input)),
    metric("tuple_us.work", "tuple worked on", MICROS, Less, Some("work"), |m| m.tuple_us.as_ref().map(|t| t.work)),
    metric("tuple_us.output", "tuple leaves", MICROS, Less, Some("output"), |m| m.tuple_us.as_ref().map(|t| t.output)),
    metric("bandwidth_gbps", "bandwidth", GBPS, More, Some("payload"), |m| m.bandwidth_gbps),
    metric("throughput_gbps", "throughput", GBPS, More, Some("sent"), |m| Some(m.throughput_gbps)),
    metric("misses_per_kb", "misses/KB", LINES, Less, Some("misses/KB"), |m| m.misses_per_kb),
    metric("interrupts_khz", "interrupts", Unit::Plain("kHz"), Neither, None, |m| m.interrupts_khz),
    metric("cpu_time.interrupt", "interrupt", Unit::Share, Neither, Some("interrupt"), |m| cpu_time(m, |c| c.interrupt)),
    metric("cpu_time.driver", "driver time", Unit::Share, Neither, Some("driver"), |m| cpu_time(m, |c| c.driver)),
    metric("cpu_time.stack", "stack", Unit::Share, Neither, Some("stack"), |m| cpu_time(m, |c| c.stack)),
    metric("cpu_time.copy", "copy", Unit::Share, Neither, Some("copy"), |m| cpu_time(m, |c| c.copy)),
    metric("cpu_time.user", "user", Unit::Share, Neither, Some("user"), |m| cpu_time(m, |c| c.user)),
    metric("cpu_time.idle", "idle time", Unit::Share, More, Some("idle"), |m| cpu_time(m, |c| c.idle)),
    metric("offered_gbps", "offered", GBPS, Neither, None, |m| Some(m.offered_gbps)),
    metric("throughput_mpps", "throughput", MPPS, More, Some("sent"), |m| Some(m.throughput_mpps)),
    metric("offered_mpps", "offered", MPPS, Neither, None, |m| Some(m.offered_mpps)),
    metric("drop_fraction", "dropped", Unit::Share, Less, Some("dropped"), |m| Some(m.drop_fraction)),
    metric("requests_timed_out", "requests given up", Unit::Plain(""), Less, Some("given up"), |m| m.requests_timed_out.map(|count| count as f64)),
    metric("rx_nombuf", "no buffer in the pool", Unit::Plain("times"), Less, None, |m| m.rx_nombuf.map(|count| count as f64)),
    metric("latency_us.mean", "latency mean", MICROS, Less, None, |m| latency(m, |l| l.mean)),
    metric("latency_us.p50", "latency p50", MICROS, Less, Some("p50"), |m| latency(m, |l| l.p50)),
    metric("latency_us.p99", "latency p99", MICROS, Less, Some("p99"), |m| latency(m, |l| l.p99)),
    metric("latency_us.p999", "latency p99.9", MICROS, Less, None, |m| latency(m, |l| l.p999)),
    metric("latency_us.max", "latency max", MICROS, Less, None, |m| latency(m, |l| l.max)),
    metric("rx_occupancy", "rx ring full", Unit::Share, Less, Some("rx full"), |m| m.rx_occupancy),
    metric("tx_occupancy", "tx ring full", Unit::Share, Less, None, |m| m.tx_occupancy),
    metric("tx_deschedules_per_packet", "tx ring pauses/packet", Unit::Plain(""), Less, None, |m| m.tx_deschedules_per_packet),
    metric("copy_gb_per_s", "copied", GB_PER_S, More, Some("copied"), |m| m.copy_gb_per_s),
    metric("ddio_hit_rate", "DDIO hits", Unit::Share, More, Some("DDIO"), |m| m.ddio_hit_rate),
    metric("io_read_hit_rate", "NIC read hits", Unit::Share, More, Some("NIC read"), |m| m.io_read_hit_rate),
    metric("io_write_hit_rate", "NIC write hits", Unit::Share, More, None, |m| m.io_write_hit_rate),
    metric("app_hit_rate", "app LLC hits", Unit::Share, More, None, |m| m.app_hit_rate),
    metric("core_hit_rate", "cores' LLC hits", Unit::Share, More, None, |m| m.core_hit_rate),
    metric("get_hit_rate", "GET hits", Unit::Share, More, Some("GET hits"), |m| m.get_hit_rate),
    metric("spill_fraction", "spilled to host memory", Unit::Share, Less, Some("spilled"), |m| m.spill_fraction),
    metric("nicmem_get_share", "GETs from nicmem", Unit::Share, More, Some("nicmem GETs"), |m| m.nicmem_get_share),
    metric("flow_state_miss_rate", "flow state misses", Unit::Share, Less, Some("flow misses"), |m| m.flow_state_miss_rate),
    metric("target_alloc_share", "allocation, target core", Unit::Share, Neither, None, |m| m.target_alloc_share),
    metric("other_alloc_share", "allocation, other cores", Unit::Share, Neither, None, |m| m.other_alloc_share),
    metric("core_llc_accesses_per_packet", "cores' LLC accesses/packet", LINES, Less, None, |m| m.core_llc_accesses_per_packet),
    metric("llc_misses_per_packet", "LLC misses/packet", LINES, Less, None, |m| m.llc_misses_per_packet),
    metric("memory_gb_per_s", "memory", GB_PER_S, Less, Some("memory"), |m| m.memory_gb_per_s),
    metric("pcie_out_utilisation", "PCIe out", Unit::Share, Less, None, |m| m.pcie_out_utilisation),
    metric("pcie_in_utilisation", "PCIe in", Unit::Share, Less, None, |m| m.pcie_in_utilisation),
    metric("pcie_read_us", "PCIe read", MICROS, Less, None, |m| m.pcie_read_us),
    metric("nic_receive_us", "NIC receive", MICROS, Less, None, |m| m.nic_receive_us),
    metric("cycles_per_packet.total", "cycles/packet", CYCLES, Less, Some("cyc/pkt"), |m| cycles(m, |c| c.total)),
    metric("cycles_per_packet.driver", "driver", CYCLES, Less, None, |m| cycles(m, |c| c.driver)),
    metric("cycles_per_packet.app", "application", CYCLES, Less, None, |m| cycles(m, |c| c.app)),
    metric("cycles_per_packet.sync", "locks, atomics", CYCLES, Less, None, |m| cycles(m, |c| c.sync)),
    metric("cycles_per_packet.alloc", "buffer alloc", CYCLES, Less, None, |m| cycles(m, |c| c.alloc)),
    metric("cycles_per_packet.stall", "memory stalls", CYCLES, Less, None, |m| cycles(m, |c| c.stall)),
    metric("idle_fraction", "idle", Unit::Share, More, Some("idle"), |m| m.idle_fraction),
    metric("io_working_set_bytes", "I/O working set", Unit::Bytes, Less, None, |m| m.io_working_set_bytes.map(|b| b as f64)),
];

/// Only in RFC 2544 mode, where it leads the tables.
pub const NO_DROP: Metric = metric("no_drop_gbps", "no-drop rate", GBPS, More, Some("no drop"), |m| m.no_drop_gbps);

/// Only where they apply: of several connections, where cores play NICs or lend each other buffers, and of a store that
/// refused requests. The CSV file, too, has these columns only then.
#[rustfmt::skip]
pub const OCCASIONAL: [Metric; 6] = [
    metric("fairness", "fairness (Jain)", Unit::Plain(""), More, None, |m| m.fairness),
    metric("emulator_busy_fraction", "emulating cores busy", Unit::Share, Neither, Some("NIC core"), |m| m.emulator_busy_fraction),
    metric("emulator_burst_frames", "emulating cores' burst", Unit::Plain("frames"), Neither, Some("NIC burst"), |m| m.emulator_burst_frames),
    metric("borrowed_fraction", "in borrowed buffers", Unit::Share, Neither, Some("borrowed"), |m| m.borrowed_fraction),
    metric("requests_too_large", "requests too large", Unit::Plain(""), Less, Some("too large"), |m| m.requests_too_large.map(|count| count as f64)),
    metric("requests_misdirected", "requests misdirected", Unit::Plain(""), Less, Some("misdirected"), |m| m.requests_misdirected.map(|count| count as f64)),
];

/// Every metric.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    std::iter::once(&NO_DROP).chain(&METRICS).chain(&OCCASIONAL)
}

/// The keys of all metrics, as `points.csv` has them.
pub fn metric_keys() -> Vec<&'static str> {
    all().map(|metric| metric.key).collect()
}

/// Each metric's key, words for it and unit.
pub fn metric_names() -> Vec<(&'static str, &'static str, &'static str)> {
    all().map(|metric| (metric.key, metric.label, metric.unit.name())).collect()
}

/// What was measured, by the keys of `points.csv`, in its order; drops by cause at the end.
pub fn flat(metrics: &Metrics) -> Vec<(String, serde_json::Value)> {
    let columns = METRICS.iter().chain([&NO_DROP]).chain(&OCCASIONAL);
    let measured = columns.filter_map(|metric| Some((metric.key.to_owned(), (metric.get)(metrics)?.into())));
    let drops = metrics.drops.iter().map(|(cause, count)| (format!("drops.{cause}"), (*count).into()));
    measured.chain(drops).collect()
}

/// All metrics that at least one of `points` has.
pub fn measured<'a>(points: impl Iterator<Item = &'a Metrics> + Clone) -> Vec<&'static Metric> {
    all().filter(|metric| is_measured(metric, &mut points.clone())).collect()
}

/// Those that do not always apply, as far as at least one of `points` has them.
pub fn occasional<'a>(
    points: impl Iterator<Item = &'a Metrics> + Clone,
) -> impl Iterator<Item = &'static Metric> + Clone {
    OCCASIONAL.iter().filter(move |metric| is_measured(metric, &mut points.clone()))
}

fn is_measured<'a>(metric: &Metric, points: &mut impl Iterator<Item = &'a Metrics>) -> bool {
    points.any(|metrics| (metric.get)(metrics).is_some())
}

/// What points are ranked by: the no-drop rate where that was sought, payload where systems talk
/// TCP, else throughput; Gbit/s.
pub fn rate(metrics: &Metrics) -> f64 {
    let sought = metrics.no_drop_gbps.or(metrics.bandwidth_gbps);
    sought.unwrap_or(metrics.throughput_gbps)
}

/// The key of the metric that [`rate`] is.
pub fn rate_key(metrics: &Metrics) -> &'static str {
    match (metrics.no_drop_gbps, metrics.bandwidth_gbps) {
        (Some(_), _) => "no_drop_gbps",
        (None, Some(_)) => "bandwidth_gbps",
        (None, None) => "throughput_gbps",
    }
}

/// The metric of a key that is in the table above.
pub fn by_key(key: &str) -> &'static Metric {
    all().find(|metric| metric.key == key).expect("callers name keys of the table above")
}

/// Causes of drops in any of `points`, sorted.
pub fn drop_causes<'a>(points: impl Iterator<Item = &'a Metrics>) -> Vec<&'a str> {
    let mut causes: Vec<&str> = points.flat_map(|metrics| metrics.drops.keys().map(String::as_str)).collect();
    causes.sort_unstable();
    causes.dedup();
    causes
}
