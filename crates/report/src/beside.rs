//! Values of the user's own beside those of the run.

use std::collections::BTreeSet;

use nicforge_record::{Overlay, PointRecord, Record};
use serde_json::Value;

use super::columns::{Metric, all};
use super::csv::plain;
use super::html::escape;
use super::number::number;

/// What the keys of drop causes begin with.
const DROPS: &str = "drops.";

/// What values are of: a metric, or frames dropped for one cause.
struct Quantity {
    key: String,
    name: String,
    metric: Option<&'static Metric>,
}

impl Quantity {
    fn of_metric(metric: &'static Metric) -> Quantity {
        let name = format!("{} {}", metric.label, metric.unit.name()).trim_end().to_owned();
        Quantity { key: metric.key.to_owned(), name, metric: Some(metric) }
    }

    fn of_drops(key: &str, cause: &str) -> Quantity {
        Quantity { key: key.to_owned(), name: format!("dropped: {cause} frames"), metric: None }
    }

    fn of_point(&self, point: &PointRecord) -> Option<f64> {
        match (self.metric, self.key.strip_prefix(DROPS)) {
            (Some(metric), _) => (metric.get)(&point.metrics),
            (None, cause) => Some(point.metrics.drops.get(cause?).copied().unwrap_or(0) as f64),
        }
    }

    fn shown(&self, value: f64) -> String {
        number(self.metric.map_or(value, |metric| metric.unit.shown(value)))
    }
}

/// A value and the one that stands beside it.
struct Pair<'a> {
    overlay: &'a Overlay,
    /// The point's variant; `None` where the run has no such point.
    variant: Option<&'a str>,
    quantity: &'a Quantity,
    own: f64,
    run: Option<f64>,
}

impl Pair<'_> {
    fn cells(&self, keys: &[&str]) -> [String; 6] {
        let shown = |value: f64| self.quantity.shown(value);
        let half = self.overlay.half_widths.get(&self.quantity.key).map(|half| format!(" ± {}", shown(*half)));
        let params = self.overlay.params.iter().filter(|(key, _)| keys.contains(&key.as_str()));
        let params = params.map(|(key, value)| format!("{key} {}", plain(value)));
        let name = std::iter::once(self.overlay.series.clone()).chain(params).collect::<Vec<_>>().join(", ");
        let ratio = self.run.filter(|_| self.own != 0.0).map(|run| format!("{:.3}", run / self.own));
        [
            name,
            self.quantity.name.clone(),
            format!("{}{}", shown(self.own), half.unwrap_or_default()),
            self.variant.map_or("no such point", |variant| variant).to_owned(),
            self.run.map_or("-".to_owned(), shown),
            ratio.unwrap_or_else(|| "-".to_owned()),
        ]
    }
}

const HEAD: [&str; 6] = ["own values", "metric", "own", "variant", "simulated", "simulated/own"];

fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// Settings of rows that tell them apart, from each other or from the run's points.
fn telling(record: &Record) -> Vec<&str> {
    let of_rows = || record.overlays.iter().map(|overlay| &overlay.params);
    let of_points = record.points.iter().map(|point| &point.params);
    let all: Vec<_> = of_rows().chain(of_points).collect();
    let tells = |key: &&str| {
        let mut values = all.iter().filter_map(|params| params.get(*key));
        values.next().is_some_and(|first| values.any(|value| !equal(first, value)))
    };
    let keys: BTreeSet<&str> = of_rows().flat_map(|params| params.keys().map(String::as_str)).collect();
    keys.into_iter().filter(tells).collect()
}

/// Whether the point is one that the row is about: of all of its settings, and of its variant where it names one.
pub fn is_about(overlay: &Overlay, record: &Record, point: &PointRecord) -> bool {
    let named = record.points.iter().any(|point| point.variant == overlay.series);
    let mut params = overlay.params.iter();
    (!named || point.variant == overlay.series)
        && params.all(|(key, value)| point.params.get(key).is_some_and(|own| equal(own, value)))
}

/// All that rows have values of, in the order of `points.csv`.
fn quantities(record: &Record) -> Vec<Quantity> {
    let is_there = |key: &str| record.overlays.iter().any(|overlay| overlay.values.contains_key(key));
    let metrics = all().filter(|metric| is_there(metric.key)).map(Quantity::of_metric);
    let keys: BTreeSet<&String> = record.overlays.iter().flat_map(|overlay| overlay.values.keys()).collect();
    let drops = keys.into_iter().filter_map(|key| Some(Quantity::of_drops(key, key.strip_prefix(DROPS)?)));
    metrics.chain(drops).collect()
}

