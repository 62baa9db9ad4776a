//! Which variant of several delivers most, which are level with it, and why the others are behind.

use nicforge_record::{PointRecord, Record};

use super::SAME;
use super::differences::{Differences, First, Most};
use super::limits::{held, limits, wire_is_full};
use crate::columns::rate;
use crate::number::{number, percent};
use crate::shape::{Facet, Shape};

/// What is said about the variant that is furthest behind, and about variants that deliver the same.
const IN_FULL: Most = Most { causes: 4, effects: 2, despite: 2 };
/// About the ones in between.
const IN_SHORT: Most = Most { causes: 2, effects: 1, despite: 1 };
/// Variants between the first and the last that are explained, the best of them.
const MOST_BETWEEN: usize = 2;

/// A variant with its mean rate, Gbit/s.
type Ranked<'a> = (&'a str, f64);

/// The paragraphs on one facet; none when it has fewer than two variants.
pub fn ranking(record: &Record, shape: &Shape, facet: &Facet) -> Vec<String> {
    let mean = |variant: &&str| {
        let series = shape.series(facet, variant);
        let sum: f64 = series.iter().map(|(_, point)| rate(&point.metrics)).sum();
        (!series.is_empty()).then(|| sum / series.len() as f64)
    };
    let variants = shape.variants.iter();
    let mut ranked: Vec<Ranked> = variants.filter_map(|variant| Some((*variant, mean(variant)?))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (Some(&best), Some(&worst)) = (ranked.first(), ranked.last()) else {
        return Vec::new();
    };
    if ranked.len() < 2 {
        return Vec::new();
    }
    let level = ranked.iter().take_while(|(_, mean)| best.1 <= mean * (1.0 + SAME)).count();
    if level == ranked.len() {
        return vec![equals(record, shape, facet)];
    }
    let mut paragraphs = Vec::new();
    // Of two variants at one place, the comparison says all.
    let verb = match (ranked.len(), shape.x) {
        (2, None) => "delivers most:",
        _ => {
            paragraphs.push(leaders(shape, &ranked, level));
            "sends"
        }
    };
    let furthest = against(shape, facet, (best.0, worst.0), verb, &IN_FULL);
    paragraphs.push(furthest + &bounds_of(record, shape, facet, best.0, worst.0));
    let between = ranked[level..ranked.len() - 1].iter().take(MOST_BETWEEN);
    paragraphs.extend(between.map(|other| against(shape, facet, (best.0, other.0), "sends", &IN_SHORT)));
    paragraphs
}

/// Who delivers most, who is level, and the order of the others.
fn leaders(shape: &Shape, ranked: &[Ranked], level: usize) -> String {
    let (first, others) = ranked.split_at(level);
    let names: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
    let over = match shape.x {
        Some(_) => " over the sweep",
        None => "",
    };
    let average = match shape.x {
        Some(_) => " on average",
        None => "",
    };
    let rates = match (first.first(), first.last()) {
        (Some(most), Some(least)) if number(most.1) != number(least.1) => {
            format!("{} to {}", number(least.1), number(most.1))
        }
        (Some(most), _) => number(most.1),
        _ => String::new(),
    };
    let mut text = match first.len() {
        1 => format!("{} delivers most{over}, {rates} Gbit/s{average}", names[0]),
        _ => format!(
            "{} deliver most{over} and are level, {rates} Gbit/s{average} (within {})",
            listed(&names),
            percent(SAME)
        ),
    };
    if !others.is_empty() {
        let others = others.iter().map(|(name, mean)| format!("{name} {}", number(*mean)));
        text += &format!("; then {}", others.collect::<Vec<_>>().join(", "));
    }
    text + "."
}

fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The better of two variants against the other where they differ most, and why.
fn against(shape: &Shape, facet: &Facet, (best, other): (&str, &str), verb: &str, most: &Most) -> String {
    let Some((x, best_point, other_point)) = widest(shape, facet, best, other) else {
        return String::new();
    };
    let (high, low) = (rate(&best_point.metrics), rate(&other_point.metrics));
    let rates = (number(high), number(low));
    let mut text = match (shape.x, x) {
        (Some(key), Some(x)) => {
            format!("{best} and {other} differ most at {key} {}: {} Gbit/s against {}", number(x), rates.0, rates.1)
        }
        _ => format!("{best} {verb} {} Gbit/s against {} of {other}", rates.0, rates.1),
    };
    if low > 0.0 {
        text += &format!(", {:.2} times as much", high / low);
    }
    let (better, worse) = (&best_point.metrics, &other_point.metrics);
    let differences = Differences::of(better, worse, First::Better, most);
    text += &format!(".{}", differences.text("Why"));
    if let Some(held) = held(other_point) {
        text += &format!(" {held}");
    }
    text
}

/// What bounds the worst variant where it is furthest behind, and the best if that is the wire.
fn bounds_of(record: &Record, shape: &Shape, facet: &Facet, best: &str, worst: &str) -> String {
    let Some((_, best, worst)) = widest(shape, facet, best, worst) else {
        return String::new();
    };
    // What holds a shared ring was said with the reasons.
    let said = held(worst);
    let limits = limits(record, worst);
    let mut sentences: Vec<String> = limits.into_iter().filter(|text| Some(text) != said.as_ref()).collect();
    if wire_is_full(best) {
        sentences.push(format!("{} fills the wire and cannot send more.", best.variant));
    }
    sentences.iter().map(|text| format!(" {text}")).collect()
}

/// The x at which two variants differ most in throughput, and their points there.
fn widest<'a>(
    shape: &Shape<'a>,
    facet: &Facet<'a>,
    best: &str,
    other: &str,
) -> Option<(Option<f64>, &'a PointRecord, &'a PointRecord)> {
    let others = shape.series(facet, other);
    let pairs = shape.series(facet, best).into_iter().filter_map(|(x, point)| {
        let other = others.iter().find(|(other_x, _)| *other_x == x)?;
        Some((x, point, other.1))
    });
    let lead = |pair: &(f64, &PointRecord, &PointRecord)| rate(&pair.1.metrics) - rate(&pair.2.metrics);
    let (x, best, other) = pairs.max_by(|a, b| lead(a).total_cmp(&lead(b)))?;
    Some((shape.x.map(|_| x), best, other))
}

/// All deliver the same: what that costs the cheapest and the dearest, at the end of a sweep.
fn equals(record: &Record, shape: &Shape, facet: &Facet) -> String {
    let mut text =
        format!("All variants deliver the same throughput within {}, so look at what it costs them.", percent(SAME));
    let last = |variant: &&str| shape.series(facet, variant).last().copied();
    let cost = |at: &(f64, &PointRecord)| at.1.metrics.cycles_per_packet.as_ref().map(|cycles| cycles.total);
    let mut ends: Vec<_> = shape.variants.iter().filter_map(last).filter_map(|at| Some((cost(&at)?, at))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((cycles, (x, cheap))), Some((more, (_, dear)))) = (ends.first(), ends.last()) else {
        return text;
    };
    let differences = Differences::of(&cheap.metrics, &dear.metrics, First::Better, &IN_FULL);
    if cheap.variant != dear.variant {
        let place = shape.x.map_or(String::new(), |key| format!(" at {key} {}", number(*x)));
        text += &format!(
            " A packet costs {} fewest cycles{place}, {} against {} of {}.{}",
            cheap.variant,
            number(cycles.round()),
            number(more.round()),
            dear.variant,
            differences.text("Why")
        );
    }
    for sentence in limits(record, cheap) {
        text += " ";
        text += &sentence;
    }
    text
}
