//! A page for Prometheus (text exposition format 0.0.4), on a loopback address.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nicforge_lab::live::{NicCounts, Snapshot, StageCounts, WorkerCounts};

use crate::error::CliError;

/// How long a client may take to ask, and to read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are served at once. The next one takes the place of the first: whoever is slow keeps nobody out.
const CLIENTS_MAX: usize = 16;
/// No request is longer.
const REQUEST_MAX: usize = 8 << 10;

/// The page; threads serve it as long as the program runs.
pub struct Page {
    now: Arc<Mutex<Snapshot>>,
}

/// Serves the page on `address`, and what `more` says behind it.
pub fn serve(address: SocketAddr, more: impl Fn() -> String + Send + Sync + 'static) -> Result<Page, CliError> {
    let now = Arc::new(Mutex::new(Snapshot::default()));
    let shown = now.clone();
    serve_page(address, move || page(&shown.lock().unwrap_or_else(PoisonError::into_inner)) + &more())?;
    Ok(Page { now })
}

/// Serves what `page` says, asked anew for each client, on `address`.
pub fn serve_page(address: SocketAddr, page: impl Fn() -> String + Send + Sync + 'static) -> Result<(), CliError> {
    if !address.ip().is_loopback() {
        let right = "name a loopback address, such as 127.0.0.1:9477";
        return Err(CliError::Usage(format!("--metrics {address}: would be seen by other machines; {right}")));
    }
    let listener =
        TcpListener::bind(address).map_err(|cause| CliError::Write { what: format!("--metrics {address}"), cause })?;
    let page = Arc::new(page);
    let clients = Arc::new(Clients::default());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(place) = clients.take_place(&client) else { continue };
            let (page, clients) = (page.clone(), clients.clone());
            std::thread::spawn(move || {
                // A client that goes away has seen enough.
                let _ = answer(client, &*page);
                clients.leave(place);
            });
        }
    });
    Ok(())
}

/// Who is served, oldest first, each with a number that no other has.
#[derive(Default)]
struct Clients {
    served: Mutex<VecDeque<(u64, TcpStream)>>,
    count: AtomicU64,
}

impl Clients {
    fn served(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for `client`; where there is none the oldest client loses its own.
    fn take_place(&self, client: &TcpStream) -> std::io::Result<u64> {
        let place = self.count.fetch_add(1, Ordering::Relaxed);
        let mut served = self.served();
        if served.len() == CLIENTS_MAX
            && let Some((_, oldest)) = served.pop_front()
        {
            // It may be gone already.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        served.push_back((place, client.try_clone()?));
        Ok(place)
    }

    fn leave(&self, place: u64) {
        self.served().retain(|(other, _)| *other != place);
    }
}

fn answer(mut client: TcpStream, page: &dyn Fn() -> String) -> std::io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let request = read_request(&mut client)?;
    let mut words = request.lines().next().unwrap_or("").split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    match (method, path) {
        ("GET" | "HEAD", "/metrics" | "/") => {
            let text = page();
            let kind = "Content-Type: text/plain; version=0.0.4\r\n";
            match method {
                "GET" => reply(client, "200 OK", kind, &text),
                _ => reply(client, "200 OK", kind, ""),
            }
        }
        ("GET" | "HEAD", _) => reply(client, "404 Not Found", "", "there is only /metrics\n"),
        _ => {
            let allowed = "Allow: GET, HEAD\r\n";
            reply(client, "405 Method Not Allowed", allowed, "GET /metrics\n")
        }
    }
}

/// What `client` asks, up to the empty line; less if it sends nothing more in time.
fn read_request(client: &mut TcpStream) -> std::io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let (mut request, mut bytes) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut bytes)? {
            0 => break,
            count => request.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

fn reply(mut client: TcpStream, status: &str, more: &str, text: &str) -> std::io::Result<()> {
    let length = text.len();
    write!(client, "HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Length: {length}\r\n\r\n{text}")
}

impl Page {
    /// From now on it says what `now` does.
    pub fn show(&self, now: &Snapshot) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now.clone();
    }
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
