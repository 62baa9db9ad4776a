//! Tests of the report as a whole; `golden/` holds what the texts must be.

use nicforge_record::{CpuTime, Record, TupleTimes};
use serde_json::{Value, json};

use super::columns::{METRICS, NO_DROP};
use super::{ReportError, fake, findings, from_json, table, to_csv, to_html, to_json, write_all};

fn all() -> Vec<(&'static str, Record)> {
    vec![
        ("single", fake::single()),
        ("variants", fake::two_variants()),
        ("sweep", fake::sweep(&[("priv_ring", 1.8), ("rx_bisect", 0.25)])),
        ("sweep-one", fake::sweep(&[("priv_ring", 1.8)])),
        ("two-keys", fake::two_keys()),
        ("wide", fake::wide()),
        ("many", fake::many()),
        ("over-time", fake::over_time()),
        ("ties", fake::ties()),
        ("slow-core", fake::slow_core()),
        ("two-steps", fake::two_steps()),
        ("empty", Record::default()),
    ]
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it instead.
#[track_caller]
fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(text == expected, "{name} changed; if that is meant, run with UPDATE_GOLDEN=1\n{text}");
}

#[test]
fn json_is_as_it_was() {
    golden("variants.json", &to_json(&fake::two_variants()));
}

#[test]
fn csv_is_as_it_was() {
    golden("variants.csv", &to_csv(&fake::two_variants()));
}

#[test]
fn a_parameter_that_is_called_like_a_metric_has_a_column_of_its_own() {
    let mut record = fake::two_variants();
    for point in &mut record.points {
        for (key, value) in [("offered_gbps", 200.0), ("variant", 1.0), ("drops.fifo_full", 2.0)] {
            point.params.insert(key.into(), json!(value));
        }
    }
    let csv = to_csv(&record);
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    for (index, name) in head.iter().enumerate() {
        assert!(!head[..index].contains(name), "{name} twice in {head:?}");
    }
    golden("colliding.csv", &csv);
}

#[test]
fn table_is_as_it_was() {
    golden("variants.txt", &table(&fake::two_variants()));
    golden("sweep.txt", &table(&fake::sweep(&[("priv_ring", 1.8), ("rx_bisect", 0.25)])));
}

#[test]
fn the_terminal_says_when_steering_changed() {
    let text = table(&fake::over_time());
    let (_, below) = text.split_once("\n\n").unwrap();
    assert_eq!(below, "rx_bisect ax_entries=128: to the shared rings after 4 ms, to the private rings after 14.5 ms\n");
    assert!(!table(&fake::two_variants()).contains("\n\n"));
}

/// What fires for each fake record, and the values that its first finding must name.
#[test]
fn rules_fire_and_name_the_numbers() {
    let sweep = fake::sweep(&[("priv_ring", 1.8), ("rx_bisect", 0.25)]);
    let cases: [(Record, &[&str], &[&str]); 7] = [
        (fake::single(), &["single point"], &["141.5 of the 200 Gbit/s", "29.2 %", "no_descriptor", "24 MiB"]),
        (fake::two_variants(), &["ranking"], &["200 Gbit/s against 140.4", "1.43 times", "120 B", "2.21 KiB"]),
        (fake::ties(), &["ranking"; 2], &["rx_bisect and priv_ring_small", "level", "then priv_ring 140.4"]),
        (fake::slow_core(), &["ranking"], &["2.48 times", "8 cores of sh_ring share a ring", "98.4 % full"]),
        (sweep, &["ranking", "ranking", "sweep", "sweep", "sweep", "sweep", "sweep"], &["rx_bisect", "192 Gbit/s"]),
        (fake::over_time(), &["ranking", "switches", "switches"], &["200 Gbit/s against 140.4"]),
        (fake::two_steps(), &["sweep"; 2], &["16.3 % less", "rx_entries 128 and 512", "the I/O ways (4 MiB)"]),
    ];
    for (record, rules, parts) in cases {
        assert_eq!(fake::rules(&record), rules, "{}", record.scenario);
        fake::assert_says(&findings(&record)[0].text, parts);
    }
}

#[test]
fn findings_follow_their_heads() {
    let text = fake::finding(&fake::two_variants(), "ranking");
    let at = |head: &str| text.find(head).unwrap_or_else(|| panic!("no `{head}` in: {text}"));
    assert!(at(" Why: ") < at(" As a result: "));
    assert!(at("DMA touches 3.4 MiB, against 25 MiB") < at(" As a result: "));
    assert!(at("99 % of packets are through in 45.6 µs") > at(" As a result: "));
}

#[test]
fn variants_that_differ_in_name_only_are_named() {
    let mut record = fake::two_variants();
    record.points.push(record.points[1].clone());
    record.points[2].variant = "again".into();
    fake::assert_says(&fake::finding(&record, "equal variants"), &["rx_bisect and again"]);
    record.points[2].params.insert("cores".into(), json!(3));
    assert!(!fake::rules(&record).contains(&"equal variants"));
}

