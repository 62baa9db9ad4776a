//! Which variant wins and why, in sentences made from the numbers.

mod reasons;
mod steps;

use super::columns::rate;
use super::number::{number, percent};
use super::shape::{Facet, Shape};
use super::{PointResult, Report};

/// A difference in throughput below this share counts as none.
const SAME: f64 = 0.01;

/// The report in plain sentences, one paragraph each; empty when there are no points.
pub fn findings(report: &Report) -> Vec<String> {
    // Which ground delivers more is no question; how far they agree is.
    if !report.comparisons.is_empty() {
        return report.agreement();
    }
    let shape = Shape::of(report);
    let mut paragraphs = Vec::new();
    for facet in &shape.facets {
        let before = if facet.label.is_empty() {
            String::new()
        } else {
            format!("At {}: ", facet.label)
        };
        if shape.variants.len() > 1 {
            paragraphs
                .extend(comparison(report, &shape, facet).map(|text| format!("{before}{text}")));
        } else if shape.x.is_none() {
            paragraphs.extend(
                facet
                    .points
                    .iter()
                    .map(|point| format!("{before}{}", alone(report, point))),
            );
        }
        for variant in &shape.variants {
            let steps = steps::along_sweep(report, &shape, facet, variant);
            paragraphs.extend(steps.into_iter().map(|text| format!("{before}{text}")));
        }
    }
    paragraphs
}

/// One point: how it fares against what is offered, and what it waits for.
fn alone(report: &Report, point: &PointResult) -> String {
    let metrics = &point.metrics;
    if let Some(no_drop) = metrics.no_drop_gbps {
        let limits = reasons::limits(report, point).join(" ");
        return format!(
            "{} forwards up to {} Gbit/s without loss. {limits}",
            point.variant,
            number(no_drop)
        );
    }
    let mut text = format!(
        "{} sends back {} of the {} Gbit/s offered",
        point.variant,
        number(metrics.throughput_gbps),
        number(metrics.offered_gbps)
    );
    text += &if metrics.drop_fraction > 0.0 {
        format!(
            " and drops {} of the frames{}.",
            percent(metrics.drop_fraction),
            reasons::main_drop(metrics)
        )
    } else {
        " and drops nothing.".into()
    };
    for sentence in reasons::limits(report, point) {
        text += " ";
        text += &sentence;
    }
    text
}

/// Best against worst variant where they differ most, or that they do not differ.
fn comparison(report: &Report, shape: &Shape, facet: &Facet) -> Option<String> {
    let rank = |variant: &&str| {
        let series = shape.series(facet, variant);
        let sum: f64 = series.iter().map(|(_, point)| rate(&point.metrics)).sum();
        (!series.is_empty()).then(|| sum / series.len() as f64)
    };
    let mut ranked: Vec<(&str, f64)> = shape
        .variants
        .iter()
        .filter_map(|variant| Some((*variant, rank(variant)?)))
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (best, worst) = (*ranked.first()?, *ranked.last()?);
    if ranked.len() < 2 {
        return None;
    }
    if best.1 <= worst.1 * (1.0 + SAME) {
        return Some(equals(report, shape, facet));
    }
    let (x, best_point, worst_point) = widest(shape, facet, best.0, worst.0)?;
    let place = match (shape.x, x) {
        (Some(key), Some(x)) => {
            let on_average = format!(
                "{} delivers most over the sweep, {} Gbit/s on average against {} of {}. They differ most at {key} {}: ",
                best.0,
                number(best.1),
                number(worst.1),
                worst.0,
                number(x)
            );
            on_average
        }
        _ => format!("{} delivers most: ", best.0),
    };
    let (high, low) = (rate(&best_point.metrics), rate(&worst_point.metrics));
    let times = if low > 0.0 {
        format!(", {:.2} times as much", high / low)
    } else {
        String::new()
    };
    let mut text = format!(
        "{place}{} Gbit/s against {} of {}{times}.",
        number(high),
        number(low),
        worst.0
    );
    let why = reasons::differences(&best_point.metrics, &worst_point.metrics, 4, 2);
    if !why.is_empty() {
        text += &format!(" Why: {}.", why.join("; "));
    }
    Some(text)
}

/// The x at which two variants differ most in throughput, and their points there.
fn widest<'a>(
    shape: &Shape<'a>,
    facet: &Facet<'a>,
    best: &str,
    worst: &str,
) -> Option<(Option<f64>, &'a PointResult, &'a PointResult)> {
    let others = shape.series(facet, worst);
    let pairs = shape
        .series(facet, best)
        .into_iter()
        .filter_map(|(x, point)| {
            let other = others.iter().find(|(other_x, _)| *other_x == x)?;
            Some((x, point, other.1))
        });
    let lead =
        |pair: &(f64, &PointResult, &PointResult)| rate(&pair.1.metrics) - rate(&pair.2.metrics);
    let (x, best, worst) = pairs.max_by(|a, b| lead(a).total_cmp(&lead(b)))?;
    Some((shape.x.map(|_| x), best, worst))
}

/// All deliver the same: what that costs the cheapest and the dearest, at the end of a sweep.
fn equals(report: &Report, shape: &Shape, facet: &Facet) -> String {
    let mut text = format!(
        "All variants deliver the same throughput within {}, so look at what it costs them.",
        percent(SAME)
    );
    let last = |variant: &&str| shape.series(facet, variant).last().copied();
    let cost = |at: &(f64, &PointResult)| {
        at.1.metrics
            .cycles_per_packet
            .as_ref()
            .map(|cycles| cycles.total)
    };
    let mut ends: Vec<_> = shape
        .variants
        .iter()
        .filter_map(last)
        .filter_map(|at| Some((cost(&at)?, at)))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((_, (x, cheap))), Some((_, (_, dear)))) = (ends.first(), ends.last()) else {
        return text;
    };
    let why = reasons::differences(&cheap.metrics, &dear.metrics, 4, 2);
    if cheap.variant != dear.variant && !why.is_empty() {
        let place = shape
            .x
            .map_or(String::new(), |key| format!(" at {key} {}", number(*x)));
        text += &format!(
            " {} against {}{place}: {}.",
            cheap.variant,
            dear.variant,
            why.join("; ")
        );
    }
    for sentence in reasons::limits(report, cheap) {
        text += " ";
        text += &sentence;
    }
    text
}
