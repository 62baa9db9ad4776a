//! Reports as a run might leave them, for the tests and to look at.

use std::collections::BTreeMap;

use nicforge_record::{
    CoreFigures, CyclesPerPacket, Facts, Latency, MachineParameter, Metrics, Origin, PointRecord, Record, Setting,
    Switch, TimelineEntry, Wire,
};
use serde_json::{Value, json};

use crate::{Finding, findings};

const MIB: f64 = 1024.0 * 1024.0;

/// A point whose I/O working set is `mib` MiB; metrics follow as they might on the machine.
pub fn point(variant: &str, params: &[(&str, Value)], mib: f64) -> PointRecord {
    // Misses set in past the I/O ways (4 MiB) and again past the LLC (22 MiB).
    let lost = ((mib - 4.0) / 12.0).clamp(0.0, 1.0) * 0.7 + ((mib - 22.0) / 30.0).clamp(0.0, 1.0) * 0.28;
    let stall = 150.0 + 2600.0 * lost;
    let total = stall + 210.0 + 520.0 + 40.0 + 60.0;
    let capacity = 16.0 * 2.1e3 / total; // million packets per second of 16 cores at 2.1 GHz
    let (offered, size): (f64, f64) = (16.67, 1500.0 * 8.0 / 1e3);
    let sent = offered.min(capacity);
    let dropped = 1.0 - sent / offered;
    let p50 = 18.0 + 700.0 * dropped + 20.0 * lost;
    let latency = Latency {
        mean: p50 * 1.1,
        p50,
        p99: p50 * 2.2 + 6.0,
        p999: p50 * 3.1 + 20.0,
        max: p50 * 4.0 + 60.0,
        curve: (0..=50)
            .map(|i| 100.0 - 100.0 * 10_f64.powf(-f64::from(i) / 10.0))
            .map(|p| (p, percentile(p50, p)))
            .collect(),
    };
    let metrics = Metrics {
        throughput_gbps: sent * size,
        offered_gbps: offered * size,
        throughput_mpps: sent,
        offered_mpps: offered,
        drop_fraction: dropped,
        drops: drops((dropped * 333_400.0) as u64),
        latency_us: Some(latency),
        rx_occupancy: Some((0.02 + dropped * 2.4).min(0.98)),
        tx_occupancy: Some(0.04 + 0.2 * lost),
        ddio_hit_rate: Some(1.0 - lost),
        io_read_hit_rate: Some(1.0 - lost * 0.93),
        io_write_hit_rate: Some(1.0 - lost * 0.97),
        app_hit_rate: Some(0.62 - 0.2 * lost),
        core_hit_rate: Some(0.7 - 0.2 * lost),
        llc_misses_per_packet: Some(1.2 + 46.0 * lost),
        memory_gb_per_s: Some(sent * 1e6 * (120.0 + 46.0 * 64.0 * lost) / 1e9),
        pcie_out_utilisation: Some(sent * 0.0405),
        pcie_in_utilisation: Some(sent * 0.0421),
        pcie_read_us: Some(0.9 + 0.8 * lost),
        nic_receive_us: Some(0.4 + 0.8 * lost),
        cycles_per_packet: Some(CyclesPerPacket { total, driver: 210.0, app: 520.0, sync: 40.0, alloc: 60.0, stall }),
        idle_fraction: Some((1.0 - sent / capacity).max(0.0)),
        io_working_set_bytes: Some((mib * MIB) as u64),
        ..Metrics::default()
    };
    let param = |(key, value): &(&str, Value)| (key.to_string(), value.clone());
    PointRecord {
        variant: variant.into(),
        params: params.iter().map(param).collect(),
        metrics,
        ..PointRecord::default()
    }
}

fn percentile(p50: f64, percent: f64) -> f64 {
    let nines = -(1.0 - percent / 100.0).max(1e-5).log10();
    p50 * (0.55 + 0.45 * (nines / 0.301).min(1.0)) * (1.0 + 0.7 * (nines - 0.301).max(0.0))
}

