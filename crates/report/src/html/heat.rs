//! Two swept keys at once: a map of the rate, which a reader's choice of keys and metric replaces.

use nicforge_record::{PointRecord, Record};

use super::escape;
use crate::columns::{Metric, by_key, rate};
use crate::figures::median;
use crate::number::{decimals, fixed, number};
use crate::shape::{Shape, number_of};

/// Rows and columns of a map at most.
const SIDE_MAX: usize = 24;
/// Share of a map's cells that have a point at least; of a sample most have none.
const FILLED: f64 = 0.5;
/// Heat from which on text has the page's colour.
const HOT: f64 = 0.55;

/// The section; empty unless two numeric keys are swept.
pub fn section(record: &Record) -> String {
    let shape = Shape::of(record);
    let Some([down, across]) = keys(record, &shape) else {
        return String::new();
    };
    let metric = ranked(record);
    let maps: Vec<Map> = shape.variants.iter().map(|variant| Map::of(record, variant, down, across, metric)).collect();
    let cells = || maps.iter().flat_map(|map| map.cells.iter().flatten()).flatten().copied();
    let (least, most) = (cells().fold(f64::INFINITY, f64::min), cells().fold(0.0, f64::max));
    let places = decimals(cells());
    let filled = cells().count() as f64 / maps.iter().map(Map::size).sum::<usize>().max(1) as f64;
    if filled < FILLED || maps.iter().any(|map| map.is_large()) {
        return String::new();
    }
    let pictures: String = maps.iter().map(|map| map.html([down, across], [least, most], places)).collect();
    let others = if maps.iter().any(|map| map.several) {
        " Each cell is the median over all values of the other keys."
    } else {
        ""
    };
    format!(
        "<section class=\"heat\">\n<h2>{label} by {down} and {across}</h2>\n<p class=\"note\">{unit}, from {low} (pale) to \
         {high} (dark).{others}</p>\n<div class=\"panels\" style=\"--columns:2\">\n{pictures}</div>\n</section>\n",
        label = capitalised(metric.label),
        down = escape(down),
        across = escape(across),
        unit = metric.unit.name(),
        low = number(least),
        high = number(most),
    )
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The metric that points are ranked by.
fn ranked(record: &Record) -> &'static Metric {
    let has = |get: fn(&PointRecord) -> bool| record.points.iter().any(get);
    if has(|point| point.metrics.no_drop_gbps.is_some()) {
        by_key("no_drop_gbps")
    } else if has(|point| point.metrics.bandwidth_gbps.is_some()) {
        by_key("bandwidth_gbps")
    } else {
        by_key("throughput_gbps")
    }
}

/// The two keys that change the rate most: rows, and columns, of which there are more.
fn keys<'a>(record: &Record, shape: &Shape<'a>) -> Option<[&'a str; 2]> {
    let mut keys = shape.numeric.clone();
    // The first of equals stays first.
    keys.sort_by(|a, b| effect(record, b).total_cmp(&effect(record, a)));
    let (first, second) = (*keys.first()?, *keys.get(1)?);
    let count = |key: &str| values(record.points.iter(), key).len();
    Some(if count(first) < count(second) { [first, second] } else { [second, first] })
}

/// How far medians of the rate lie apart over the values of `key`.
fn effect(record: &Record, key: &str) -> f64 {
    let of = |value: &f64| {
        let here = record.points.iter().filter(|point| number_of(point, key) == Some(*value));
        let mut rates: Vec<f64> = here.map(|point| rate(&point.metrics)).collect();
        rates.sort_by(f64::total_cmp);
        median(&rates)
    };
    let medians: Vec<f64> = values(record.points.iter(), key).iter().map(of).collect();
    medians.iter().copied().fold(0.0, f64::max) - medians.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The values of `key`, rising.
fn values<'a>(points: impl Iterator<Item = &'a PointRecord>, key: &str) -> Vec<f64> {
    let mut values: Vec<f64> = points.filter_map(|point| number_of(point, key)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// The map of one variant.
struct Map<'a> {
    variant: &'a str,
    down: Vec<f64>,
    across: Vec<f64>,
    /// By row and column, in the unit shown.
    cells: Vec<Vec<Option<f64>>>,
    /// Whether a cell stands for several points.
    several: bool,
}

impl<'a> Map<'a> {
    fn of(record: &Record, variant: &'a str, down: &str, across: &str, metric: &Metric) -> Map<'a> {
        let points = || record.points.iter().filter(|point| point.variant == variant);
        let (rows, columns) = (values(points(), down), values(points(), across));
        let cell = |row: f64, column: f64| {
            let here = points().filter(|p| number_of(p, down) == Some(row) && number_of(p, across) == Some(column));
            let mut found: Vec<f64> = here.filter_map(|point| (metric.get)(&point.metrics)).collect();
            found.retain(|value| value.is_finite());
            found.sort_by(f64::total_cmp);
            (!found.is_empty()).then(|| metric.unit.shown(median(&found)))
        };
        let row = |row: &f64| columns.iter().map(|column| cell(*row, *column)).collect();
        let cells: Vec<Vec<Option<f64>>> = rows.iter().map(row).collect();
        let several = points().count() > cells.iter().flatten().flatten().count();
        Map { variant, down: rows, across: columns, cells, several }
    }

    fn size(&self) -> usize {
        self.down.len() * self.across.len()
    }

    fn is_large(&self) -> bool {
        self.down.len().max(self.across.len()) > SIDE_MAX
    }

    fn html(&self, keys: [&str; 2], ends: [f64; 2], places: usize) -> String {
        let heads: String =
            self.across.iter().map(|value| format!("<th scope=\"col\" class=\"n\">{}</th>", number(*value))).collect();
        let cell = |value: &Option<f64>| {
            let Some(value) = value else { return "<td></td>".to_owned() };
            let heat = if ends[1] > ends[0] { (value - ends[0]) / (ends[1] - ends[0]) } else { 0.0 };
            let hot = if heat > HOT { " hot" } else { "" };
            format!("<td class=\"n{hot}\" style=\"--heat:{:.0}%\">{}</td>", heat * 100.0, fixed(*value, places))
        };
        let row = |(value, cells): (&f64, &Vec<Option<f64>>)| {
            format!(
                "<tr><th scope=\"row\">{}</th>{}</tr>\n",
                number(*value),
                cells.iter().map(cell).collect::<String>()
            )
        };
        let rows: String = self.down.iter().zip(&self.cells).map(row).collect();
        format!(
            "<figure><figcaption>{}</figcaption><div class=\"scroll\"><table class=\"heatmap\">\n<thead><tr><th scope=\"col\">{} \
             <small>{} →</small></th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div></figure>\n",
            escape(self.variant),
            escape(keys[0]),
            escape(keys[1]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn two_swept_keys_have_a_map_for_each_variant_and_one_has_none() {
        let record = fake::two_keys();
        let section = section(&record);
        assert!(section.contains("Throughput by cores and rx_entries"), "{section}");
        assert_eq!(section.matches("class=\"heatmap\"").count(), 2);
        // Three numbers of cores by four sizes, twice.
        assert_eq!(section.matches("--heat:").count(), 24);
        assert!(!section.contains("median"), "{section}");
        assert_eq!(super::section(&fake::sweep(&[("priv_ring", 1.8)])), "");
    }

    #[test]
    fn of_many_keys_the_two_that_matter_most_are_shown_and_cells_are_medians() {
        let section = section(&fake::wide());
        assert!(
            section.contains("by array_mib and rx_entries") || section.contains("by io_ways and rx_entries"),
            "{section}"
        );
        assert!(section.contains("median over all values"), "{section}");
    }
}
