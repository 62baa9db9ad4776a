//! Counters of a service for Prometheus (text exposition format 0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use nicforge_sockets::observe::{Seen, list};

/// The page; a service that does not answer is one that is down.
pub fn page(path: &Path) -> String {
    let seen = list(path);
    let mut text = String::new();
    metric(
        &mut text,
        "tcp_up",
        "gauge",
        "Whether the TCP service answers.",
        &[(String::new(), u64::from(seen.is_ok()))],
    );
    if let Ok(seen) = seen {
        show(&mut text, &seen);
    }
    text
}

fn show(text: &mut String, seen: &Seen) {
    if let Some(host) = &seen.host {
        let connections = [(String::new(), host.connections as u64)];
        metric(
            text,
            "tcp_connections",
            "gauge",
            "Connections of the stack, those in TIME-WAIT included.",
            &connections,
        );
        let rows: Vec<_> = host.counters.iter().map(|(name, count)| (format!("event=\"{name}\""), *count)).collect();
        metric(text, "tcp_host_events_total", "counter", "What happened to frames and segments of the host.", &rows);
    }
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for socket in &seen.sockets {
        *states.entry(&socket.state).or_default() += 1;
    }
    let rows: Vec<_> = states.into_iter().map(|(state, count)| (format!("state=\"{state}\""), count)).collect();
    metric(text, "tcp_sockets", "gauge", "Sockets of applications, by state.", &rows);
    let each = |of: fn(&nicforge_sockets::service::ApplicationView) -> u64| -> Vec<(String, u64)> {
        let label = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
        let rows = seen.applications.iter();
        rows.map(|app| (format!("pid=\"{}\",program=\"{}\"", app.pid, label(&app.program)), of(app))).collect()
    };
    metric(text, "tcp_application_sockets", "gauge", "Sockets of an application.", &each(|app| app.connections as u64));
    let limits = each(|app| app.connections_limit as u64);
    metric(text, "tcp_application_sockets_limit", "gauge", "Sockets that an application may have.", &limits);
    let refused = each(|app| app.refused);
    metric(text, "tcp_application_refused_total", "counter", "Entries and requests that made no sense.", &refused);
}

fn metric(text: &mut String, name: &str, kind: &str, help: &str, rows: &[(String, u64)]) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP nicforge_{name} {help}\n# TYPE nicforge_{name} {kind}");
    for (labels, value) in rows {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(text, "nicforge_{name}{labels} {value}");
    }
}
