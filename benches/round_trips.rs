//! Round trips of 32 bytes over TCP through NAT between two network namespaces: how long one takes, and the processor
//! time of hosts and gateway for it. Nicforge on one thread and on two, beside the kernel's own masquerading.
//!
//! `cargo bench -p nicforge-cli --bench round_trips` prints a line for each. What counts as processor time is said in
//! masquerade.rs. Needs root and nft; says so where they are not.

#[path = "gateways/mod.rs"]
mod gateways;
#[allow(dead_code)] // This needs a part of it.
#[path = "../crates/cli/tests/live/support/netns.rs"]
mod netns;
#[path = "../crates/wire/tests/common/skip.rs"]
mod skip;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use gateways::{KERNEL_DOWN, KERNEL_UP, shell, soft_interrupts, used};
use netns::{Hosts, example_file, has};

/// How long each is measured, and how often, in turns; the median counts.
const TIME: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;
const SERVER: &str = "10.99.2.2:7000";

/// Microseconds of a round trip.
#[derive(Clone, Copy)]
struct Measured {
    latency: f64,
    processor: f64,
}

/// A gateway that the benchmark compares.
struct Contender {
    name: &'static str,
    /// An example, and which threads it has; none: the kernel.
    example: Option<(&'static str, &'static str)>,
    rounds: Vec<Measured>,
}

const fn contender(name: &'static str, example: Option<(&'static str, &'static str)>) -> Contender {
    Contender { name, example, rounds: Vec::new() }
}

/// Exchanges bytes with the server for a while, through `gateway` or the kernel.
fn exchange(hosts: &Hosts, gateway: Option<u32>) -> std::io::Result<Measured> {
    let me = std::process::id();
    let time = || gateway.map_or(0.0, |id| used(id).own) + used(me).own + soft_interrupts();
    let listener = hosts.run("server", || netns::bound(|| TcpListener::bind(SERVER)));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.set_nodelay(true).unwrap();
            let mut bytes = [0; 32];
            // Until the client has enough.
            while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {}
        });
        let mut stream = hosts.run("client", || TcpStream::connect(SERVER))?;
        stream.set_nodelay(true)?;
        let (before, began, mut count) = (time(), Instant::now(), 0u32);
        let mut bytes = [0; 32];
        while began.elapsed() < TIME {
            stream.write_all(&bytes)?;
            stream.read_exact(&mut bytes)?;
            count += 1;
        }
        let each = |seconds: f64| seconds * 1e6 / f64::from(count.max(1));
        Ok(Measured { latency: each(began.elapsed().as_secs_f64()), processor: each(time() - before) })
    })
}

fn measure(hosts: &Hosts, contender: &Contender) -> Result<Measured, String> {
    let Some((example, threads)) = contender.example else {
        shell(hosts, "gateway", KERNEL_UP)?;
        let measured = exchange(hosts, None);
        shell(hosts, "gateway", KERNEL_DOWN)?;
        return measured.map_err(|error| error.to_string());
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(example_file(example)).map_err(|error| error.to_string())?;
    let file = folder.path().join(example);
    let text = text.replace("[live]\n", &format!("[live]\nthreads = \"{threads}\"\n"));
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let mut gateway = hosts.start(&file, &["interface=priv_ring"]);
    hosts.wait_for(&mut gateway, "10.99.2.2");
    let measured = exchange(hosts, Some(gateway.id()));
    gateway.stop();
    measured.map_err(|error| error.to_string())
}

fn median(rounds: &[Measured], of: fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    if !has("nft") {
        return println!("skipped: needs nft");
    }
    let Some(hosts) = Hosts::up("turns") else {
        return;
    };
    let mut contenders = [
        contender("kernel, masquerade", None),
        contender("frames, two threads", Some(("nat-netns.toml", "apart"))),
        contender("frames, one thread", Some(("nat-netns.toml", "one"))),
        contender("segments, two threads", Some(("nat-segments.toml", "apart"))),
        contender("segments, one thread", Some(("nat-segments.toml", "one"))),
        contender("AF_XDP, two threads", Some(("nat-xdp.toml", "apart"))),
        contender("AF_XDP, one thread", Some(("nat-xdp.toml", "one"))),
    ];
    for _ in 0..ROUNDS {
        for contender in &mut contenders {
            match measure(&hosts, contender) {
                Ok(measured) => contender.rounds.push(measured),
                Err(why) => return println!("{}: {why}", contender.name),
            }
        }
    }
    println!("{:<22} {:>10} {:>14} {:>6}   medians of {ROUNDS}", "", "µs", "processor µs", "ratio");
    let kernel = median(&contenders[0].rounds, |measured| measured.processor);
    for Contender { name, rounds, .. } in &contenders {
        let processor = median(rounds, |measured| measured.processor);
        let latency = median(rounds, |measured| measured.latency);
        println!("{name:<22} {latency:>10.1} {processor:>14.1} {:>6.2}", processor / kernel);
    }
}
