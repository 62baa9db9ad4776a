//! What the benchmark's servers and clients do, and how they are measured.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nicforge_sockets::attach::{Attachment, NetworkConfig, address};
use nicforge_sockets::launch::LIBRARY;
use nicforge_sockets::service::{Config, Service};

const SECONDS: u64 = 3;
/// Bytes of a request and of its answer.
const RPC_BYTES: usize = 64;
/// A second in proc(5), in ticks.
const TICKS: f64 = 100.0;

/// A client.
pub enum Client {
    Stream { back: bool },
    Rpc { connections: usize, in_flight: usize },
    Redis { pipeline: &'static str },
    Memcached,
    Web,
    Connections { count: usize },
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct Measured {
    rate: f64,
    cpu_us: f64,
    note: String,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.0} {:>14.2} {}", self.rate, self.cpu_us, self.note)
    }
}

/// The run in the middle, by rate.
pub fn median(mut results: Vec<Measured>) -> Option<Measured> {
    results.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    (!results.is_empty()).then(|| results[results.len() / 2].clone())
}

pub fn has(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|o| o.status.success())
}

/// The preloaded library, built as this benchmark is.
pub fn library() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let build = || {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--release", "--package", "nicforge-preload"]);
        assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().is_ok_and(|status| status.success()));
        let this = std::env::current_exe().unwrap_or_default();
        this.ancestors().nth(2).unwrap_or(Path::new(".")).join(LIBRARY)
    };
    BUILT.get_or_init(build).clone()
}

/// As many descriptors as this process and its children may have.
pub fn raise_descriptors() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}

/// Connections that one program may have over the service: two descriptors each, and a third is left for others.
pub fn most_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| limit as usize / 3).saturating_sub(16)
}

/// Seconds of processor time of a process and of its children that ended.
fn used(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Behind the name: state is field 3, utime 14, stime, cutime, cstime.
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or("").split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
    fields.get(11..15).map_or(0.0, |fields| fields.iter().sum::<f64>() / TICKS)
}

/// The same with the processes that run below it.
fn used_below(id: u32) -> f64 {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let below = children.split_whitespace().filter_map(|child| child.parse().ok()).map(used_below);
    used(id) + below.sum::<f64>()
}

/// Seconds that ksoftirqd ran.
fn soft_interrupts() -> f64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let soft = |id: &String| {
        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("ksoftirqd"))
    };
    let ran = |id: String| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<f64>().ok()
    };
    names.filter(soft).filter_map(ran).sum::<f64>() / 1e9
}

/// Resident KiB of a process.
fn resident_kib(id: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

impl Client {
    /// Runs it in its namespace against the server; `processes` are the server's side. Nothing where it failed.
    pub fn run(&self, mut inside: Command, host: &str, processes: &[u32]) -> Option<Measured> {
        let this = std::env::current_exe().ok()?.display().to_string();
        let seconds = SECONDS.to_string();
        let words: Vec<String> = match self {
            Client::Stream { back } => {
                let way = if *back { " -R" } else { "" };
                format!("iperf3 -c {host} -p 7000 -t {seconds} -J{way}").split(' ').map(String::from).collect()
            }
            Client::Rpc { connections, in_flight } => {
                [&this, "rpc", host, &connections.to_string(), &in_flight.to_string(), "echo"].map(String::from).into()
            }
            Client::Memcached => [&this, "rpc", host, "16", "1", "get"].map(String::from).into(),
            Client::Redis { pipeline } => {
                let count = if *pipeline == "1" { "60000" } else { "400000" };
                let words = format!("redis-benchmark -h {host} -p 7000 -q -c 50 -n {count} -P {pipeline} -t get --csv");
                words.split(' ').map(String::from).collect()
            }
            Client::Web => {
                let words = format!("wrk -t1 -c32 -d{seconds}s http://{host}:7000/small");
                words.split(' ').map(String::from).collect()
            }
            Client::Connections { count } => [&this, "hold", host, &count.to_string()].map(String::from).into(),
        };
        let side = || processes.iter().map(|id| used_below(*id)).sum::<f64>();
        let (before, soft, memory) = (side(), soft_interrupts(), resident_kib(processes[0]));
        let began = Instant::now();
        if let Client::Connections { count } = self {
            return hold_many(inside.args(words), *count, processes, memory);
        }
        children_used();
        let output = inside.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).output().ok()?;
        let (took, text) = (began.elapsed().as_secs_f64(), String::from_utf8_lossy(&output.stdout).into_owned());
        let (rate, operations) = self.read(&text, took)?;
        // The client has ended, so its time is among that of this process's children.
        let own = children_used() + side() - before + soft_interrupts() - soft;
        Some(Measured { rate, cpu_us: own * 1e6 / operations, note: self.unit().into() })
    }

    fn unit(&self) -> &'static str {
        if matches!(self, Client::Stream { .. }) { "Mbit" } else { "" }
    }

    /// Rate and number of operations by what the client said.
    fn read(&self, text: &str, took: f64) -> Option<(f64, f64)> {
        let number = |text: &str| text.trim().trim_matches('"').parse::<f64>().ok();
        match self {
            Client::Stream { .. } => {
                let received = &text[text.find("\"sum_received\"")?..];
                let bits = &received[received.find("\"bits_per_second\":")? + 18..];
                let megabits = number(bits.split([',', '\n']).next()?)? / 1e6;
                Some((megabits, megabits * SECONDS as f64))
            }
            Client::Redis { pipeline } => {
                let rate = number(text.lines().last()?.split(',').nth(1)?)?;
                Some((rate, if *pipeline == "1" { 60_000.0 } else { 400_000.0 }))
            }
            Client::Web => {
                let line = text.lines().find(|line| line.starts_with("Requests/sec:"))?;
                let rate = number(line.split(':').nth(1)?)?;
                Some((rate, rate * SECONDS as f64))
            }
            Client::Rpc { .. } | Client::Memcached => {
                let count = number(text.lines().last()?)?;
                Some((count / SECONDS as f64, count))
            }
            Client::Connections { .. } => Some((0.0, took)),
        }
    }
}

