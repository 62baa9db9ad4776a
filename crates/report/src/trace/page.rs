//! The section of the page: where the time of the slowest packet went, beside a median one.

use super::{PointTrace, Row, beside, end, why};
use crate::html::escape;
use crate::number::fixed;

/// Points whose tables are not folded at most.
const OPEN_MAX: usize = 2;

/// The section; empty without traces.
pub fn trace_section(traces: &[PointTrace]) -> String {
    // A few points are what their reader looks for.
    let open = if traces.len() <= OPEN_MAX { " open" } else { "" };
    let each: String = traces.iter().map(|point| of_point(point, open)).collect();
    if each.is_empty() {
        return each;
    }
    format!(
        "<section>\n<h2>Where the time of a packet goes</h2>\n<p class=\"note\">The slowest of the packets that were \
         followed, and a median one; trace.txt has all, and trace.json opens in ui.perfetto.dev.</p>\n{each}</section>\n"
    )
}

fn of_point(point: &PointTrace, open: &str) -> String {
    let (Some(slowest), Some(median)) = (point.trace.slowest(), point.trace.median()) else {
        return String::new();
    };
    let mut rows: String = beside(slowest, median).iter().map(row).collect();
    rows += &format!(
        "<tr><th scope=\"row\">total; {}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td></td></tr>\n",
        escape(&end(slowest)),
        ns(slowest.lasted_ps()),
        ns(median.lasted_ps())
    );
    format!(
        "<details class=\"paper\"{open}>\n<summary>{}</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">step</th>\
         <th scope=\"col\" class=\"n\">slowest, ns</th><th scope=\"col\" class=\"n\">median, ns</th>\
         <th scope=\"col\">why (slowest)</th></tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n</details>\n",
        escape(&point.label)
    )
}

fn row(row: &Row<'_>) -> String {
    let [slowest, median] =
        [row.slowest, row.median].map(|step| step.map_or_else(String::new, |step| ns(step.lasted_ps())));
    let reasons = row.slowest.or(row.median).map_or_else(String::new, why);
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{slowest}</td><td class=\"n\">{median}</td><td>{}</td></tr>\n",
        escape(&row.name()),
        escape(&reasons)
    )
}

/// `ps` in ns.
fn ns(ps: u64) -> String {
    fixed(ps as f64 / 1e3, 1)
}
