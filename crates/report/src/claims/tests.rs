//! Verdicts and the forms in which they are shown.

use nicforge_record::{Interval, PointRecord, Record};

use super::*;

/// One point: 90 ± 2 Gbit/s.
fn record() -> Record {
    let mut point = PointRecord { variant: "a".to_owned(), ..PointRecord::default() };
    point.metrics.throughput_gbps = 90.0;
    let sure = Interval { mean: 90.0, half_width: 2.0, samples: 9, correlation: None };
    point.intervals.insert("throughput_gbps".to_owned(), sure);
    Record { points: vec![point], ..Record::default() }
}

fn claim(published: Option<f64>, predicted: &str) -> Claim {
    Claim {
        paper: "rx-bisect".to_owned(),
        scenario: "rxb-10".to_owned(),
        claim: "NAT <a|b>".to_owned(),
        published,
        bound: None,
        predicted: Ok(Expression::parse(predicted).unwrap()),
        known: "because".to_owned(),
    }
}

fn value(published: f64) -> Judged {
    Judged::of(&claim(Some(published), "throughput_gbps{a}"), Ok(&record()))
}

#[test]
fn a_verdict_says_how_near_a_value_is() {
    let cases = [
        (91.9, Verdict::Within),
        (100.0, Verdict::WithinTenth),
        (120.0, Verdict::WithinQuarter),
        (72.0, Verdict::WithinQuarter),
        (121.0, Verdict::Misses),
    ];
    for (published, verdict) in cases {
        assert_eq!(value(published).verdict, verdict, "{published}");
    }
    let nowhere = Judged::of(&claim(Some(1.0), "0 / 0"), Ok(&record()));
    assert_eq!((nowhere.verdict.clone(), nowhere.predicted().as_str()), (Verdict::Misses, "nowhere"));
}

#[test]
fn a_bound_is_kept_or_compared() {
    for (bound, published, verdict) in [
        (Bound::AtMost, 200.0, Verdict::KeepsBound),
        (Bound::AtMost, 85.0, Verdict::WithinTenth),
        (Bound::AtLeast, 16.0, Verdict::KeepsBound),
        (Bound::AtLeast, 180.0, Verdict::Misses),
    ] {
        let claim = Claim { bound: Some(bound), ..claim(Some(published), "throughput_gbps{a}") };
        assert_eq!(Judged::of(&claim, Ok(&record())).verdict, verdict, "{bound:?} {published}");
    }
}

#[test]
fn an_ordering_is_right_or_not_and_what_cannot_be_compared_says_why() {
    let verdict = |published, predicted: &str| Judged::of(&claim(published, predicted), Ok(&record())).verdict;
    assert_eq!(verdict(None, "throughput_gbps{a} > 80"), Verdict::Right);
    assert_eq!(verdict(None, "throughput_gbps{a} > 100"), Verdict::Wrong);
    assert!(matches!(verdict(None, "throughput_gbps{a}"), Verdict::NotCompared(_)));
    assert!(matches!(verdict(Some(1.0), "throughput_gbps{a} > 1"), Verdict::NotCompared(_)));
    let not_run = Judged::of(&claim(Some(1.0), "throughput_gbps{a}"), Err("not run yet"));
    assert_eq!((not_run.verdict.said(), not_run.known().as_str()), ("not compared", "not run yet"));
}

/// A value that the machine misses is within the range if members of its calibrated set lie on its other side.
#[test]
fn members_make_a_range_of_a_value() {
    let mut member = record();
    member.points[0].metrics.throughput_gbps = 130.0;
    let [near, between, beyond] =
        [91.0, 125.0, 500.0].map(|published| value(published).beside(std::iter::once(&member)));
    assert_eq!(between.range(), Some([90.0, 130.0]));
    assert_eq!(between.shown_range(), "90 to 130");
    let verdicts = [near, between, beyond].map(|one| one.verdict);
    assert_eq!(verdicts, [Verdict::Within, Verdict::WithinRange, Verdict::Misses]);
    let ordering = Judged::of(&claim(None, "throughput_gbps{a} > 100"), Ok(&record()));
    assert_eq!(ordering.beside(std::iter::once(&member)).shown_range(), "right on 1 of 2");
    assert_eq!((value(91.0).range(), value(91.0).shown_range().as_str()), (None, "–"));
}

#[test]
fn tallies_count_every_claim_once() {
    let wrong = Judged::of(&claim(None, "throughput_gbps{a} > 100"), Ok(&record()));
    let not_run = Judged::of(&claim(Some(1.0), "throughput_gbps{a}"), Err("not run yet"));
    let judged = [value(91.0), value(100.0), value(120.0), value(500.0), wrong, not_run];
    let tally = Tally { claims: 6, values: 4, within_tenth: 2, within_quarter: 3, orderings: 1, right: 0 };
    assert_eq!(tallies(&judged), [("rx-bisect", tally)]);
    assert_eq!(tally.not_compared(), 1);
}

/// A page with claims of every verdict.
pub fn page() -> String {
    let wrong = Judged::of(&claim(None, "throughput_gbps{a} > 100"), Ok(&record()));
    let not_run =
        Judged::of(&claim(Some(1.0), "throughput_gbps{a}"), Err("rxb-10 did not run: a long reason why that is so"));
    let judged = [value(91.0), value(100.0), value(120.0), value(500.0), wrong, not_run];
    claims_page(
        &judged,
        &[],
        ["Published and predicted", "What papers say, and what the simulation gives.", "open.toml"],
    )
}

#[test]
fn all_forms_have_every_claim_and_text_is_made_safe() {
    let judged = [value(100.0)];
    let table = claims_table(&judged);
    assert!(table.contains("rxb-10    NAT <a|b>  100        90 ± 2.0   –        0.90   within 10 %"), "{table}");
    let blind = [("rxb-02".to_owned(), Ok(record())), ("rxb-03".to_owned(), Err("not run yet".to_owned()))];
    let page = claims_page(&judged, &blind, ["T", "A", "S"]);
    assert!(page.contains("<summary>rxb-02, no published value</summary>") && page.contains("<p>not run yet</p>"));
    assert!(page.contains("NAT &lt;a|b&gt;") && !page.contains("<a|b>"));
    let markdown = claims_markdown(&judged, "# Open\n");
    assert!(markdown.contains("| NAT <a\\|b> | 100 | 90 ± 2.0 | – | 0.90 | within 10 % | because |"), "{markdown}");
    let json: Value = serde_json::from_str(&claims_json(&judged, "S")).unwrap();
    assert_eq!((&json["claims"][0]["half_width"], &json["claims"][0]["ratio"]), (&json!(2.0), &json!(0.9)));
}