fn record(scenario: &str, title: &str, description: &str, points: Vec<PointRecord>) -> Record {
    let row = |key: &str, unit: &str, value: f64, source: &str, fitted: Option<&str>| MachineParameter {
        key: key.into(),
        unit: unit.into(),
        value,
        source: source.into(),
        fitted: fitted.map(String::from),
    };
    let setting = |key: &str, unit: &str, value: Value, origin: Origin| Setting {
        key: key.into(),
        unit: unit.into(),
        value,
        origin,
        owner: String::new(),
    };
    Record {
        scenario: scenario.into(),
        title: title.into(),
        description: description.into(),
        seed: 1,
        version: "0.1.0".into(),
        machine: "xeon-4216-cx5".into(),
        machine_parameters: vec![
            row("core.clock", "GHz", 2.1, "data sheet", None),
            row("llc.capacity", "MiB", 22.0, "data sheet", None),
            row("dram.latency", "ns", 89.0, "measured, unloaded", Some("c2")),
        ],
        settings: vec![
            setting("app", "", json!("nat"), Origin::File),
            setting("cores", "", json!(16), Origin::Default),
            setting("packet_bytes", "B", json!(1500), Origin::Override),
            setting("offered_gbps", "Gbit/s", json!(200.0), Origin::File),
        ],
        load_drops: ["bx_full", "fifo_full", "no_descriptor", "tx_ring_full"].map(String::from).into(),
        llc_bytes: Some(22 << 20),
        io_way_bytes: Some(4 << 20),
        wall_seconds: 12.5,
        simulated_seconds: Some(0.02 * points.len() as f64),
        points,
        ..Record::default()
    }
}

/// One point.
pub fn single() -> Record {
    let asked = "NAT on 16 cores behind two 100 Gbit/s ports, 1500 B packets of random flows.";
    record("nat-200g", "NAT at 200 Gbit/s", asked, vec![point("priv_ring", &[("rx_entries", json!(1024))], 24.0)])
}

/// Two variants and nothing swept.
pub fn two_variants() -> Record {
    let mut points = vec![
        point("priv_ring", &[("rx_entries", json!(1024))], 25.0),
        point("rx_bisect", &[("rx_entries", json!(1024)), ("ax_entries", json!(128))], 3.4),
    ];
    points[1].cores = unequal_cores();
    // Of 9120 that cores took.
    points[1].metrics.borrowed_fraction = Some(0.25);
    record("nat-compare", "NAT: private rings against split rings", "Does splitting the ring help?", points)
}

/// Two cores of one NIC, of which the first cannot keep up and borrows from the other.
fn unequal_cores() -> Vec<CoreFigures> {
    let core = |core, received, (borrowed, lent), busy: f64, dropped: &[(&str, u64)]| CoreFigures {
        core,
        nic: Some(0),
        queue: Some(core),
        received,
        borrowed: Some(borrowed),
        lent: Some(lent),
        drops: dropped.iter().map(|&(cause, count)| (cause.to_owned(), count)).collect(),
        throughput_gbps: Some(received as f64 / 416.0),
        busy_fraction: Some(busy),
        cycles_per_packet: Some(busy * 1.05e7 / received as f64),
        mean_burst: Some(if busy == 1.0 { 32.0 } else { 1.7 }),
        rx_occupancy: Some(if busy == 1.0 { 0.97 } else { 0.005 }),
    };
    vec![core(0, 5_024, (2_270, 10), 1.0, &[("bx_full", 2_830)]), core(1, 4_096, (10, 2_270), 0.872, &[])]
}

/// Ring sizes for the variants given.
pub fn sweep(variants: &[(&str, f64)]) -> Record {
    let sizes = [64, 128, 256, 512, 1024, 2048, 4096];
    let at = |(name, kib): &(&str, f64)| {
        let kib = *kib;
        let name = name.to_string();
        sizes.map(move |size| point(&name, &[("rx_entries", json!(size))], f64::from(size) * kib * 16.0 / 1024.0 + 0.6))
    };
    let points = variants.iter().flat_map(at).collect();
    record("rxb-02", "Load balancer against ring size", "How large may rings be before the cache gives out?", points)
}

/// Ring sizes by cores, two variants.
pub fn two_keys() -> Record {
    let mut points = Vec::new();
    for (variant, kib) in [("priv_ring", 1.8), ("sh_ring", 0.3)] {
        for cores in [4, 8, 16] {
            for size in [128, 512, 1024, 4096] {
                let mib = f64::from(size) * kib * f64::from(cores) / 1024.0 + 0.6;
                points.push(point(variant, &[("rx_entries", json!(size)), ("cores", json!(cores))], mib));
            }
        }
    }
    record("two-keys", "Ring size and cores", "Two keys swept at once.", points)
}

