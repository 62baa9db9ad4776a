//! A page for Prometheus (text exposition format 0.0.4), on a loopback address.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nicforge_lab::live::Snapshot;

use crate::error::CliError;

/// How long a client may take to ask and to read.
const PATIENCE: Duration = Duration::from_secs(2);

/// The page; a thread serves it as long as the program runs.
pub struct Page {
    text: Arc<Mutex<String>>,
}

/// Serves an empty page on `address`.
pub fn serve(address: SocketAddr) -> Result<Page, CliError> {
    if !address.ip().is_loopback() {
        let right = "name a loopback address, such as 127.0.0.1:9477";
        return Err(CliError::Usage(format!(
            "--metrics {address}: would be seen by other machines; {right}"
        )));
    }
    let listener = TcpListener::bind(address).map_err(|cause| CliError::Write {
        what: format!("--metrics {address}"),
        cause,
    })?;
    let text = Arc::new(Mutex::new(String::new()));
    let shown = text.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let page = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // A client that goes away has seen enough.
            let _ = answer(client, &page);
        }
    });
    Ok(Page { text })
}

fn answer(mut client: TcpStream, page: &str) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    // Whatever is asked for, there is but this page.
    let _ = client.read(&mut [0; 1024])?;
    let length = page.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
    write!(client, "{head}\r\nContent-Length: {length}\r\n\r\n{page}")
}

impl Page {
    /// Shows what was counted so far.
    pub fn show(&self, now: &Snapshot) {
        let text = page(now);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

fn page(now: &Snapshot) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, help: &str, rows: Vec<(String, f64)>| {
        text.push_str(&format!("# HELP nicforge_{name} {help}\n"));
        text.push_str(&format!("# TYPE nicforge_{name} counter\n"));
        for (labels, value) in rows {
            text.push_str(&format!("nicforge_{name}{{{labels}}} {value}\n"));
        }
    };
    let ports = || now.device.nics.iter().enumerate();
    let workers = || now.workers.iter().enumerate();
    let by_port = |of: fn(&_) -> u64| {
        ports()
            .map(|(port, nic)| (format!("port=\"{port}\""), of(nic) as f64))
            .collect()
    };
    metric(
        "received_frames_total",
        "Frames that came in.",
        by_port(|nic: &nicforge_lab::live::NicCounts| nic.arrived()),
    );
    metric(
        "received_bytes_total",
        "Bytes that came in.",
        by_port(|nic| nic.nic.bytes),
    );
    metric(
        "sent_frames_total",
        "Frames that went out.",
        by_port(|nic| nic.port.sent),
    );
    metric(
        "sent_bytes_total",
        "Bytes that went out.",
        by_port(|nic| nic.port.sent_bytes),
    );
    metric(
        "link_downs_total",
        "How often a port's interface went down.",
        by_port(|nic| nic.link.as_ref().map_or(0, |link| link.downs)),
    );
    metric(
        "dropped_frames_total",
        "Frames dropped, by cause.",
        drops(now),
    );
    let packets = workers().map(|(w, counts)| (format!("worker=\"{w}\""), counts.taken as f64));
    metric(
        "worker_packets_total",
        "Packets that a worker took.",
        packets.collect(),
    );
    let idle = workers().map(|(w, counts)| (format!("worker=\"{w}\""), counts.idle.as_seconds()));
    metric(
        "worker_idle_seconds_total",
        "Time without a packet.",
        idle.collect(),
    );
    text
}

/// Drops of ports and workers, by cause.
fn drops(now: &Snapshot) -> Vec<(String, f64)> {
    let mut drops = Vec::new();
    for (port, nic) in now.device.nics.iter().enumerate() {
        let causes = nic.drops.causes().iter();
        drops.extend(
            causes.map(|(cause, count)| {
                (format!("port=\"{port}\",cause=\"{cause}\""), *count as f64)
            }),
        );
    }
    for (worker, counts) in now.workers.iter().enumerate() {
        let causes = counts.drops.causes().iter();
        drops.extend(causes.map(|(cause, count)| {
            (
                format!("worker=\"{worker}\",cause=\"{cause}\""),
                *count as f64,
            )
        }));
    }
    drops
}
