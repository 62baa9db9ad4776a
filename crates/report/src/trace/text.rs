//! `trace.txt`: of each point the slowest packet beside a median one, then a line for each packet.

use std::fmt::Write;

use nicforge_record::{LifeStep, PacketLife, Trace};

use super::{PointTrace, Row, beside, end, kind, ns, why};

/// The contents of `trace.txt`.
pub fn trace_text(traces: &[PointTrace]) -> String {
    let each: Vec<String> = traces.iter().map(|point| point_text(&point.label, &point.trace)).collect();
    each.join("\n\n")
}

fn point_text(label: &str, trace: &Trace) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "{label}\n{}\n", "=".repeat(label.chars().count()));
    let (Some(slowest), Some(median)) = (trace.slowest(), trace.median()) else {
        return text + "No frame came in while packets were chosen.\n";
    };
    let count = trace.packets.len();
    let _ = writeln!(text, "{count} of {} frames were followed, evenly spread.\n", trace.chosen_of);
    text += &comparison(slowest, median);
    let _ = writeln!(text, "\n{:>10}  {:>4}  {:>12}  longest step, and how it ended", "frame", "port", "ns");
    for packet in &trace.packets {
        let longest = packet.steps.iter().max_by_key(|step| step.lasted_ps());
        let longest = longest.map_or_else(String::new, |step| format!("{} ns {}", ns(step.lasted_ps()), named(step)));
        let (number, port, total) = (packet.number, packet.port, ns(packet.lasted_ps()));
        let _ = writeln!(text, "{number:>10}  {port:>4}  {total:>12}  {longest}; {}", end(packet));
    }
    text
}

fn named(step: &LifeStep) -> String {
    format!("{}: {}", kind(step), step.name)
}

/// Both packets, step by step.
fn comparison(slowest: &PacketLife, median: &PacketLife) -> String {
    let rows = beside(slowest, median);
    let width = rows.iter().map(|row| row.name().chars().count()).max().unwrap_or(0).max("total".len());
    let mut text = String::new();
    let _ = writeln!(
        text,
        "slowest: frame {} of port {}, {}\nmedian:  frame {} of port {}, {}\n",
        slowest.number,
        slowest.port,
        end(slowest),
        median.number,
        median.port,
        end(median)
    );
    let _ = writeln!(text, "{:<width$}  {:>12}  {:>12}  why", "", "slowest ns", "median ns");
    for row in &rows {
        let time = |step: Option<&LifeStep>| step.map_or_else(String::new, |step| ns(step.lasted_ps()));
        let (name, first, second) = (row.name(), time(row.slowest), time(row.median));
        let line = format!("{name:<width$}  {first:>12}  {second:>12}  {}", reasons(row));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let (first, second) = (ns(slowest.lasted_ps()), ns(median.lasted_ps()));
    let _ = writeln!(text, "{:<width$}  {first:>12}  {second:>12}", "total");
    text
}

/// The reasons of both packets, apart where they differ.
fn reasons(row: &Row<'_>) -> String {
    let [slowest, median] = [row.slowest, row.median].map(|step| step.map_or_else(String::new, why));
    match (slowest.is_empty(), median.is_empty()) {
        _ if slowest == median => slowest,
        (_, true) => format!("slowest: {slowest}"),
        (true, _) => format!("median: {median}"),
        _ => format!("slowest: {slowest} | median: {median}"),
    }
}
