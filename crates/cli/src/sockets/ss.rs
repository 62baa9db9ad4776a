//! `nicforge ss`: what the sockets of programs over our TCP do.

use clap::Args;
use nicforge_sockets::observe::{limit, list, trace};
use nicforge_sockets::service::{Limits, SocketView};
use nicforge_sockets::transport::Segments;

use super::{Place, SocketsError};
use crate::error::CliError;
use crate::output::{columns, print};

/// Options of `nicforge ss`.
#[derive(Args)]
pub struct SsOptions {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List listeners only
    #[arg(short, long)]
    listening: bool,
    /// Print losses, retransmissions and drops of connections as they happen; with a filter as `nicforge tcpdump` takes it
    #[arg(long, value_name = "FILTER", num_args = 0..)]
    trace: Option<Vec<String>>,
    /// Limit this process instead
    #[arg(long, value_name = "PID")]
    limit: Option<u32>,
    /// Sockets that the limited process may have
    #[arg(long, value_name = "N", requires = "limit")]
    connections: Option<usize>,
    /// Bytes per second that it may send
    #[arg(long, value_name = "BYTES", requires = "limit")]
    rate: Option<u64>,
}

/// Shows a service's sockets, traces connections, or limits an application.
pub fn ss(options: &SsOptions) -> Result<(), CliError> {
    let path = options.place.path();
    if let Some(filter) = &options.trace {
        return follow(options, &filter.join(" "));
    }
    if let Some(pid) = options.limit {
        let limits = Limits {
            connections: options.connections.unwrap_or(Limits::default().connections),
            bytes_per_second: options.rate,
        };
        return Ok(limit(&path, pid, limits).map_err(SocketsError::Observe)?);
    }
    let mut seen = list(&path).map_err(SocketsError::Observe)?;
    seen.sockets.retain(|socket| !options.listening || socket.state == "LISTEN");
    if options.json {
        let json = serde_json::json!({ "host": seen.host, "applications": seen.applications, "sockets": seen.sockets });
        return print(&format!("{json:#}\n"));
    }
    let head = ["State", "Recv-Q", "Send-Q", "Local", "Peer", "Process"].map(String::from).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(seen.sockets.iter().map(row)).collect();
    let table = columns(&rows);
    let mut text = String::new();
    for (number, line) in table.lines().enumerate() {
        text.push_str(line);
        text.push('\n');
        let details = number.checked_sub(1).map_or_else(String::new, |socket| details(&seen.sockets[socket]));
        if !details.is_empty() {
            text.push_str(&format!("\t {details}\n"));
        }
    }
    let refused: u64 = seen.applications.iter().map(|application| application.refused).sum();
    if refused > 0 {
        text.push_str(&format!("{refused} entries and requests refused\n"));
    }
    print(&text)
}

fn row(socket: &SocketView) -> Vec<String> {
    vec![
        socket.state.clone(),
        socket.receive_queue_bytes.to_string(),
        socket.send_queue_bytes.to_string(),
        socket.local.clone(),
        socket.remote.clone(),
        format!("{}({})", socket.program, socket.pid),
    ]
}

/// The second line, as `ss -tin` has it.
fn details(socket: &SocketView) -> String {
    let mut words = Vec::new();
    if let Some(segments) = &socket.segments {
        let [peer, own] = segments.window_shifts;
        words.push(format!("{} wscale:{peer},{own}", socket.algorithm));
        words.push(format!("rto:{}", ms(segments.timeout_us)));
    }
    if socket.rtt_us > 0.0 {
        words.push(format!("rtt:{:.3}", socket.rtt_us / 1000.0));
    }
    if socket.mss_bytes > 0 {
        words.push(format!("mss:{}", socket.mss_bytes));
        words.push(format!("cwnd:{}", socket.window_bytes / u64::from(socket.mss_bytes)));
    }
    if let Some(threshold) = socket.segments.as_ref().map(|s| s.threshold).filter(|threshold| *threshold < 1 << 20) {
        words.push(format!("ssthresh:{threshold}"));
    }
    let counts = [("bytes_sent", socket.sent_bytes), ("bytes_received", socket.received_bytes)];
    words.extend(nonzero(&counts));
    if let Some(segments) = &socket.segments {
        words.extend(nonzero(&of_segments(segments)));
        if segments.least_rtt_us < u32::MAX {
            words.push(format!("minrtt:{}", ms(segments.least_rtt_us)));
        }
    }
    let queued = [("unacked_bytes", u64::from(socket.unacknowledged_bytes)), ("retrans", socket.retransmits.into())];
    words.extend(nonzero(&queued));
    words.join(" ")
}

fn of_segments(segments: &Segments) -> [(&'static str, u64); 12] {
    [
        ("bytes_retrans", segments.bytes_retransmitted),
        ("bytes_acked", segments.bytes_acknowledged),
        ("segs_out", segments.out.into()),
        ("segs_in", segments.came.into()),
        ("data_segs_out", segments.data_out.into()),
        ("data_segs_in", segments.data_in.into()),
        ("lost", segments.lost.into()),
        ("sacked", segments.sacked.into()),
        ("timeouts", segments.timeouts.into()),
        ("rcv_ooopack", segments.out_of_order.into()),
        ("dropped", segments.dropped.into()),
        ("notsent", segments.not_sent.into()),
    ]
}

fn nonzero(counts: &[(&'static str, u64)]) -> impl Iterator<Item = String> {
    counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}:{count}"))
}

fn ms(us: u32) -> String {
    format!("{:.3}", f64::from(us) / 1000.0)
}

/// Prints events until the service ends or somebody interrupts.
fn follow(options: &SsOptions, filter: &str) -> Result<(), CliError> {
    let mut events = trace(&options.place.path(), filter).map_err(SocketsError::Observe)?;
    while let Some(event) = events.event() {
        let event = event.map_err(SocketsError::Observe)?;
        let line = if options.json {
            serde_json::json!(event).to_string()
        } else {
            format!("{} {}", super::tcpdump::clock(event.time_ns), event.line())
        };
        print(&format!("{line}\n"))?;
    }
    Ok(())
}
