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
mod spread;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gateways::{KERNEL_DOWN, KERNEL_UP, interrupted, nicforge, shell, soft_interrupts, used};
use netns::{Hosts, has};
use spread::Spread;

/// How long each is measured, and how often, in turns; the median counts.
const TIME: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
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
    let gateway = nicforge(hosts, example, &format!("threads = \"{threads}\""), &["interface=priv_ring"])?;
    let measured = exchange(hosts, Some(gateway.id()));
    gateway.stop();
    measured.map_err(|error| error.to_string())
}

fn main() {
    if !has("nft") {
        return println!("skipped: needs nft");
    }
    let stop = interrupted();
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
            if stop.load(Ordering::Relaxed) {
                return println!("interrupted");
            }
        }
    }
    println!("{:<22} {:>24} {:>24} {:>18}   medians of {ROUNDS} (least-most)", "", "µs", "processor µs", "ratio");
    let of_kernel = &contenders[0].rounds;
    for Contender { name, rounds, .. } in &contenders {
        let of = |value: fn(&Measured) -> f64| Spread::of(rounds.iter().map(value).collect()).to_string();
        let latency = of(|measured| measured.latency);
        let processor = of(|measured| measured.processor);
        let ratios = rounds.iter().zip(of_kernel).map(|(ours, kernel)| ours.processor / kernel.processor);
        let ratio = Spread::of(ratios.collect()).to_string();
        println!("{name:<22} {latency:>24} {processor:>24} {ratio:>18}");
    }
}
