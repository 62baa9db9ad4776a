//! Findings along a sweep: where throughput changes, which capacity the footprint passes there, and what limits it.

use nicforge_record::Record;

use super::SAME;
use super::differences::{Counts, Differences, First};
use super::limits::{holds, shared_ring};
use super::passing::{Passed, between, beyond, passed, shrinks};
use crate::columns::rate;
use crate::number::{number, percent};
use crate::shape::{At, Facet, Shape};

/// Share of the largest change of a series below which another one is left out.
const MATTERS: f64 = 0.05;
/// From this factor on, a rise is given as a factor instead of percent.
const MANY_TIMES: f64 = 2.0;
/// Reasons that are named for a change.
const REASONS: Counts = Counts { causes: 2, effects: 1, despite: 0 };

/// The changes of one variant along the x axis, in sentences, the largest first.
pub fn along_sweep(record: &Record, shape: &Shape, facet: &Facet, variant: &str) -> Vec<String> {
    let Some(key) = shape.x else {
        return Vec::new();
    };
    let series = shape.series(facet, variant);
    if series.len() < 2 {
        return Vec::new();
    }
    let changes = changes_that_matter(record, &series);
    let mut sentences: Vec<String> =
        changes.iter().map(|change| describe(record, key, variant, change, &series)).collect();
    if changes.is_empty() {
        sentences.push(level(key, variant, &series));
    }
    sentences.extend(missing_steps(record, key, variant, &series));
    sentences
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Falls,
    Rises,
}

/// Two points between which throughput goes one way.
struct Change<'a> {
    direction: Direction,
    from: At<'a>,
    to: At<'a>,
    /// Where in it a capacity is passed that explains it.
    passed: Option<Passed<'a>>,
}

impl Change<'_> {
    /// Gbit/s.
    fn size(&self) -> f64 {
        (self.to.rate() - self.from.rate()).abs()
    }
}

/// Which way throughput goes, where it changes by more than one percent.
fn direction(from: At, to: At) -> Option<Direction> {
    let (from, to) = (from.rate(), to.rate());
    if to < from * (1.0 - SAME) {
        Some(Direction::Falls)
    } else if from < to * (1.0 - SAME) {
        Some(Direction::Rises)
    } else {
        None
    }
}

/// The largest change, then those that are not small beside it or have a capacity to show for it.
fn changes_that_matter<'a>(record: &Record, series: &[At<'a>]) -> Vec<Change<'a>> {
    let mut changes = changes(record, series);
    if let (true, [from, .., to]) = (changes.is_empty(), series) {
        // Steps that are too small by themselves may add up.
        changes.extend(direction(*from, *to).map(|direction| Change { direction, from: *from, to: *to, passed: None }));
    }
    changes.sort_by(|a, b| b.size().total_cmp(&a.size()));
    let largest = changes.first().map_or(0.0, Change::size);
    changes.retain(|change| change.passed.is_some() || change.size() >= largest * MATTERS);
    changes
}

/// Falls without a rest between them as one and rises without a fall between them as one, but a new
/// one where a capacity is passed.
fn changes<'a>(record: &Record, series: &[At<'a>]) -> Vec<Change<'a>> {
    let mut changes: Vec<Change> = Vec::new();
    let mut running = None;
    for pair in series.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let Some(direction) = direction(from, to) else {
            running = running.filter(|running| *running == Direction::Rises);
            continue;
        };
        let falls = direction == Direction::Falls;
        let passed = passed(record, from, to).filter(|passed| passed.grows == falls);
        match changes.last_mut() {
            Some(change) if running == Some(direction) && passed.is_none() => change.to = to,
            _ => changes.push(Change { direction, from, to, passed }),
        }
        running = Some(direction);
    }
    changes
}

