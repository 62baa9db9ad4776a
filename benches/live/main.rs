//! Packets per second from the device's thread to a worker process, on every receive interface, with
//! each frame copied into its receive buffer: the live ground's own speed, without any port. Beside
//! it, in the same run, DPDK's testpmd moving packets of the same size between two processes.
//!
//!     cargo bench -p nicforge-interfaces --bench live [INTERFACE…]
//!
//! All sides poll: it needs two cores that nobody else uses. On cores that are shared,
//! `chrt -r 1 cargo bench …` (root) lets all that is measured come before others.

mod by_hand;
mod contracts;
mod dpdk;
mod halves;
mod processes;

use std::time::Duration;

use halves::Parses;
use nicforge_interfaces::registry;

/// Frame lengths without FCS.
const LENGTHS: [usize; 2] = [64, 1_500];
/// How often and how long packets are counted; the median counts.
const WINDOWS: usize = 5;
const WINDOW: Duration = Duration::from_millis(300);

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse().expect("a number");
    match words[..] {
        ["worker", socket, interface] => processes::worker(socket, interface),
        ["alternate", interface, len, parses, packets] => {
            let parses = Parses::ALL[number(parses)];
            halves::alternate(interface, number(len), parses, number(packets) as u64);
        }
        ["one", interface, len, parses] => {
            let rate = processes::measure(interface, number(len), Parses::ALL[number(parses)]);
            println!("{interface} {len} {rate:.2}");
        }
        ["contracts"] => cost_of_contracts(),
        ["contracts", side, len, bursts] => contracts::only(side, number(len), number(bursts)),
        ref wanted => table(wanted),
    }
}

fn table(wanted: &[&str]) {
    let names = registry::names().into_iter();
    // It needs a core of its own to play the NIC.
    let names = names.filter(|name| *name != "emulated");
    let known = |name: &&str| wanted.contains(name);
    let some = names.clone().any(|name| known(&name));
    conditions();
    let peers = dpdk_rates();
    let best = LENGTHS.map(|len| {
        let of_len = peers.iter().filter(|peer| peer.1 == len);
        of_len.map(|peer| peer.2).fold(f64::NAN, f64::max)
    });
    println!(
        "{:<24} {:>9} {:>9} {:>9} {:>9}",
        "Mpps", "64 B", "ratio", "1500 B", "ratio"
    );
    for transport in dpdk::Transport::ALL {
        let of = |len| {
            let mut found = peers
                .iter()
                .filter(|peer| peer.0 == transport.name() && peer.1 == len);
            found.next().map_or(f64::NAN, |peer| peer.2)
        };
        line(transport.name(), LENGTHS.map(of), best);
    }
    for interface in names.filter(|name| !some || known(name)) {
        for parses in Parses::ALL {
            let rates = LENGTHS.map(|len| processes::measure(interface, len, parses));
            let name = match parses {
                Parses::Once => interface.to_owned(),
                Parses::Always => format!("{interface}, parsing"),
            };
            line(&name, rates, best);
        }
    }
    cost_of_contracts();
}

fn cost_of_contracts() {
    for len in LENGTHS {
        let ratio = contracts::ratio(len);
        println!(
            "private rings through the contracts, time by that of hand-written loops: {ratio:.3} at {len} B"
        );
    }
}

/// What else the numbers depend on.
fn conditions() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    println!("{cores} cores, load average {}", load.trim());
}

/// Each transport's name, a length, and million packets per second.
fn dpdk_rates() -> Vec<(&'static str, usize, f64)> {
    let pages = match dpdk::HugePages::set_aside() {
        Ok(pages) => pages,
        Err(reason) => {
            println!("without DPDK: {reason}");
            return Vec::new();
        }
    };
    let mut rates = Vec::new();
    for transport in dpdk::Transport::ALL {
        for len in LENGTHS {
            match dpdk::measure(transport, len) {
                Ok(rate) => rates.push((transport.name(), len, rate)),
                Err(reason) => println!("{reason}"),
            }
        }
    }
    drop(pages);
    rates
}

/// Rates, each with its ratio to the best of DPDK's.
fn line(name: &str, rates: [f64; 2], best: [f64; 2]) {
    let [small, large] = rates;
    println!(
        "{name:<24} {small:>9.2} {:>9.2} {large:>9.2} {:>9.2}",
        small / best[0],
        large / best[1]
    );
}
