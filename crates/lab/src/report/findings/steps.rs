//! Where throughput falls or levels off along a sweep, and which capacity is passed there.

use super::SAME;
use super::differences::{Differences, First, Most};
use super::limits::held;
use crate::report::columns::rate;
use crate::report::number::{bytes, number, percent};
use crate::report::shape::{Facet, Shape};
use crate::report::{PointResult, Report};

/// A footprint that changes by less than this share explains no step.
const FOOTPRINT_DIFFERS: f64 = 0.1;

/// A value of the x axis with its point.
type At<'a> = (f64, &'a PointResult);

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
    sentences.extend(missing_steps(report, key, variant, &series));
    sentences
}

/// Two points between which throughput falls all the way.
struct Fall<'a> {
    from: At<'a>,
    to: At<'a>,
    /// Where in it a capacity is passed.
    passed: Option<Passed<'a>>,
}

/// A capacity that lies between the footprints of two neighbours in a sweep.
struct Passed<'a> {
    footprint: Footprint,
    name: &'static str,
    capacity: u64,
    from: At<'a>,
    to: At<'a>,
}

/// What is held against the capacities of caches.
#[derive(Clone, Copy)]
struct Footprint {
    name: &'static str,
    of: fn(&PointResult) -> Option<u64>,
}

/// What NICs may write into, by the settings; what DMA touched, by the measurement.
const FOOTPRINTS: [Footprint; 2] = [
    Footprint {
        name: "the buffer space of all receive rings",
        of: |point| point.bounds.ring_buffers.map(|bytes| bytes.0),
    },
    Footprint {
        name: "the I/O working set",
        of: |point| point.metrics.io_working_set_bytes,
    },
];

/// Falls of more than one percent, those without a rest between them as one, but a new one where
/// a capacity is passed.
fn falls<'a>(report: &Report, series: &[At<'a>]) -> Vec<Fall<'a>> {
    let mut falls: Vec<Fall> = Vec::new();
    let mut falling = false;
    for pair in series.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let falls_here = is_fall(from, to);
        let passed = passed(report, from, to);
        match falls.last_mut() {
            Some(fall) if falls_here && falling && passed.is_none() => fall.to = to,
            _ if falls_here => falls.push(Fall { from, to, passed }),
            _ => {}
        }
        falling = falls_here;
    }
    falls
}

fn is_fall(from: At, to: At) -> bool {
    rate(&to.1.metrics) < rate(&from.1.metrics) * (1.0 - SAME)
}

/// Caches that DMA can use, largest first.
fn capacities(report: &Report) -> impl Iterator<Item = (&'static str, u64)> {
    let known = [
        ("the whole LLC", report.llc_bytes),
        ("the I/O ways", report.io_way_bytes),
    ];
    known
        .into_iter()
        .filter_map(|(name, capacity)| Some((name, capacity?)))
}

/// The footprint that changes between two points, by both ends.
fn changing(from: At, to: At) -> Option<(Footprint, u64, u64)> {
    FOOTPRINTS.into_iter().find_map(|footprint| {
        let (low, high) = ((footprint.of)(from.1)?, (footprint.of)(to.1)?);
        let changes = low.abs_diff(high) as f64 > low.min(high) as f64 * FOOTPRINT_DIFFERS;
        changes.then_some((footprint, low, high))
    })
}

/// The largest capacity between the footprints of two points.
fn passed<'a>(report: &Report, from: At<'a>, to: At<'a>) -> Option<Passed<'a>> {
    let (footprint, low, high) = changing(from, to)?;
    let (name, capacity) =
        capacities(report).find(|(_, capacity)| low <= *capacity && *capacity < high)?;
    Some(Passed {
        footprint,
        name,
        capacity,
        from,
        to,
    })
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
    text += &match &fall.passed {
        Some(passed) => format!(": {}", passed.words(key, fall)),
        None => beyond(report, fall),
    };
    text.push('.');
    let most = Most {
        causes: 2,
        effects: 1,
        despite: 0,
    };
    let differences = Differences::of(from, to, First::Worse, &most);
    text += &differences.text("After the step, against before");
    if let Some(held) = held(fall.to.1) {
        text += &format!(" {held}");
    }
    text
}

impl Passed<'_> {
    fn words(&self, key: &str, fall: &Fall) -> String {
        let place = match self.to.0 == fall.to.0 && self.from.0 == fall.from.0 {
            true => "there".to_string(),
            false => between(key, self.from, self.to),
        };
        format!("{place} {}", self.growth())
    }

    fn growth(&self) -> String {
        let show = |at: At| bytes((self.footprint.of)(at.1).unwrap_or(0) as f64);
        format!(
            "{} grows from {} to {} and passes {} ({})",
            self.footprint.name,
            show(self.from),
            show(self.to),
            self.name,
            bytes(self.capacity as f64)
        )
    }
}

fn between(key: &str, from: At, to: At) -> String {
    format!("between {key} {} and {}", number(from.0), number(to.0))
}

/// A fall at which no capacity is passed: where the footprint is meanwhile, if it changes.
fn beyond(report: &Report, fall: &Fall) -> String {
    let Some((footprint, low, high)) = changing(fall.from, fall.to) else {
        return String::new();
    };
    let (least, most) = (low.min(high), low.max(high));
    let side = match capacities(report).find(|(_, capacity)| least > *capacity) {
        Some((name, capacity)) => {
            let capacity = bytes(capacity as f64);
            format!(", at both ends more than {name} ({capacity})")
        }
        None => capacities(report)
            .last()
            .filter(|(_, capacity)| most <= *capacity)
            .map_or(String::new(), |(name, _)| format!(", within {name}")),
    };
    let (low, high) = (bytes(low as f64), bytes(high as f64));
    format!(", where {} goes from {low} to {high}{side}", footprint.name)
}

/// Capacities that are passed without a fall there.
fn missing_steps(report: &Report, key: &str, variant: &str, series: &[At]) -> Vec<String> {
    let pairs = series.windows(2).filter(|pair| !is_fall(pair[0], pair[1]));
    pairs
        .filter_map(|pair| passed(report, pair[0], pair[1]))
        .map(|passed| {
            format!(
                "{variant} has no step {}, where {}: {} and {} Gbit/s.",
                between(key, passed.from, passed.to),
                passed.growth(),
                number(rate(&passed.from.1.metrics)),
                number(rate(&passed.to.1.metrics))
            )
        })
        .collect()
}

/// A sweep without falls: it rises up to somewhere, or is flat.
fn level(key: &str, variant: &str, series: &[At]) -> String {
    let rate = |at: &At| rate(&at.1.metrics);
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
