//! Rates and latencies of programs behind a NAT gateway: iperf3's datagrams, ping, nginx and redis between two network
//! namespaces. Nicforge on several interfaces and kinds of port runs beside the kernel's own masquerading.
//!
//! `cargo bench -p nicforge-cli --bench programs` prints a table for each figure, with the ratio to the kernel's in the same
//! round. Needs root, ip, nft, and iperf3, nginx, wrk and redis for their figures; says what is missing.

#[allow(dead_code)] // No processor time is measured here.
#[path = "gateways/mod.rs"]
mod gateways;
#[allow(dead_code)] // Tests use more of it.
#[path = "../crates/cli/tests/live/support/netns.rs"]
mod netns;
mod nginx;
#[path = "../crates/wire/tests/common/skip.rs"]
mod skip;
mod spread;

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateways::{KERNEL_DOWN, KERNEL_UP, interrupted, nicforge, shell};
use netns::{Hosts, has};
use spread::Spread;

/// Each contender runs in each round, in turn.
const ROUNDS: usize = 3;
/// iperf3's server may still be busy with the client before, so a program may fail and try again.
const TRIES: usize = 3;
const SERVER: &str = "10.99.2.2";

/// A gateway that the benchmark compares.
struct Contender {
    name: &'static str,
    /// `None` is the kernel.
    nicforge: Option<Example>,
}

/// An example that Nicforge runs.
struct Example {
    file: &'static str,
    /// A line that the benchmark adds to `[live]`.
    live: &'static str,
    interface: &'static str,
}

const fn ours(name: &'static str, file: &'static str, live: &'static str, interface: &'static str) -> Contender {
    Contender { name, nicforge: Some(Example { file, live, interface }) }
}

/// The first is the peer of the others.
const CONTENDERS: [Contender; 6] = [
    Contender { name: "kernel, masquerade", nicforge: None },
    ours("priv_ring", "nat-netns.toml", "", "priv_ring"),
    ours("rx_bisect", "nat-netns.toml", "", "rx_bisect"),
    ours("sh_ring", "nat-netns.toml", "", "sh_ring"),
    ours("priv_ring, segments cut", "nat-netns.toml", "segments = \"cut\"", "priv_ring"),
    ours("rx_bisect over AF_XDP", "nat-xdp.toml", "", "rx_bisect"),
];

/// A figure that the benchmark prints for each contender.
struct Figure {
    /// With its unit.
    title: &'static str,
    programs: &'static [&'static str],
    measure: fn(&Hosts) -> Option<f64>,
    /// Figures that may be zero have no ratio.
    has_ratio: bool,
}

const FIGURES: [Figure; 5] = [
    Figure {
        title: "UDP in frames of 64 B, thousand/s that arrive",
        programs: &["iperf3"],
        measure: datagrams,
        has_ratio: true,
    },
    Figure { title: "UDP at 500 Mbit/s, % lost", programs: &["iperf3"], measure: lost, has_ratio: false },
    Figure { title: "ping -f, µs", programs: &["ping"], measure: ping, has_ratio: true },
    Figure {
        title: "nginx, 1 KiB over 16 connections, thousand/s",
        programs: &["nginx", "wrk"],
        measure: web,
        has_ratio: true,
    },
    Figure {
        title: "redis GET over 50 connections, thousand/s",
        programs: &["redis-server", "redis-benchmark"],
        measure: store,
        has_ratio: true,
    },
];

