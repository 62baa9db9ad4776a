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
#[path = "../spread.rs"]
mod spread;

use std::time::Duration;

use nicforge_interfaces::Interfaces;
use spread::Spread;

/// Frame lengths without FCS.
const LENGTHS: [usize; 2] = [64, 1_500];
/// Each round starts all processes anew, and gives one figure for each side.
const ROUNDS: usize = 5;
/// How often and how long packets are counted in each round; the median counts.
const WINDOWS: usize = 3;
const WINDOW: Duration = Duration::from_millis(300);

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
            let rates = (0..WINDOWS).map(|_| running.rate()).collect();
            println!("{interface} {len} {}", Spread::of(rates));
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
    let mut transports = match &pages {
        Ok(_) => dpdk::Transport::ALL.to_vec(),
        Err(reason) => {
            println!("without DPDK: {reason}");
            Vec::new()
        }
    };
    let mut rows: Vec<Row> = names.filter(|name| !some || known(name)).map(Row::new).collect();
    let mut of_peers: Vec<Row> = transports.iter().map(|transport| Row::new(transport.name())).collect();
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        // All processes are new ones: where their memory lies moves a side's speed more than a slice does.
        let mut peers = peers(&mut transports);
        for row in &mut rows {
            for (len, rounds) in LENGTHS.into_iter().zip(&mut row.rounds) {
                rounds.push(of_slices(&slices(row.name, len, &mut peers)));
            }
        }
        for peer in &peers {
            let row = of_peers.iter_mut().find(|row| row.name == peer.pair.transport.name());
            let rounds = row.zip(LENGTHS.iter().position(|len| *len == peer.pair.len));
            if let Some((row, len)) = rounds {
                row.rounds[len].push(of_slices(&peer.slices));
            }
        }
    }
    println!("medians of {ROUNDS} rounds, with the least and the most");
    let columns = LENGTHS.map(|len| format!(" {:>20} {:>18}", format!("{len} B: Mpps"), "ratio"));
    println!("{:<24}{}{}", "", columns[0], columns[1]);
    rows.iter().chain(&of_peers).for_each(Row::print);
    cost_of_contracts();
}

fn cost_of_contracts() {
    for len in LENGTHS {
        let ratio = contracts::ratio(len);
        println!("private rings through the contracts, time by that of hand-written loops: {ratio} at {len} B");
    }
}

/// What else the numbers depend on.
fn conditions() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    println!("{cores} cores, load average {}", load.trim());
}

/// One side, with what it did in each round: for each length, rates and ratios.
struct Row {
    name: &'static str,
    rounds: [Vec<Slice>; 2],
}

impl Row {
    fn new(name: &'static str) -> Row {
        Row { name, rounds: [Vec::new(), Vec::new()] }
    }

    fn print(&self) {
        let columns = self.rounds.each_ref().map(|rounds| {
            let (rate, ratio) = (spread(rounds, |slice| slice.rate), spread(rounds, |slice| slice.ratio));
            format!(" {rate:>20} {ratio:>18}")
        });
        println!("{:<24}{}{}", self.name, columns[0], columns[1]);
    }
}

/// One of DPDK's, with what it did in each slice of this round.
struct Peer {
    pair: dpdk::Pair,
    slices: Vec<Slice>,
}

/// The figures of a side in one slice, or in one round.
#[derive(Clone, Copy)]
struct Slice {
    /// Million packets per second.
    rate: f64,
    /// The same by the best of DPDK's in the same slice.
    ratio: f64,
}

/// Those of `transports` that pass packets; the others are left out from then on.
fn peers(transports: &mut Vec<dpdk::Transport>) -> Vec<Peer> {
    let mut peers = Vec::new();
    transports.retain(|transport| {
        let pairs: Result<Vec<_>, _> = LENGTHS.into_iter().map(|len| dpdk::Pair::start(*transport, len)).collect();
        match pairs {
            Ok(pairs) => peers.extend(pairs.into_iter().map(|pair| Peer { pair, slices: Vec::new() })),
            Err(reason) => {
                println!("{reason}");
                return false;
            }
        }
        true
    });
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
            peer.slices.push(Slice { rate, ratio: rate / best });
        }
        let rate = running.rate();
        slices.push(Slice { rate, ratio: rate / best });
    }
    slices
}

/// The medians of a round's slices.
fn of_slices(slices: &[Slice]) -> Slice {
    Slice { rate: spread(slices, |slice| slice.rate).median, ratio: spread(slices, |slice| slice.ratio).median }
}

fn spread(slices: &[Slice], of: fn(&Slice) -> f64) -> Spread {
    Spread::of(slices.iter().map(of).collect())
}
