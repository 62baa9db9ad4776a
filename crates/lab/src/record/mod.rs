//! Fills the record of a run: what it measured, and every setting and number that it ran with.

mod facts;

use nicforge_nic::DropCause;
use nicforge_options::Place;
use nicforge_record::{MachineParameter, Origin, PointRecord, Record, Setting, Steadiness, share};

#[cfg(target_os = "linux")]
use crate::live::{LiveConfig, LiveRun};
use crate::machine::Machine;
use crate::run::PointRun;
use crate::scenario::{Point, Scenario};
use crate::settings::{KEYS, Key, Settings, Value, key, key_names};

/// The version that records carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The record of a scenario on the sim ground; `runs` in the order of `points`.
pub fn of_scenario(
    scenario: &Scenario,
    machine: &Machine,
    points: &[Point],
    runs: Vec<PointRun>,
    wall_seconds: f64,
) -> Record {
    let (llc_bytes, io_way_bytes) = capacities(machine, points);
    let simulated_seconds = runs.iter().map(|run| run.simulated.as_seconds()).sum();
    let mut settings: Vec<_> = points.iter().map(effective_settings).collect();
    let shared = share(&mut settings, &key_names());
    let record = |((point, run), settings): ((&Point, PointRun), Vec<Setting>)| PointRecord {
        variant: point.variant.clone(),
        params: point.params.clone(),
        metrics: run.metrics,
        cores: run.cores,
        timeline: run.timeline,
        switches: run.switches,
        simulated_seconds: Some(run.simulated.as_seconds()),
        settings,
        facts: facts::of(&point.settings, machine),
        steadiness: run.steadiness,
    };
    Record {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        version: VERSION.to_string(),
        machine: machine.name.clone(),
        wall_seconds,
        simulated_seconds: Some(simulated_seconds),
        points: points.iter().zip(runs).zip(settings).map(record).collect(),
        comparisons: Vec::new(),
        title: scenario.title.clone(),
        description: scenario.description.trim().to_string(),
        llc_bytes,
        io_way_bytes,
        load_drops: load_drops(),
        settings: shared,
        machine_parameters: machine.rows.iter().map(parameter).collect(),
    }
}

/// The record of a live run: one point, named after its interface.
#[cfg(target_os = "linux")]
pub fn of_live(config: &LiveConfig, run: &LiveRun, wall_seconds: f64) -> Record {
    let assigned = |name: &str| config.assignments.iter().rfind(|set| set.key.name == name);
    let is_shown = |key: &&Key| ["interface", "app", "cores"].contains(&key.name) || assigned(key.name).is_some();
    let shown = KEYS.iter().filter(is_shown);
    let values = shown.filter_map(|key| Some((key, (key.get)(&config.settings)?)));
    let origin = |key: &Key| origin(assigned(key.name).map(|set| &set.place));
    Record {
        scenario: config.name.clone(),
        seed: 1,
        version: VERSION.to_string(),
        machine: "live".to_string(),
        wall_seconds,
        points: vec![PointRecord {
            variant: config.settings.interface.clone(),
            params: values.clone().map(|(key, value)| (key.name.to_string(), value.to_json())).collect(),
            metrics: run.metrics.clone(),
            cores: run.cores.clone(),
            timeline: run.timeline.clone(),
            switches: run.switches.clone(),
            steadiness: Steadiness::of(&run.metrics),
            ..PointRecord::default()
        }],
        title: config.title.clone(),
        load_drops: load_drops(),
        settings: values.map(|(key, value)| setting(key, &value, origin(key))).collect(),
        ..Record::default()
    }
}

/// Every setting that counts in a point, with where its value comes from.
fn effective_settings(point: &Point) -> Vec<Setting> {
    let counts = KEYS.iter().filter(|key| key.counts(&point.settings));
    let set = |key: &Key| Some(setting(key, &(key.get)(&point.settings)?, origin(point.place_of_value(key.name))));
    counts.filter_map(set).collect()
}

fn setting(key: &Key, value: &Value, origin: Origin) -> Setting {
    Setting { key: key.name.to_string(), value: value.to_json(), unit: key.unit.to_string(), origin }
}

fn origin(place: Option<&Place>) -> Origin {
    match place {
        None => Origin::Default,
        Some(Place::Line { .. } | Place::File(_)) => Origin::File,
        Some(Place::Argument(_)) => Origin::Override,
    }
}

fn parameter(row: &crate::machine::Row) -> MachineParameter {
    MachineParameter {
        key: format!("{}.{}", row.section, row.key),
        value: row.value,
        unit: row.unit.to_string(),
        source: row.source.clone(),
        fitted: row.fitted.clone(),
    }
}

fn load_drops() -> std::collections::BTreeSet<String> {
    DropCause::names_of_load().map(String::from).collect()
}

/// Bytes of the last-level cache and of its I/O ways, where all points have the same. Where a NIC
/// sits in one of several places, the place decides what devices may allocate.
fn capacities(machine: &Machine, points: &[Point]) -> (Option<u64>, Option<u64>) {
    let all_have = |name: &str| match key(name).and_then(|key| shared(points, key)) {
        Some(Value::Integer(value)) => Some(value),
        _ => None,
    };
    let llc = &machine.hardware.llc;
    if machine.integrated.is_some() {
        return (all_have("cache_mib").map(|mib| mib << 20), None);
    }
    let way_bytes = llc.size.0 / llc.ways as u64;
    let io_ways = all_have("io_ways").map(|ways| ways * way_bytes);
    (Some(llc.size.0), io_ways)
}

/// The value of `key` when all points have the same.
fn shared(points: &[Point], key: &Key) -> Option<Value> {
    let get = |settings: &Settings| (key.get)(settings);
    let mut values = points.iter().map(|point| get(&point.settings));
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}
