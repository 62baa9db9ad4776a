//! A point on both grounds, side by side.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::columns::by_key;
use super::csv::plain;
use super::findings::switched;
use super::html::escape;
use super::number::{decimals, fixed, number};
use super::shape::{label_of, parameters};
use super::{PointResult, Report};
use crate::by_core::CoreFigures;
use crate::metrics::Metrics;
use crate::timeline::Switch;

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

/// One point on both grounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared in the scenario.
    pub variant: String,
    /// Every swept or varied value, by the scenario's own keys.
    pub params: Map<String, Value>,
    /// The quantities that mean the same on both.
    pub rows: Vec<ComparedRow>,
    /// Frames dropped in the simulation and live, by cause.
    pub drops: Vec<ComparedRow>,
    /// Live the generator stayed below `REACHED` of the simulation's rate: nothing here may be
    /// compared, and no row has a ratio.
    #[serde(default)]
    pub missed_rate: bool,
}

/// Share of the simulation's offered rate that the live generator must reach.
const REACHED: f64 = 0.9;

/// One quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedRow {
    /// Its key, as in the metrics; the cause of a drop.
    pub key: String,
    /// Unit of both values.
    pub unit: String,
    /// In the simulation, if it was measured there.
    pub sim: Option<f64>,
    /// On the live ground, likewise.
    pub live: Option<f64>,
    /// Live by sim; absent where that cannot be said.
    pub ratio: Option<f64>,
}

impl ComparedRow {
    fn new(key: &str, unit: &str, sim: Option<f64>, live: Option<f64>) -> ComparedRow {
        let ratio = sim.zip(live).filter(|(sim, _)| *sim > 0.0);
        ComparedRow {
            key: key.to_string(),
            unit: unit.to_string(),
            sim,
            live,
            ratio: ratio.map(|(sim, live)| live / sim),
        }
    }
}

impl Comparison {
    /// Puts `sim` and `live` side by side, for `cores` cores at `ghz`.
    pub fn of(sim: &PointResult, live: &Metrics, cores: usize, ghz: f64) -> Comparison {
        let rows = METRICS.iter().map(|key| {
            let metric = by_key(key);
            let value = |metrics| (metric.get)(metrics).map(|value| metric.unit.shown(value));
            ComparedRow::new(key, metric.unit.name(), value(&sim.metrics), value(live))
        });
        let mut rows: Vec<ComparedRow> = rows.collect();
        let busy = |metrics| busy_ns_per_packet(metrics, cores);
        let (ns, live_ns) = (busy(&sim.metrics), busy(live));
        rows.push(ComparedRow::new("busy_ns_per_packet", "ns", ns, live_ns));
        let cycles = |ns: Option<f64>| ns.map(|ns| ns * ghz);
        let (cycles, live_cycles) = (cycles(ns), cycles(live_ns));
        rows.push(ComparedRow::new("busy_cycles_per_packet", "cycles", cycles, live_cycles));
        let mut causes: Vec<&String> = sim.metrics.drops.keys().chain(live.drops.keys()).collect();
        causes.sort_unstable();
        causes.dedup();
        let missed_rate = live.offered_mpps < REACHED * sim.metrics.offered_mpps;
        if missed_rate {
            rows.iter_mut().for_each(|row| row.ratio = None);
        }
        let drops = causes.into_iter().map(|cause| {
            let count = |metrics: &Metrics| metrics.drops.get(cause).map_or(0.0, |&n| n as f64);
            let (sim, live) = (count(&sim.metrics), count(live));
            // Of windows of different length, so they have no ratio.
            ComparedRow { ratio: None, ..ComparedRow::new(cause, "frames", Some(sim), Some(live)) }
        });
        Comparison {
            variant: sim.variant.clone(),
            params: sim.params.clone(),
            drops: drops.collect(),
            rows,
            missed_rate,
        }
    }

    /// The variant and what is particular about the point.
    fn heading(&self, report: &Report) -> String {
        let keys = parameters(report).columns;
        let values = keys.into_iter().filter(|key| *key != GROUND).filter_map(|key| {
            let value = self.params.get(key)?;
            Some(format!(", {key} = {}", plain(value)))
        });
        format!("{}{}", self.variant, values.collect::<String>())
    }
}

/// The parameter that tells the two points of a comparison apart.
const GROUND: &str = "ground";

/// Time that cores are not idle, by packets that left; ns.
fn busy_ns_per_packet(metrics: &Metrics, cores: usize) -> Option<f64> {
    let busy = (1.0 - metrics.idle_fraction?) * cores as f64;
    (metrics.throughput_mpps > 0.0).then(|| busy * 1e3 / metrics.throughput_mpps)
}

