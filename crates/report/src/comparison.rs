//! A point on both grounds, side by side.

use nicforge_record::{ComparedRow, Comparison, CoreFigures, Metrics, PointRecord, Record, Switch};

use super::columns::{by_key, drop_causes};
use super::csv::plain;
use super::findings::switched;
use super::html::escape;
use super::number::{decimals, fixed, number};
use super::shape::{label_of, parameters};

/// Metrics of which both grounds mean the same, in the order shown. docs/live.md says what may be
/// concluded from them.
const METRICS: [&str; 11] = [
    "offered_mpps",
    "throughput_mpps",
    "throughput_gbps",
    "drop_fraction",
    "rx_occupancy",
    "tx_occupancy",
    "latency_us.mean",
    "latency_us.p50",
    "latency_us.p99",
    "latency_us.p999",
    "idle_fraction",
];

/// Share of the simulation's offered rate that the live generator must reach.
const REACHED: f64 = 0.9;

/// A point on the live ground, to be put beside the same point in the simulation.
#[derive(Clone, Debug, Default)]
pub struct LiveSide {
    /// What was measured.
    pub metrics: Metrics,
    /// The same of each worker.
    pub cores: Vec<CoreFigures>,
    /// Every change of steering, in order.
    pub switches: Vec<Switch>,
    /// Cores that run the application, on both grounds.
    pub core_count: usize,
    /// Their clock, GHz.
    pub core_ghz: f64,
}

/// Puts each of `live` beside the point of `record` at its place: a point of its own and a comparison.
pub fn compare(record: &mut Record, live: Vec<LiveSide>) {
    let simulated = std::mem::take(&mut record.points).into_iter();
    for (mut sim, live) in simulated.zip(live) {
        record.comparisons.push(side_by_side(&sim, &live));
        let mut on_live = PointRecord {
            metrics: live.metrics,
            cores: live.cores,
            timeline: Vec::new(),
            switches: live.switches,
            simulated_seconds: None,
            ..sim.clone()
        };
        for (point, ground) in [(&mut sim, "sim"), (&mut on_live, "live")] {
            point.variant = format!("{}, {ground}", point.variant);
            point.params.insert(GROUND.to_string(), ground.into());
        }
        record.points.extend([sim, on_live]);
    }
}

fn side_by_side(sim: &PointRecord, live: &LiveSide) -> Comparison {
    let rows = METRICS.iter().map(|key| {
        let metric = by_key(key);
        let value = |metrics| (metric.get)(metrics).map(|value| metric.unit.shown(value));
        row(key, metric.unit.name(), value(&sim.metrics), value(&live.metrics))
    });
    let mut rows: Vec<ComparedRow> = rows.collect();
    let busy = |metrics| busy_ns_per_packet(metrics, live.core_count);
    let (ns, live_ns) = (busy(&sim.metrics), busy(&live.metrics));
    rows.push(row("busy_ns_per_packet", "ns", ns, live_ns));
    let cycles = |ns: Option<f64>| ns.map(|ns| ns * live.core_ghz);
    rows.push(row("busy_cycles_per_packet", "cycles", cycles(ns), cycles(live_ns)));
    let missed_rate = live.metrics.offered_mpps < REACHED * sim.metrics.offered_mpps;
    if missed_rate {
        rows.iter_mut().for_each(|row| row.ratio = None);
    }
    let drops = drop_causes([&sim.metrics, &live.metrics].into_iter()).into_iter().map(|cause| {
        let count = |metrics: &Metrics| metrics.drops.get(cause).map_or(0.0, |&n| n as f64);
        let (sim, live) = (count(&sim.metrics), count(&live.metrics));
        // The windows differ in length, so counts have no ratio.
        ComparedRow { ratio: None, ..row(cause, "frames", Some(sim), Some(live)) }
    });
    Comparison { variant: sim.variant.clone(), params: sim.params.clone(), drops: drops.collect(), rows, missed_rate }
}

fn row(key: &str, unit: &str, sim: Option<f64>, live: Option<f64>) -> ComparedRow {
    let ratio = sim.zip(live).filter(|(sim, _)| *sim > 0.0);
    ComparedRow { key: key.to_string(), unit: unit.to_string(), sim, live, ratio: ratio.map(|(sim, live)| live / sim) }
}

/// The variant, and the values of the parameters in which points differ.
fn heading(comparison: &Comparison, record: &Record) -> String {
    let keys = parameters(record).columns;
    let values = keys.into_iter().filter(|key| *key != GROUND).filter_map(|key| {
        let value = comparison.params.get(key)?;
        Some(format!(", {key} = {}", plain(value)))
    });
    format!("{}{}", comparison.variant, values.collect::<String>())
}

/// The parameter in which the two points of a comparison differ.
const GROUND: &str = "ground";

/// Time that cores are not idle, by packets that left; ns.
fn busy_ns_per_packet(metrics: &Metrics, cores: usize) -> Option<f64> {
    let busy = (1.0 - metrics.idle_fraction?) * cores as f64;
    (metrics.throughput_mpps > 0.0).then(|| busy * 1e3 / metrics.throughput_mpps)
}