#[test]
fn reasons_for_the_winner_never_speak_for_the_other() {
    // The shared ring has the better cache figures, and loses all the same.
    let text = fake::finding(&fake::slow_core(), "ranking");
    let (why, rest) = text.split_once(" Despite this: ").unwrap();
    assert!(why.contains("cores idle 0 %") && !why.contains("DRAM"), "{why}");
    assert!(rest.contains("of DRAM traffic"), "{rest}");
}

#[test]
fn what_fills_the_wire_is_not_held_back_by_its_cores() {
    let mut record = fake::ties();
    record.points.remove(0);
    let text = findings(&record).remove(0).text;
    assert!(text.contains("The wire is the limit") && !text.contains("are the limit"), "{text}");
}

#[test]
fn json_begins_with_the_keys_of_the_schema() {
    let json: Value = serde_json::from_str(&to_json(&fake::single())).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    let schema = ["scenario", "seed", "version", "machine", "wall_seconds", "simulated_seconds", "points"];
    assert!(keys.iter().zip(schema).all(|(key, name)| *key == name), "{keys:?}");
    let keys: Vec<&String> = json["points"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["variant", "params", "metrics"]);
}

#[test]
fn json_reads_back() {
    let written = fake::single();
    let read = from_json(&to_json(&written)).unwrap();
    assert_eq!(to_json(&read), to_json(&written));
    let error = from_json("{\"scenario\": 3}").unwrap_err();
    assert!(matches!(error, ReportError::Json(_)) && error.to_string().contains("line 1"), "{error}");
}

#[test]
fn a_record_that_was_read_back_gives_the_same_page() {
    for (name, record) in all() {
        let again = from_json(&to_json(&record)).unwrap();
        assert_eq!(again, record, "{name}");
        assert!(to_html(&again).unwrap() == to_html(&record).unwrap(), "{name}");
    }
}

#[test]
fn what_a_ground_cannot_know_is_absent() {
    let mut record = fake::two_variants();
    for point in &mut record.points {
        point.metrics.ddio_hit_rate = None;
        point.metrics.latency_us = None;
        point.metrics.cycles_per_packet = None;
    }
    assert!(!to_json(&record).contains("ddio_hit_rate"));
    assert!(!table(&record).contains("DDIO") && !table(&record).contains("cycles"));
    let page = to_html(&record).unwrap();
    assert!(!page.contains("title=\"ddio_hit_rate\"") && !page.contains("Where the cycles go"));
}

/// Leaves of a JSON value, as `map.part`.
fn leaves(prefix: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| leaves(&format!("{prefix}.{key}"), value, found)),
        // The distribution of latencies is a curve and no column.
        Value::Array(_) => {}
        _ => found.push(prefix.trim_start_matches('.').into()),
    }
}

#[test]
fn every_metric_is_in_the_columns_the_csv_and_the_page() {
    let mut record = fake::two_variants();
    // What only some runs know.
    let metrics = &mut record.points[0].metrics;
    metrics.no_drop_gbps = Some(91.5);
    metrics.get_hit_rate = Some(0.5);
    metrics.requests_timed_out = Some(3);
    metrics.requests_too_large = Some(4);
    metrics.requests_misdirected = Some(5);
    metrics.bandwidth_gbps = Some(9.5);
    metrics.misses_per_kb = Some(3.5);
    metrics.interrupts_khz = Some(7.5);
    metrics.cpu_time = Some(CpuTime::default());
    metrics.rpc_mps = Some(1.5);
    metrics.fairness = Some(0.75);
    metrics.tuples_mps = Some(2.5);
    metrics.counted_mps = Some(2.25);
    metrics.tuple_us = Some(TupleTimes::default());
    metrics.nicmem_get_share = Some(0.25);
    metrics.tx_deschedules_per_packet = Some(0.5);
    metrics.copy_gb_per_s = Some(9.0);
    metrics.flow_state_miss_rate = Some(0.125);
    metrics.target_alloc_share = Some(0.01);
    metrics.other_alloc_share = Some(0.02);
    let mut keys = Vec::new();
    leaves("", &serde_json::to_value(&record.points[0].metrics).unwrap(), &mut keys);
    let page = to_html(&record).unwrap();
    let csv = to_csv(&record);
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert!(keys.len() > METRICS.len(), "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("title=\"{key}\"")), "{key} is not on the page");
        assert!(head.contains(&key.as_str()), "{key} is not in the table");
    }
    assert!(head.contains(&NO_DROP.key));
}