/// Runs a program on the client's host; its standard output.
fn client(hosts: &Hosts, line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let output = hosts.on("client", words.next()?).args(words).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// iperf3 sends datagrams to the server for two seconds; its summary.
fn iperf(hosts: &Hosts, words: &str) -> Option<serde_json::Value> {
    let said = client(hosts, &format!("iperf3 -c {SERVER} -u -J -t 2 --connect-timeout 2000 {words}"))?;
    let mut said: serde_json::Value = serde_json::from_str(&said).ok()?;
    Some(said["end"]["sum"].take())
}

fn datagrams(hosts: &Hosts) -> Option<f64> {
    // Ethernet, IP and UDP headers take 42 bytes of a frame of 64.
    let sum = iperf(hosts, "-b 0 -l 22")?;
    let arrived = sum["packets"].as_f64()? - sum["lost_packets"].as_f64()?;
    Some(arrived / sum["seconds"].as_f64()? / 1e3)
}

fn lost(hosts: &Hosts) -> Option<f64> {
    iperf(hosts, "-b 500M")?["lost_percent"].as_f64()
}

fn ping(hosts: &Hosts) -> Option<f64> {
    // rtt min/avg/max/mdev = 0.008/0.010/0.105/0.003 ms
    let said = client(hosts, &format!("ping -q -f -w 2 {SERVER}"))?;
    let mean: f64 = said.split_once("rtt")?.1.split_once(" = ")?.1.split('/').nth(1)?.parse().ok()?;
    Some(mean * 1e3)
}

fn web(hosts: &Hosts) -> Option<f64> {
    let said = client(hosts, &format!("wrk -t1 -c16 -d2s http://{SERVER}:7000/small"))?;
    let rate: f64 = said.split_once("Requests/sec:")?.1.split_whitespace().next()?.parse().ok()?;
    Some(rate / 1e3)
}

fn store(hosts: &Hosts) -> Option<f64> {
    // "GET","38000.00",…
    let said = client(hosts, &format!("redis-benchmark -h {SERVER} -p 7001 -t get -n 60000 --csv"))?;
    let rate: f64 = said.split_once("\"GET\",\"")?.1.split('"').next()?.parse().ok()?;
    Some(rate / 1e3)
}

/// The server host's programs; they end with the value.
struct Servers(Vec<Child>);

impl Servers {
    /// Those of them that are there.
    fn start(hosts: &Hosts, folder: &Path) -> Servers {
        let at = folder.display();
        nginx::write(folder);
        let lines = [
            "iperf3 -s".to_string(),
            format!("nginx -p {at} -c {at}/nginx.conf"),
            // Two spaces: the word between them is empty, and redis saves nothing.
            format!("redis-server --bind {SERVER} --port 7001 --save  --protected-mode no --dir {at}"),
        ];
        let there = lines.iter().filter(|line| has(line.split(' ').next().unwrap_or_default()));
        let start = |line: &String| {
            let mut words = line.split(' ');
            let mut program = hosts.on("server", words.next().unwrap());
            program.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        Servers(there.map(start).collect())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            // nginx has a worker, which ends with it if it is asked to.
            let id = rustix::process::Pid::from_child(server);
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
            let _ = server.wait();
        }
    }
}

/// All figures of one contender, none where a program fails.
fn measure(hosts: &Hosts, contender: &Contender, figures: &[&Figure]) -> Result<Vec<Option<f64>>, String> {
    let all = || {
        let one = |figure: &&Figure| {
            (0..TRIES).find_map(|_| {
                let value = (figure.measure)(hosts);
                if value.is_none() {
                    std::thread::sleep(Duration::from_millis(200));
                }
                value
            })
        };
        figures.iter().map(one).collect()
    };
    let Some(example) = &contender.nicforge else {
        shell(hosts, "gateway", KERNEL_UP)?;
        let measured = all();
        shell(hosts, "gateway", KERNEL_DOWN)?;
        return Ok(measured);
    };
    let interface = format!("interface={}", example.interface);
    let gateway = nicforge(hosts, example.file, example.live, &[&interface])?;
    let measured = all();
    gateway.stop();
    Ok(measured)
}

/// A figure's table: rounds of contenders of figures, of which it is number `number`.
fn print(figure: &Figure, number: usize, rounds: &[Vec<Vec<Option<f64>>>]) {
    println!("\n{:<44} {:>24} {:>20}", figure.title, "", if figure.has_ratio { "ratio" } else { "" });
    for (place, contender) in CONTENDERS.iter().enumerate() {
        let own: Vec<f64> = rounds.iter().filter_map(|round| round[place][number]).collect();
        let pairs = rounds.iter().filter_map(|round| round[place][number].zip(round[0][number]));
        let ratios: Vec<f64> = pairs.map(|(ours, kernel)| ours / kernel).collect();
        let ratio = if figure.has_ratio { Spread::of(ratios).to_string() } else { String::new() };
        println!("  {:<42} {:>24} {ratio:>20}", contender.name, Spread::of(own).to_string());
    }
}

fn main() {
    if !has("nft") {
        return println!("skipped: needs nft");
    }
    let is_there = |figure: &&Figure| {
        let missing: Vec<&str> = figure.programs.iter().copied().filter(|program| !has(program)).collect();
        if !missing.is_empty() {
            println!("skipped: {} needs {}", figure.title, missing.join(" and "));
        }
        missing.is_empty()
    };
    let figures: Vec<&Figure> = FIGURES.iter().filter(is_there).collect();
    let stop = interrupted();
    let Some(hosts) = Hosts::up("programs") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let servers = Servers::start(&hosts, folder.path());
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        let mut of_round = Vec::new();
        for contender in &CONTENDERS {
            match measure(&hosts, contender, &figures) {
                Ok(measured) => of_round.push(measured),
                Err(why) => return println!("{}: {why}", contender.name),
            }
            if stop.load(Ordering::Relaxed) {
                return println!("interrupted");
            }
        }
        eprintln!("round {round} of {ROUNDS}");
        rounds.push(of_round);
    }
    drop(servers);
    println!("medians of {ROUNDS} (least-most)");
    for (number, figure) in figures.iter().enumerate() {
        print(figure, number, &rounds);
    }
}
