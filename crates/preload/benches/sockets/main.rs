//! Unmodified programs over the library beside the same programs over the kernel, on the same veth in the same run.
//!
//! `cargo bench -p nicforge-preload [WORKLOAD …]` prints for each workload what the kernel's stack and the project's
//! serve a second, and the processor time per operation of everything that takes part: server, service, client and
//! `ksoftirqd`. The client is the kernel's in another namespace. A stack's turns alternate with the other's. Needs root,
//! and for their workloads iperf3, redis, memcached, nginx and wrk; says what is missing.
#![allow(unsafe_code, reason = "epoll by the C library, which the preloaded library answers")]

mod load;
#[path = "../../../../benches/nginx.rs"]
mod nginx;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use load::{Client, Measured};

const SERVER: &str = "10.77.0.1";
const ROUNDS: usize = 3;

/// Whose stack the server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    Kernel,
    KernelCut,
    Ours,
}

/// A child that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A master that is killed leaves its workers behind.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        for _ in 0..20 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two namespaces, a veth between them, and a folder.
struct Place {
    server: String,
    client: String,
    folder: PathBuf,
}

fn ran(words: &str) -> bool {
    let mut parts = words.split(' ');
    let mut command = Command::new(parts.next().unwrap_or_default());
    command.args(parts).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Place {
    fn new() -> Option<Place> {
        let id = std::process::id();
        let (server, client) = (format!("nf-bs{id}"), format!("nf-bc{id}"));
        let folder = std::env::temp_dir().join(format!("nicforge-bench-{id}"));
        std::fs::create_dir_all(&folder).ok()?;
        let place = Place { server, client, folder };
        let (s, c) = (&place.server, &place.client);
        let made = ran(&format!("ip netns add {s}"))
            && ran(&format!("ip netns add {c}"))
            && ran(&format!("ip -n {s} link add vs type veth peer name vc netns {c}"))
            && ran(&format!("ip -n {c} addr add 10.77.0.2/24 dev vc"))
            && ["vs", "lo"].iter().all(|device| ran(&format!("ip -n {s} link set {device} up")))
            && ["vc", "lo"].iter().all(|device| ran(&format!("ip -n {c} link set {device} up")));
        made.then_some(place)
    }

    fn inside(&self, namespace: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn service(&self) -> PathBuf {
        self.folder.join("service")
    }

    /// Gives the server's side to a stack; returns the service, if it has one.
    fn prepare(&self, stack: Stack) -> Option<Running> {
        let (s, c) = (&self.server, &self.client);
        let offload = if stack == Stack::KernelCut { "off" } else { "on" };
        for (namespace, device) in [(s, "vs"), (c, "vc")] {
            let words =
                format!("ip netns exec {namespace} ethtool -K {device} tso {offload} gso {offload} gro {offload}");
            ran(&words);
        }
        ran(&format!("ip -n {s} addr flush dev vs"));
        ran(&format!("ip -n {c} neigh flush dev vc"));
        if stack != Stack::Ours {
            ran(&format!("ip -n {s} addr add {SERVER}/24 dev vs"));
            return None;
        }
        let this = std::env::current_exe().ok()?;
        let mut command = self.inside(s, &this.display().to_string());
        command.arg("serve").arg(self.service()).args(["vs", &format!("{SERVER}/24")]);
        let running = Running(command.stderr(Stdio::inherit()).spawn().ok()?);
        std::thread::sleep(Duration::from_millis(300));
        Some(running)
    }

    fn server(&self, stack: Stack, program: &str, arguments: &[&str]) -> Option<Running> {
        let mut command = self.inside(&self.server, program);
        if stack == Stack::Ours {
            command.env("LD_PRELOAD", load::library()).env("NICFORGE_SOCKETS", self.service());
        }
        let running = Running(command.args(arguments).spawn().ok()?);
        std::thread::sleep(Duration::from_millis(700));
        Some(running)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            ran(&format!("ip netns del {namespace}"));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A server, and what a client does to it.
struct Workload {
    name: &'static str,
    server: &'static [&'static str],
    client: Client,
}

fn workloads() -> Vec<Workload> {
    let redis: &[&str] =
        &["redis-server", "--port", "7000", "--bind", "0.0.0.0", "--save", "", "--protected-mode", "no"];
    let rpc = |connections, in_flight| Client::Rpc { connections, in_flight };
    vec![
        Workload { name: "stream-in", server: &["iperf3", "-s", "-p", "7000"], client: Client::Stream { back: false } },
        Workload { name: "stream-out", server: &["iperf3", "-s", "-p", "7000"], client: Client::Stream { back: true } },
        Workload { name: "rpc-1x1", server: &["this"], client: rpc(1, 1) },
        Workload { name: "rpc-16x32", server: &["this"], client: rpc(16, 32) },
        Workload { name: "redis-p1", server: redis, client: Client::Redis { pipeline: "1" } },
        Workload { name: "redis-p16", server: redis, client: Client::Redis { pipeline: "16" } },
        Workload {
            name: "memcached",
            server: &["memcached", "-u", "root", "-p", "7000", "-t", "1", "-U", "0"],
            client: Client::Memcached,
        },
        Workload { name: "nginx-1k", server: &["nginx", "-c", "nginx.conf", "-p", "."], client: Client::Web },
        Workload {
            name: "connections",
            server: &["this"],
            client: Client::Connections { count: load::most_connections().min(10_000) },
        },
    ]
}

fn measure(place: &Place, workload: &Workload, stack: Stack) -> Option<Measured> {
    let service = place.prepare(stack);
    let this = std::env::current_exe().ok()?.display().to_string();
    let server = match workload.server {
        ["this"] => place.server(stack, &this, &["echo", "7000"]),
        ["nginx", ..] => {
            nginx::write(&place.folder);
            let conf = place.folder.join("nginx.conf").display().to_string();
            place.server(stack, "nginx", &["-c", &conf, "-p", &place.folder.display().to_string()])
        }
        [program, arguments @ ..] => place.server(stack, program, arguments),
        [] => None,
    }?;
    let processes: Vec<u32> = service.iter().chain([&server]).map(|running| running.0.id()).collect();
    workload.client.run(place.inside(&place.client, "env"), SERVER, &processes)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", path, interface, address] => return load::serve(Path::new(path), interface, address),
        ["echo", port] => return load::echo(port.parse().unwrap_or(7000)),
        ["rpc", host, connections, in_flight, kind] => return load::rpc(host, connections, in_flight, kind),
        ["hold", host, count] => return load::hold(host, count.parse().unwrap_or(0)),
        _ => {}
    }
    load::raise_descriptors();
    let Some(place) = Place::new() else {
        println!("skipped: needs root and ip");
        return;
    };
    println!("{:<12} {:<10} {:>12} {:>14}", "workload", "stack", "per second", "CPU us each");
    for workload in workloads().iter().filter(|workload| words.is_empty() || words.contains(&workload.name)) {
        if workload.server[0] != "this" && !load::has(workload.server[0]) {
            println!("{:<12} skipped: {} is not installed", workload.name, workload.server[0]);
            continue;
        }
        let stream = matches!(workload.client, Client::Stream { .. });
        let stacks = [Stack::Kernel, Stack::KernelCut, Stack::Ours].into_iter();
        let stacks: Vec<Stack> = stacks.filter(|stack| stream || *stack != Stack::KernelCut).collect();
        let mut results = vec![Vec::new(); stacks.len()];
        let rounds = if matches!(workload.client, Client::Connections { .. }) { 1 } else { ROUNDS };
        for _ in 0..rounds {
            for (stack, results) in stacks.iter().zip(&mut results) {
                results.extend(measure(&place, workload, *stack));
            }
        }
        for (stack, results) in stacks.iter().zip(results) {
            let Some(middle) = load::median(results) else {
                println!("{:<12} {:<10} failed", workload.name, format!("{stack:?}"));
                continue;
            };
            println!("{:<12} {:<10} {middle}", workload.name, format!("{stack:?}"));
        }
    }
}
