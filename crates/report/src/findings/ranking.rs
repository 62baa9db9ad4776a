//! Which variant of several delivers most, which are level with it, and why the others are behind.

use nicforge_record::{PointRecord, Record};

use super::SAME;
use super::differences::{Counts, Differences, First};
use super::limits::{limits, shared_ring, wire_is_full};
use crate::columns::{rate, rate_key};
use crate::number::{number, percent, probability};
use crate::shape::{At, Facet, Shape};

/// What is said about the variant that is furthest behind, and about variants that deliver the same.
const IN_FULL: Counts = Counts { causes: 4, effects: 2, despite: 2 };
/// About the ones in between.
const IN_SHORT: Counts = Counts { causes: 2, effects: 1, despite: 1 };
/// Variants between the first and the last that are explained, the best of them.
const MOST_BETWEEN: usize = 2;

/// A variant with its mean rate.
#[derive(Clone, Copy)]
struct Ranked<'a> {
    variant: &'a str,
    gbps: f64,
}

/// Two variants where they differ most.
struct Widest<'a> {
    /// The swept value there, if there is a sweep.
    x: Option<f64>,
    better: &'a PointRecord,
    other: &'a PointRecord,
}

/// The paragraphs on one facet; none when it has fewer than two variants.
pub fn ranking(record: &Record, shape: &Shape, facet: &Facet) -> Vec<String> {
    let mean = |variant: &&str| {
        let series = shape.series(facet, variant);
        let sum: f64 = series.iter().map(At::rate).sum();
        (!series.is_empty()).then(|| sum / series.len() as f64)
    };
    let variants = shape.variants.iter();
    let mut ranked: Vec<Ranked> =
        variants.filter_map(|variant| Some(Ranked { variant, gbps: mean(variant)? })).collect();
    ranked.sort_by(|a, b| b.gbps.total_cmp(&a.gbps));
    let (Some(&best), Some(&worst)) = (ranked.first(), ranked.last()) else {
        return Vec::new();
    };
    if ranked.len() < 2 {
        return Vec::new();
    }
    let level = ranked.iter().take_while(|other| best.gbps <= other.gbps * (1.0 + SAME)).count();
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
    if let Some(widest) = widest(shape, facet, best.variant, worst.variant) {
        paragraphs.push(against(shape, &widest, verb, &IN_FULL) + &bounds_of(record, &widest));
    }
    let between = ranked[level..ranked.len() - 1].iter().take(MOST_BETWEEN);
    let between = between.filter_map(|other| widest(shape, facet, best.variant, other.variant));
    paragraphs.extend(between.map(|widest| against(shape, &widest, "sends", &IN_SHORT)));
    paragraphs
}

