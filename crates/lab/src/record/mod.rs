//! Fills the record of a run: what it measured, and every setting and number that it ran with.

mod facts;

use nicforge_nic::DropCause;
use nicforge_options::{Key, Owner, Place, Value};
use nicforge_record::{Facts, MachineParameter, Origin, PointRecord, Record, RunOrigin, Setting, Steadiness, share};

#[cfg(target_os = "linux")]
use crate::live::{Header, LiveConfig, LiveRun};
use crate::machine::Machine;
use crate::run::PointRun;
use crate::scenario::{Point, Scenario};
#[cfg(target_os = "linux")]
use crate::settings::of_live_run;

/// The version that records carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The record of a scenario on the sim ground; `runs` in the order of `points`.
pub fn of_scenario(
    scenario: &Scenario,
    machine: &Machine,
    points: &[Point],
    runs: Vec<PointRun>,
    (origin, wall_seconds): (Option<RunOrigin>, f64),
) -> Record {
    let (llc_bytes, io_way_bytes) = capacities(machine, points);
    let simulated_seconds = runs.iter().map(|run| run.simulated.as_seconds()).sum();
    let mut settings: Vec<_> = points.iter().map(effective_settings).collect();
    let shared = share(&mut settings, &listed(points));
    let record = |((point, run), settings): ((&Point, PointRun), Vec<Setting>)| PointRecord {
        variant: point.variant.clone(),
        params: point.params.clone(),
        metrics: run.metrics,
        intervals: run.intervals,
        seeds: Vec::new(),
        cores: run.cores,
        stages: run.stages,
        timeline: run.timeline,
        switches: run.switches,
        simulated_seconds: Some(run.simulated.as_seconds()),
        settings,
        facts: {
            let facts = facts::of(&point.settings, machine);
            Facts { window_begins_ms: run.steadiness.window_begins_ms.or(facts.window_begins_ms), ..facts }
        },
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
        origin,
        overlays: Vec::new(),
        comparisons: Vec::new(),
        differences: None,
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
    let mut record = of_plan(config);
    record.wall_seconds = wall_seconds;
    for point in &mut record.points {
        point.metrics = run.metrics.clone();
        point.cores = run.cores.clone();
        point.timeline = run.timeline.clone();
        point.switches = run.switches.clone();
        point.steadiness = Steadiness::of(&run.metrics);
    }
    record
}

/// The record of a live run that has not begun: its settings, and nothing measured.
#[cfg(target_os = "linux")]
pub fn of_plan(config: &LiveConfig) -> Record {
    let assigned = |name: &str| config.assignments.iter().rfind(|set| set.key.name == name);
    // A TCP stack takes the place of an application.
    let is_there = |key: &&'static Key| key.name != "app" || config.tcp.is_none();
    let is_shown = |key: &&'static Key| {
        is_there(key) && (["interface", "app", "cores"].contains(&key.name) || assigned(key.name).is_some())
    };
    let shown = config.settings.catalogue().vocabulary().keys().into_iter().filter(is_shown);
    let values = shown.filter_map(|key| Some((key, config.settings.value(key)?)));
    let origin = |key: &Key| origin(assigned(key.name).map(|set| &set.place));
    let owners = of_live_run(&config.settings);
    let owner = |key: &Key| {
        let reads = owners.iter().find(|owner| owner.declares(key.name));
        reads.map_or(String::new(), |owner| owner.to_string())
    };
    Record {
        scenario: config.name(),
        seed: 1,
        version: VERSION.to_string(),
        machine: "live".to_string(),
        points: vec![PointRecord {
            variant: config.settings.interface(),
            params: values.clone().map(|(key, value)| (key.name.to_string(), serde_json::json!(value))).collect(),
            ..PointRecord::default()
        }],
        title: config.live.read::<Header>().title,
        load_drops: load_drops(),
        settings: values.map(|(key, value)| setting(key, &value, origin(key), owner(key))).collect(),
        ..Record::default()
    }
}

/// The names of all keys, in the order in which they are listed.
fn listed(points: &[Point]) -> Vec<&'static str> {
    let keys = points.first().map(|point| point.settings.catalogue().vocabulary().keys());
    keys.into_iter().flatten().map(|key| key.name).collect()
}

/// Every setting that counts in a point, with where its value comes from.
fn effective_settings(point: &Point) -> Vec<Setting> {
    let effective = point.settings.effective().into_iter();
    let set = |owner: &Owner, key: &Key, value| {
        let origin = origin(point.place_of_value(key.name));
        Some(setting(key, &value?, origin, owner.to_string()))
    };
    effective.filter_map(|(owner, key, value)| set(owner, key, value)).collect()
}

fn setting(key: &Key, value: &Value, origin: Origin, owner: String) -> Setting {
    let (key, unit) = (key.name.to_string(), key.unit.to_string());
    Setting { key, value: serde_json::json!(value), unit, origin, owner }
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
    let all_have = |name: &str| match shared(points, name) {
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

/// The value of key `name` when all points have the same.
fn shared(points: &[Point], name: &str) -> Option<Value> {
    let key = points.first()?.settings.catalogue().vocabulary().key(name)?;
    let mut values = points.iter().map(|point| point.settings.value(key));
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}
