//! Windows that show no steady state: without frames, or with a backlog that grows.

use nicforge_record::{Drift, PointRecord, Record};

use crate::csv::plain;
use crate::number::{number, percent};
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
    let values = values(record, point);
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

/// Points whose window drifts, is too short or is not as precise as was asked for, and why the worst is.
pub fn unsteady(record: &Record) -> Option<String> {
    let reason = |point: &PointRecord| {
        let steadiness = &point.steadiness;
        let remedy = match steadiness.warmup_ends_ms {
            Some(ms) => format!("By the data the warm-up ends at {} ms: increase warmup_ms to that", number(ms)),
            None => "Increase warmup_ms".to_owned(),
        };
        if let Some(Drift { metric, share }) = &steadiness.drift {
            let way = if *share > 0.0 { "rises" } else { "falls" };
            let by = percent(share.abs());
            let or = match steadiness.precision_missed {
                Some(_) => "or max_window_ms.",
                None => "or ask for a --precision and a --max-window: then the data decide where the window begins.",
            };
            return Some(format!("{metric} {way} by {by} from the window's first half to its second. {remedy}, {or}"));
        }
        if let Some(missed) = steadiness.precision_missed {
            let width = percent(missed);
            return Some(format!(
                "the longest window gives ± {width}, not the precision asked for. Increase max_window_ms."
            ));
        }
        let correlation = steadiness.batch_correlation?;
        let correlation = number(correlation);
        Some(format!(
            "its batches follow each other (correlation {correlation}), so its intervals are too narrow. Increase window_ms."
        ))
    };
    let mut found = record.points.iter().filter_map(|point| Some((point, reason(point)?)));
    let (point, reason) = found.next()?;
    let others = match found.count() {
        0 => String::new(),
        some => format!(" {some} more of {} points are not steady, either.", record.points.len()),
    };
    let values = values(record, point);
    Some(format!("{}{values} shows no steady state: {reason}{others}", point.variant))
}

/// Points whose window the data let begin later than `warmup_ms` says, and the latest.
pub fn warmed_up(record: &Record) -> Option<String> {
    let points = record.points.iter();
    let later: Vec<_> = points.filter_map(|point| Some((point.steadiness.window_begins_ms?, point))).collect();
    let (latest, point) = later.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let place = match record.points.len() {
        1 => String::new(),
        all => format!(" That is so in {} of {all} points; it is the latest.", later.len()),
    };
    Some(format!(
        "{}{} still warms up behind warmup_ms: by the data its window begins at {} ms.{place}",
        point.variant,
        values(record, point),
        number(*latest)
    ))
}

/// The values of `point` that tell it from others.
fn values(record: &Record, point: &PointRecord) -> String {
    let value = |key: &&str| Some(format!(" {key}={}", plain(point.params.get(*key)?)));
    parameters(record).columns.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use nicforge_record::{Drift, Steadiness};
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
    fn windows_that_are_not_steady_are_reported_with_a_remedy() {
        let mut record = fake::sweep(&[("priv_ring", 1.0)]);
        assert!(!fake::rules(&record).contains(&"unsteady"));
        let drift = Drift { metric: "throughput_gbps".to_owned(), share: -0.08 };
        record.points[1].steadiness =
            Steadiness { drift: Some(drift), warmup_ends_ms: Some(23.0), ..Default::default() };
        let said = fake::finding(&record, "unsteady");
        fake::assert_says(
            &said,
            &["throughput_gbps falls by 8 %", "ends at 23 ms: increase warmup_ms to that", "--precision"],
        );
        record.points[1].steadiness = Steadiness { precision_missed: Some(0.03), ..Default::default() };
        fake::assert_says(&fake::finding(&record, "unsteady"), &["± 3 %", "max_window_ms"]);
        record.points[0].steadiness.batch_correlation = Some(0.75);
        let said = fake::finding(&record, "unsteady");
        fake::assert_says(&said, &["correlation 0.75", "Increase window_ms", "1 more of"]);
    }

    #[test]
    fn a_window_that_begins_later_than_asked_is_told() {
        let mut record = fake::sweep(&[("priv_ring", 1.0)]);
        assert!(!fake::rules(&record).contains(&"warm-up"));
        record.points[1].steadiness.window_begins_ms = Some(30.0);
        record.points[2].steadiness.window_begins_ms = Some(40.0);
        fake::assert_says(&fake::finding(&record, "warm-up"), &["begins at 40 ms", "in 2 of"]);
        assert!(!fake::rules(&record).contains(&"unsteady"));
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