impl Report {
    /// Puts what was measured live, what each core did, and when steering changed, beside each point, in the points'
    /// order: a point of its own and a comparison. `of` says how many cores at how many GHz a point has.
    pub fn compare(&mut self, live: Vec<(Metrics, Vec<CoreFigures>, Vec<Switch>)>, of: impl Fn(usize) -> (usize, f64)) {
        let simulated = std::mem::take(&mut self.points).into_iter().enumerate();
        for ((number, mut sim), (live, by_core, switches)) in simulated.zip(live) {
            let (cores, ghz) = of(number);
            self.comparisons.push(Comparison::of(&sim, &live, cores, ghz));
            let mut on_live =
                PointResult { metrics: live, cores: by_core, timeline: Vec::new(), switches, ..sim.clone() };
            for (point, ground) in [(&mut sim, "sim"), (&mut on_live, "live")] {
                point.variant = format!("{}, {ground}", point.variant);
                point.params.insert(GROUND.to_string(), ground.into());
            }
            self.points.extend([sim, on_live]);
        }
    }

    /// When steering changed on which ground, a paragraph for each point where it did.
    pub(super) fn switches_by_ground(&self) -> Vec<String> {
        let keys = parameters(self).columns;
        let told = |point: &PointResult| {
            let place = label_of(point, keys.iter().filter(|key| **key != GROUND));
            switched(point, &place)
        };
        self.points.iter().filter_map(told).collect()
    }
}

impl Comparison {
    fn row(&self, key: &str) -> Option<&ComparedRow> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// What keeps this point from being compared, if something does.
    fn caution(&self) -> Option<String> {
        let offered = self.row("offered_mpps")?;
        let (sim, live) = offered.sim.zip(offered.live).filter(|_| self.missed_rate)?;
        let (sim, live) = (number(sim), number(live));
        Some(format!("the generator did not reach its rate ({live} of {sim} Mpps); nothing here may be compared"))
    }

    /// How far the grounds agree about this point, in a sentence or two.
    fn agreement(&self, report: &Report) -> String {
        let ratio = |key| self.row(key)?.ratio.map(number);
        let mut text = self.heading(report);
        if let Some(caution) = self.caution() {
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
        let lost = self.row("drop_fraction").and_then(|row| row.sim.zip(row.live));
        if let Some((sim, live)) = lost.filter(|(sim, live)| *live > *sim + MORE_LOST) {
            text += &format!(
                " It drops {live:.1} % where the simulation drops {sim:.1} %: this machine's threads do not \
                 keep up, so its times say how busy the machine was, not what a packet costs."
            );
        }
        text
    }
}

/// Percent of the packets, beyond which more lost live is worth a word.
const MORE_LOST: f64 = 0.5;

impl Report {
    /// How far simulation and live run agree, a paragraph for each point.
    pub(super) fn agreement(&self) -> Vec<String> {
        let each = self.comparisons.iter();
        each.map(|comparison| comparison.agreement(self)).collect()
    }
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
pub fn comparison_table(report: &Report) -> String {
    let mut text = String::new();
    for comparison in &report.comparisons {
        text.push_str(&format!("{}\n", comparison.heading(report)));
        if let Some(caution) = comparison.caution() {
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
    let switches = report.switches_by_ground().into_iter();
    text.extend(switches.map(|told| format!("{told}\n")));
    text
}

/// The same for the page.
pub(super) fn section(report: &Report) -> String {
    if report.comparisons.is_empty() {
        return String::new();
    }
    let head = HEAD.map(|cell| format!("<th scope=\"col\">{cell}</th>")).concat();
    let mut section = String::from("<section>\n<h2>Simulated and live</h2>\n");
    for comparison in &report.comparisons {
        let mut body = String::new();
        for row in comparison.rows.iter().chain(&comparison.drops) {
            let [key, unit, values @ ..] = cells(row);
            let values = values.map(|value| format!("<td class=\"n\">{value}</td>")).concat();
            let (key, unit) = (escape(&key), escape(&unit));
            body += &format!("<tr><th scope=\"row\">{key}</th><td>{unit}</td>{values}</tr>\n");
        }
        let caution = comparison.caution();
        let caution = caution.map(|text| format!("<p><strong>{}</strong></p>\n", escape(&text)));
        section += &format!(
            "<h3>{}</h3>\n{}<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n\
             {body}</tbody>\n</table></div>\n",
            escape(&comparison.heading(report)),
            caution.unwrap_or_default()
        );
    }
    section + "</section>\n"
}

#[cfg(test)]
mod tests;
