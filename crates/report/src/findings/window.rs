//! What a window cannot say: one in which no frame came, and one in which more came than left.

use nicforge_record::Record;

use crate::csv::plain;
use crate::number::percent;
use crate::shape::parameters;

/// What `findings` have to say of all points before they compare them.
pub fn about_windows(record: &Record) -> Vec<String> {
    let empty = record.points.iter().filter(|point| point.steadiness.no_frame_arrived).count();
    let mut paragraphs = Vec::new();
    if empty > 0 {
        let whose = match record.points.len() {
            1 => "the window".to_string(),
            all => format!("the windows of {empty} of {all} points"),
        };
        paragraphs.push(format!(
            "No frame came in {whose}, so nothing was measured there: use a larger window_ms, or more offered_gbps."
        ));
    }
    paragraphs.extend(growing(record));
    paragraphs
}

/// Points whose backlog grew in the window, and where by most.
fn growing(record: &Record) -> Option<String> {
    let points = record.points.iter();
    let growing: Vec<_> = points.filter_map(|point| Some((point.steadiness.backlog_growth?, point))).collect();
    let (most, point) = growing.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let keys = parameters(record).columns;
    let value = |key: &&str| Some(format!(" {key}={}", plain(point.params.get(*key)?)));
    let values: String = keys.iter().filter_map(value).collect();
    let place = match record.points.len() {
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
    use nicforge_record::Steadiness;
    use serde_json::json;

    use super::super::findings;
    use crate::fake;

    #[test]
    fn where_no_frame_came_nothing_is_said_of_who_is_best() {
        for mut record in [fake::single(), fake::two_variants()] {
            for point in &mut record.points {
                point.metrics = Default::default();
                point.steadiness = Steadiness::of(&point.metrics);
            }
            let said = findings(&record);
            assert_eq!(said.len(), 1, "{said:#?}");
            assert!(said[0].starts_with("No frame came in"), "{said:#?}");
            assert!(said[0].contains("a larger window_ms, or more offered_gbps"));
        }
    }

    #[test]
    fn some_windows_without_frames_are_counted_and_the_others_compared() {
        let mut record = fake::sweep(&[("priv_ring", 1.8)]);
        let all = record.points.len();
        record.points[0].steadiness.no_frame_arrived = true;
        let said = findings(&record);
        let first = format!("No frame came in the windows of 1 of {all} points");
        assert!(said[0].starts_with(&first) && said.len() > 1, "{said:#?}");
    }

    #[test]
    fn a_backlog_that_grows_is_reported() {
        let mut record = fake::single();
        let before = findings(&record).len();
        record.points[0].steadiness.backlog_growth = Some(0.3);
        let said = findings(&record);
        assert_eq!(said.len(), before + 1);
        assert!(said[0].contains("grew by 30 %"), "{said:#?}");
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
        let said = findings(&record);
        assert!(said[0].starts_with("The backlog of priv_ring k=3 grew by 20 %"), "{said:#?}");
        assert!(said[0].ends_with("In 2 of 3 points it grew, most in this one."), "{said:#?}");
    }
}