fn describe(record: &Record, key: &str, variant: &str, change: &Change, series: &[At]) -> String {
    let (from, to) = (&change.from.point.metrics, &change.to.point.metrics);
    let rises = change.direction == Direction::Rises;
    let mut text = format!(
        "{variant} {} from {} to {} Gbit/s{} {}",
        if rises { "rises" } else { "falls" },
        number(rate(from)),
        number(rate(to)),
        by_how_much(rate(from), rate(to)),
        between(key, change.from, change.to)
    );
    text += &match &change.passed {
        Some(passed) => format!(": {}", place_and_words(passed, key, change)),
        None if rises && !shrinks(change.from, change.to) => String::new(),
        None => beyond(record, change.from, change.to),
    };
    text.push('.');
    if rises && stays(change, series) {
        text += " It stays there.";
    }
    let (differences, head, low) = match change.direction {
        Direction::Falls => {
            (Differences::of(from, to, First::Worse, &REASONS), "After the step, against before", change.to)
        }
        Direction::Rises => {
            (Differences::of(to, from, First::Better, &REASONS), "After the rise, against before", change.from)
        }
    };
    text += &differences.text(head);
    if rises || differences.are_none() {
        text += &ends(key, change.from, change.to);
    }
    if let Some(held) = shared_ring(low.point) {
        text += &format!(" {held}");
    }
    text
}

/// A change in proportion to where it begins, in brackets and with a blank before it.
fn by_how_much(from: f64, to: f64) -> String {
    let ratio = to / from;
    if from <= 0.0 {
        String::new()
    } else if ratio >= MANY_TIMES {
        format!(" ({ratio:.2} times as much)")
    } else if ratio > 1.0 {
        format!(" ({} more)", percent(ratio - 1.0))
    } else {
        format!(" ({} less)", percent(1.0 - ratio))
    }
}

/// Whether more points follow, and all of them deliver what the change ends with.
fn stays(change: &Change, series: &[At]) -> bool {
    let mut after = series.iter().filter(|at| at.x > change.to.x).peekable();
    after.peek().is_some() && after.all(|at| direction(change.to, *at).is_none())
}

fn place_and_words(passed: &Passed, key: &str, change: &Change) -> String {
    let place = if passed.to.x == change.to.x && passed.from.x == change.from.x {
        "there".to_string()
    } else {
        between(key, passed.from, passed.to)
    };
    format!("{place} {}", passed.words())
}

/// What holds throughput at two points, in sentences with a blank before each.
fn ends(key: &str, first: At, last: At) -> String {
    let (low, high) = (holds(first.point), holds(last.point));
    let sentence = |place: String, clauses: Vec<&str>| {
        if clauses.is_empty() { String::new() } else { format!(" At {place} {}.", clauses.join("; ")) }
    };
    let only_in = |here: &'_ [String], there: &[String], at: At| {
        let here = here.iter().filter(|clause| !there.contains(clause));
        sentence(format!("{key} {},", number(at.x)), here.map(String::as_str).collect())
    };
    let both = low.iter().filter(|clause| high.contains(clause));
    sentence("both ends".into(), both.map(String::as_str).collect())
        + &only_in(&low, &high, first)
        + &only_in(&high, &low, last)
}

/// Capacities that are passed without a fall there.
fn missing_steps(record: &Record, key: &str, variant: &str, series: &[At]) -> Vec<String> {
    let pairs = series.windows(2).filter_map(|pair| {
        let does = match direction(pair[0], pair[1]) {
            Some(Direction::Falls) => return None,
            Some(Direction::Rises) => "does not fall",
            None => "has no step",
        };
        let passed = passed(record, pair[0], pair[1]).filter(|passed| passed.grows)?;
        Some((does, passed))
    });
    pairs
        .map(|(does, passed)| {
            format!(
                "{variant} {does} {}, where {}: {} and {} Gbit/s.",
                between(key, passed.from, passed.to),
                passed.words(),
                number(passed.from.rate()),
                number(passed.to.rate())
            )
        })
        .collect()
}

