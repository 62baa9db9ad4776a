//! Findings: which variant wins and why, in sentences made from the record's numbers.
//!
//! Each rule looks at the whole record or at one facet, and writes paragraphs where its condition holds.

mod checksums;
mod differences;
mod discards;
mod limits;
mod over_time;
mod passing;
mod ranking;
mod steps;
mod window;

pub use checksums::unfinished_checksums;
pub use over_time::{changes, switched};

use nicforge_record::{PointRecord, Record};

use super::comparison::{agreement, switches_by_ground};
use super::number::{number, percent};
use super::shape::{Facet, Shape};

/// A difference in throughput below this share counts as none.
const SAME: f64 = 0.01;

/// A paragraph, and the rule that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name in `RULES` or `COMPARISON_RULES`.
    pub rule: &'static str,
    /// One or more sentences.
    pub text: String,
}

/// What a rule looks at.
enum Scope {
    /// The whole record.
    Record(fn(&Record, &Shape) -> Vec<String>),
    /// Points that differ in the x axis and the variant only; none without frames.
    Facet(fn(&Record, &Shape, &Facet) -> Vec<String>),
}

/// A rule: its name, and what it writes where its condition holds.
struct Rule {
    name: &'static str,
    scope: Scope,
}

const fn of_record(name: &'static str, says: fn(&Record, &Shape) -> Vec<String>) -> Rule {
    Rule { name, scope: Scope::Record(says) }
}

const fn of_facet(name: &'static str, says: fn(&Record, &Shape, &Facet) -> Vec<String>) -> Rule {
    Rule { name, scope: Scope::Facet(says) }
}

/// Rules of a run on one ground: those of the record first, then facet by facet those of each.
const RULES: [Rule; 10] = [
    of_record("empty windows", |record, _| window::empty(record).into_iter().collect()),
    of_record("growing backlog", |record, _| window::growing_backlog(record).into_iter().collect()),
    of_record("unsteady", |record, _| window::unsteady(record).into_iter().collect()),
    of_record("unfinished checksums", |record, _| unfinished_checksums(record).into_iter().collect()),
    of_record("equal variants", equal_variants),
    of_facet("discards", |record, _, facet| discards::of_points(record, &facet.points).into_iter().collect()),
    of_facet("ranking", ranking::ranking),
    of_facet("single point", single_points),
    of_facet("switches", |_, shape, facet| over_time::over_time(shape, facet)),
    of_facet("sweep", |record, shape, facet| {
        let of = |variant: &&str| steps::along_sweep(record, shape, facet, variant);
        shape.variants.iter().flat_map(of).collect()
    }),
];

/// Rules of a comparison of both grounds: how far they agree, not which of them delivers more.
const COMPARISON_RULES: [Rule; 2] = [
    of_record("agreement", |record, _| agreement(record)),
    of_record("switches by ground", |record, _| switches_by_ground(record)),
];

/// The findings of a record, a paragraph each; none when there are no points.
pub fn findings(record: &Record) -> Vec<Finding> {
    let shape = Shape::of(record);
    let rules: &[Rule] = if record.comparisons.is_empty() { &RULES } else { &COMPARISON_RULES };
    let mut found = Vec::new();
    for rule in rules {
        if let Scope::Record(says) = rule.scope {
            found.extend(says(record, &shape).into_iter().map(|text| Finding { rule: rule.name, text }));
        }
    }
    let facets = shape.facets.iter().filter(|facet| facet.points.iter().any(has_frames));
    let facets: Vec<&Facet> = facets.collect();
    let mut of_facets = Vec::new();
    for facet in &facets {
        for rule in rules {
            if let Scope::Facet(says) = rule.scope {
                let texts = says(record, &shape, facet).into_iter();
                of_facets.extend(texts.map(|text| Placed { rule: rule.name, facet: &facet.label, text }));
            }
        }
    }
    found.extend(if facets.len() > FACETS_MAX { alike(&of_facets, facets.len()) } else { each(&of_facets) });
    // It is no answer, so it stands behind.
    found.extend(window::warmed_up(record).map(|text| Finding { rule: "warm-up", text }));
    found
}

/// Facets that have findings of their own each.
const FACETS_MAX: usize = 4;