#[test]
fn all_text_is_escaped() {
    let evil = "<script>alert('x')</script>&\"";
    let mut record = fake::two_variants();
    for text in
        [&mut record.scenario, &mut record.title, &mut record.description, &mut record.version, &mut record.machine]
    {
        *text = evil.into();
    }
    for row in &mut record.machine_parameters {
        (row.key, row.unit, row.source, row.fitted) = (evil.into(), evil.into(), evil.into(), Some(evil.into()));
    }
    for row in &mut record.settings {
        (row.key, row.unit, row.value) = (evil.into(), evil.into(), evil.into());
    }
    for (index, point) in record.points.iter_mut().enumerate() {
        point.variant = evil.into();
        point.params.insert(evil.into(), json!(format!("{evil}{index}")));
        point.metrics.drops.insert(evil.into(), 7);
    }
    let page = to_html(&record).unwrap();
    assert!(!page.contains("<script") && !page.contains("alert('"));
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn a_time_line_is_there_when_it_was_asked_for() {
    let (with, without) = (fake::over_time(), fake::two_variants());
    assert_eq!(from_json(&to_json(&with)).unwrap().points[1].timeline, with.points[1].timeline);
    let again = from_json(&to_json(&with)).unwrap();
    assert_eq!(again.points[1].switches, with.points[1].switches);
    assert!(!to_json(&without).contains("timeline") && !to_json(&without).contains("switches"));
    let marks = |record: &Record| {
        let page = to_html(record).unwrap();
        let plots = page.split("<h2>Over time</h2>").nth(1)?;
        let plots = plots.split("</section>").next()?;
        for set in ["shared", "private"] {
            assert_eq!(plots.matches(&format!("<figcaption>{set} rings in use")).count(), 1);
        }
        Some(["shared", "private"].map(|set| plots.matches(&format!("\n{set}\n")).count()))
    };
    // One of each in each of the eight plots: six quantities, and each set's rings in use.
    assert_eq!(marks(&with), Some([8, 8]));
    assert_eq!(marks(&without), None);
}

#[test]
fn the_page_fetches_nothing() {
    for (name, record) in all() {
        let page = to_html(&record).unwrap();
        // An icon without content keeps browsers from asking for one.
        let page = page.replace("<link rel=\"icon\" href=\"data:,\">", "");
        assert!(!page.contains("href=") && !page.contains("<link"), "{name}");
        for needle in ["http:", "https:", "src=", "url(", "@import", "<script ", "<a "] {
            assert!(!page.contains(needle), "{name} has {needle}");
        }
    }
}

#[test]
fn plots_take_their_colours_from_the_page() {
    for (name, record) in all() {
        let page = to_html(&record).unwrap();
        let plots = page.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().unwrap());
        for plot in plots {
            assert!(!plot.contains("=\"#"), "{name}: {plot}");
        }
    }
}

#[test]
fn numbers_that_are_none_do_not_stop_the_page() {
    let mut record = fake::sweep(&[("priv_ring", 1.8)]);
    for (index, value) in [f64::NAN, f64::INFINITY, -1.0, 0.0].into_iter().enumerate() {
        record.points[index].metrics.throughput_gbps = value;
        record.points[index].metrics.memory_gb_per_s = Some(value);
    }
    let latency = record.points[0].metrics.latency_us.as_mut().unwrap();
    latency.curve = vec![(50.0, 0.0), (99.0, f64::NAN)];
    to_html(&record).unwrap();
    table(&record);
    to_csv(&record);
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    for (name, record) in all() {
        assert_eq!(to_html(&record).unwrap(), to_html(&record.clone()).unwrap(), "{name}");
    }
}

#[test]
fn files_are_written_whole_and_failures_name_the_path() {
    let folder = std::env::temp_dir().join(format!("nicforge-report-{}", std::process::id()));
    let paths = write_all(&fake::single(), &folder.join("deep")).unwrap();
    let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["report.json", "points.csv", "report.html"]);
    assert_eq!(std::fs::read_dir(folder.join("deep")).unwrap().count(), 3);
    assert_eq!(std::fs::read_to_string(&paths[0]).unwrap(), to_json(&fake::single()));
    let error = write_all(&fake::single(), &paths[0]).unwrap_err();
    assert!(error.to_string().contains("report.json") && error.to_string().contains("--out"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Writes the pages into the folder `NICFORGE_PAGES`, to be looked at in a browser; and in it anew that of each
/// `NICFORGE_PAGES/*/report.json`.
#[test]
#[ignore = "for looking at: NICFORGE_PAGES=<folder> cargo test -p nicforge-report pages -- --ignored"]
fn pages() {
    let folder = std::path::PathBuf::from(std::env::var_os("NICFORGE_PAGES").expect("set NICFORGE_PAGES"));
    let there = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    for own in there {
        if let Ok(json) = std::fs::read_to_string(own.join("report.json")) {
            std::fs::write(own.join("report.html"), to_html(&from_json(&json).unwrap()).unwrap()).unwrap();
        }
    }
    for (name, record) in all() {
        write_all(&record, &folder.join(name)).unwrap();
    }
}
