//! What a window cannot say: one in which no frame came, and one in which more came than left.

use super::SAME;
use crate::metrics::Metrics;
use crate::report::csv::plain;
use crate::report::number::percent;
use crate::report::shape::parameters;
use crate::report::{PointResult, Report};

/// Whether frames were waited for and none came. Whole systems send themselves.
pub fn is_empty(point: &PointResult) -> bool {
    let metrics = &point.metrics;
    metrics.offered_mpps <= 0.0 && metrics.bandwidth_gbps.is_none()
}

/// What `findings` have to say of all points before they compare them.
pub fn about_windows(report: &Report) -> Vec<String> {
    let empty = report.points.iter().filter(|point| is_empty(point)).count();
    let mut paragraphs = Vec::new();
    if empty > 0 {
        let whose = match report.points.len() {
            1 => "the window".to_string(),
            all => format!("the windows of {empty} of {all} points"),
        };
        paragraphs.push(format!(
            "No frame came in {whose}, so nothing was measured there: use a larger window_ms, or more offered_gbps."
        ));
    }
    paragraphs.extend(growing(report));
    paragraphs
}

/// Share of what came in the window that was neither sent nor dropped in it; `None` where that is
/// not worth a word, or whoever sends waits for answers.
fn backlog(metrics: &Metrics) -> Option<f64> {
    let waits = metrics.bandwidth_gbps.is_some() || metrics.requests_timed_out.is_some();
    let came = metrics.offered_mpps;
    let stayed = 1.0 - metrics.drop_fraction - metrics.throughput_mpps / came;
    (!waits && came > 0.0 && stayed > 2.0 * SAME).then_some(stayed)
}

/// Points whose backlog grew in the window, and where by most.
fn growing(report: &Report) -> Option<String> {
    let points = report.points.iter();
    let growing: Vec<_> = points.filter_map(|point| Some((backlog(&point.metrics)?, point))).collect();
    let (most, point) = growing.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let keys = parameters(report).columns;
    let value = |key: &&str| Some(format!(" {key}={}", plain(point.params.get(*key)?)));
    let values: String = keys.iter().filter_map(value).collect();
    let place = match report.points.len() {
        1 => String::new(),
        all => format!(" In {} of {all} points it grew, most in this one.", growing.len()),
    };
    // Trials of a search begin with empty rings, whatever came before.
    let remedy = match point.metrics.no_drop_gbps {
        Some(_) => "Use a larger window_ms",
        None => "Use a larger warmup_ms, until rings are as full as they get, or a larger window_ms",
    };
    Some(format!(
        "The backlog of {}{values} grew by {} of what came in the window, which was neither sent nor dropped: what was \
         measured is not steady, and drops may be yet to come. {remedy}.{place}",
        point.variant,
        percent(*most)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::findings;
    use crate::report::fake;

    #[test]
    fn where_no_frame_came_nothing_is_said_of_who_is_best() {
        for mut report in [fake::single(), fake::two_variants()] {
            for point in &mut report.points {
                point.metrics = Default::default();
            }
            let said = findings(&report);
            assert_eq!(said.len(), 1, "{said:#?}");
            assert!(said[0].starts_with("No frame came in"), "{said:#?}");
            assert!(said[0].contains("a larger window_ms, or more offered_gbps"));
        }
    }

    #[test]
    fn some_windows_without_frames_are_counted_and_the_others_compared() {
        let mut report = fake::sweep(&[("priv_ring", 1.8)]);
        let all = report.points.len();
        report.points[0].metrics = Default::default();
        let said = findings(&report);
        let first = format!("No frame came in the windows of 1 of {all} points");
        assert!(said[0].starts_with(&first) && said.len() > 1, "{said:#?}");
    }

    #[test]
    fn a_backlog_that_grows_is_told() {
        let mut report = fake::single();
        let before = findings(&report);
        let metrics = &mut report.points[0].metrics;
        (metrics.drop_fraction, metrics.offered_mpps) = (0.1, 10.0);
        metrics.throughput_mpps = 8.85;
        assert_eq!(findings(&report).len(), before.len());
        report.points[0].metrics.throughput_mpps = 6.0;
        let said = findings(&report);
        assert!(said[0].contains("grew by 30 %"), "{said:#?}");
        // Who waits for answers has no more frames underway than it sends.
        report.points[0].metrics.requests_timed_out = Some(0);
        assert_eq!(findings(&report).len(), before.len());
    }

    #[test]
    fn of_several_backlogs_the_largest_is_told() {
        let mut report = fake::single();
        let points = (1..=3).map(|k| {
            let mut point = fake::point("priv_ring", &[("k", json!(k))], 1.0);
            let sent = point.metrics.offered_mpps * (1.0 - 0.1 * f64::from(k - 1));
            (point.metrics.drop_fraction, point.metrics.throughput_mpps) = (0.0, sent);
            point
        });
        report.points = points.collect();
        let said = findings(&report);
        assert!(said[0].starts_with("The backlog of priv_ring k=3 grew by 20 %"), "{said:#?}");
        assert!(said[0].ends_with("In 2 of 3 points it grew, most in this one."), "{said:#?}");
    }
}
