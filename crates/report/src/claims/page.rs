//! Claims as a page of one file.

use nicforge_record::Record;

use super::text::{TALLY_HEAD, tally_rows};
use super::{Judged, Verdict};
use crate::html::{escape, head, summary};

/// The page of `judged`, and of what scenarios predict whose published values are not open. The texts are its heading,
/// what is compared, and where the published values are from.
pub fn claims_page(
    judged: &[Judged],
    blind: &[(String, Result<Record, String>)],
    [title, asked, source]: [&str; 3],
) -> String {
    let title = escape(title);
    let mut page = head(&title, "nicforge reproduce");
    page += &format!("<p class=\"asked\">{}</p>\n</header>\n", escape(asked));
    page += "<section>\n<h2>How near predictions come</h2>\n<p class=\"note\">Of values, how many are within their \
             interval or so near; of orderings, how many are right.</p>\n";
    let row = |cells: &[String; 6]| {
        let rest: String = cells[1..].iter().map(|cell| format!("<td class=\"n\">{}</td>", escape(cell))).collect();
        format!("<tr><th scope=\"row\">{}</th>{rest}</tr>\n", escape(&cells[0]))
    };
    page += &table(&TALLY_HEAD, &tally_rows(judged).iter().map(row).collect::<String>());
    page += "</section>\n";
    let mut scenarios: Vec<&str> = judged.iter().map(|one| one.claim.scenario.as_str()).collect();
    scenarios.dedup();
    for scenario in scenarios {
        let rows: String = judged.iter().filter(|one| one.claim.scenario == scenario).map(claim).collect();
        let head = ["claim", "published", "predicted", "members", "ratio", "", "verdict", "known"];
        page += &format!("<section>\n<h2>{}</h2>\n{}</section>\n", escape(scenario), table(&head, &rows));
    }
    for (name, record) in blind {
        page += &prediction(name, record);
    }
    page += &format!("<section>\n<p class=\"note\">Published values: {}</p>\n</section>\n", escape(source));
    page + "</main>\n</body>\n</html>\n"
}

/// Main metrics of a scenario without a published value, folded.
fn prediction(name: &str, record: &Result<Record, String>) -> String {
    let (title, body) = match record {
        Ok(record) => (record.title.as_str(), summary(record)),
        Err(why) => ("", format!("<p>{}</p>\n", escape(why))),
    };
    let heading = format!("{name}, no published value: {title}");
    format!(
        "<section>\n<details class=\"paper\">\n<summary>{}</summary>\n{body}</details>\n</section>\n",
        escape(heading.trim_end_matches(": "))
    )
}

fn table(head: &[&str], rows: &str) -> String {
    let cell = |(index, cell): (usize, &&str)| match index {
        1..=4 => format!("<th scope=\"col\" class=\"n\">{cell}</th>"),
        _ => format!("<th scope=\"col\">{cell}</th>"),
    };
    let head: String = head.iter().enumerate().map(cell).collect();
    format!("<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n")
}

fn claim(one: &Judged) -> String {
    let is_far =
        matches!(one.verdict, Verdict::WithinQuarter | Verdict::Misses | Verdict::Wrong | Verdict::NotCompared(_));
    let class = if is_far { " class=\"miss\"" } else { "" };
    let numbers = [one.published(), one.predicted(), one.shown_range(), one.shown_ratio()];
    let numbers: String = numbers.iter().map(|cell| format!("<td class=\"n\">{}</td>", escape(cell))).collect();
    format!(
        "<tr{class}><th scope=\"row\">{}</th>{numbers}<td>{}</td><td class=\"verdict\">{}</td><td>{}</td></tr>\n",
        escape(&one.claim.claim),
        mark(one.ratio()),
        one.verdict.said(),
        escape(&one.known())
    )
}

/// Width of the picture of a ratio, and the ratio at its right end; a half lies at its left.
const WIDTH: f64 = 120.0;
const WIDEST: f64 = 2.0;

/// The ratio on a logarithmic line from a half to twice, with a band of 10 %.
fn mark(ratio: Option<f64>) -> String {
    let Some(ratio) = ratio.filter(|ratio| *ratio > 0.0) else {
        return String::new();
    };
    let at = |ratio: f64| (0.5 + ratio.ln() / WIDEST.ln() / 2.0).clamp(0.02, 0.98) * WIDTH;
    let (low, high, here) = (at(0.9), at(1.1), at(ratio));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} 12\" style=\"width:7.5rem\" role=\"img\" aria-label=\"ratio {ratio:.2}\">\
         <line x1=\"0\" x2=\"{WIDTH}\" y1=\"6\" y2=\"6\" style=\"stroke:var(--grid)\"/>\
         <rect x=\"{low:.1}\" width=\"{:.1}\" y=\"1\" height=\"10\" style=\"fill:var(--grid)\"/>\
         <circle cx=\"{here:.1}\" cy=\"6\" r=\"3.5\" style=\"fill:var(--accent)\"/></svg>",
        high - low
    )
}