/// Four keys and a half: 462 points, as a design study has.
pub fn wide() -> Record {
    let mut points = Vec::new();
    for (variant, kib) in [("host", 1.5), ("nm_nfv", 0.1)] {
        for size in [128, 256, 512, 1024, 2048, 4096, 8192] {
            for array in [1, 8, 32] {
                for ways in [1, 2, 4, 6, 8, 11] {
                    let mib = f64::from(size) * kib * 14.0 / 1024.0 + f64::from(array) / 8.0;
                    let mib = mib * (1.2 - f64::from(ways) / 20.0);
                    for reads in [2, 10].into_iter().take(if ways == 11 { 1 } else { 2 }) {
                        let params = [
                            ("rx_entries", json!(size)),
                            ("array_mib", json!(array)),
                            ("io_ways", json!(ways)),
                            ("reads", json!(reads)),
                        ];
                        points.push(point(variant, &params, mib * (1.0 + f64::from(reads) / 40.0)));
                    }
                }
            }
        }
    }
    record("design-study", "Ring, array, ways and reads", "Which of four keys decides?", points)
}

/// As many columns as a table can have, with long names and values, and intervals of all metrics.
pub fn crowded(points: usize) -> Record {
    let path = "/home/somebody/scenarios/../examples/p4/flexkvs-dma.p4";
    let mut record =
        record("crowded", "A_name_without_a_blank_that_goes_on_for_longer_than_a_phone_is_wide", path, Vec::new());
    for index in 0..points {
        let params = [
            ("flexnic_program", json!(format!("{path}{}", index % 2))),
            ("rx_entries", json!(64 << index)),
            ("flexkvs_nic_log", json!(index % 2 == 0)),
            ("offered_gbps", json!(200.0 / (index + 3) as f64)),
        ];
        let mut point = point(&format!("custom_dma_on_cores_{}", index % 3), &params, 1.0 + 7.0 * index as f64);
        let metrics = &mut point.metrics;
        (metrics.tx_deschedules_per_packet, metrics.copy_gb_per_s) = (Some(0.5), Some(9.0));
        (metrics.flow_state_miss_rate, metrics.emulator_busy_fraction) = (Some(0.125), Some(0.93));
        (metrics.emulator_burst_frames, metrics.borrowed_fraction) = (Some(1.08), Some(0.25));
        (metrics.get_hit_rate, metrics.spill_fraction, metrics.nicmem_get_share) = (Some(0.5), Some(0.1), Some(0.2));
        metrics.cpu_time = Some(nicforge_record::CpuTime::default());
        for metric in crate::columns::METRICS {
            if let Some(mean) = (metric.get)(&point.metrics) {
                let sure =
                    nicforge_record::Interval { mean, half_width: mean.abs() / 77.0, samples: 25, correlation: None };
                point.intervals.insert(metric.key.into(), sure);
            }
        }
        record.points.push(point);
    }
    record
}

/// More variants than colours, two applications, nothing numeric swept.
pub fn many() -> Record {
    let mut points = Vec::new();
    for app in ["nat", "lb"] {
        for index in 0..9 {
            let variant = ["host", "priv_ring_small", "sh_ring_dynamic"][index % 3].to_string();
            let mib = 3.0 + 4.0 * index as f64;
            points.push(point(&format!("{variant}_{index}"), &[("app", json!(app))], mib));
        }
    }
    record("many", "Nine variants, two applications", "More variants than colours.", points)
}

/// Two variants over time, of which one changes its rings twice.
pub fn over_time() -> Record {
    let mut record = two_variants();
    for (index, point) in record.points.iter_mut().enumerate() {
        point.timeline = (1..=40).map(|step| entry(step, index == 1)).collect();
    }
    let switch = |(ms, set): (f64, &str)| Switch { ms, set: set.into() };
    record.points[1].switches = [(4.0, "shared"), (14.5, "private")].map(switch).to_vec();
    record
}

/// Three variants at wire rate, of which two are level, and one that memory holds back.
pub fn ties() -> Record {
    let mut record = two_variants();
    let mut level = record.points[1].clone();
    level.variant = "priv_ring_small".into();
    level.metrics.throughput_gbps *= 0.9995;
    record.points.push(level);
    for point in &mut record.points {
        point.facts = on_machine(None, None);
    }
    record
}

