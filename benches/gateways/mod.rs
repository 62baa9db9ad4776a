//! Benchmarks of gateways share this: the kernel's own gateway as the peer, and how processor time is read.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::netns::{Gateway, Hosts, example_file};

/// A second in proc(5).
const TICKS: f64 = 100.0;

/// Seconds of processor time.
#[derive(Clone, Copy)]
pub struct Used {
    /// Of the process.
    pub own: f64,
    /// Of its children that ended.
    #[allow(dead_code)] // Not every benchmark has children.
    pub of_children: f64,
}

/// Seconds of processor time by /proc/ID/stat.
pub fn used(id: u32) -> Used {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything: state is field 3, utime 14, stime, cutime, cstime.
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    let of = |from: usize| fields.get(from..from + 2).map_or(0.0, |f| f[0] + f[1]) / TICKS;
    Used { own: of(11), of_children: of(13) }
}

/// Seconds that ksoftirqd, which does what no program's own time is left for, has run so far.
pub fn soft_interrupts() -> f64 {
    let named = |id: &String| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        name.starts_with("ksoftirqd")
    };
    let ran = |id: String| {
        let stat = fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<f64>().ok()
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(named).filter_map(ran).sum::<f64>() / 1e9
}

/// The kernel masquerades in the gateway's place.
pub const KERNEL_UP: &str = "\
    ip addr add 10.99.1.1/24 dev nf-inside; ip addr add 10.99.2.1/24 dev nf-outside; \
    sysctl -qw net.ipv4.ip_forward=1; \
    nft add table ip nat; \
    nft 'add chain ip nat out { type nat hook postrouting priority 100; }'; \
    nft add rule ip nat out oifname nf-outside masquerade";
/// It does no more.
pub const KERNEL_DOWN: &str = "\
    nft delete table ip nat; sysctl -qw net.ipv4.ip_forward=0; \
    ip addr flush dev nf-inside; ip addr flush dev nf-outside";

/// Starts Nicforge in the gateway's place: an example with more lines in its `[live]` and more settings. Waits until the server
/// answers through it.
pub fn nicforge(hosts: &Hosts, example: &str, live: &str, set: &[&str]) -> Result<Gateway, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let text = fs::read_to_string(example_file(example)).map_err(|error| error.to_string())?;
    let file = folder.path().join(example);
    fs::write(&file, text.replace("[live]\n", &format!("[live]\n{live}\n"))).map_err(|error| error.to_string())?;
    let mut gateway = hosts.start(&file, set);
    hosts.wait_for(&mut gateway, "10.99.2.2");
    Ok(gateway)
}

/// Becomes true at the first SIGINT or SIGTERM, so that a benchmark takes its hosts away before it ends.
pub fn interrupted() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).unwrap();
    }
    stop
}

/// Runs a line of commands on a host; what it said if it failed.
pub fn shell(hosts: &Hosts, host: &str, script: &str) -> Result<(), String> {
    let mut shell: Command = hosts.on(host, "sh");
    let output = shell.args(["-ec", script]).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_string()) }
}
