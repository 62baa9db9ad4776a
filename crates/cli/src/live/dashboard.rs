//! The live view: one page, fed by a stream of events with the newest counts. It only reads.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use nicforge_lab::live::{NicCounts, Snapshot, WorkerCounts};
use serde_json::{Map, Value, json};

use super::shared::Shared;
use crate::error::CliError;
use crate::http::{self, Request};

/// How often counts are sent: four times before a second is over.
const EVERY: Duration = Duration::from_millis(250);
/// The browser lets the page use its own style, script and stream of events, and fetch nothing else.
const POLICY: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; img-src data:\r\nX-Content-Type-Options: nosniff\r\n";

/// Serves `page` on `address`, and what `shared` says as its events; to other machines only where `open` says so.
pub fn serve(address: SocketAddr, open: bool, page: String, shared: Shared) -> Result<(), CliError> {
    if !address.ip().is_loopback() && !open {
        let wrong = format!("--dashboard {address}: would be seen by other machines");
        let right = "name a loopback address, such as 127.0.0.1:8080, or add --dashboard-open";
        return Err(CliError::Usage(format!("{wrong}; {right}")));
    }
    http::serve(address, "--dashboard", move |request, client| {
        if !open && !is_this_machine(request.host) {
            // Another site could point its own name at this address and read the run (DNS rebinding).
            return http::reply(client, "403 Forbidden", "", "ask for the address that --dashboard names\n");
        }
        match (request.method, request.path) {
            ("GET" | "HEAD", "/") => {
                let head = format!("Content-Type: text/html; charset=utf-8\r\n{POLICY}");
                http::reply(client, "200 OK", &head, if is_get(request) { &page } else { "" })
            }
            ("GET", "/events") => stream(client, &shared),
            ("GET" | "HEAD", _) => http::reply(client, "404 Not Found", "", "there are / and /events\n"),
            _ => http::reply(client, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "this view only reads\n"),
        }
    })
}

fn is_get(request: &Request) -> bool {
    request.method == "GET"
}

/// Whether a client that asks for `host` knows this machine by an address, or as localhost.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.is_empty() || name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Counts, again and again, until the client goes away or takes too long to read them.
fn stream(client: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    let head = "Content-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n";
    write!(client, "HTTP/1.1 200 OK\r\n{head}\r\nretry: 1000\n\n")?;
    let mut told = 0;
    loop {
        let now = shared.now();
        write!(client, "data: {}\n\n", message(&now, told))?;
        told = now.events.count();
        std::thread::sleep(EVERY);
    }
}

/// All counts of `now`, and what happened after the first `told` events.
fn message(now: &Snapshot, told: u64) -> Value {
    let ports = now.device.nics.iter().map(port);
    let workers = now.workers.iter().enumerate().map(|(number, counts)| {
        let receive = now.device.receive.get(number).copied().unwrap_or_default();
        worker(counts, receive)
    });
    let (missed, events) = now.events.after(told);
    json!({
        "seconds": now.seconds,
        "ports": ports.collect::<Vec<_>>(),
        "workers": workers.collect::<Vec<_>>(),
        "set": now.device.sets.as_ref().map(|sets| sets.active),
        "missed": missed,
        "events": events.collect::<Vec<_>>(),
    })
}

fn port(nic: &NicCounts) -> Value {
    let link = nic.link.as_ref().map(|link| json!({"up": link.is_up, "mtu": link.mtu, "downs": link.downs}));
    json!({
        "arrived": nic.arrived(),
        "arrived_bytes": nic.nic.bytes,
        "sent": nic.port.sent,
        "sent_bytes": nic.port.sent_bytes,
        "link": link,
        "drops": named(nic.drops.causes()),
        "counters": named(&nic.stages.counters),
        "gauges": named(&nic.stages.gauges),
    })
}

/// Rings as entries in use and entries there are, both summed over looks.
fn worker(counts: &WorkerCounts, receive: (u64, u64)) -> Value {
    json!({
        "absent": counts.absent,
        "silent_seconds": counts.silent.as_seconds(),
        "taken": counts.taken,
        "pushed": counts.pushed,
        "idle_seconds": counts.idle.as_seconds(),
        "receive": [receive.0, receive.1],
        "transmit": [counts.transmit.0, counts.transmit.1],
        "drops": named(counts.drops.causes()),
        "counters": named(&counts.app),
        "gauges": named(&counts.gauges),
    })
}

fn named(counts: &[(&'static str, u64)]) -> Map<String, Value> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_here_from_elsewhere_are_refused() {
        for host in ["127.0.0.1:8080", "[::1]:8080", "localhost:8080", "LOCALHOST", "", "10.0.0.1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["example.org:8080", "example.org", "127.0.0.1.example.org:80"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn a_message_has_the_counts_and_the_events_since_the_last() {
        let mut now = Snapshot { seconds: 1.5, workers: vec![WorkerCounts::default(); 2], ..Snapshot::default() };
        now.workers[1].absent = true;
        now.workers[0].app = vec![("mappings", 3)];
        now.device.receive = vec![(4, 64)];
        let said = message(&now, 0);
        assert_eq!(
            (&said["workers"][1]["absent"], &said["workers"][0]["counters"]["mappings"]),
            (&json!(true), &json!(3))
        );
        assert_eq!((&said["workers"][0]["receive"], &said["seconds"]), (&json!([4, 64]), &json!(1.5)));
        assert_eq!(said["events"], json!([]));
    }
}
