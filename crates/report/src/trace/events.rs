//! `trace.json`: the trace-event format that Perfetto and `chrome://tracing` open. A process is a point, a thread is a
//! packet; its steps lie within a slice that is its whole life.

use std::fmt::Write;

use nicforge_record::{LifeStep, PacketLife};
use serde_json::{Map, Value, json};

use super::{PointTrace, end};

/// The contents of `trace.json`.
pub fn trace_events(traces: &[PointTrace]) -> String {
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    let mut separator = "";
    for (point, of_point) in traces.iter().enumerate() {
        for event in events_of(point + 1, of_point) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{event}");
            separator = ",\n";
        }
    }
    text + "\n]}\n"
}

/// Events of point number `pid`, from 1.
fn events_of(pid: usize, point: &PointTrace) -> Vec<Value> {
    let name = |what: &str, tid: usize, name: &str| json!({"name": what, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {"name": name}});
    let mut events = vec![name("process_name", 0, &point.label)];
    for (place, packet) in point.trace.packets.iter().enumerate() {
        let tid = place + 1;
        events.push(name("thread_name", tid, &format!("frame {} of port {}", packet.number, packet.port)));
        let life = slice(&end(packet), "life", (packet.arrived_ps, packet.ended_ps()), (pid, tid), life_args(packet));
        events.push(life);
        events.extend(packet.steps.iter().map(|step| {
            let name = format!("{}: {}", step.place, step.name);
            let kind = super::kind(step);
            slice(&name, kind, (step.from_ps, step.until_ps), (pid, tid), step_args(step))
        }));
    }
    events
}

/// A slice of thread `tid`. Times are cut to whole nanoseconds, so that slices which touch still do.
fn slice(name: &str, kind: &str, times_ps: (u64, u64), (pid, tid): (usize, usize), args: Map<String, Value>) -> Value {
    let [from, until] = [times_ps.0, times_ps.1].map(|ps| ps / 1000);
    let us = |ns: u64| ns as f64 / 1e3;
    json!({
        "name": name, "cat": kind, "ph": "X", "ts": us(from), "dur": us(until - from), "pid": pid, "tid": tid,
        "args": args
    })
}

fn life_args(packet: &PacketLife) -> Map<String, Value> {
    let all = [("ns", json!(packet.lasted_ps() as f64 / 1e3)), ("port", json!(packet.port))];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn step_args(step: &LifeStep) -> Map<String, Value> {
    let exact = ("ns".to_owned(), json!(step.lasted_ps() as f64 / 1e3));
    let why = step.why.iter().map(|reason| (reason.what.clone(), json!(reason.count)));
    std::iter::once(exact).chain(why).collect()
}
