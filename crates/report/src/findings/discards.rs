//! Frames that are dropped for what they are, whatever the rate: no interface carries more of them than another.

use nicforge_record::{Metrics, PointRecord, Record};

use super::SAME;
use super::differences::most_frequent;
use crate::number::percent;

/// Frames of one point that were dropped for what they are.
pub struct Discards<'a> {
    /// Their share of arriving frames.
    pub share: f64,
    /// The cause of most of them.
    pub cause: &'a str,
}

/// What `metrics` say of such frames; `None` where they are not worth a word.
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

/// That points which are compared drop frames that none of them could carry.
pub fn of_points(record: &Record, points: &[&PointRecord]) -> Option<String> {
    let found: Vec<Discards> = points.iter().filter_map(|point| discards(record, &point.metrics)).collect();
    let most = found.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    let least = found.iter().map(|one| one.share).fold(1.0, f64::min);
    let whose = match found.len() == points.len() {
        true => "At each point".to_string(),
        false => format!("At {} of {} points", found.len(), points.len()),
    };
    let (low, high) = (percent(least), percent(most.share));
    let share = match low == high {
        true => high,
        false => format!("{low} to {high}"),
    };
    Some(format!(
        "{whose} {share} of the frames are dropped for what they are and not for load, mostly as {}; what is compared is \
         the rest.",
        most.cause
    ))
}

#[cfg(test)]
mod tests {
    use nicforge_record::Record;

    use super::super::findings;
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
    fn frames_that_nobody_could_carry_are_named_first() {
        let causes = [("fifo_full", 1_000), ("table_full", 3_000), ("not_ip", 10)];
        let text = findings(&dropping(fake::two_variants(), &causes, 0.8)).join("\n");
        let says =
            "At each point 60 % of the frames are dropped for what they are and not for load, mostly as table_full;";
        assert!(text.starts_with(says), "{text}");
        // Those of load are what is compared.
        let text = findings(&dropping(fake::two_variants(), &causes[..1], 0.8)).join("\n");
        assert!(!text.contains("for what they are"), "{text}");
    }

    #[test]
    fn a_search_says_what_it_does_not_count_as_lost() {
        let mut record = dropping(fake::two_variants(), &[("oversized_frame", 500)], 1.0);
        record.points.truncate(1);
        record.points[0].metrics.no_drop_gbps = Some(99.7);
        let text = findings(&record).join("\n");
        let says = "priv_ring takes up to 99.7 Gbit/s without losing a frame to load, but drops 100 % of the frames for what they \
                    are, mostly as oversized_frame.";
        assert!(text.starts_with(says), "{text}");
    }
}
