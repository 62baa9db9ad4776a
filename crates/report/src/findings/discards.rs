//! Frames that every interface drops at any rate: too long, no route, a full table.

use nicforge_record::{Metrics, PointRecord, Record};

use super::SAME;
use super::differences::most_frequent;
use crate::number::percent;

/// Frames of one point that were dropped for other reasons than load.
pub struct Discards<'a> {
    /// Their share of arriving frames.
    pub share: f64,
    /// The cause of most of them.
    pub cause: &'a str,
}

/// Such frames of a point, where their share is not negligible.
pub fn discards<'a>(record: &Record, metrics: &'a Metrics) -> Option<Discards<'a>> {
    if record.load_drops.is_empty() {
        return None;
    }
    let all: u64 = metrics.drops.values().sum();
    let causes = metrics.drops.iter();
    let own = causes.filter(|(cause, _)| !record.load_drops.contains(*cause));
    let sum: u64 = own.clone().map(|(_, count)| count).sum();
    let share = metrics.drop_fraction * sum as f64 / all.max(1) as f64;
    let cause = most_frequent(own).filter(|_| share >= SAME)?;
    Some(Discards { share, cause })
}

/// Discards of points that are compared.
pub fn of_points(record: &Record, points: &[&PointRecord]) -> Option<String> {
    if points.len() < 2 {
        return None;
    }
    let found: Vec<Discards> = points.iter().filter_map(|point| discards(record, &point.metrics)).collect();
    let most = found.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    let least = found.iter().map(|one| one.share).fold(1.0, f64::min);
    let whose = if found.len() == points.len() {
        "At each point".to_string()
    } else {
        format!("At {} of {} points", found.len(), points.len())
    };
    let (low, high) = (percent(least), percent(most.share));
    let share = if low == high { high } else { format!("{low} to {high}") };
    Some(format!(
        "{whose} {share} of the frames are dropped for other reasons than load, mostly as {}; the comparison is of the \
         rest.",
        most.cause
    ))
}

#[cfg(test)]
mod tests {
    use nicforge_record::Record;

    use crate::fake;

    fn dropping(record: Record, causes: &[(&str, u64)], share: f64) -> Record {
        let mut record = record;
        for point in &mut record.points {
            let causes = causes.iter().map(|&(cause, count)| (cause.to_owned(), count));
            point.metrics.drops = causes.collect();
            point.metrics.drop_fraction = share;
        }
        record
    }

    #[test]
    fn discards_stand_before_the_ranking() {
        let causes = [("fifo_full", 1_000), ("table_full", 3_000), ("not_ip", 10)];
        let record = dropping(fake::two_variants(), &causes, 0.8);
        assert_eq!(fake::rules(&record), ["discards", "ranking"]);
        fake::assert_says(&fake::finding(&record, "discards"), &["At each point 60 %", "table_full"]);
        // Drops for load are what is compared.
        let of_load = dropping(fake::two_variants(), &causes[..1], 0.8);
        assert_eq!(fake::rules(&of_load), ["ranking"]);
    }

    #[test]
    fn a_search_names_the_losses_that_it_does_not_count() {
        let mut record = dropping(fake::two_variants(), &[("oversized_frame", 500)], 1.0);
        record.points.truncate(1);
        record.points[0].metrics.no_drop_gbps = Some(99.7);
        let said = fake::finding(&record, "single point");
        fake::assert_says(&said, &["99.7 Gbit/s", "drops 100 %", "oversized_frame"]);
    }
}
