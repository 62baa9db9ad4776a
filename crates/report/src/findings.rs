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

use nicforge_record::{PointRecord, Record};

use super::comparison::{agreement, switches_by_ground};
use super::number::{number, percent};
use super::shape::Shape;

/// A difference in throughput below this share counts as none.
const SAME: f64 = 0.01;

/// The report in plain sentences, one paragraph each; empty when there are no points.
pub fn findings(record: &Record) -> Vec<String> {
    // Which ground delivers more is no question; how far they agree is.
    if !record.comparisons.is_empty() {
        let mut paragraphs = agreement(record);
        paragraphs.extend(switches_by_ground(record));
        return paragraphs;
    }
    let mut paragraphs = window::about_windows(record);
    paragraphs.extend(unfinished_checksums(record));
    if record.points.iter().all(|point| point.steadiness.no_frame_arrived) {
        return paragraphs;
    }
    let shape = Shape::of(record);
    paragraphs.extend(twins(record, &shape));
    for facet in &shape.facets {
        if facet.points.iter().all(|point| point.steadiness.no_frame_arrived) {
            continue;
        }
        let mut found = Vec::new();
        if facet.points.len() > 1 {
            found.extend(discards::of_points(record, &facet.points));
        }
        if shape.variants.len() > 1 {
            found.extend(ranking::ranking(record, &shape, facet));
        } else if shape.x.is_none() {
            let points = facet.points.iter().filter(|point| !point.steadiness.no_frame_arrived);
            found.extend(points.map(|point| alone(record, point)));
        }
        found.extend(over_time::over_time(&shape, facet));
        for variant in &shape.variants {
            found.extend(steps::along_sweep(record, &shape, facet, variant));
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
fn twins(record: &Record, shape: &Shape) -> Vec<String> {
    let of = |variant: &str| -> Vec<_> {
        let points = record.points.iter();
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
fn alone(record: &Record, point: &PointRecord) -> String {
    let metrics = &point.metrics;
    let limits = limits::limits(record, point).join(" ");
    if let Some(no_drop) = metrics.no_drop_gbps {
        let (name, rate) = (&point.variant, number(no_drop));
        return match discards::discards(record, metrics) {
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
