//! TCP through NAT between two network namespaces, per second of processor time: Nicforge on every
//! interface against the kernel's own masquerading on the same veths.
//!
//! `cargo bench -p nicforge-cli --bench masquerade [INTERFACE …] [-- cut]` prints a line for each; segments go through whole
//! (examples/nat-segments.toml), or are cut (nat-netns.toml with `segments = "cut"`).
//! Processor time is that of both hosts' programs, of Nicforge, and of the threads to which the kernel
//! moves soft interrupts: what others do at the same time counts only as far as it spoils the caches. A
//! third kind of gateway shows what packet sockets cost without any NIC: it copies frames from one to
//! the other and translates nothing. Needs root, iperf3 and nft; says so where they are not.

#[path = "gateways/mod.rs"]
mod gateways;
#[allow(dead_code)] // This needs a part of it.
#[path = "../crates/cli/tests/live/support/netns.rs"]
mod netns;
#[path = "../crates/wire/tests/common/skip.rs"]
mod skip;
mod spread;

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gateways::{KERNEL_DOWN, KERNEL_UP, interrupted, nicforge, shell, soft_interrupts, used};
use netns::{Hosts, has};
use nicforge_interfaces::Interfaces;
use nicforge_platform::live::ports::{PacketPort, Port};
use nicforge_units::Time;
use spread::Spread;

/// Seconds of one measurement, and how often each is made, in turns.
const SECONDS: u32 = 3;
const ROUNDS: usize = 5;
/// How much longer one may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than any segment of a stack.
const LONGEST: usize = 1 << 20;

/// Gbit/s that arrived, and Gbit per second of processor time.
#[derive(Clone, Copy)]
struct Measured {
    rate: f64,
    per_second: f64,
}

/// The bench: two hosts, and whether it shall end.
struct Bench {
    hosts: Hosts,
    stop: Arc<AtomicBool>,
}

/// Waits for `child`, but not for ever, nor when it shall end; what it said.
fn wait(mut child: Child, stop: &AtomicBool) -> Vec<u8> {
    let until = Instant::now() + Duration::from_secs(SECONDS.into()) + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > until || stop.load(Ordering::Relaxed) {
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().map_or(Vec::new(), |ended| ended.stdout)
}

impl Bench {
    fn ends(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Streams one way; `gateway` is the process whose time counts too.
    fn stream(&self, gateway: Option<u32>, more: &[&str]) -> Option<Measured> {
        let me = std::process::id();
        let time = || gateway.map_or(0.0, |id| used(id).own) + used(me).of_children + soft_interrupts();
        // The server needs a moment before it listens.
        for _ in 0..20 {
            if self.ends() {
                return None;
            }
            let before = time();
            let server = self.iperf("server", &["-s", "-1"]);
            std::thread::sleep(Duration::from_millis(100));
            let seconds = SECONDS.to_string();
            let mut words = vec!["-c", "10.99.2.2", "-J", "-P", "4", "-t", &seconds];
            words.extend(["--connect-timeout", "2000"]);
            words.extend(more);
            let said = wait(self.iperf("client", &words), &self.stop);
            let said: serde_json::Value = serde_json::from_slice(&said).unwrap_or_default();
            let end = &said["end"]["sum_received"];
            let bytes = end["bytes"].as_f64();
            let failed = AtomicBool::new(bytes.is_none());
            wait(server, &failed);
            if let (Some(bytes), Some(bits)) = (bytes, end["bits_per_second"].as_f64()) {
                return Some(Measured {
                    rate: bits / 1e9,
                    per_second: bytes * 8.0 / 1e9 / (time() - before).max(0.01),
                });
            }
        }
        None
    }

    fn iperf(&self, host: &str, words: &[&str]) -> Child {
        let mut program = self.hosts.on(host, "iperf3");
        program.args(words).stderr(Stdio::null());
        program.stdout(Stdio::piped()).spawn().unwrap()
    }

    fn both_ways(&self, gateway: Option<u32>) -> [Option<Measured>; 2] {
        [self.stream(gateway, &[]), self.stream(gateway, &["-R"])]
    }

    /// Through the kernel.
    fn kernel(&self) -> Result<[Option<Measured>; 2], String> {
        shell(&self.hosts, "gateway", KERNEL_UP)?;
        let measured = self.both_ways(None);
        shell(&self.hosts, "gateway", KERNEL_DOWN)?;
        Ok(measured)
    }

    fn nicforge(&self, cut: bool, interface: &str) -> [Option<Measured>; 2] {
        let interface_setting = format!("interface={interface}");
        let mut set = vec![interface_setting.as_str()];
        if interface == "rx_bisect" && !cut {
            // The example's entries, on that interface's own rings.
            set.extend(["ax_entries=64", "bx_entries=64"]);
        }
        let live = if cut { "segments = \"cut\"" } else { "" };
        let gateway = nicforge(&self.hosts, example(cut), live, &set).unwrap();
        let measured = self.both_ways(Some(gateway.id()));
        if !self.ends() {
            gateway.stop();
        }
        measured
    }

    /// Frames from one packet socket to the other by a thread of this process, without a NIC.
    fn copying(&self) -> [Option<Measured>; 2] {
        let both = [
            // The other host's hardware address (examples/netns.sh), so that nothing has to be changed.
            ("client", "10.99.1.1", "02:00:00:01:00:00"),
            ("server", "10.99.2.1", "02:00:0a:63:01:02"),
        ];
        for (host, address, mac) in both {
            let script = format!("ip neigh replace {address} lladdr {mac} dev eth0");
            shell(&self.hosts, host, &script).unwrap();
        }
        let ports =
            self.hosts.run("gateway", || ["nf-inside", "nf-outside"].map(|name| PacketPort::open(name).unwrap()));
        let done = AtomicBool::new(false);
        let measured = std::thread::scope(|scope| {
            let _stops = SetAtEnd(&done);
            scope.spawn(|| copy(ports, &done));
            self.both_ways(Some(std::process::id()))
        });
        for (host, address, _) in both {
            let script = format!("ip neigh del {address} dev eth0");
            shell(&self.hosts, host, &script).unwrap();
        }
        measured
    }
}

/// However its scope ends.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn copy([mut inside, mut outside]: [PacketPort; 2], done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let there = pass(&mut inside, &mut outside);
        let back = pass(&mut outside, &mut inside);
        if there + back == 0 {
            let files = [inside.readable(), outside.readable()];
            let files = files.into_iter().flatten();
            let mut files: Vec<_> =
                files.map(|file| rustix::event::PollFd::from_borrowed_fd(file, rustix::event::PollFlags::IN)).collect();
            let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let _ = rustix::event::poll(&mut files, Some(&soon));
        }
    }
}