/// One core of eight that is slow: its packets hold a shared ring while the other cores idle, with
/// the best of cache figures.
pub fn slow_core() -> Record {
    let mut record = two_variants();
    record.points[1] = point("sh_ring", &[("rx_entries", json!(1024))], 3.4);
    record.points[1].facts = on_machine(Some(3 << 20), Some(8));
    let held = &mut record.points[1].metrics;
    held.throughput_gbps = 56.5;
    held.throughput_mpps = 4.7;
    held.drop_fraction = 0.713;
    held.drops = drops(82_289);
    held.rx_occupancy = Some(0.984);
    held.idle_fraction = Some(0.555);
    // 4.7 of 16.67 million packets a second cross the links and memory.
    for used in [&mut held.pcie_out_utilisation, &mut held.pcie_in_utilisation, &mut held.memory_gb_per_s] {
        *used = used.map(|used| used * 4.7 / 16.67);
    }
    record
}

/// Ring sizes that pass the I/O ways with a fall, and the whole LLC without one.
pub fn two_steps() -> Record {
    let rates = [196.9, 196.8, 183.4, 164.8, 163.6];
    let sizes = [64, 128, 256, 512, 1024];
    let mut record = sweep(&[("priv_ring", 1.8)]);
    record.points.truncate(sizes.len());
    for ((point, rate), size) in record.points.iter_mut().zip(rates).zip(sizes) {
        point.metrics.throughput_gbps = rate;
        point.facts = on_machine(Some(size * 16 * 1536), None);
    }
    record
}

/// Two ports of 100 Gbit/s, which carry 200 Gbit/s of the fake points' frames.
fn on_machine(receive_buffer_bytes: Option<u64>, cores_per_ring: Option<usize>) -> Facts {
    Facts {
        wire: Some(Wire { ports: 2, port_gbps: 100.0, overhead_bytes: 0, frame_bytes_min: 60 }),
        dram_gb_per_s: Some(45.5),
        receive_buffer_bytes,
        cores_per_ring,
        ..Facts::default()
    }
}

fn entry(step: u32, switches: bool) -> TimelineEntry {
    let shared = switches && (9..30).contains(&step);
    // What lies in the old rings has no room in the new ones.
    let dropped = match (shared, step) {
        (true, 9) => 6_200,
        (true, 10) => 8_200,
        (true, _) => 0,
        (false, _) => 1_400,
    };
    TimelineEntry {
        ms: f64::from(step) / 2.0,
        throughput_gbps: if shared { 196.8 } else { 163.0 },
        offered_gbps: 196.8,
        arrivals: 8_200,
        drops: dropped,
        drop_fraction: dropped as f64 / 8_200.0,
        taken: if shared { 8_200 } else { 6_800 },
        backlog: if shared { 700 } else { 16_384 },
        latency_us: Some(if shared { 97.0 } else { 1_230.0 }),
        memory_gb_per_s: Some(if shared { 24.0 } else { 45.0 }),
        active_set: switches.then(|| if shared { "shared" } else { "private" }.to_owned()),
        in_use: match (switches, shared) {
            (true, true) => in_use(0, 800),
            (true, false) => in_use(16_384, 0),
            (false, _) => BTreeMap::new(),
        },
    }
}

fn in_use(private: u64, shared: u64) -> BTreeMap<String, u64> {
    [("private".into(), private), ("shared".into(), shared)].into()
}

fn drops(frames: u64) -> BTreeMap<String, u64> {
    [("no_descriptor".into(), frames * 9 / 10), ("fifo_full".into(), frames / 10)].into()
}

/// Asserts that `text` has each of `parts`: names, values, keys.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// The text of the only finding of `rule`.
#[track_caller]
pub fn finding(record: &Record, rule: &str) -> String {
    let found: Vec<Finding> = findings(record).into_iter().filter(|found| found.rule == rule).collect();
    let [only] = &found[..] else {
        panic!("not one finding of `{rule}`: {found:#?}");
    };
    only.text.clone()
}

/// The rules that wrote the findings of `record`, in their order.
pub fn rules(record: &Record) -> Vec<&'static str> {
    findings(record).iter().map(|found| found.rule).collect()
}
