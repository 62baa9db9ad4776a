//! Findings from time lines: when steering changed, what each switch dropped and why, and what each variant sent
//! over the whole time line.

use nicforge_record::{PointRecord, Switch, TimelineEntry};

use crate::number::{number, percent};
use crate::shape::{At, Facet, Shape};

/// Drops count as caused by a switch from this multiple of the usual drops on.
const MORE_DROPPED: f64 = 2.0;
/// Share of arrivals up to which drops at a switch are left out.
const FEW: f64 = 0.1;
/// Switches that are listed one by one.
const MOST_SWITCHES: usize = 4;

/// Sentences on the time lines of a facet; none where no point has one.
pub fn over_time(shape: &Shape, facet: &Facet) -> Vec<String> {
    let mut paragraphs = Vec::new();
    for variant in &shape.variants {
        for At { x, point } in shape.series(facet, variant) {
            let place = shape.x.map_or(String::new(), |key| format!("{key} {}", number(x)));
            paragraphs.extend(switched(point, &place));
        }
    }
    // What was sent over all of the time only compares where a switch made the end differ from it.
    let sent = facet.points.iter().filter_map(|point| {
        let sent = mean_throughput(point)?;
        Some(format!("{} {}", point.variant, number(sent)))
    });
    let sent: Vec<String> = sent.collect();
    if !paragraphs.is_empty() && shape.x.is_none() && sent.len() > 1 {
        let late = facet.points.iter().any(|point| point.facts.polling_starts_ms.is_some());
        let over = if late { "the time line since cores began to poll" } else { "the whole time line" };
        paragraphs.push(format!("Averages over {over}, not only over the window: {} Gbit/s.", sent.join(", ")));
    }
    paragraphs
}

/// The share of arrivals that is usually dropped as long as `set` is in use.
fn median_drop(after: &[TimelineEntry], set: &str) -> f64 {
    let in_use = after.iter().take_while(|at| at.active_set.as_deref() == Some(set));
    let mut drops: Vec<f64> = in_use.map(|at| at.drop_fraction).collect();
    drops.sort_by(f64::total_cmp);
    drops.get(drops.len() / 2).copied().unwrap_or(0.0)
}

/// Over the time in which cores poll: before, none can send.
fn mean_throughput(point: &PointRecord) -> Option<f64> {
    let polls = |at: &&TimelineEntry| at.ms > point.facts.polling_starts_ms.unwrap_or(0.0);
    let sent: Vec<f64> = point.timeline.iter().filter(polls).map(|at| at.throughput_gbps).collect();
    (!sent.is_empty()).then(|| sent.iter().sum::<f64>() / sent.len() as f64)
}

/// When steering changed and to which rings, if it did.
pub fn changes(switches: &[Switch]) -> Option<String> {
    if switches.is_empty() {
        return None;
    }
    let first = switches.iter().take(MOST_SWITCHES);
    let each = first.map(|at| format!("to the {} rings after {} ms", at.set, number(at.ms)));
    let more = match switches.len().saturating_sub(MOST_SWITCHES) {
        0 => String::new(),
        more => format!(", and {more} times more"),
    };
    Some(each.collect::<Vec<_>>().join(", ") + &more)
}

/// The switches of one point, and of what values it is where that is to be said.
pub fn switched(point: &PointRecord, place: &str) -> Option<String> {
    let changes = changes(&point.switches)?;
    let at = if place.is_empty() { "" } else { " at " };
    let mut text = format!("{} switches rings{at}{place}: {changes}.", point.variant);
    for switch in point.switches.iter().take(MOST_SWITCHES) {
        text += &around(point, switch);
    }
    Some(text)
}

