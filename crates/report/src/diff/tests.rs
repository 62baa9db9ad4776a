//! Runs that are equal, and runs that are not.

use nicforge_record::{Interval, MachineFile, RunOrigin};
use serde_json::json;

use super::*;
use crate::fake;

fn sure(point: &mut PointRecord, key: &str, samples: &[f64]) {
    point.intervals.insert(key.to_owned(), Interval::of_batches(samples).unwrap());
}

const NAMES: [&str; 2] = ["out/x", "out/y"];

fn verdict(diff: &Differences, point: usize, key: &str) -> Verdict {
    diff.points[point].metrics.iter().find(|metric| metric.key == key).unwrap().verdict()
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let record = fake::two_variants();
    let diff = diff(&record, &record, NAMES);
    assert!(diff.settings.is_empty() && diff.alone.iter().all(Vec::is_empty));
    assert!(diff.points.iter().flat_map(|point| &point.metrics).all(|metric| metric.verdict() == Verdict::Same));
    let text = diff_table(&diff);
    assert!(text.contains("settings, machine and program: the same"), "{text}");
    assert!(text.contains("no main metric differs"), "{text}");
}

#[test]
fn a_test_says_what_differs() {
    let (mut a, mut b) = (fake::two_variants(), fake::two_variants());
    let key = "throughput_gbps";
    for (record, value, noise) in [(&mut a, 100.0, 1.0), (&mut b, 110.0, 1.0)] {
        record.points[0].metrics.throughput_gbps = value;
        sure(&mut record.points[0], key, &[value - noise, value + noise, value, value]);
        record.points[1].metrics.throughput_gbps = value;
        sure(&mut record.points[1], key, &[value - 50.0, value + 50.0, value, value]);
    }
    a.points[0].metrics.drop_fraction = 0.5;
    let diff = diff(&a, &b, NAMES);
    assert!(matches!(verdict(&diff, 0, key), Verdict::Differs(p) if p < 0.001));
    assert!(matches!(verdict(&diff, 1, key), Verdict::NotToldApart(p) if p > 0.5));
    assert_eq!(verdict(&diff, 0, "drop_fraction"), Verdict::Unknown);
    assert_eq!(verdict(&diff, 0, "throughput_mpps"), Verdict::Same);
    let text = diff_table(&diff);
    for part in ["A  out/x", "+10.0 %", "differs, p < 0.001", "not told apart, p = ", "no interval", "of 2 values"] {
        assert!(text.contains(part), "`{part}` in:\n{text}");
    }
}

#[test]
fn a_change_of_ten_times_and_more_is_a_factor() {
    let change = |values: [f64; 2]| {
        let values = values.map(Some);
        Row(&MetricDifference { values, ..MetricDifference::default() }).change()
    };
    assert_eq!([[2.0, 3.0], [2.0, 2500.0], [3.0, 0.0]].map(change), ["+50.0 %", "× 1250", "-100.0 %"]);
}

#[test]
fn settings_machines_and_programs_are_compared() {
    let (mut a, mut b) = (fake::two_variants(), fake::two_variants());
    let origin = |sha256: &str| {
        let machine_file = MachineFile { sha256: sha256.to_owned(), ..MachineFile::default() };
        Some(RunOrigin { machine_file, ..RunOrigin::default() })
    };
    (a.origin, b.origin) = (origin("one"), origin("two"));
    (a.seed, b.seed) = (1, 2);
    let setting = |value: u64| Setting { key: "burst".into(), value: json!(value), ..Setting::default() };
    a.settings.push(setting(32));
    b.settings.push(setting(16));
    let found = diff(&a, &b, NAMES).settings;
    let expected = [["machine file (sha256)", "one", "two"], ["seed", "1", "2"], ["burst", "32", "16"]];
    assert_eq!(found.iter().map(cells_of).collect::<Vec<_>>(), expected.map(|row| row.map(str::to_owned)));
}

#[test]
fn points_are_matched_by_what_varies_and_the_others_are_named() {
    let point = |variant: &str, entries: u64| PointRecord {
        variant: variant.to_owned(),
        params: [("rx_entries".to_owned(), json!(entries)), ("cores".to_owned(), json!(4))].into_iter().collect(),
        ..PointRecord::default()
    };
    let of = |points: Vec<PointRecord>| Record { points, ..Record::default() };
    let a = of(vec![point("x", 64), point("x", 128), point("y", 64)]);
    let mut b = of(vec![point("y", 64), point("x", 128), point("x", 256)]);
    // The same in all points of a run: a setting that differs, and no other point.
    b.points.iter_mut().for_each(|point| point.params["cores"] = json!(8));
    let diff = diff(&a, &b, NAMES);
    let names: Vec<&str> = diff.points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(names, ["x, rx_entries 128", "y, rx_entries 64"]);
    assert_eq!(diff.alone, [vec!["x, rx_entries 64".to_owned()], vec!["x, rx_entries 256".to_owned()]]);
}

#[test]
fn what_only_tells_variants_apart_may_differ() {
    let (a, mut b) = (fake::two_variants(), fake::two_variants());
    for (point, entries) in b.points.iter_mut().zip([512, 64]) {
        point.params["rx_entries"] = json!(entries);
    }
    let found = diff(&a, &b, NAMES);
    assert_eq!((found.points.len(), &found.alone), (2, &[Vec::new(), Vec::new()]));
    b.points.iter_mut().for_each(|point| point.variant += "_other");
    let text = diff_table(&diff(&a, &b, NAMES));
    assert!(text.contains("no point is in both runs") && !text.contains("the same"), "{text}");
}

#[test]
fn both_runs_are_variants_of_one_page() {
    let record = fake::two_variants();
    let both = over_each_other(&record, &record, ["one", "two"]);
    assert_eq!(both.points.len(), 2 * record.points.len());
    let page = crate::to_html(&both).unwrap();
    assert!(page.contains("(A)") && page.contains("(B)") && page.contains("A is one, B is two"), "{page}");
    // The record has what differs as data.
    assert_eq!(
        crate::from_json(&crate::to_json(&both)).unwrap().differences,
        Some(diff(&record, &record, ["one", "two"]))
    );
}
