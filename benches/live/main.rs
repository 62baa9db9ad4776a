//! Packets per second from the device's thread to a worker process, on every receive interface, with
//! each frame parsed, verified, steered and copied into its receive buffer, as in live runs: the live ground's own
//! speed, without any port. Beside it, in the same run, DPDK's testpmd moving packets of the same size between two processes.
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

use nicforge_interfaces::Interfaces;

/// Frame lengths without FCS.
const LENGTHS: [usize; 2] = [64, 1_500];
/// How often and how long packets are counted; the median counts.
const WINDOWS: usize = 5;
const WINDOW: Duration = Duration::from_millis(300);

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse().expect("a number");
    match words[..] {
        ["worker", socket, interface] => processes::worker(socket, interface),
        ["alternate", interface, len, packets] => {
            halves::alternate(interface, number(len), number(packets) as u64);
        }
        ["one", interface, len] => {
            let mut running = processes::Running::start(interface, number(len));
            let mut rates: Vec<f64> = (0..WINDOWS).map(|_| running.rate()).collect();
            println!("{interface} {len} {:.2}", median(&mut rates));
        }
        ["contracts"] => cost_of_contracts(),
        ["contracts", "ratios", len] => contracts::in_places(number(len)),
        ["contracts", side, len, bursts] => contracts::only(side, number(len), number(bursts)),
        ref wanted => table(wanted),
    }
}

fn table(wanted: &[&str]) {
    let names = Interfaces::shipped().of_rings().into_iter();
    // It needs a core of its own to play the NIC.
    let names = names.filter(|name| *name != "emulated");
    let known = |name: &&str| wanted.contains(name);
    let some = names.clone().any(|name| known(&name));
    conditions();
    // All sides have huge pages.
    let pages = dpdk::HugePages::set_aside();
    let mut peers = match &pages {
        Ok(_) => peers(),
        Err(reason) => {
            println!("without DPDK: {reason}");
            Vec::new()
        }
    };
    println!(
        "{:<24} {:>7} {:>11} {:>7} {:>7} {:>11} {:>7}",
        "Mpps", "64 B", "spread", "ratio", "1500 B", "spread", "ratio"
    );
    for interface in names.filter(|name| !some || known(name)) {
        let slices = LENGTHS.map(|len| slices(interface, len, &mut peers));
        line(interface, slices.each_ref());
    }
    for transport in dpdk::Transport::ALL {
        let slices = LENGTHS.map(|len| {
            let of = |peer: &&Peer| peer.pair.transport == transport && peer.pair.len == len;
            let found = peers.iter().find(of);
            found.map_or(Vec::new(), |peer| peer.slices.clone())
        });
        line(transport.name(), slices.each_ref());
    }
    cost_of_contracts();
}

fn cost_of_contracts() {
    for len in LENGTHS {
        let ratio = contracts::ratio(len);
        println!("private rings through the contracts, time by that of hand-written loops: {ratio:.3} at {len} B");
    }
}

/// What else the numbers depend on.
fn conditions() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    println!("{cores} cores, load average {}", load.trim());
}

/// One of DPDK's, with what it did in each slice.
struct Peer {
    pair: dpdk::Pair,
    slices: Vec<Slice>,
}

/// Million packets per second in one slice, and by the best of DPDK's in the same.
type Slice = (f64, f64);

fn peers() -> Vec<Peer> {
    let mut peers = Vec::new();
    for transport in dpdk::Transport::ALL {
        for len in LENGTHS {
            match dpdk::Pair::start(transport, len) {
                Ok(pair) => peers.push(Peer { pair, slices: Vec::new() }),
                Err(reason) => println!("{reason}"),
            }
        }
    }
    peers
}

/// What `interface` does with frames of `len` bytes, slice by slice in turn with DPDK's, as the machine's own
/// speed changes.
fn slices(interface: &str, len: usize, peers: &mut [Peer]) -> Vec<Slice> {
    let mut running = processes::Running::start(interface, len);
    let mut slices = Vec::new();
    for _ in 0..WINDOWS {
        let mut of_len: Vec<&mut Peer> = peers.iter_mut().filter(|peer| peer.pair.len == len).collect();
        let rates: Vec<f64> = of_len.iter_mut().map(|peer| peer.pair.rate()).collect();
        let best = rates.iter().copied().fold(f64::NAN, f64::max);
        for (peer, rate) in of_len.iter_mut().zip(rates) {
            peer.slices.push((rate, rate / best));
        }
        let rate = running.rate();
        slices.push((rate, rate / best));
    }
    slices
}

/// Medians of the slices, with the least and the most.
fn line(name: &str, slices: [&Vec<Slice>; 2]) {
    let columns = slices.map(|of_len| {
        let mut rates: Vec<f64> = of_len.iter().map(|slice| slice.0).collect();
        let mut ratios: Vec<f64> = of_len.iter().map(|slice| slice.1).collect();
        let (rate, ratio) = (median(&mut rates), median(&mut ratios));
        // In order now.
        let spread = match rates[..] {
            [least, .., most] => format!("{least:.1}-{most:.1}"),
            _ => "-".to_owned(),
        };
        format!(" {rate:>7.2} {spread:>11} {ratio:>7.2}")
    });
    println!("{name:<24}{}{}", columns[0], columns[1]);
}
