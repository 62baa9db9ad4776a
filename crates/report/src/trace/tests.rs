use nicforge_record::{LifeEnd, LifeStep, PacketLife, Reason, Trace};
use serde_json::Value;

use super::*;

/// A packet whose steps last so many ns, one behind the other.
fn packet(number: u64, arrived_ns: u64, steps: &[(&str, &str, u64)]) -> PacketLife {
    let mut at = arrived_ns * 1000 + 7;
    let arrived_ps = at;
    let step = |&(place, name, ns): &(&str, &str, u64)| {
        let from_ps = at;
        at += ns * 1000 + 1;
        let why = vec![Reason { what: "lines from DRAM".to_owned(), count: ns as f64 }];
        LifeStep { place: place.to_owned(), name: name.to_owned(), from_ps, until_ps: at, why }
    };
    let steps = steps.iter().map(step).collect();
    PacketLife { number, port: 1, arrived_ps, steps, end: LifeEnd::Sent }
}

fn three() -> Vec<PointTrace> {
    let packets = vec![
        packet(0, 10, &[("wire", "in", 20), ("NIC 0", "parse", 5), ("core 2", "application", 100)]),
        packet(4, 50, &[("wire", "in", 20), ("NIC 0", "stages", 7), ("core 5", "application", 900)]),
        PacketLife { end: LifeEnd::Dropped("fifo_full".to_owned()), ..packet(8, 90, &[("wire", "in", 9000)]) },
        packet(12, 99, &[("wire", "in", 20), ("core 5", "application", 10)]),
    ];
    vec![PointTrace { label: "a <point>".to_owned(), trace: Trace { chosen_of: 16, packets } }]
}

#[test]
fn slices_of_a_packet_lie_within_its_life_and_do_not_overlap() {
    let json: Value = serde_json::from_str(&trace_events(&three())).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let mut lives = 0;
    for tid in 1..=4 {
        let slices = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == tid);
        let times: Vec<(f64, f64)> =
            slices.map(|slice| (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap())).collect();
        let ((begin, lasts), steps) = times.split_first().unwrap();
        let mut at = *begin;
        for (ts, dur) in steps {
            assert!((ts - at).abs() < 1e-9 && *dur >= 0.0, "{ts} follows {at}");
            at = ts + dur;
        }
        assert!((at - begin - lasts).abs() < 1e-9);
        lives += 1;
    }
    assert_eq!(lives, 4);
    let named = events.iter().filter(|event| event["ph"] == "M");
    assert!(named.clone().all(|event| event["args"]["name"].is_string()));
    assert_eq!(named.count(), 1 + 4);
    assert!(events.iter().all(|event| event["pid"] == 1 && event["ts"].is_number()));
}

#[test]
fn the_slowest_that_was_sent_stands_beside_the_median() {
    let text = trace_text(&three());
    assert!(text.contains("slowest: frame 4 of port 1, sent\nmedian:  frame 0 of port 1, sent\n"), "{text}");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let columns = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(columns("wire: in")[2..4], ["20.0", "20.0"]);
    // What only one of them met stands alone, and cores are the same step whatever their number.
    assert_eq!(columns("NIC: stages")[2], "7.0");
    assert_eq!(columns("core: application")[2..4], ["900.0", "100.0"]);
    assert!(line("core: application").ends_with("slowest: 900 lines from DRAM | median: 100 lines from DRAM"));
    assert!(text.contains("wire: in; dropped: fifo_full"), "{text}");
}

#[test]
fn the_page_escapes_labels_and_is_empty_without_traces() {
    assert_eq!(trace_section(&[]), "");
    let section = trace_section(&three());
    assert!(section.contains("a &lt;point&gt;") && section.contains("core: application"));
}
