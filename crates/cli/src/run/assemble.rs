//! Puts the report together from input and measurements.

use nicforge_lab::report::{Bounds, MachineRow, Phases, PointResult, Report, SettingsRow};
use nicforge_lab::run::PointRun;
use nicforge_lab::settings::{KEYS, Key, Value};

use crate::input::Input;

/// The report; `runs` in the order of the points.
pub fn report(input: &Input, runs: Vec<PointRun>, wall_seconds: f64) -> Report {
    let Input { scenario, machine, points, .. } = input;
    let (llc_bytes, io_way_bytes) = capacities(input);
    let simulated_seconds = runs.iter().map(|run| run.simulated.as_seconds()).sum();
    Report {
        scenario: scenario.name.clone(),
        title: scenario.title.clone(),
        description: scenario.description.trim().to_string(),
        seed: scenario.seed,
        version: env!("CARGO_PKG_VERSION").to_string(),
        machine: machine.name.clone(),
        machine_rows: machine_rows(input),
        settings_rows: settings_rows(input),
        llc_bytes,
        io_way_bytes,
        wall_seconds,
        simulated_seconds: Some(simulated_seconds),
        comparisons: Vec::new(),
        points: points
            .iter()
            .zip(runs)
            .map(|(point, run)| PointResult {
                variant: point.variant.clone(),
                params: point.params.clone(),
                metrics: run.metrics,
                bounds: Bounds::of(&point.settings, machine),
                cores: run.cores,
                phases: Phases::of(&point.settings),
                timeline: run.timeline,
                switches: run.switches,
            })
            .collect(),
    }
}

/// Bytes of the last-level cache and of its I/O ways, where all points have the same. Where a NIC
/// sits in one of several places, the place decides what devices may allocate.
fn capacities(input: &Input) -> (Option<u64>, Option<u64>) {
    let all_have = |name: &str| match nicforge_lab::settings::key(name).and_then(|key| shared(input, key)) {
        Some(Value::Integer(value)) => Some(value),
        _ => None,
    };
    let llc = &input.machine.hardware.llc;
    if input.machine.integrated.is_some() {
        return (all_have("cache_mib").map(|mib| mib << 20), None);
    }
    let way_bytes = llc.size.0 / llc.ways as u64;
    let io_ways = all_have("io_ways").map(|ways| ways * way_bytes);
    (Some(llc.size.0), io_ways)
}

fn machine_rows(input: &Input) -> Vec<MachineRow> {
    let rows = input.machine.rows.iter().map(|row| MachineRow {
        key: format!("{}.{}", row.section, row.key),
        unit: row.unit.to_string(),
        value: row.value.to_string(),
        source: row.source.clone(),
        fitted: row.fitted.clone(),
    });
    rows.collect()
}

/// Every setting that counts and has one value in all points.
fn settings_rows(input: &Input) -> Vec<SettingsRow> {
    let used = |key: &Key| input.points.iter().any(|point| key.counts(&point.settings));
    let row = |key: &Key| {
        Some(SettingsRow {
            key: key.name.to_string(),
            unit: key.unit.to_string(),
            value: match shared(input, key)? {
                Value::Text(text) => text,
                other => other.to_string(),
            },
        })
    };
    KEYS.iter().filter(|key| used(key)).filter_map(row).collect()
}

/// The value of `key` when all points have the same.
fn shared(input: &Input, key: &Key) -> Option<Value> {
    let mut values = input.points.iter().map(|point| (key.get)(&point.settings));
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}
