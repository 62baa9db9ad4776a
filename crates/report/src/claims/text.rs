//! Claims as text: for a terminal, and as a page of the documentation.

use super::{Judged, Tally, tallies};

/// Claims as aligned columns, and how many came how near.
pub fn claims_table(judged: &[Judged]) -> String {
    let head = ["scenario", "claim", "published", "predicted", "members", "ratio", "verdict"].map(str::to_owned);
    let row = |one: &Judged| {
        let claim = &one.claim;
        let verdict = one.verdict.said().to_owned();
        let (scenario, name) = (claim.scenario.clone(), claim.claim.clone());
        [scenario, name, one.published(), one.predicted(), one.shown_range(), one.shown_ratio(), verdict]
    };
    let mut text = aligned(&head, &judged.iter().map(row).collect::<Vec<_>>());
    text += &format!("\n{}", aligned(&TALLY_HEAD.map(str::to_owned), &tally_rows(judged)));
    text
}

/// Claims as a page of the documentation, those of each scenario in a table; `intro` stands before them.
pub fn claims_markdown(judged: &[Judged], intro: &str) -> String {
    let mut text = format!("{intro}\n{}", markdown(&TALLY_HEAD, &tally_rows(judged)));
    let mut scenario = "";
    let mut rows: Vec<[String; 7]> = Vec::new();
    let head = ["claim", "published", "predicted", "members", "ratio", "verdict", "known"];
    for one in judged {
        if one.claim.scenario != scenario {
            if !rows.is_empty() {
                text += &markdown(&head, &std::mem::take(&mut rows));
            }
            scenario = &one.claim.scenario;
            text += &format!("\n## {scenario}\n\n");
        }
        let (claim, verdict) = (one.claim.claim.clone(), one.verdict.said().to_owned());
        let values = [one.published(), one.predicted(), one.shown_range(), one.shown_ratio()];
        let [published, predicted, range, ratio] = values;
        rows.push([claim, published, predicted, range, ratio, verdict, one.known()]);
    }
    if !rows.is_empty() {
        text += &markdown(&head, &rows);
    }
    text
}

/// Head of the table of tallies.
pub const TALLY_HEAD: [&str; 6] = ["paper", "claims", "within 10 %", "within 25 %", "orderings right", "not compared"];

/// A row for each paper, and one for all.
pub fn tally_rows(judged: &[Judged]) -> Vec<[String; 6]> {
    let share = |some: usize, all: usize| if all == 0 { "–".to_owned() } else { format!("{some} of {all}") };
    let row = |name: &str, tally: Tally| {
        [
            name.to_owned(),
            tally.claims.to_string(),
            share(tally.within_tenth, tally.values),
            share(tally.within_quarter, tally.values),
            share(tally.right, tally.orderings),
            tally.not_compared().to_string(),
        ]
    };
    let mut rows: Vec<[String; 6]> = tallies(judged).into_iter().map(|(name, tally)| row(name, tally)).collect();
    if rows.len() > 1 {
        rows.push(row("all", Tally::of(judged.iter())));
    }
    rows
}

fn aligned<const COLUMNS: usize>(head: &[String; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let all = || std::iter::once(head).chain(rows);
    let widths: Vec<usize> =
        (0..COLUMNS).map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    all().map(line).collect()
}

fn markdown<const COLUMNS: usize>(head: &[&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.iter().map(|cell| (*cell).to_owned()).collect());
    text += &line(vec!["---".to_owned(); COLUMNS]);
    // A bar within a cell would end it.
    let rows = rows.iter().map(|row| line(row.iter().map(|cell| cell.replace('|', "\\|")).collect()));
    text + &rows.collect::<String>()
}
