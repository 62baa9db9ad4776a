//! Which variant wins and why, in sentences made from the numbers.

mod checksums;
mod differences;
mod discards;
mod limits;
mod over_time;
mod passing;
mod ranking;
mod steps;
mod window;

pub use checksums::{CHECKSUM_REMEDY, unfinished_checksums};
pub use over_time::{changes, switched};

use super::number::{number, percent};
use super::shape::Shape;
use super::{PointResult, Report};

/// A difference in throughput below this share counts as none.
const SAME: f64 = 0.01;

/// The report in plain sentences, one paragraph each; empty when there are no points.
pub fn findings(report: &Report) -> Vec<String> {
    // Which ground delivers more is no question; how far they agree is.
    if !report.comparisons.is_empty() {
        let mut paragraphs = report.agreement();
        paragraphs.extend(report.switches_by_ground());
        return paragraphs;
    }
    let mut paragraphs = window::about_windows(report);
    paragraphs.extend(unfinished_checksums(report));
    if report.points.iter().all(window::is_empty) {
        return paragraphs;
    }
    let shape = Shape::of(report);
    paragraphs.extend(twins(report, &shape));
    for facet in &shape.facets {
        if facet.points.iter().all(|point| window::is_empty(point)) {
            continue;
        }
        let mut found = Vec::new();
        if facet.points.len() > 1 {
            found.extend(discards::of_points(&facet.points));
        }
        if shape.variants.len() > 1 {
            found.extend(ranking::ranking(report, &shape, facet));
        } else if shape.x.is_none() {
            let points = facet.points.iter().filter(|point| !window::is_empty(point));
            found.extend(points.map(|point| alone(report, point)));
        }
        found.extend(over_time::over_time(&shape, facet));
        for variant in &shape.variants {
            found.extend(steps::along_sweep(report, &shape, facet, variant));
        }
        let before = match facet.label.as_str() {
            "" => String::new(),
            label => format!("At {label}: "),
        };
        paragraphs.extend(found.into_iter().map(|text| format!("{before}{text}")));
    }
    paragraphs
}

/// Variants that differ in name only, as when `--set` gives all the interface by which they differed.
fn twins(report: &Report, shape: &Shape) -> Vec<String> {
    let of = |variant: &str| -> Vec<_> {
        let points = report.points.iter();
        let own = points.filter(|point| point.variant == variant);
        own.map(|point| (&point.params, &point.metrics)).collect()
    };
    let mut found = Vec::new();
    for (index, variant) in shape.variants.iter().enumerate() {
        let twin = shape.variants[..index].iter().find(|other| of(other) == of(variant));
        found.extend(
            twin.map(|other| format!("{other} and {variant} are the same: no setting that counts in them differs.")),
        );
    }
    found
}

/// One point: how it fares against what is offered, and what it waits for.
fn alone(report: &Report, point: &PointResult) -> String {
    let metrics = &point.metrics;
    let limits = limits::limits(report, point).join(" ");
    if let Some(no_drop) = metrics.no_drop_gbps {
        let (name, rate) = (&point.variant, number(no_drop));
        return match discards::discards(metrics) {
            None => format!("{name} forwards up to {rate} Gbit/s without loss. {limits}"),
            Some(found) => format!(
                "{name} takes up to {rate} Gbit/s without losing a frame to load, but drops {} of the frames for what \
                 they are, mostly as {}. {limits}",
                percent(found.share),
                found.cause
            ),
        };
    }
    let mut text = format!(
        "{} sends back {} of the {} Gbit/s offered",
        point.variant,
        number(metrics.throughput_gbps),
        number(metrics.offered_gbps)
    );
    text += &if metrics.drop_fraction > 0.0 {
        format!(" and drops {} of the frames{}.", percent(metrics.drop_fraction), differences::main_drop(metrics))
    } else {
        " and drops nothing.".into()
    };
    format!("{text} {limits}").trim_end().to_string()
}

/// A number without decimals.
fn whole(value: f64) -> String {
    number(value.round())
}