/// A sweep without changes, and what holds it.
fn level(key: &str, variant: &str, series: &[At]) -> String {
    let rates = series.iter().map(At::rate);
    let most = rates.clone().fold(0.0, f64::max);
    let least = rates.fold(most, f64::min);
    let (first, last) = (series[0], series[series.len() - 1]);
    let range =
        if least < most * (1.0 - SAME) { format!("{} to {}", number(least), number(most)) } else { number(most) };
    format!(
        "{variant} holds {range} Gbit/s from {key} {} to {}.{}",
        number(first.x),
        number(last.x),
        ends(key, first, last)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    /// Findings of a sweep of `k` = 1, 2, ... with these rates; points differ in nothing else.
    fn swept(rates: &[f64], change: impl Fn(&mut Record)) -> Vec<String> {
        let mut record = fake::single();
        let points = (1..).zip(rates).map(|(k, rate)| {
            let mut point = fake::point("priv_ring", &[("k", json!(k))], 24.0);
            point.metrics.throughput_gbps = *rate;
            point
        });
        record.points = points.collect();
        change(&mut record);
        let shape = Shape::of(&record);
        along_sweep(&record, &shape, &shape.facets[0], "priv_ring")
    }

    /// That each sentence begins as it should, and that there are no more.
    #[track_caller]
    fn begin(found: &[String], with: &[&str]) {
        let begins = |(text, start): (&String, &&str)| text.starts_with(start);
        let all = found.iter().zip(with).all(begins);
        assert!(all && found.len() == with.len(), "{found:#?}");
    }

    #[test]
    fn the_largest_change_is_told_first_whichever_way_it_goes() {
        begin(
            &swept(&[163.6, 161.8, 161.4, 179.5], |_| {}),
            &[
                "priv_ring rises from 161.4 to 179.5 Gbit/s (11.2 % more) between k 3 and 4",
                "priv_ring falls from 163.6 to 161.8 Gbit/s (1.1 % less) between k 1 and 2",
            ],
        );
    }

    #[test]
    fn what_is_small_beside_the_largest_change_is_not_told() {
        // 2 of 100 Gbit/s.
        begin(
            &swept(&[100.0, 98.0, 198.0], |_| {}),
            &["priv_ring rises from 98 to 198 Gbit/s (2.02 times as much) between k 2 and 3"],
        );
    }

    #[test]
    fn a_rise_goes_on_over_a_rest_and_says_where_it_ends() {
        begin(
            &swept(&[50.0, 60.0, 60.1, 90.0, 90.1], |_| {}),
            &["priv_ring rises from 50 to 90 Gbit/s (80 % more) between k 1 and 4. It stays there."],
        );
    }

    #[test]
    fn small_steps_add_up() {
        begin(
            &swept(&[100.0, 99.2, 98.4, 97.6], |_| {}),
            &["priv_ring falls from 100 to 97.6 Gbit/s (2.4 % less) between k 1 and 4"],
        );
    }

    #[test]
    fn a_rise_says_what_held_the_low_end_and_what_holds_the_high_one() {
        let text = swept(&[89.0, 98.4], |record| {
            let low = &mut record.points[0].metrics;
            low.tx_occupancy = Some(0.98);
            low.drops.insert("tx_ring_full".into(), 3116);
            let high = &mut record.points[1].metrics;
            (high.drop_fraction, high.idle_fraction) = (0.0, Some(0.3));
        });
        let ends = "At k 1, transmit rings are 98 % full, and 3116 frames are dropped as tx_ring_full; \
                    cores are busy 100 % of the time. At k 2, no offered frame is dropped.";
        assert!(text[0].ends_with(ends), "{text:#?}");
    }

    #[test]
    fn a_level_says_what_holds_it() {
        let level = "priv_ring holds 140 Gbit/s from k 1 to 3. At both ends cores are busy 100 % of the time.";
        assert_eq!(swept(&[140.0, 139.9, 140.0], |_| {}), [level]);
    }

    #[test]
    fn buffers_that_come_to_fit_explain_a_rise_and_those_that_outgrow_a_cache_do_not() {
        let with = |sets: [u64; 2]| {
            swept(&[150.0, 190.0], |record| {
                for (point, mib) in record.points.iter_mut().zip(sets) {
                    point.metrics.io_working_set_bytes = Some(mib << 20);
                }
            })
        };
        let rises = "priv_ring rises from 150 to 190 Gbit/s (26.7 % more) between k 1 and 2";
        let fits = ": there the I/O working set shrinks from 24 MiB to 6 MiB and fits the whole LLC (22 MiB).";
        begin(&with([24, 6]), &[&format!("{rises}{fits}")]);
        begin(
            &with([6, 24]),
            &[&format!("{rises}. "), "priv_ring does not fall between k 1 and 2, where the I/O working set grows"],
        );
    }
}