/// Seconds of processor time of children that ended since the last call.
fn children_used() -> f64 {
    static BEFORE: std::sync::Mutex<f64> = std::sync::Mutex::new(0.0);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or("").split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
    let all = fields.get(13..15).map_or(0.0, |fields| fields.iter().sum::<f64>() / TICKS);
    let mut before = BEFORE.lock().unwrap();
    all - std::mem::replace(&mut *before, all)
}

/// Time and memory of many connections, and what they cost while idle.
fn hold_many(client: &mut Command, count: usize, processes: &[u32], memory: f64) -> Option<Measured> {
    let side = || processes.iter().map(|id| used_below(*id)).sum::<f64>();
    let mut child = client.stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().ok()?;
    let mut line = [0; 16];
    let began = Instant::now();
    let read = child.stdout.as_mut()?.read(&mut line).ok()?;
    let took = began.elapsed().as_secs_f64();
    let open: f64 = String::from_utf8_lossy(&line[..read]).trim().parse().ok()?;
    let (opened, bytes) = (side(), (resident_kib(processes[0]) - memory) * 1024.0 / open.max(1.0));
    std::thread::sleep(Duration::from_secs(5));
    let idle = (side() - opened) / 5.0 * 100.0;
    drop(child.stdin.take());
    let _ = child.wait();
    let note = format!("{open} of {count} open, {bytes:.0} bytes of memory each, idle {idle:.2} % of a core");
    Some(Measured { rate: open / took, cpu_us: opened * 1e6 / open.max(1.0), note })
}

/// Runs a service on an interface, until it is killed.
pub fn serve(path: &Path, interface: &str, own: &str) {
    let own = address(own).expect("an address");
    let network = NetworkConfig::new(Attachment::Interface(interface.into()), vec![own]).open().expect("an interface");
    let mut service = Service::new(Config::at(path), Some(Box::new(network))).expect("a service");
    service.run().expect("a service that runs");
}

/// Sends back what comes, on any number of connections, in one thread.
pub fn echo(port: u16) {
    let listener = TcpListener::bind(("0.0.0.0", port)).expect("a port");
    // SAFETY: calls of epoll with descriptors that are open and memory that is ours.
    let epoll = unsafe { libc::epoll_create1(0) };
    let watch = |number: i32| {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number as u64 };
        // SAFETY: as above.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, number, &mut event) };
    };
    watch(listener.as_raw_fd());
    let mut connections: std::collections::HashMap<i32, TcpStream> = std::collections::HashMap::new();
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
    let mut buffer = [0; 16_384];
    loop {
        // SAFETY: as above; the kernel fills at most as many as there are.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as i32, -1) };
        for event in &events[..count.max(0) as usize] {
            let number = event.u64 as i32;
            if number == listener.as_raw_fd() {
                let Ok((connection, _)) = listener.accept() else { continue };
                let _ = connection.set_nodelay(true);
                watch(connection.as_raw_fd());
                connections.insert(connection.as_raw_fd(), connection);
                continue;
            }
            let Some(connection) = connections.get_mut(&number) else { continue };
            match connection.read(&mut buffer) {
                Ok(read) if read > 0 && connection.write_all(&buffer[..read]).is_ok() => {}
                _ => drop(connections.remove(&number)),
            }
        }
    }
}

/// Keeps requests in flight on each connection, a thread each, and prints how many answers came.
pub fn rpc(host: &str, connections: &str, in_flight: &str, kind: &str) {
    let [connections, in_flight] = [connections, in_flight].map(|text| text.parse::<usize>().unwrap_or(1));
    let (request, answer) = if kind == "get" {
        let mut setting = TcpStream::connect((host, 7000)).expect("a server");
        let value = [b'v'; RPC_BYTES];
        setting.write_all(&[&b"set key 0 0 64\r\n"[..], &value, b"\r\n"].concat()).expect("a request");
        let _ = setting.read(&mut [0; 16]);
        (b"get key\r\n".to_vec(), b"VALUE key 0 64\r\n".len() + RPC_BYTES + b"\r\nEND\r\n".len())
    } else {
        (vec![7; RPC_BYTES], RPC_BYTES)
    };
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let one = || {
        let mut stream = TcpStream::connect((host, 7000)).expect("a server");
        let _ = stream.set_nodelay(true);
        // A server that does not answer fails the run.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(SECONDS + 5)));
        stream.write_all(&request.repeat(in_flight)).expect("a request");
        let (mut answered, mut bytes, mut buffer) = (0, 0, [0; 16_384]);
        while Instant::now() < until {
            bytes += stream.read(&mut buffer).expect("an answer");
            let whole = bytes / answer;
            bytes %= answer;
            answered += whole;
            stream.write_all(&request.repeat(whole)).expect("a request");
        }
        answered
    };
    let all: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    println!("{all}");
}

/// Opens connections, exchanges a byte on each, says how many there are, and holds them until its input ends.
pub fn hold(host: &str, count: usize) {
    let open = |_| {
        let mut stream = TcpStream::connect((host, 7000)).ok()?;
        stream.write_all(b"x").ok()?;
        stream.read_exact(&mut [0]).ok()?;
        Some(stream)
    };
    let held: Vec<TcpStream> = (0..count).map_while(open).collect();
    println!("{}", held.len());
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read(&mut [0]);
}