/// What a rule says of a facet.
struct Placed<'a> {
    rule: &'static str,
    facet: &'a str,
    text: String,
}

fn each(all: &[Placed]) -> Vec<Finding> {
    let finding = |placed: &Placed| Finding { rule: placed.rule, text: in_place(placed.facet, &placed.text) };
    all.iter().map(finding).collect()
}

/// One finding for all that say the same with other numbers; of a rule those first that hold at most places.
fn alike(all: &[Placed], facets: usize) -> Vec<Finding> {
    let mut groups: Vec<(String, &Placed, Vec<&str>)> = Vec::new();
    for placed in all {
        let pattern = format!("{} {}", placed.rule, pattern(&placed.text));
        match groups.iter_mut().find(|(other, ..)| *other == pattern) {
            Some((_, _, places)) => places.push(placed.facet),
            None => groups.push((pattern, placed, vec![placed.facet])),
        }
    }
    for (_, _, places) in &mut groups {
        places.dedup();
    }
    let order = |rule: &str| RULES.iter().position(|other| other.name == rule);
    groups.sort_by_key(|(_, first, places)| (order(first.rule), std::cmp::Reverse(places.len())));
    let finding = |(_, first, places): (String, &Placed, Vec<&str>)| {
        let text = match places.len() {
            1 => in_place(first.facet, &first.text),
            count => format!("At {count} of {facets} combinations, such as {}: {}", first.facet, first.text),
        };
        Finding { rule: first.rule, text }
    };
    groups.into_iter().map(finding).collect()
}

/// What a text says first, without its numbers.
fn pattern(text: &str) -> String {
    let ends = [". ", ": ", ", where", " ("].into_iter().filter_map(|end| text.find(end));
    let first = &text[..ends.min().unwrap_or(text.len())];
    let words = first.split(' ').map(|word| if word.starts_with(|c: char| c.is_ascii_digit()) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

fn has_frames(point: &&PointRecord) -> bool {
    !point.steadiness.no_frame_arrived
}

/// With the values that the facet's points share, where there is more than one facet.
fn in_place(facet: &str, text: &str) -> String {
    if facet.is_empty() { text.to_string() } else { format!("At {facet}: {text}") }
}

/// Each point of a facet with one variant and no sweep.
fn single_points(record: &Record, shape: &Shape, facet: &Facet) -> Vec<String> {
    if shape.variants.len() > 1 || shape.x.is_some() {
        return Vec::new();
    }
    let points = facet.points.iter().filter(|point| has_frames(point));
    points.map(|point| alone(record, point)).collect()
}

/// Variants that differ in name only, as when `--set` overrides the interface by which they differed.
fn equal_variants(record: &Record, shape: &Shape) -> Vec<String> {
    let of = |variant: &str| -> Vec<_> {
        let points = record.points.iter();
        let own = points.filter(|point| point.variant == variant);
        own.map(|point| (&point.params, &point.metrics)).collect()
    };
    let mut found = Vec::new();
    for (index, variant) in shape.variants.iter().enumerate() {
        let twin = shape.variants[..index].iter().find(|other| of(other) == of(variant));
        found.extend(twin.map(|other| format!("{other} and {variant} are equal: no effective setting differs.")));
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
                "{name} forwards up to {rate} Gbit/s without loss under load, and drops {} of the frames for other \
                 reasons, mostly as {}. {limits}",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    #[test]
    fn many_facets_have_one_finding_for_all_that_say_the_same() {
        let found = findings(&fake::wide());
        let patterns: Vec<String> = found
            .iter()
            .map(|finding| {
                let (_, text) = finding.text.split_once(": ").unwrap_or(("", &finding.text));
                format!("{} {}", finding.rule, pattern(text))
            })
            .collect();
        for (index, pattern) in patterns.iter().enumerate() {
            assert!(!patterns[..index].contains(pattern), "{pattern}");
        }
        assert!(
            found[0].text.starts_with("At ") && found[0].text.contains("combinations, such as"),
            "{}",
            found[0].text
        );
        // Few facets have each their own.
        assert!(findings(&fake::two_keys()).iter().all(|finding| !finding.text.contains("combinations")));
    }
}
