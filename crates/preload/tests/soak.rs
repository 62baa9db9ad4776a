//! Every program at once, over the library and over the kernel, for `NICFORGE_SOAK_SECONDS`: connections open and close,
//! workers are killed, nothing is lost, and the service's memory stays where it was.
#![allow(unsafe_code, reason = "a namespace for this thread and what it starts")]

mod common;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::servers::Site;
use common::{Running, Server, has, output, text};
use nicforge_sockets::attach::{Attachment, NetworkConfig, address};

/// Programs of which workers are killed: a connection may break with its worker.
const KILLED: [&str; 8] = ["nginx", "haproxy", "curl", "wrk", "socat", "ssh", "leave", "iperf3"];

fn seconds() -> u64 {
    std::env::var("NICFORGE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

/// Children of a process, in the order of their start.
fn children(parent: u32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// A file's line with a name: resident memory of `status`.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// All servers of a site.
struct Servers<'a> {
    site: Site<'a>,
    nginx: Option<Server>,
    haproxy: Option<Server>,
    redis: Option<Server>,
    socat: Option<Server>,
    sshd: Option<Server>,
    pgbench: Option<PathBuf>,
    _others: Vec<Server>,
}

impl<'a> Servers<'a> {
    fn start(site: Site<'a>, files: &Path) -> Servers<'a> {
        for name in ["small", "large", "host", "user", "user.pub"] {
            let _ = std::fs::copy(files.join(name), site.folder.join(name));
        }
        let others = [site.memcached(), site.http_server(), site.iperf3("5201"), site.iperf3("5202")];
        let mut others: Vec<Server> = others.into_iter().flatten().collect();
        let (nginx, redis, socat, sshd) = (site.nginx(), site.redis(), site.socat(), site.sshd());
        let haproxy = site.haproxy();
        let pgbench = site.postgres().map(|(server, programs)| {
            others.push(server);
            programs.join("pgbench")
        });
        Servers { site, nginx, haproxy, redis, socat, sshd, pgbench, _others: others }
    }

    /// Kills a worker, or lets a master replace its workers.
    fn disturb(&self, turn: u64) {
        use rustix::process::Signal;
        let of = |server: &Option<Server>| server.as_ref().map(|server| children(server.0.id())).unwrap_or_default();
        match turn % 6 {
            0 => of(&self.nginx).first().into_iter().for_each(|pid| signal(*pid, Signal::KILL)),
            1 => of(&self.redis).first().into_iter().for_each(|pid| signal(*pid, Signal::KILL)),
            2 => of(&self.socat).first().into_iter().for_each(|pid| signal(*pid, Signal::KILL)),
            3 => self.haproxy.iter().for_each(|master| signal(master.0.id() as i32, Signal::USR2)),
            4 => of(&self.sshd).first().into_iter().for_each(|pid| signal(*pid, Signal::KILL)),
            _ => self.nginx.iter().for_each(|_| self.site.nginx_reload()),
        }
    }

    /// A driver with the load of all programs, over a site's side of the network.
    fn load(&self, from: &Site, host: &str, iperf: &str) -> Child {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak/load.py");
        let mut command = from.command("python3");
        command.arg(script).arg(seconds().to_string()).args([host, &self.site.path("."), iperf]);
        if let Some(pgbench) = &self.pgbench {
            command.env("SOAK_PGBENCH", pgbench);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// What a driver counted; wrong answers and programs that did nothing fail.
fn judge(name: &str, mut driver: Child) {
    let (mut counts, mut said) = (String::new(), String::new());
    driver.stdout.take().unwrap().read_to_string(&mut counts).unwrap();
    driver.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    println!("{name}:\n{counts}{said}");
    assert!(driver.wait().unwrap().success(), "{name}: {said}");
    assert!(!counts.is_empty());
    for line in counts.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (turns, broken): (u64, u64) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        assert!(turns > 0, "{name}: {line}: {said}");
        // A worker dies every few seconds; whoever it served tries again.
        let most = if KILLED.contains(&words[0]) { 2 + seconds() / 3 } else { 0 };
        assert!(broken <= most, "{name}: {line}, at most {most}: {said}");
    }
}

#[test]
fn all_programs_at_once_lose_nothing_while_workers_are_killed() {
    if !has("ip") || !has("python3") {
        return;
    }
    // SAFETY: only this thread and what it starts changes its network.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 || !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: needs root and /dev/net/tun");
        return;
    }
    let addresses = vec![address("10.9.0.2/24").unwrap()];
    let attachment = Attachment::Tap("nf0".into());
    let config = NetworkConfig::new(attachment, addresses);
    let service = Running::on(Some(config));
    for words in ["link set lo up", "addr add 10.9.0.1/24 dev nf0", "link set nf0 up"] {
        text(output(Command::new("ip").args(words.split(' '))));
    }
    let files = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..1_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(files.path().join("large"), &large).unwrap();
    std::fs::write(files.path().join("small"), &large[..1024]).unwrap();
    let key = files.path().join("user").display().to_string();
    if has("ssh-keygen") {
        text(output(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key])));
    }
    let kernel_folder = tempfile::tempdir().unwrap();
    let ours = Servers::start(Site { folder: service.folder.path().into(), service: Some(&service) }, files.path());
    let kernels = Servers::start(Site { folder: kernel_folder.path().into(), service: None }, files.path());
    for port in [6379, 11211, 8080, 8081, 8090, 5201, 5202, 7000].into_iter().chain(ours.sshd.iter().map(|_| 2222)) {
        service.listening(port);
    }
    ours.pgbench.iter().for_each(|_| service.listening(5432));
    let listeners = service.seen().sockets.len();
    let drivers = [
        ("the kernel's clients of the library's servers", ours.load(&kernels.site, "10.9.0.2", "5201")),
        ("the library's clients of the library's servers", ours.load(&ours.site, "127.0.0.1", "5202")),
        ("the library's clients of the kernel's servers", kernels.load(&ours.site, "10.9.0.1", "5201")),
        ("the kernel's clients of the kernel's servers", kernels.load(&kernels.site, "127.0.0.1", "5202")),
    ];
    let began = Instant::now();
    let mut memory = Vec::new();
    while began.elapsed() < Duration::from_secs(seconds()) {
        std::thread::sleep(Duration::from_secs(5));
        memory.push(resident_kib());
        for servers in [&ours, &kernels] {
            servers.disturb(memory.len() as u64);
        }
    }
    for (name, driver) in drivers {
        judge(name, driver);
    }
    println!("memory of the service every five seconds, KiB: {memory:?}, descriptors {}", descriptors());
    let third = memory.len() / 3;
    let most = |samples: &[u64]| samples.iter().copied().max().unwrap_or(0);
    let (before, after) = (most(&memory[third..2 * third]), most(&memory[2 * third..]));
    if third >= 6 {
        assert!(after <= before + before / 20 + 2048, "memory grew from {before} to {after} KiB: {memory:?}");
    }
    // Reloaded masters have replaced their listeners; no connection is left.
    service.settled(listeners + 4);
}
