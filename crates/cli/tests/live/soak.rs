//! A gateway under mixed traffic for long: its memory stays as it is, and no counter drifts. As
//! long as `NICFORGE_SOAK_SECONDS` says, or two short rounds. Needs root; skipped with a line where that is
//! not allowed.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::support::netns;
use crate::support::netns::{Gateway, Hosts, example_file, has};
use crate::support::program::Program;
use crate::support::traffic::{StopAtEnd, name_server, questions, tcp_both_ways};

/// Traffic goes on for so long, then rests until everything is out and can be counted.
const ROUND: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(30);
const METRICS: &str = "127.0.0.1:9477";
/// How much a process may grow after its first round, in KiB: what the threads that answer for metrics
/// leave to the allocator. Ports have all their memory from the beginning; nothing grows with packets.
const SLACK_KIB: u64 = 512;
/// Far fewer than a round brings.
const FRAMES: u64 = 10_000;

/// What the system says of the gateway's process (proc(5)).
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Its own memory.
    own_kib: u64,
    /// The region, as far as it was ever touched.
    shared_kib: u64,
    files: usize,
    threads: u64,
}

impl Memory {
    /// After the thread that answered the last client of the metrics has ended.
    fn at_rest(gateway: &Gateway) -> Memory {
        let looks = (0..10).map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            Memory::of(gateway)
        });
        let least = looks.min_by_key(|memory| (memory.threads, memory.files));
        least.unwrap_or_else(|| Memory::of(gateway))
    }

    fn of(gateway: &Gateway) -> Memory {
        let folder = format!("/proc/{}", gateway.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Memory {
            own_kib: field("RssAnon:"),
            shared_kib: field("RssShmem:"),
            files: std::fs::read_dir(format!("{folder}/fd")).unwrap().count(),
            threads: field("Threads:"),
        }
    }
}

/// Frames, from the page for Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    arrived: u64,
    left: u64,
    dropped: u64,
}

impl Counts {
    fn of(hosts: &Hosts) -> Counts {
        let page = hosts.run("gateway", || {
            let mut stream = TcpStream::connect(METRICS).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            page
        });
        let sum = |metric: &str| -> u64 {
            let lines = page.lines().filter(|line| line.starts_with(metric));
            let values = lines.map(|line| line.rsplit(' ').next().unwrap());
            values.map(|value| value.parse::<f64>().unwrap() as u64).sum()
        };
        Counts {
            arrived: sum("nicforge_received_frames_total{"),
            // Questions for the next hop did not come in.
            left: sum("nicforge_sent_frames_total{") - sum("nicforge_next_hop_questions_total{"),
            dropped: sum("nicforge_dropped_frames_total{"),
        }
    }

    /// Frames that came in and are neither out nor dropped.
    fn inside(&self) -> i64 {
        self.arrived as i64 - self.left as i64 - self.dropped as i64
    }

    /// When nothing moves any more: twice the same, some seconds apart.
    fn at_rest(hosts: &Hosts) -> Counts {
        let until = Instant::now() + REST;
        let mut before = Counts::of(hosts);
        loop {
            std::thread::sleep(Duration::from_millis(2_500));
            let now = Counts::of(hosts);
            if now == before {
                return now;
            }
            assert!(Instant::now() < until, "frames without end: {now:?}");
            before = now;
        }
    }
}

fn words<'a>(command: &'a mut Command, text: &str) -> &'a mut Command {
    command.args(text.split(' '))
}

