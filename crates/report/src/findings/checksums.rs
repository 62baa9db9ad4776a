//! Frames of captures that were dropped for checksums that their senders left to their NICs.

use nicforge_record::{CHECKSUM_REMEDY, PointRecord, Record};

/// How many frames of a capture were dropped for their IPv4 header checksum, and what helps; in the point that
/// dropped most of them.
pub fn unfinished_checksums(record: &Record) -> Option<String> {
    let replays = |point: &&PointRecord| {
        let arrival = point.params.get("arrival");
        arrival.is_some_and(|arrival| arrival == "replay")
    };
    let dropped = |point: &PointRecord| point.metrics.drops.get("ip_checksum").copied();
    let counts = record.points.iter().filter(replays).filter_map(dropped);
    let counts: Vec<u64> = counts.filter(|count| *count > 0).collect();
    let most = counts.iter().max()?;
    let place = match record.points.len() {
        1 => String::new(),
        all => format!(" in one of {} of {all} points that drop some", counts.len()),
    };
    Some(format!(
        "{most} replayed frames were dropped for a wrong IPv4 header checksum (ip_checksum){place}: \
         {CHECKSUM_REMEDY}."
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{fake, table};

    #[test]
    fn wrong_checksums_of_a_capture_are_in_findings_and_table() {
        let mut record = fake::two_variants();
        let cause = || "ip_checksum".to_owned();
        record.points[0].metrics.drops.insert(cause(), 12);
        // Frames that were made up have none.
        let of_none = |record: &Record| unfinished_checksums(record).is_none();
        assert!(of_none(&record) && !table(&record).contains("ip_checksum"));
        for point in &mut record.points {
            point.params.insert("arrival".into(), json!("replay"));
        }
        let said = fake::finding(&record, "unfinished checksums");
        fake::assert_says(&said, &["12 replayed frames", "ip_checksum", "1 of 2 points", CHECKSUM_REMEDY]);
        assert!(table(&record).contains(&format!("\n\n{said}")));
        record.points.truncate(1);
        assert!(!unfinished_checksums(&record).unwrap().contains("points"));
        record.points[0].metrics.drops.insert(cause(), 0);
        assert!(of_none(&record));
    }
}
