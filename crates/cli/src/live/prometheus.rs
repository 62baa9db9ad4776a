//! A page for Prometheus (text exposition format 0.0.4), on a loopback address.

use std::net::SocketAddr;

use nicforge_lab::live::{NicCounts, Snapshot, StageCounts, WorkerCounts};

use super::http;
use super::shared::Shared;
use crate::error::CliError;

/// Serves the page on `address`, and what `more` says behind it.
pub fn serve(
    address: SocketAddr,
    shared: Shared,
    more: impl Fn() -> String + Send + Sync + 'static,
) -> Result<(), CliError> {
    serve_page(address, move || page(&shared.now()) + &more())
}

/// Serves what `page` says, asked anew for each client, on `address`.
pub fn serve_page(address: SocketAddr, page: impl Fn() -> String + Send + Sync + 'static) -> Result<(), CliError> {
    if !address.ip().is_loopback() {
        let right = "name a loopback address, such as 127.0.0.1:9477";
        return Err(CliError::Usage(format!("--metrics {address}: would be seen by other machines; {right}")));
    }
    http::serve(address, "--metrics", move |request, client| match (request.method, request.path) {
        ("GET" | "HEAD", "/metrics" | "/") => {
            let kind = "Content-Type: text/plain; version=0.0.4\r\n";
            http::reply(client, "200 OK", kind, if request.method == "GET" { page() } else { String::new() }.as_str())
        }
        ("GET" | "HEAD", _) => http::reply(client, "404 Not Found", "", "there is only /metrics\n"),
        _ => http::reply(client, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET /metrics\n"),
    })
}

/// Name, kind, help and rows of labels and value.
type Metric = (&'static str, &'static str, &'static str, Vec<(String, f64)>);

fn page(now: &Snapshot) -> String {
    let mut text = String::new();
    for (name, kind, help, rows) in of_ports(now).into_iter().chain(of_workers(now)) {
        text.push_str(&format!("# HELP nicforge_{name} {help}\n"));
        text.push_str(&format!("# TYPE nicforge_{name} {kind}\n"));
        for (labels, value) in rows {
            text.push_str(&format!("nicforge_{name}{{{labels}}} {value}\n"));
        }
    }
    text
}

fn of_ports(now: &Snapshot) -> Vec<Metric> {
    let counter = |name, help, of: fn(&NicCounts) -> u64| -> Metric {
        let ports = now.device.nics.iter().enumerate();
        let rows = ports.map(|(port, nic)| (format!("port=\"{port}\""), of(nic) as f64));
        (name, "counter", help, rows.collect())
    };
    vec![
        counter("received_frames_total", "Frames that came in.", |nic| nic.arrived()),
        counter("received_bytes_total", "Bytes that came in.", |nic| nic.nic.bytes),
        counter("sent_frames_total", "Frames that went out.", |nic| nic.port.sent),
        counter("sent_bytes_total", "Bytes that went out.", |nic| nic.port.sent_bytes),
        counter("link_downs_total", "How often a port's interface went down.", |nic| {
            nic.link.as_ref().map_or(0, |link| link.downs)
        }),
        counter("next_hop_moves_total", "How often a next hop had another hardware address than before.", |nic| {
            nic.stages.count("next_hop_moved")
        }),
        counter(
            "next_hop_questions_total",
            "Questions for a next hop: frames that went out without one that came in.",
            |nic| nic.stages.count("next_hop_asked"),
        ),
        counter("next_hop_unanswered_total", "Questions for a next hop that nobody answered in time.", |nic| {
            nic.stages.count("next_hop_unanswered")
        }),
        ("dropped_frames_total", "counter", "Frames dropped, by cause.", drops(now)),
        (
            "stage_count_total",
            "counter",
            "What stages of a port's NIC counted, by name.",
            of_stages(now, |stages| &stages.counters),
        ),
        (
            "stage_gauge",
            "gauge",
            "What stages of a port's NIC hold now, by name.",
            of_stages(now, |stages| &stages.gauges),
        ),
    ]
}

fn of_stages(now: &Snapshot, values: fn(&StageCounts) -> &Vec<(&'static str, u64)>) -> Vec<(String, f64)> {
    let mut rows = Vec::new();
    for (port, nic) in now.device.nics.iter().enumerate() {
        let values = values(&nic.stages).iter();
        rows.extend(values.map(|(name, value)| (format!("port=\"{port}\",name=\"{name}\""), *value as f64)));
    }
    rows
}

fn of_workers(now: &Snapshot) -> Vec<Metric> {
    let metric = |name, kind, help, of: &dyn Fn(usize, &WorkerCounts) -> f64| -> Metric {
        let workers = now.workers.iter().enumerate();
        let rows = workers.map(|(w, counts)| (format!("worker=\"{w}\""), of(w, counts)));
        (name, kind, help, rows.collect())
    };
    let receive = |w: usize| now.device.receive.get(w).copied().unwrap_or_default();
    vec![
        metric("worker_present", "gauge", "Whether somebody works there.", &|_, counts| {
            f64::from(u8::from(!counts.absent))
        }),
        metric("worker_silent_seconds", "gauge", "How long a worker's process has said nothing.", &|_, counts| {
            counts.silent.as_seconds()
        }),
        metric("worker_packets_total", "counter", "Packets that a worker took.", &|_, counts| counts.taken as f64),
        metric("worker_idle_seconds_total", "counter", "Time without a packet.", &|_, counts| counts.idle.as_seconds()),
        metric(
            "worker_receive_entries_waiting_total",
            "counter",
            "Receive entries waiting for software, summed over looks.",
            &|w, _| receive(w).0 as f64,
        ),
        metric(
            "worker_receive_entries_total",
            "counter",
            "Receive entries there were, summed over the same looks.",
            &|w, _| receive(w).1 as f64,
        ),
        metric(
            "worker_transmit_entries_used_total",
            "counter",
            "Transmit entries in use, summed over packets.",
            &|_, counts| counts.transmit.0 as f64,
        ),
        metric(
            "worker_transmit_entries_total",
            "counter",
            "Transmit entries there were, summed over the same packets.",
            &|_, counts| counts.transmit.1 as f64,
        ),
    ]
}

/// Drops of ports and workers, by cause.
fn drops(now: &Snapshot) -> Vec<(String, f64)> {
    let mut drops = Vec::new();
    for (port, nic) in now.device.nics.iter().enumerate() {
        let causes = nic.drops.causes().iter();
        drops.extend(causes.map(|(cause, count)| (format!("port=\"{port}\",cause=\"{cause}\""), *count as f64)));
    }
    for (worker, counts) in now.workers.iter().enumerate() {
        let causes = counts.drops.causes().iter();
        drops.extend(causes.map(|(cause, count)| (format!("worker=\"{worker}\",cause=\"{cause}\""), *count as f64)));
    }
    drops
}
