//! Windows that show no steady state: without frames, or with a backlog that grows.

use nicforge_record::Record;

use crate::csv::plain;
use crate::number::percent;
use crate::shape::parameters;

/// Windows in which no frame arrived.
pub fn empty(record: &Record) -> Option<String> {
    let empty = record.points.iter().filter(|point| point.steadiness.no_frame_arrived).count();
    let whose = match record.points.len() {
        1 => "the window".to_string(),
        all => format!("the windows of {empty} of {all} points"),
    };
    (empty > 0).then(|| {
        format!("No frame arrived in {whose}, so nothing was measured there: increase window_ms or offered_gbps.")
    })
}

/// Points whose backlog grew in the window, and where by most.
pub fn growing_backlog(record: &Record) -> Option<String> {
    let points = record.points.iter();
    let growing: Vec<_> = points.filter_map(|point| Some((point.steadiness.backlog_growth?, point))).collect();
    let (most, point) = growing.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let keys = parameters(record).columns;
    let value = |key: &&str| Some(format!(" {key}={}", plain(point.params.get(*key)?)));
    let values: String = keys.iter().filter_map(value).collect();
    let place = match record.points.len() {
        1 => String::new(),
        all => format!(" It grew in {} of {all} points, most in this one.", growing.len()),
    };
    // Trials of a search begin with empty rings, whatever came before.
    let remedy = match point.metrics.no_drop_gbps {
        Some(_) => "Increase window_ms",
        None => "Increase warmup_ms until ring occupancy settles, or window_ms",
    };
    Some(format!(
        "The backlog of {}{values} grew by {} of the window's arrivals: the window does not show a steady state, and \
         drops may follow. {remedy}.{place}",
        point.variant,
        percent(*most)
    ))
}

#[cfg(test)]
mod tests {
    use nicforge_record::Steadiness;
    use serde_json::json;

    use crate::fake;

    #[test]
    fn a_record_without_frames_has_no_ranking() {
        for mut record in [fake::single(), fake::two_variants()] {
            for point in &mut record.points {
                point.metrics = Default::default();
                point.steadiness = Steadiness::of(&point.metrics);
            }
            fake::assert_says(&fake::finding(&record, "empty windows"), &["window_ms", "offered_gbps"]);
            record.points.truncate(1);
            assert_eq!(fake::rules(&record), ["empty windows"]);
        }
    }

    #[test]
    fn some_windows_without_frames_are_counted_and_the_others_compared() {
        let mut record = fake::sweep(&[("priv_ring", 1.8)]);
        let all = record.points.len();
        record.points[0].steadiness.no_frame_arrived = true;
        fake::assert_says(&fake::finding(&record, "empty windows"), &[&format!("1 of {all} points")]);
        assert!(fake::rules(&record).contains(&"sweep"));
    }

    #[test]
    fn a_growing_backlog_is_reported() {
        let mut record = fake::single();
        assert!(!fake::rules(&record).contains(&"growing backlog"));
        record.points[0].steadiness.backlog_growth = Some(0.3);
        fake::assert_says(&fake::finding(&record, "growing backlog"), &["30 %", "warmup_ms", "window_ms"]);
        // Trials of a search begin with empty rings.
        record.points[0].metrics.no_drop_gbps = Some(9.0);
        assert!(!fake::finding(&record, "growing backlog").contains("warmup_ms"));
    }

    #[test]
    fn of_several_backlogs_the_largest_is_reported() {
        let mut record = fake::single();
        let points = [None, Some(0.1), Some(0.2)].into_iter().enumerate().map(|(k, growth)| {
            let mut point = fake::point("priv_ring", &[("k", json!(k + 1))], 1.0);
            point.steadiness.backlog_growth = growth;
            point
        });
        record.points = points.collect();
        let said = fake::finding(&record, "growing backlog");
        fake::assert_says(&said, &["priv_ring k=3", "20 %", "2 of 3 points"]);
    }
}
