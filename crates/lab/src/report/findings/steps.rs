//! Where throughput falls or levels off along a sweep, and which capacity is passed there.

use super::SAME;
use super::reasons;
use crate::report::columns::rate;
use crate::report::number::{bytes, number, percent};
use crate::report::shape::{Facet, Shape};
use crate::report::{PointResult, Report};

/// The steps of one variant along the x axis, in sentences.
pub fn along_sweep(report: &Report, shape: &Shape, facet: &Facet, variant: &str) -> Vec<String> {
    let Some(key) = shape.x else {
        return Vec::new();
    };
    let series = shape.series(facet, variant);
    if series.len() < 2 {
        return Vec::new();
    }
    let falls = falls(report, &series);
    let mut sentences: Vec<String> = falls
        .iter()
        .map(|fall| describe(report, key, variant, fall))
        .collect();
    if falls.is_empty() {
        sentences.push(level(key, variant, &series));
    }
    sentences
}

/// Two points between which throughput falls all the way.
struct Fall<'a> {
    from: (f64, &'a PointResult),
    to: (f64, &'a PointResult),
    passes: Option<(&'static str, u64)>,
}

/// Falls of more than one percent, those without a rest between them as one, but a new one where
/// a capacity is passed.
fn falls<'a>(report: &Report, series: &[(f64, &'a PointResult)]) -> Vec<Fall<'a>> {
    let mut falls: Vec<Fall> = Vec::new();
    let mut falling = false;
    for pair in series.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let falls_here = rate(&to.1.metrics) < rate(&from.1.metrics) * (1.0 - SAME);
        let passes = passed_capacity(report, from.1, to.1);
        match falls.last_mut() {
            Some(fall) if falls_here && falling && passes.is_none() => fall.to = to,
            _ if falls_here => falls.push(Fall { from, to, passes }),
            _ => {}
        }
        falling = falls_here;
    }
    falls
}

/// The largest capacity between the I/O working sets of two points.
fn passed_capacity(
    report: &Report,
    from: &PointResult,
    to: &PointResult,
) -> Option<(&'static str, u64)> {
    let (low, high) = (
        from.metrics.io_working_set_bytes?,
        to.metrics.io_working_set_bytes?,
    );
    let capacities = [
        ("the whole LLC", report.llc_bytes),
        ("the I/O ways", report.io_way_bytes),
    ];
    let known = capacities
        .into_iter()
        .filter_map(|(name, capacity)| Some((name, capacity?)));
    known
        .into_iter()
        .find(|(_, capacity)| low <= *capacity && *capacity < high)
}

fn describe(report: &Report, key: &str, variant: &str, fall: &Fall) -> String {
    let (from, to) = (&fall.from.1.metrics, &fall.to.1.metrics);
    let mut text = format!(
        "{variant} falls from {} to {} Gbit/s ({} less) between {key} {} and {}",
        number(rate(from)),
        number(rate(to)),
        percent(1.0 - rate(to) / rate(from)),
        number(fall.from.0),
        number(fall.to.0)
    );
    if let (Some(low), Some(high)) = (from.io_working_set_bytes, to.io_working_set_bytes) {
        let (low, high) = (bytes(low as f64), bytes(high as f64));
        text += &match fall.passes {
            Some((name, capacity)) => {
                format!(
                    ": there the I/O working set grows from {low} to {high} and passes {name} ({})",
                    bytes(capacity as f64)
                )
            }
            None => format!(
                ", where the I/O working set goes from {low} to {high}{}",
                side(report, to.io_working_set_bytes)
            ),
        };
    }
    text.push('.');
    let why = reasons::differences(to, from, 2, 1);
    if !why.is_empty() {
        text += &format!(" After the step, against before: {}.", why.join("; "));
    }
    text
}

/// On which side of the capacities a working set lies.
fn side(report: &Report, set: Option<u64>) -> &'static str {
    let over = |capacity: Option<u64>| set.zip(capacity).map(|(set, capacity)| set > capacity);
    match (over(report.io_way_bytes), over(report.llc_bytes)) {
        (_, Some(true)) => ", more than the LLC",
        (Some(true), _) => ", more than the I/O ways",
        (Some(false), _) => ", which still fits in the I/O ways",
        _ => "",
    }
}

/// A sweep without falls: it rises up to somewhere, or is flat.
fn level(key: &str, variant: &str, series: &[(f64, &PointResult)]) -> String {
    let rate = |at: &(f64, &PointResult)| rate(&at.1.metrics);
    let most = series.iter().map(rate).fold(0.0, f64::max);
    // There are at least two points, so one of them is the largest.
    let reached = series
        .iter()
        .find(|at| rate(at) >= most * (1.0 - SAME))
        .unwrap_or(&series[0]);
    let (first, last) = (&series[0], &series[series.len() - 1]);
    if reached.0 == first.0 {
        let (low, high) = (number(first.0), number(last.0));
        return format!(
            "{variant} holds {} Gbit/s from {key} {low} to {high}.",
            number(most)
        );
    }
    let mut text = format!(
        "{variant} rises from {} Gbit/s at {key} {} to {} at {}",
        number(rate(first)),
        number(first.0),
        number(rate(reached)),
        number(reached.0)
    );
    if reached.0 != last.0 {
        text += " and stays there";
    }
    text.push('.');
    text
}