/// What one switch drops and why. Nothing where the time line is too coarse to separate it from another switch.
fn around(point: &PointRecord, switch: &Switch) -> String {
    let (timeline, set) = (&point.timeline, switch.set.as_str());
    let (past, after) = timeline.split_at(timeline.partition_point(|at| at.ms <= switch.ms));
    let Some(before) = past.last() else {
        return String::new();
    };
    let ends = after.first().map_or(f64::INFINITY, |next| next.ms);
    let within = |other: &&Switch| (before.ms..ends).contains(&other.ms);
    if point.switches.iter().filter(within).count() > 1 {
        return String::new();
    }
    let interval = if before.ms == switch.ms { "the interval after it" } else { "the interval that it falls into" };
    let usual = before.drop_fraction.max(median_drop(after, set));
    let dropping = |at: &&TimelineEntry| at.drop_fraction > FEW && at.drop_fraction > usual * MORE_DROPPED;
    let burst: Vec<&TimelineEntry> = after.iter().take_while(dropping).collect();
    let (Some(last), Some(next)) = (burst.last(), after.first()) else {
        return match after.first() {
            Some(next) => format!(
                " The switch to the {set} rings drops {} of the arrivals in {interval}, against {} in the one before.",
                percent(next.drop_fraction),
                percent(before.drop_fraction)
            ),
            None => String::new(),
        };
    };
    let shares: Vec<String> = burst.iter().map(|at| percent(at.drop_fraction)).collect();
    let (arrived, taken) =
        (burst.iter().map(|at| at.arrivals).sum::<u64>(), burst.iter().map(|at| at.taken).sum::<u64>());
    let mut text = format!(
        " The switch to the {set} rings drops {} of the arrivals until {} ms, against {} in the interval before: {} \
         frames arrive and cores take {}",
        shares.join(", then "),
        number(last.ms),
        percent(before.drop_fraction),
        number(arrived as f64),
        number(taken as f64)
    );
    let old: u64 = before.in_use.iter().filter(|(name, _)| *name != set).map(|(_, n)| n).sum();
    let holds = timeline.iter().filter_map(|at| at.in_use.get(set)).max();
    match holds.filter(|most| **most < old) {
        Some(most) => {
            text += &format!(
                ", but {} entries of the old rings are in use and the new rings hold at most {}: frames find no room \
                 until the cores have drained the difference.",
                number(old as f64),
                number(*most as f64)
            );
        }
        None => text += &format!(", with a backlog of {}.", number(next.backlog as f64)),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fake, findings, table};

    #[test]
    fn switches_are_listed_without_a_time_line() {
        let mut record = fake::over_time();
        for point in &mut record.points {
            point.timeline.clear();
        }
        let changes = "to the shared rings after 4 ms, to the private rings after 14.5 ms";
        assert_eq!(table(&record), table(&fake::over_time()));
        let said = findings(&record);
        fake::assert_says(&said.last().unwrap().text, &["rx_bisect", changes]);
    }

    #[test]
    fn the_average_begins_when_cores_poll() {
        let mut record = fake::over_time();
        for point in &mut record.points {
            point.facts.polling_starts_ms = Some(2.0);
            for at in point.timeline.iter_mut().filter(|at| at.ms <= 2.0) {
                at.throughput_gbps = 0.0;
            }
        }
        let said = findings(&record);
        let parts = ["since cores began to poll", "priv_ring 163", "rx_bisect 182.7 Gbit/s"];
        fake::assert_says(&said.last().unwrap().text, &parts);
    }

    #[test]
    fn many_switches_are_counted() {
        let switch = |number: u32| Switch { ms: number.into(), set: "shared".to_owned() };
        let many: Vec<Switch> = (0..1000).map(switch).collect();
        let text = changes(&many).unwrap();
        assert!(text.ends_with("after 3 ms, and 996 times more"), "{text}");
    }

    #[test]
    fn drops_of_a_switch_are_given_only_where_the_time_line_separates_it_from_another() {
        let mut record = fake::over_time();
        let point = &mut record.points[1];
        let drops = |point: &PointRecord| switched(point, "").unwrap().matches("drops").count();
        assert_eq!(drops(point), 2);
        point.switches[1].ms = 14.7;
        let text = switched(point, "").unwrap();
        assert!(text.contains("in the interval that it falls into"), "{text}");
        let back = Switch { ms: 14.8, set: "shared".to_owned() };
        point.switches.push(back);
        assert_eq!(drops(point), 1);
        // Before the first entry nothing is known of what was dropped.
        point.switches[0].ms = 0.1;
        assert_eq!(drops(point), 0);
    }
}