fn pass(from: &mut PacketPort, to: &mut PacketPort) -> usize {
    let mut each = |frame: &[u8], left| to.send_unfinished(frame, left, Time::ZERO).unwrap();
    let frames = from.receive_unfinished(32, LONGEST, &mut each).unwrap();
    to.flush().unwrap();
    frames
}

/// The example that the gateway runs.
fn example(cut: bool) -> &'static str {
    if cut { "nat-netns.toml" } else { "nat-segments.toml" }
}

/// The figures of one round, each way; none where a program failed.
type Round = [Option<Measured>; 2];

/// Medians of `rounds` each way with the least and the most, the last one by the kernel's in the same round.
fn line(name: &str, rounds: &[Round], of_kernel: &[Round]) -> String {
    let columns = [0, 1].map(|way| {
        let pairs = rounds.iter().zip(of_kernel);
        let pairs: Vec<_> = pairs.filter_map(|(ours, kernel)| ours[way].zip(kernel[way])).collect();
        let of = |value: fn(&(Measured, Measured)) -> f64| Spread::of(pairs.iter().map(value).collect()).to_string();
        let rate = of(|(ours, _)| ours.rate);
        let per_second = of(|(ours, _)| ours.per_second);
        let ratio = of(|(ours, kernel)| ours.per_second / kernel.per_second);
        format!(" {rate:>18} {per_second:>18} {ratio:>16}")
    });
    format!("{name:<22}{}{}", columns[0], columns[1])
}

/// The interfaces that are measured, in turns, and whether segments are cut.
fn contenders() -> (Vec<&'static str>, bool) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let names = Interfaces::shipped().of_rings();
    let asked = |name: &str| words.iter().any(|word| word == name);
    let all = !names.iter().any(|name| asked(name));
    let wanted = names.iter().copied();
    let wanted = wanted.filter(|name| *name != "emulated" && (all || asked(name)));
    (wanted.collect(), asked("cut"))
}

fn main() {
    for program in ["iperf3", "nft"] {
        if !has(program) {
            return println!("skipped: needs {program}");
        }
    }
    let stop = interrupted();
    let Some(hosts) = Hosts::up("masquerade") else {
        return;
    };
    let bench = Bench { hosts, stop };
    let (names, cut) = contenders();
    println!(
        "examples/{}{}; client to server, then server to client; medians of {ROUNDS} (least-most), {SECONDS} s each",
        example(cut),
        if cut { ", segments cut" } else { "" }
    );
    let columns = format!(" {:>18} {:>18} {:>16}", "Gbit/s", "Gbit/CPU-s", "ratio");
    println!("{:<22}{columns}{columns}", "");
    let (mut of_kernel, mut of_sockets) = (Vec::new(), Vec::new());
    let mut ours: Vec<Vec<_>> = vec![Vec::new(); names.len()];
    for round in 1..=ROUNDS {
        let tell = |name: &str, measured: Round, kernel: Round| {
            eprintln!("{} (round {round})", line(name, &[measured], &[kernel]));
            measured
        };
        let kernel = match bench.kernel() {
            Ok(measured) => tell("kernel, masquerade", measured, measured),
            Err(why) => return println!("skipped: the kernel does not masquerade here ({why})"),
        };
        of_kernel.push(kernel);
        of_sockets.push(tell("packet sockets alone", bench.copying(), kernel));
        for (name, rounds) in names.iter().zip(&mut ours) {
            if !bench.ends() {
                rounds.push(tell(name, bench.nicforge(cut, name), kernel));
            }
        }
        if bench.ends() {
            return println!("interrupted");
        }
    }
    println!("{}", line("kernel, masquerade", &of_kernel, &of_kernel));
    println!("{}", line("packet sockets alone", &of_sockets, &of_kernel));
    for (name, rounds) in names.iter().zip(&ours) {
        println!("{}", line(name, rounds, &of_kernel));
    }
}
