//! The peer: DPDK's testpmd in two processes, one that only sends and one that only receives. Between
//! its turns they stand still.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{WINDOW, processes};

const TESTPMD: &str = "dpdk-testpmd";
/// Huge pages of 2 MiB that all pairs of processes take, and Nicforge, and where the system's number
/// stands.
const HUGE_PAGES: u64 = 6 * 288 + 16;
const NR_HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";
/// How long both may take until packets flow.
const PATIENCE: Duration = Duration::from_secs(30);

/// How packets get from one process to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Shared memory: `net_memif` on both sides, which copies twice.
    Memif,
    /// The same, and the sender's buffers are the shared memory: one copy.
    MemifShared,
    /// `net_virtio_user` sends, `net_vhost` copies.
    Vhost,
}

impl Transport {
    pub const ALL: [Transport; 3] = [Transport::Memif, Transport::MemifShared, Transport::Vhost];

    pub fn name(self) -> &'static str {
        match self {
            Transport::Memif => "dpdk net_memif",
            Transport::MemifShared => "dpdk net_memif zero-copy",
            Transport::Vhost => "dpdk net_vhost",
        }
    }

    /// The devices of the receiver and of the sender, connected by `socket`.
    fn devices(self, socket: &Path) -> [String; 2] {
        let socket = socket.display();
        match self {
            Transport::Memif | Transport::MemifShared => ["server", "client"].map(|role| {
                let shares = role == "client" && self == Transport::MemifShared;
                let shares = if shares { ",zero-copy=yes" } else { "" };
                // 256 entries, as all others have; with its own 1024 zero-copy takes all buffers before it has sent one twice.
                format!("net_memif0,role={role},socket={socket},socket-abstract=no,rsize=8{shares}")
            }),
            Transport::Vhost => [format!("net_vhost0,iface={socket}"), format!("net_virtio_user0,path={socket}")],
        }
    }
}

/// Huge pages set aside for as long as this lives.
pub struct HugePages {
    before: Option<u64>,
}

impl HugePages {
    /// Why there are none, or there are.
    pub fn set_aside() -> Result<HugePages, String> {
        if Command::new(TESTPMD).arg("--version").output().is_err() {
            return Err(format!("{TESTPMD} is not installed (apt: dpdk-dev)"));
        }
        let free = number_in("/proc/meminfo", "HugePages_Free:");
        if free >= HUGE_PAGES {
            return Ok(HugePages { before: None });
        }
        let before = number_in(NR_HUGE_PAGES, "");
        let wanted = (before + HUGE_PAGES - free).to_string();
        let pages = HugePages { before: Some(before) };
        fs::write(NR_HUGE_PAGES, wanted).map_err(|error| format!("{NR_HUGE_PAGES}: {error}"))?;
        match number_in("/proc/meminfo", "HugePages_Free:") {
            free if free >= HUGE_PAGES => Ok(pages),
            free => Err(format!("{free} of {HUGE_PAGES} huge pages could be set aside")),
        }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = fs::write(NR_HUGE_PAGES, before.to_string());
        }
    }
}

/// The number behind `name` in a file of the system; 0 if there is none.
fn number_in(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let number = lines.next().and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// One testpmd, which is told to quit when this goes.
struct Testpmd {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Testpmd {
    /// Forwards on processor `cpu`, in mode `mode`; its other threads are anywhere.
    fn start(cpu: usize, device: &str, mode: &str, folder: &Path, more: &[&str]) -> Result<Testpmd, String> {
        let prefix = format!("nicforge-{}-{mode}", std::process::id());
        // Into a pipe it would say nothing before 4 KiB are full.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", TESTPMD]);
        // What it would leave in /var/run.
        command.env("RUNTIME_DIRECTORY", folder);
        command.args(["--lcores", &format!("0@(0,1),1@{cpu}")]);
        command.args(["-m", "256", "--in-memory", "--single-file-segments", "--no-pci"]);
        command.args(["--no-telemetry", "--file-prefix", &prefix, "--vdev", device, "--"]);
        // As few buffers as rings and caches need: more leave the processor's caches between two uses.
        command.args(["-i", "--auto-start", "--total-num-mbufs=2048", "--mbcache=128"]);
        command.arg(format!("--forward-mode={mode}")).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{TESTPMD}: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(format!("{TESTPMD} without pipes"));
        };
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Testpmd { child, stdin, lines })
    }

    /// Packets that its port received so far, and when it said so. `None` when it says nothing.
    fn received(&mut self, patience: Duration) -> Option<(Instant, u64)> {
        writeln!(self.stdin, "show port stats 0").ok()?;
        self.stdin.flush().ok()?;
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let mut words = line.split_whitespace();
                    if words.next() == Some("RX-packets:") {
                        let count = words.next()?.parse().ok()?;
                        return Some((Instant::now(), count));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        processes::signal(&self.child, Signal::CONT);
        let _ = writeln!(self.stdin, "quit");
        let _ = self.stdin.flush();
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two processes between which packets flow in their turns.
pub struct Pair {
    pub transport: Transport,
    pub len: usize,
    receiver: Testpmd,
    sender: Testpmd,
    _folder: TempDir,
}

impl Pair {
    /// Packets of `len` bytes flow; then both stand still.
    pub fn start(transport: Transport, len: usize) -> Result<Pair, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let socket = folder.path().join("socket");
        let [receiver, sender] = transport.devices(&socket);
        let mut receiver = Testpmd::start(0, &receiver, "rxonly", folder.path(), &[])?;
        let began = Instant::now();
        // Who calls before somebody listens gives up.
        while !socket.exists() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(100));
        }
        let packets = format!("--txpkts={len}");
        let sender = Testpmd::start(1, &sender, "txonly", folder.path(), &[&packets])?;
        let began = Instant::now();
        while receiver.received(PATIENCE).is_none_or(|(_, count)| count < 100_000) {
            if began.elapsed() > 2 * PATIENCE {
                return Err(format!("{}: no packet came", transport.name()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let pair = Pair { transport, len, receiver, sender, _folder: folder };
        pair.signal(Signal::STOP);
        Ok(pair)
    }

    /// Million packets per second in one window; NaN where testpmd says nothing.
    pub fn rate(&mut self) -> f64 {
        self.signal(Signal::CONT);
        let from = self.receiver.received(PATIENCE);
        std::thread::sleep(WINDOW);
        let to = self.receiver.received(PATIENCE);
        self.signal(Signal::STOP);
        let (Some(from), Some(to)) = (from, to) else {
            return f64::NAN;
        };
        (to.1 - from.1) as f64 / (to.0 - from.0).as_secs_f64() / 1e6
    }

    fn signal(&self, signal: Signal) {
        for testpmd in [&self.sender, &self.receiver] {
            processes::signal(&testpmd.child, signal);
        }
    }
}
