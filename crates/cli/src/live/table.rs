//! What a live run shows while it goes on, and at its end.

use nicforge_lab::live::{Header, LiveConfig, NicCounts, Snapshot, WorkerCounts};
use nicforge_units::Time;

use crate::output::columns;

/// A worker that has said nothing for so long is no busy one: it is stopped, or hangs.
const SILENT: Time = Time::from_ms(1_000);

/// What is about to run.
pub fn opening(config: &LiveConfig) -> String {
    let settings = &config.settings;
    let ports = config.ports.iter().enumerate();
    let ports = ports.map(|(number, port)| format!("  port {number}: {}\n", port.kind));
    let ends = match config.live.read::<Header>().duration_s {
        Some(seconds) => format!("for {seconds} s"),
        None => "until Ctrl-C".to_string(),
    };
    let app = if config.tcp.is_some() { "TCP".to_string() } else { settings.app() };
    let service = config.tcp.as_ref().map_or_else(String::new, |of_stack| {
        format!("  programs: nicforge sockets --service {} -- PROGRAM\n", super::tcp::path(&of_stack.read()).display())
    });
    format!(
        "{}: {app} on {}, {} worker(s), {ends}\n{}{service}",
        config.name(),
        settings.interface(),
        settings.cores(),
        ports.collect::<String>()
    )
}

/// When the next line is due after `seconds`: one in each second, also when some were missed.
pub fn line_after(seconds: f64) -> f64 {
    seconds.floor() + 1.0
}

/// One line about what happened between two snapshots.
pub fn line(before: &Snapshot, now: &Snapshot) -> String {
    let seconds = (now.seconds - before.seconds).max(1e-9);
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let bytes = |of: &Snapshot| -> u64 { of.device.nics.iter().map(|nic| nic.nic.bytes).sum() };
    let sent = |of: &Snapshot| -> u64 { of.device.nics.iter().map(|nic| nic.port.sent_bytes).sum() };
    let mut line = format!(
        "{:>5.1} s  in {} {}  out {} {}",
        now.seconds,
        shown(rate(now.arrived(), before.arrived()), "pps"),
        shown(rate(bytes(now), bytes(before)) * 8.0, "bit/s"),
        shown(rate(now.left(), before.left()), "pps"),
        shown(rate(sent(now), sent(before)) * 8.0, "bit/s"),
    );
    for (number, worker) in now.workers.iter().enumerate() {
        if worker.absent {
            line.push_str(&format!("  w{number} absent"));
            continue;
        }
        if worker.silent >= SILENT {
            let seconds = worker.silent.as_seconds();
            line.push_str(&format!("  w{number} silent for {seconds:.0} s"));
            continue;
        }
        let earlier = before.workers.get(number).cloned().unwrap_or_default();
        let idle = worker.idle.saturating_sub(earlier.idle).as_seconds() / seconds;
        line.push_str(&format!(
            "  w{number} {} {:.0} % busy rx {} tx {}",
            shown(rate(worker.taken, earlier.taken), "pps").trim_start(),
            100.0 * (1.0 - idle.min(1.0)),
            full(receive_ring(before, number), receive_ring(now, number)),
            full(earlier.transmit, worker.transmit),
        ));
    }
    for (number, nic) in now.device.nics.iter().enumerate() {
        if nic.link.as_ref().is_some_and(|link| !link.is_up) {
            line.push_str(&format!("  port {number} DOWN"));
        }
    }
    let drops = now.drops().since(&before.drops());
    for (cause, count) in drops.causes() {
        line.push_str(&format!("  {cause} {count}"));
    }
    line.push('\n');
    line
}

/// A rate per second, of `unit`, with three digits at least and the prefix that it asks for; as wide as any
/// other.
fn shown(rate: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let prefix = PREFIXES.into_iter().find(|(size, _)| rate >= *size);
    let (size, prefix) = prefix.unwrap_or((1.0, " "));
    let value = rate / size;
    // Single packets have no digits behind the point.
    let places = match value {
        _ if size == 1.0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:>4.places$} {prefix}{unit}")
}

/// Entries waiting in the receive rings of worker `number`, and entries there are, summed over looks.
fn receive_ring(of: &Snapshot, number: usize) -> (u64, u64) {
    of.device.receive.get(number).copied().unwrap_or_default()
}

/// How full a ring was on average between two sums of entries in use and entries there are.
fn full(before: (u64, u64), now: (u64, u64)) -> String {
    match now.1.saturating_sub(before.1) {
        0 => "-".to_string(),
        of => {
            let used = now.0.saturating_sub(before.0);
            format!("{:.0} %", 100.0 * used as f64 / of as f64)
        }
    }
}