/// Who delivers most, who is level, and the order of the others.
fn leaders(shape: &Shape, ranked: &[Ranked], level: usize) -> String {
    let (first, others) = ranked.split_at(level);
    let names: Vec<&str> = first.iter().map(|ranked| ranked.variant).collect();
    let over = match shape.x {
        Some(_) => " over the sweep",
        None => "",
    };
    let average = match shape.x {
        Some(_) => " on average",
        None => "",
    };
    let rates = match (first.first(), first.last()) {
        (Some(most), Some(least)) if number(most.gbps) != number(least.gbps) => {
            format!("{} to {}", number(least.gbps), number(most.gbps))
        }
        (Some(most), _) => number(most.gbps),
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
        let others = others.iter().map(|other| format!("{} {}", other.variant, number(other.gbps)));
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
fn against(shape: &Shape, widest: &Widest, verb: &str, most: &Counts) -> String {
    let Widest { x, better, other } = widest;
    let (high, low) = (rate(&better.metrics), rate(&other.metrics));
    let (more, less) = (number(high), number(low));
    let (name, other_name) = (&better.variant, &other.variant);
    let mut text = match (shape.x, x) {
        (Some(key), Some(x)) => {
            format!("{name} and {other_name} differ most at {key} {}: {more} Gbit/s against {less}", number(*x))
        }
        _ => format!("{name} {verb} {more} Gbit/s against {less} of {other_name}"),
    };
    if low > 0.0 {
        text += &format!(", {:.2} times as much", high / low);
    }
    text += &told_apart(better, other);
    let differences = Differences::of(&better.metrics, &other.metrics, First::Better, most);
    text += &format!(".{}", differences.text("Why"));
    if let Some(held) = shared_ring(other) {
        text += &format!(" {held}");
    }
    text
}

/// What Welch's test says of the rates of two points; nothing where one does not say how sure it is.
fn told_apart(better: &PointRecord, other: &PointRecord) -> String {
    let sure = |point: &PointRecord| point.intervals.get(rate_key(&point.metrics)).copied();
    match sure(better).zip(sure(other)).and_then(|(better, other)| better.difference(&other)) {
        Some(test) if test.is_significant() => format!(" (Welch's test: {})", probability(test.p)),
        Some(test) => format!(", but Welch's test does not tell them apart ({})", probability(test.p)),
        None => String::new(),
    }
}

/// What bounds the worst variant where it is furthest behind, and the best if that is the wire.
fn bounds_of(record: &Record, widest: &Widest) -> String {
    let Widest { better: best, other: worst, .. } = widest;
    // The reasons have named a shared ring already.
    let said = shared_ring(worst);
    let limits = limits(record, worst);
    let mut sentences: Vec<String> = limits.into_iter().filter(|text| Some(text) != said.as_ref()).collect();
    if wire_is_full(best) {
        sentences.push(format!("{} fills the wire and cannot send more.", best.variant));
    }
    sentences.iter().map(|text| format!(" {text}")).collect()
}

/// Where two variants differ most in throughput.
fn widest<'a>(shape: &Shape<'a>, facet: &Facet<'a>, best: &str, other: &str) -> Option<Widest<'a>> {
    let others = shape.series(facet, other);
    let pairs = shape.series(facet, best).into_iter().filter_map(|at| {
        let other = others.iter().find(|other| other.x == at.x)?;
        Some(Widest { x: shape.x.map(|_| at.x), better: at.point, other: other.point })
    });
    let lead = |pair: &Widest| rate(&pair.better.metrics) - rate(&pair.other.metrics);
    pairs.max_by(|a, b| lead(a).total_cmp(&lead(b)))
}

/// All deliver the same: the cost of the cheapest and of the dearest variant, at the end of a sweep.
fn equals(record: &Record, shape: &Shape, facet: &Facet) -> String {
    let mut text = format!("All variants deliver the same throughput within {}; they differ in cost.", percent(SAME));
    let last = |variant: &&str| shape.series(facet, variant).last().copied();
    let cost = |at: &At| at.point.metrics.cycles_per_packet.as_ref().map(|cycles| cycles.total);
    let mut ends: Vec<_> = shape.variants.iter().filter_map(last).filter_map(|at| Some((cost(&at)?, at))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((cycles, cheapest)), Some((more, dearest))) = (ends.first(), ends.last()) else {
        return text;
    };
    let (cheap, dear) = (cheapest.point, dearest.point);
    let differences = Differences::of(&cheap.metrics, &dear.metrics, First::Better, &IN_FULL);
    if cheap.variant != dear.variant {
        let place = shape.x.map_or(String::new(), |key| format!(" at {key} {}", number(cheapest.x)));
        text += &format!(
            " {} spends the fewest cycles per packet{place}: {} against {} of {}.{}",
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

#[cfg(test)]
mod tests {
    use nicforge_record::Interval;

    use crate::fake;

    #[test]
    fn a_test_says_whether_two_variants_differ() {
        let mut record = fake::two_variants();
        assert!(!fake::finding(&record, "ranking").contains("Welch"));
        let mut with = |half_width: f64| {
            for point in &mut record.points {
                let mean = point.metrics.throughput_gbps;
                let sure = Interval { mean, half_width, samples: 25, correlation: None };
                point.intervals.insert("throughput_gbps".to_owned(), sure);
            }
            fake::finding(&record, "ranking")
        };
        fake::assert_says(&with(0.5), &["times as much (Welch's test: p < 0.001)."]);
        fake::assert_says(&with(500.0), &["times as much, but Welch's test does not tell them apart (p = 0."]);
    }
}
