//! Counters of a service, for Prometheus.

use std::collections::BTreeMap;
use std::path::Path;

use nicforge_sockets::observe::{Seen, list};
use nicforge_sockets::service::ApplicationView;

use crate::openmetrics::{Metric, Row};

/// All of them; a service that does not answer is one that is down.
pub fn of(path: &Path) -> Vec<Metric> {
    let seen = list(path);
    let up = Row::only(u64::from(seen.is_ok()));
    let mut metrics = vec![Metric::gauge("tcp_up", "Whether the TCP service answers", [up])];
    if let Ok(seen) = seen {
        metrics.extend(of_service(&seen));
    }
    metrics
}

fn of_service(seen: &Seen) -> Vec<Metric> {
    let mut metrics = Vec::new();
    if let Some(host) = &seen.host {
        metrics.push(Metric::gauge(
            "tcp_connections",
            "Connections of the stack, those in TIME-WAIT included",
            [Row::only(host.connections as u64)],
        ));
        let events = host.counters.iter().map(|(name, count)| Row::of("event", name, *count));
        metrics.push(Metric::counter("tcp_host_events", "What happened to frames and segments of the host", events));
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for socket in &seen.sockets {
        *states.entry(&socket.state).or_default() += 1;
    }
    let states = states.into_iter().map(|(state, count)| Row::of("state", state, count));
    metrics.push(Metric::gauge("tcp_sockets", "Sockets of applications, by state", states));
    let each = |of: fn(&ApplicationView) -> u64| -> Vec<Row> {
        let rows = seen.applications.iter();
        rows.map(|app| Row::of("pid", app.pid, of(app)).and("program", &app.program)).collect()
    };
    metrics.extend([
        Metric::gauge("tcp_application_sockets", "Sockets of an application", each(|app| app.connections as u64)),
        Metric::gauge(
            "tcp_application_sockets_limit",
            "Sockets that an application may have",
            each(|app| app.connections_limit as u64),
        ),
        Metric::counter("tcp_application_refused", "Entries and requests that made no sense", each(|app| app.refused)),
    ]);
    metrics
}
