use nicforge_record::Latency;

use super::*;
use crate::{fake, findings, from_json, to_csv, to_html, to_json};

fn metrics(mpps: f64, idle: f64) -> Metrics {
    Metrics { throughput_mpps: mpps, offered_mpps: 2.0, idle_fraction: Some(idle), ..Metrics::default() }
}

pub fn record() -> Record {
    report_at(2.0)
}

/// Of a generator that offered so much live, in Mpps, of 2.
fn report_at(live_offered: f64) -> Record {
    let params = [("offered_gbps".to_string(), 3.into())];
    let mut record = Record {
        scenario: "both".into(),
        points: vec![PointRecord {
            variant: "priv_ring".into(),
            params: params.into_iter().collect(),
            metrics: Metrics { drops: [("no_descriptor".to_string(), 5)].into(), ..metrics(2.0, 0.5) },
            timeline: Vec::new(),
            ..PointRecord::default()
        }],
        ..Record::default()
    };
    let live = Metrics {
        latency_us: Some(Latency { p50: 9.0, ..Latency::default() }),
        drops: [("arp <x>".to_string(), 1)].into(),
        offered_mpps: live_offered,
        ..metrics(1.0, 0.0)
    };
    let live = LiveSide { metrics: live, core_count: 2, core_ghz: 2.5, ..LiveSide::default() };
    compare(&mut record, vec![live]);
    record
}

fn row<'a>(record: &'a Record, key: &str) -> &'a ComparedRow {
    let rows = &record.comparisons[0].rows;
    rows.iter().find(|row| row.key == key).unwrap()
}

#[test]
fn both_grounds_stand_side_by_side_with_their_ratio() {
    let record = record();
    let sent = row(&record, "throughput_mpps");
    assert_eq!((sent.sim, sent.live, sent.ratio), (Some(2.0), Some(1.0), Some(0.5)));
    // Two cores, half idle, 2 Mpps: 500 ns; never idle, 1 Mpps: 2000 ns.
    let busy = row(&record, "busy_ns_per_packet");
    assert_eq!((busy.sim, busy.live, busy.ratio), (Some(500.0), Some(2_000.0), Some(4.0)));
    let cycles = row(&record, "busy_cycles_per_packet");
    assert_eq!((cycles.sim, cycles.live), (Some(1_250.0), Some(5_000.0)));
    let idle = row(&record, "idle_fraction");
    assert_eq!((idle.unit.as_str(), idle.sim), ("%", Some(50.0)));
}

#[test]
fn what_one_ground_does_not_know_has_no_ratio() {
    let record = record();
    let p50 = row(&record, "latency_us.p50");
    assert_eq!((p50.sim, p50.live, p50.ratio), (None, Some(9.0), None));
    let drops = &record.comparisons[0].drops;
    let seen: Vec<(&str, Option<f64>, Option<f64>)> =
        drops.iter().map(|row| (row.key.as_str(), row.sim, row.ratio)).collect();
    let expected = [("arp <x>", Some(0.0), None), ("no_descriptor", Some(5.0), None)];
    assert_eq!(seen, expected);
}

#[test]
fn every_form_of_the_report_has_both() {
    let record = record();
    let names: Vec<&str> = record.points.iter().map(|point| &*point.variant).collect();
    assert_eq!(names, ["priv_ring, sim", "priv_ring, live"]);
    assert!(to_csv(&record).contains("\"priv_ring, live\""));
    let table = comparison_table(&record);
    let has = |parts: [&str; 5]| {
        let of = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        table.lines().any(|line| of(line) == parts)
    };
    assert!(has(["throughput_mpps", "Mpps", "2.00", "1.00", "0.50"]), "{table}");
    assert!(has(["latency_us.p50", "µs", "–", "9.00", "–"]), "{table}");
    let page = to_html(&record).unwrap();
    assert!(page.contains("<h2>Simulated and live</h2>"));
    assert!(page.contains("<th scope=\"row\">busy_ns_per_packet</th><td>ns</td>"));
    assert!(page.contains("dropped: arp &lt;x&gt;"));
    let again = from_json(&to_json(&record)).unwrap();
    assert_eq!(again.comparisons, record.comparisons);
}

#[test]
fn findings_say_how_far_both_agree() {
    let mut record = record();
    assert_eq!(fake::rules(&record), ["agreement"], "not which ground delivers more");
    let said = fake::finding(&record, "agreement");
    fake::assert_says(&said, &["live sends 0.5 times", "busy 4 times"]);
    assert!(!said.contains("drops"), "{said}");
    let rows = &mut record.comparisons[0].rows;
    let lost = rows.iter_mut().find(|row| row.key == "drop_fraction");
    lost.unwrap().live = Some(7.0);
    fake::assert_says(&fake::finding(&record, "agreement"), &["drops 7.0 %"]);
}

#[test]
fn a_generator_that_did_not_reach_its_rate_leaves_nothing_to_compare() {
    let enough = report_at(1.8);
    assert!(!enough.comparisons[0].missed_rate);
    assert!(row(&enough, "throughput_mpps").ratio.is_some());
    let short = report_at(0.5);
    let rows = &short.comparisons[0].rows;
    assert!(rows.iter().all(|row| row.ratio.is_none()), "{rows:?}");
    // What was measured stays to be seen.
    assert_eq!(row(&short, "throughput_mpps").live, Some(1.0));
    let caution = "0.5 of 2 Mpps";
    let said = fake::finding(&short, "agreement");
    assert!(said.contains(caution) && !said.contains("times as"), "{said}");
    assert!(comparison_table(&short).contains(caution));
    assert!(to_html(&short).unwrap().contains(caution));
    assert!(to_json(&short).contains("\"missed_rate\": true"));
}

#[test]
fn a_report_without_comparison_says_nothing_of_it() {
    let record = Record::default();
    assert!(!to_json(&record).contains("comparisons"));
    assert!(comparison_table(&record).is_empty());
    assert!(!to_html(&record).unwrap().contains("Simulated and live"));
}

#[test]
fn each_ground_tells_when_it_changed_steering() {
    let switch = |ms, set: &str| Switch { ms, set: set.to_owned() };
    let mut record = Record {
        points: vec![PointRecord {
            variant: "sh_ring_dynamic".to_owned(),
            switches: vec![switch(9.0, "shared")],
            ..PointRecord::default()
        }],
        ..Record::default()
    };
    let live = vec![switch(90.0, "shared"), switch(230.0, "private")];
    let side = LiveSide { metrics: metrics(1.0, 0.0), switches: live.clone(), ..LiveSide::default() };
    compare(&mut record, vec![side]);
    assert_eq!(record.points[0].switches, [switch(9.0, "shared")]);
    assert_eq!(record.points[1].switches, live);
    let said: Vec<String> = findings(&record).into_iter().map(|found| found.text).collect();
    let [sim, live] = &said[said.len() - 2..] else { unreachable!() };
    fake::assert_says(sim, &["sh_ring_dynamic, sim", "shared rings after 9 ms"]);
    fake::assert_says(live, &["sh_ring_dynamic, live", "shared rings after 90 ms", "private rings after 230 ms"]);
    let table = comparison_table(&record);
    assert!(table.ends_with(&format!("{sim}\n{live}\n")), "{table}");
}
