//! TCP through NAT between two network namespaces, per second of processor time: Nicforge on every
//! interface against the kernel's own masquerading on the same veths.
//!
//! `cargo bench -p nicforge-cli --bench masquerade [INTERFACE]` prints a line for each. Processor time
//! is that of the whole machine (/proc/stat), both hosts' included, on either side: what the kernel
//! does in soft interrupts is charged to nobody else. So nothing else may run. Needs root, iperf3 and
//! nft; says so where they are not.

#[path = "../crates/cli/tests/netns/mod.rs"]
mod netns;

use std::process::{Child, Stdio};
use std::time::Duration;

use netns::{Hosts, has};
use nicforge_interfaces::registry;

/// Seconds of one measurement, and how often each is made, in turns.
const SECONDS: u32 = 4;
const ROUNDS: usize = 3;

/// Seconds that the machine's processors were busy since it began (proc(5): ticks of 1/100 s, all but
/// idle and waiting).
fn busy_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields = stat.lines().next().unwrap().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are within user.
    let busy = ticks[..3].iter().chain(&ticks[5..7]).sum::<u64>();
    busy as f64 / 100.0
}

/// Gbit/s that arrived, and Gbit per second of processor time.
#[derive(Clone, Copy)]
struct Measured {
    rate: f64,
    per_second: f64,
}

fn stream(hosts: &Hosts, more: &[&str]) -> Option<Measured> {
    let mut server = serve(hosts);
    let mut found = None;
    // The server needs a moment before it listens.
    for _ in 0..20 {
        let mut client = hosts.on("client", "iperf3");
        let time = SECONDS.to_string();
        client.args(["-c", "10.99.2.2", "-J", "-P", "4", "-t", &time]);
        let before = busy_seconds();
        let said = client.args(more).output().unwrap().stdout;
        let busy = busy_seconds() - before;
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
        let end = &said["end"]["sum_received"];
        if let (Some(bytes), Some(bits)) = (end["bytes"].as_f64(), end["bits_per_second"].as_f64())
        {
            found = Some(Measured {
                rate: bits / 1e9,
                per_second: bytes * 8.0 / 1e9 / busy.max(0.01),
            });
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    // It ends after one client.
    let _ = server.kill();
    let _ = server.wait();
    found
}

fn serve(hosts: &Hosts) -> Child {
    let mut server = hosts.on("server", "iperf3");
    let server = server.args(["-s", "-1"]).stdout(Stdio::null());
    server.stderr(Stdio::null()).spawn().unwrap()
}

/// Runs a line of commands in the gateway's place; what it said if it failed.
fn in_gateway(hosts: &Hosts, script: &str) -> Result<(), String> {
    let mut shell = hosts.on("gateway", "sh");
    let output = shell.args(["-ec", script]).output().unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
    }
}

const KERNEL_UP: &str = "\
    ip addr add 10.99.1.1/24 dev nf-inside; ip addr add 10.99.2.1/24 dev nf-outside; \
    sysctl -qw net.ipv4.ip_forward=1; \
    nft add table ip nat; \
    nft 'add chain ip nat out { type nat hook postrouting priority 100; }'; \
    nft add rule ip nat out oifname nf-outside masquerade";
const KERNEL_DOWN: &str = "\
    nft delete table ip nat; sysctl -qw net.ipv4.ip_forward=0; \
    ip addr flush dev nf-inside; ip addr flush dev nf-outside";

/// Both ways through the kernel.
fn kernel(hosts: &Hosts) -> Result<[Option<Measured>; 2], String> {
    in_gateway(hosts, KERNEL_UP)?;
    let measured = both_ways(hosts);
    in_gateway(hosts, KERNEL_DOWN)?;
    Ok(measured)
}

fn both_ways(hosts: &Hosts) -> [Option<Measured>; 2] {
    [stream(hosts, &[]), stream(hosts, &["-R"])]
}

fn nicforge(hosts: &Hosts, interface: &str) -> [Option<Measured>; 2] {
    let set = format!("interface={interface}");
    let gateway = hosts.gateway("nat-netns.toml", &[&set], "10.99.2.2");
    let measured = both_ways(hosts);
    gateway.stop();
    measured
}

/// The best of each way: others slow a measurement down, nobody speeds it up.
fn best(rounds: &[[Option<Measured>; 2]]) -> [Option<Measured>; 2] {
    std::array::from_fn(|way| {
        let measured = rounds.iter().filter_map(|round| round[way]);
        measured.max_by(|a, b| a.per_second.total_cmp(&b.per_second))
    })
}

fn line(name: &str, best: [Option<Measured>; 2], kernel: [Option<Measured>; 2]) -> String {
    let way = |way: usize| match (best[way], kernel[way]) {
        (Some(ours), Some(kernel)) => format!(
            "{:>8.2} {:>11.2} {:>6.2}",
            ours.rate,
            ours.per_second,
            ours.per_second / kernel.per_second
        ),
        _ => format!("{:>8} {:>11} {:>6}", "-", "-", "-"),
    };
    format!("{name:<20}{}    {}", way(0), way(1))
}

fn main() {
    for program in ["iperf3", "nft"] {
        if !has(program) {
            return println!("skipped: needs {program}");
        }
    }
    let Some(hosts) = Hosts::up("masquerade") else {
        return;
    };
    let names = registry::names();
    let wanted = std::env::args().find(|name| names.contains(&name.as_str()));
    let wanted = |name: &&str| *name != "emulated" && wanted.as_deref().is_none_or(|w| w == *name);
    let names: Vec<&str> = names.iter().copied().filter(wanted).collect();
    let mut of_kernel = Vec::new();
    let mut ours: Vec<Vec<_>> = vec![Vec::new(); names.len()];
    for _ in 0..ROUNDS {
        match kernel(&hosts) {
            Ok(measured) => of_kernel.push(measured),
            Err(why) => return println!("skipped: the kernel does not masquerade here ({why})"),
        }
        for (name, rounds) in names.iter().zip(&mut ours) {
            rounds.push(nicforge(&hosts, name));
        }
    }
    println!("client to server, then server to client; best of {ROUNDS}, {SECONDS} s each");
    println!("                      Gbit/s  Gbit/CPU-s  ratio      Gbit/s  Gbit/CPU-s  ratio");
    let kernel = best(&of_kernel);
    println!("{}", line("kernel, masquerade", kernel, kernel));
    for (name, rounds) in names.iter().zip(&ours) {
        println!("{}", line(name, best(rounds), kernel));
    }
}