fn pairs<'a>(record: &'a Record, quantities: &'a [Quantity]) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for overlay in &record.overlays {
        let about: Vec<&PointRecord> = record.points.iter().filter(|point| is_about(overlay, record, point)).collect();
        for quantity in quantities {
            let Some(&own) = overlay.values.get(&quantity.key) else {
                continue;
            };
            if about.is_empty() {
                pairs.push(Pair { overlay, variant: None, quantity, own, run: None });
            }
            for point in &about {
                let run = quantity.of_point(point);
                pairs.push(Pair { overlay, variant: Some(&point.variant), quantity, own, run });
            }
        }
    }
    pairs
}

/// As many pairs stand in a terminal; of more those of the metrics that say most.
const LINES_MAX: usize = 40;

/// Lines for the terminal below an empty one; nothing without such values.
pub fn lines(record: &Record) -> String {
    let (quantities, keys) = (quantities(record), telling(record));
    let mut pairs = pairs(record, &quantities);
    let all = pairs.len();
    if all > LINES_MAX {
        pairs.retain(|pair| pair.quantity.metric.is_some_and(|metric| metric.brief.is_some()));
    }
    let left = all - pairs.len();
    let rows: Vec<[String; 6]> = pairs.iter().map(|pair| pair.cells(&keys)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 6]> = std::iter::once(HEAD.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::from("\n");
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    if left > 0 {
        text += &format!("the page has {left} more\n");
    }
    text
}

/// The page's section.
pub fn section(record: &Record) -> String {
    let quantities = quantities(record);
    let (pairs, keys) = (pairs(record, &quantities), telling(record));
    if pairs.is_empty() {
        return String::new();
    }
    let head: String = HEAD.iter().map(|cell| format!("<th scope=\"col\">{cell}</th>")).collect();
    let mut rows = String::new();
    for pair in &pairs {
        let cells: String = pair.cells(&keys).iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        rows += &format!("<tr>{cells}</tr>\n");
    }
    format!(
        "<section>\n<h2>Own values beside the simulation</h2>\n<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )
}

/// Names of the series of own values, in order of appearance.
pub fn series(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for overlay in &record.overlays {
        if !names.contains(&overlay.series.as_str()) {
            names.push(&overlay.series);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    fn own(series: &str, entries: u64, gbps: f64) -> Overlay {
        Overlay {
            series: series.to_owned(),
            params: [("rx_entries".to_owned(), json!(entries))].into_iter().collect(),
            values: [("throughput_gbps".to_owned(), gbps)].into_iter().collect(),
            half_widths: [("throughput_gbps".to_owned(), 2.0)].into_iter().collect(),
        }
    }

    #[test]
    fn values_stand_beside_their_points_in_table_page_and_plots() {
        let mut record = fake::sweep(&[("priv_ring", 1.0)]);
        let first = record.points[0].params["rx_entries"].as_u64().unwrap();
        let before = crate::to_html(&record).unwrap();
        record.overlays = vec![own("testbed", first, 100.0), own("testbed", 77, 90.0)];
        let text = lines(&record);
        assert!(
            text.contains(&format!("testbed, rx_entries {first}  throughput Gbit/s  100 ± 2  priv_ring")),
            "{text}"
        );
        assert!(text.contains("testbed, rx_entries 77") && text.contains("no such point"), "{text}");
        let page = crate::to_html(&record).unwrap();
        assert!(page.contains("Own values beside the simulation"));
        assert!(page.matches("testbed").count() > text.matches("testbed").count(), "the legend names the series");
        assert!(page.matches("stroke-dasharray").count() >= before.matches("stroke-dasharray").count());
    }

    #[test]
    fn a_row_that_names_a_variant_is_about_its_points_only() {
        let record = fake::two_variants();
        let (one, other) = (&record.points[0], &record.points[1]);
        let named = Overlay { series: one.variant.clone(), ..Overlay::default() };
        assert!(is_about(&named, &record, one) && !is_about(&named, &record, other));
        let unnamed = Overlay { series: "testbed".to_owned(), ..Overlay::default() };
        assert!(is_about(&unnamed, &record, one) && is_about(&unnamed, &record, other));
    }
}