/// One round of everything at once, at rates far below what the machine can do.
fn round(hosts: &Hosts, time: Duration) {
    let seconds = time.as_secs().max(1);
    let iperf = |text: &str| {
        let text = format!("-c 10.99.2.2 -t {seconds} {text}");
        Program::start_silent(words(&mut hosts.on("client", "iperf3"), &text))
    };
    let count = 4 * seconds;
    let (names, stop) =
        (hosts.run("server", || netns::bound(|| UdpSocket::bind("10.99.2.2:53"))), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stops = StopAtEnd(&stop);
        scope.spawn(|| name_server(&names, &stop));
        let programs = vec![
            iperf("-p 5201 -P 2 -b 20M --bidir"),
            iperf("-p 5202 -u -b 5M -l 700"),
            Program::start_silent(words(&mut hosts.on("client", "ping"), &format!("-q -i 0.25 -c {count} 10.99.2.2"))),
        ];
        let ends = Instant::now() + time;
        while Instant::now() < ends {
            let mut dig = hosts.on("client", "dig");
            words(&mut dig, "+short +time=2 +tries=10 @10.99.2.2 soak.example.net");
            let answer = dig.output().unwrap();
            let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
            // Above it stands what was asked again.
            assert_eq!(answer.lines().last(), Some("192.0.2.7"), "{answer}");
            std::thread::sleep(Duration::from_millis(200));
        }
        // Those that stream end by themselves.
        for program in programs {
            let status = program.ends();
            assert!(status.success(), "{status}");
        }
    });
    tcp_both_ways(hosts, "10.99.2.2:7000", "10.99.2.2:7000", 2);
    questions(hosts, "10.99.2.2:7002", "10.99.2.2:7002", 50);
}

/// Neither memory nor files nor threads grow.
fn stays(rounds: &[Memory]) {
    let (first, last) = (rounds[0], rounds[rounds.len() - 1]);
    let same = (last.files, last.threads) == (first.files, first.threads);
    assert!(same, "files or threads: {first:?}, {last:?}");
    let grows = last.own_kib > first.own_kib + SLACK_KIB;
    assert!(!grows, "memory grows: {first:?}, {last:?}");
}

/// Until both measuring servers listen.
fn wait_for_servers(hosts: &Hosts) {
    let until = Instant::now() + REST;
    for port in [5_201, 5_202] {
        while hosts.run("server", || TcpStream::connect(("10.99.2.2", port)).is_err()) {
            assert!(Instant::now() < until, "iperf3 does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn duration() -> Duration {
    let set = std::env::var("NICFORGE_SOAK_SECONDS");
    let seconds = set.map_or(20, |text| text.parse().expect("a number of seconds"));
    Duration::from_secs(seconds)
}

#[test]
fn memory_stays_and_no_counter_drifts() {
    if !has("iperf3") || !has("dig") {
        crate::skip::skipped("needs iperf3 and dig");
        return;
    }
    let Some(hosts) = Hosts::up("soak") else {
        return;
    };
    words(&mut hosts.on("gateway", "ip"), "link set lo up").status().unwrap();
    let set = ["--set", "cores=2", "--metrics", METRICS];
    let mut gateway = hosts.start_with(&example_file("nat-netns.toml"), &set);
    hosts.wait_for(&mut gateway, "10.99.2.2");
    let server = |port: &str| Program::start_silent(words(&mut hosts.on("server", "iperf3"), &format!("-s -p {port}")));
    let _servers = [server("5201"), server("5202")];
    wait_for_servers(&hosts);
    let (began, lasts) = (Instant::now(), duration());
    let mut rounds: Vec<Memory> = Vec::new();
    let mut arrived = 0;
    while began.elapsed() < lasts {
        round(&hosts, ROUND.min(lasts));
        let (counts, memory) = (Counts::at_rest(&hosts), Memory::at_rest(&gateway));
        println!(
            "{:>5} s: {counts:?}; {} KiB of its own, {} KiB of the region touched",
            began.elapsed().as_secs(),
            memory.own_kib,
            memory.shared_kib
        );
        assert_eq!(counts.inside(), 0, "frames in = out + drops: {counts:?}");
        let came = counts.arrived - arrived;
        assert!(came > FRAMES || lasts < ROUND, "no traffic: {counts:?}");
        arrived = counts.arrived;
        rounds.push(memory);
        stays(&rounds);
    }
    let report = gateway.stop();
    println!("drops: {}", report["points"][0]["metrics"]["drops"]);
}