/// When steering changed on which ground, a paragraph for each point where it did.
pub(super) fn switches_by_ground(record: &Record) -> Vec<String> {
    let keys = parameters(record).columns;
    let said = |point: &PointRecord| {
        let place = label_of(point, keys.iter().filter(|key| **key != GROUND));
        switched(point, &place)
    };
    record.points.iter().filter_map(said).collect()
}

fn row_of<'a>(comparison: &'a Comparison, key: &str) -> Option<&'a ComparedRow> {
    comparison.rows.iter().find(|row| row.key == key)
}

/// What keeps a point from being compared, if something does.
fn caution(comparison: &Comparison) -> Option<String> {
    let offered = row_of(comparison, "offered_mpps")?;
    let (sim, live) = offered.sim.zip(offered.live).filter(|_| comparison.missed_rate)?;
    let (sim, live) = (number(sim), number(live));
    Some(format!("the generator did not reach its rate ({live} of {sim} Mpps); the grounds cannot be compared here"))
}

/// Percent of the packets by which live drops must exceed simulated ones to be named.
const MORE_LOST: f64 = 0.5;

/// How far simulation and live run agree, a paragraph for each point.
pub(super) fn agreement(record: &Record) -> Vec<String> {
    record.comparisons.iter().map(|comparison| agreement_of(comparison, record)).collect()
}

fn agreement_of(comparison: &Comparison, record: &Record) -> String {
    let ratio = |key| row_of(comparison, key)?.ratio.map(number);
    let mut text = heading(comparison, record);
    if let Some(caution) = caution(comparison) {
        return format!("{text}: {caution}.");
    }
    match ratio("throughput_mpps") {
        Some(sent) => text += &format!(": live sends {sent} times as many packets"),
        None => text += ": nothing was sent",
    }
    if let Some(busy) = ratio("busy_ns_per_packet") {
        text += &format!(" and is busy {busy} times as long with each");
    }
    text.push('.');
    let lost = row_of(comparison, "drop_fraction").and_then(|row| row.sim.zip(row.live));
    if let Some((sim, live)) = lost.filter(|(sim, live)| *live > *sim + MORE_LOST) {
        text += &format!(
            " It drops {live:.1} % where the simulation drops {sim:.1} %: this machine's threads do not \
             keep up, so its times measure the machine's load, not the cost of a packet."
        );
    }
    text
}

/// Head of the columns.
const HEAD: [&str; 5] = ["metric", "unit", "sim", "live", "live/sim"];

/// A row's cells; what was not measured is a dash.
fn cells(row: &ComparedRow) -> [String; 5] {
    let places = decimals([row.sim, row.live].into_iter().flatten());
    let places = if row.unit == "frames" { 0 } else { places };
    let value = |value: Option<f64>| value.map_or("–".to_string(), |value| fixed(value, places));
    let ratio = row.ratio.map_or("–".to_string(), |ratio| fixed(ratio, 2));
    let key = match row.unit.as_str() {
        "frames" => format!("dropped: {}", row.key),
        _ => row.key.clone(),
    };
    [key, row.unit.clone(), value(row.sim), value(row.live), ratio]
}

/// All comparisons for a terminal; empty when there are none.
pub fn comparison_table(record: &Record) -> String {
    let mut text = String::new();
    for comparison in &record.comparisons {
        text.push_str(&format!("{}\n", heading(comparison, record)));
        if let Some(caution) = caution(comparison) {
            text.push_str(&format!("  {caution}\n"));
        }
        let rows = comparison.rows.iter().chain(&comparison.drops).map(cells);
        let rows: Vec<[String; 5]> = std::iter::once(HEAD.map(String::from)).chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: [usize; 5] = std::array::from_fn(|column| width(column).unwrap_or(0));
        for row in &rows {
            let [key, unit, values @ ..] = row;
            let mut line = format!("  {key:<0$}  {unit:<1$}", widths[0], widths[1]);
            for (value, &width) in values.iter().zip(&widths[2..]) {
                line.push_str(&format!("  {value:>width$}"));
            }
            text.push_str(&format!("{}\n", line.trim_end()));
        }
    }
    let switches = switches_by_ground(record).into_iter();
    text.extend(switches.map(|line| format!("{line}\n")));
    text
}

/// The same for the page.
pub(super) fn section(record: &Record) -> String {
    if record.comparisons.is_empty() {
        return String::new();
    }
    let head = HEAD.map(|cell| format!("<th scope=\"col\">{cell}</th>")).concat();
    let mut section = String::from("<section>\n<h2>Simulated and live</h2>\n");
    for comparison in &record.comparisons {
        let mut body = String::new();
        for row in comparison.rows.iter().chain(&comparison.drops) {
            let [key, unit, values @ ..] = cells(row);
            let values = values.map(|value| format!("<td class=\"n\">{value}</td>")).concat();
            let (key, unit) = (escape(&key), escape(&unit));
            body += &format!("<tr><th scope=\"row\">{key}</th><td>{unit}</td>{values}</tr>\n");
        }
        let caution = caution(comparison);
        let caution = caution.map(|text| format!("<p><strong>{}</strong></p>\n", escape(&text)));
        section += &format!(
            "<h3>{}</h3>\n{}<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n\
             {body}</tbody>\n</table></div>\n",
            escape(&heading(comparison, record)),
            caution.unwrap_or_default()
        );
    }
    section + "</section>\n"
}

#[cfg(test)]
pub mod tests;