/// All counts at the end, port by port and worker by worker.
pub fn totals(end: &Snapshot) -> String {
    let mut rows = vec![["port", "link", "in", "out", "Mbyte in", "Mbyte out", "drops"].map(str::to_string).to_vec()];
    let mega = |bytes: u64| format!("{:.3}", bytes as f64 / 1e6);
    for (number, nic) in end.device.nics.iter().enumerate() {
        rows.push(vec![
            number.to_string(),
            link(nic),
            nic.arrived().to_string(),
            nic.port.sent.to_string(),
            mega(nic.nic.bytes),
            mega(nic.port.sent_bytes),
            causes(nic.drops.causes()),
        ]);
    }
    let mut text = columns(&rows);
    rows = vec![worker_heading()];
    for (number, worker) in end.workers.iter().enumerate() {
        rows.push(worker_row(number, worker, receive_ring(end, number)));
    }
    text.push_str(&columns(&rows));
    text
}

/// How the interface of a port is, and what happened to it.
fn link(nic: &NicCounts) -> String {
    let Some(link) = &nic.link else {
        return "-".to_string();
    };
    let mut text = if link.is_up { format!("up, MTU {}", link.mtu) } else { "down".to_string() };
    if link.downs > 0 {
        text.push_str(&format!(", {} times down", link.downs));
    }
    if link.mtu_changes > 0 {
        text.push_str(&format!(", MTU changed {} times", link.mtu_changes));
    }
    text
}

fn worker_heading() -> Vec<String> {
    let heading = ["worker", "in", "out", "rx full", "tx full", "drops", "application"];
    heading.map(str::to_string).to_vec()
}

/// Receive rings are the device's, see [`receive_ring`].
fn worker_row(number: usize, counts: &WorkerCounts, receive: (u64, u64)) -> Vec<String> {
    let absent = if counts.absent { " (absent)" } else { "" };
    vec![
        format!("{number}{absent}"),
        counts.taken.to_string(),
        counts.pushed.to_string(),
        full((0, 0), receive),
        full((0, 0), counts.transmit),
        causes(counts.drops.causes()),
        causes(&[&counts.app[..], &counts.gauges].concat()),
    ]
}

/// What one worker counted; it does not know how full its receive rings were.
pub fn worker(number: usize, counts: &WorkerCounts) -> String {
    columns(&[worker_heading(), worker_row(number, counts, (0, 0))])
}

fn causes(counts: &[(&'static str, u64)]) -> String {
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if counts.is_empty() { "-".to_string() } else { counts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second later: 8 of 32 receive entries waited, 3 of 6 transmit entries were in use.
    #[test]
    fn a_line_says_how_full_rings_are_and_who_is_absent() {
        let mut before = Snapshot { workers: vec![WorkerCounts::default(); 2], ..Snapshot::default() };
        before.workers[0].transmit = (10, 100);
        before.device.receive = vec![(4, 64), (0, 0)];
        let mut now = before.clone();
        now.seconds = 1.0;
        now.workers[0].transmit = (13, 106);
        now.workers[1].absent = true;
        now.device.receive[0] = (12, 96);
        let said = line(&before, &now);
        assert!(said.contains("  w0 0  pps 100 % busy rx 25 % tx 50 %  w1 absent"), "{said}");
        assert!(line(&now, &now).contains("rx - tx -"), "nothing was seen");
        assert!(totals(&now).contains("1 (absent)"));
        now.workers[0].silent = Time::from_ms(3_200);
        let said = line(&before, &now);
        assert!(said.contains("  w0 silent for 3 s  w1 absent"), "{said}");
        assert!(!said.contains("busy"), "{said}");
    }

    #[test]
    fn seconds_that_were_missed_get_no_lines() {
        assert_eq!([0.0, 1.02, 8.7].map(line_after), [1.0, 2.0, 9.0]);
    }

    #[test]
    fn rates_of_every_size_can_be_read() {
        for (rate, text) in [
            (0.0, "   0  pps"),
            (412.0, " 412  pps"),
            (999.6, "1000  pps"),
            (1_234.0, "1.23 kpps"),
            (12_345.0, "12.3 kpps"),
            (123_456.0, " 123 kpps"),
            (9_876_543.0, "9.88 Mpps"),
            (1.25e10, "12.5 Gpps"),
        ] {
            assert_eq!(shown(rate, "pps"), text);
        }
    }
}
