//! Two hosts and a gateway's place between them, as network namespaces (examples/netns.sh), and
//! threads that stand in one of them.
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::skip;

/// The hosts; they go with the value.
pub struct Hosts {
    suffix: String,
}

/// A live run in the gateway's place; it is killed with the value, if it was not stopped.
pub struct Gateway {
    child: Child,
    /// Its report is here when it ended.
    pub out: tempfile::TempDir,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file of an example.
pub fn example_file(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

/// The file, in `folder`, of a NAT between the gateway's own kernel, over the TAP device `nf-tap`
/// (10.99.3.2, 02:00:00:00:03:02), and the server.
pub fn tap_file(folder: &Path) -> PathBuf {
    let file = folder.join("tap.toml");
    let text = "[live]\nname = \"tap\"\n[settings]\ninterface = \"priv_ring\"\napp = \"nat\"\n\
                [app]\nexternal_address = \"10.99.2.1\"\n\
                [[port]]\ntap = \"nf-tap\"\naddress = \"10.99.3.1\"\n\
                next_hop = \"02:00:00:00:03:02\"\n\
                [[port]]\ninterface = \"nf-outside\"\naddress = \"10.99.2.1\"\nnext_hop = \"10.99.2.2\"\n";
    std::fs::write(&file, text).unwrap();
    file
}

/// Whether `program` is there.
pub fn has(program: &str) -> bool {
    let mut probe = Command::new("sh");
    probe.args(["-c", &format!("command -v {program}")]);
    probe.output().is_ok_and(|output| output.status.success())
}

impl Hosts {
    /// New hosts of their own name; `None`, with a line that says why, where that is not allowed or a program
    /// is missing that all such tests need.
    pub fn up(name: &str) -> Option<Hosts> {
        for program in ["ip", "ping", "sysctl"] {
            if !has(program) {
                skip::skipped(&format!("real traffic between hosts needs {program}"));
                return None;
            }
        }
        let hosts = Hosts { suffix: format!("-{name}-{}", std::process::id()) };
        let made = hosts.script("up");
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            let why = why.lines().next().unwrap_or("no reason given");
            skip::skipped(&format!("network namespaces cannot be made here ({why})"));
            return None;
        }
        Some(hosts)
    }

    fn script(&self, what: &str) -> Output {
        let mut script = Command::new(root().join("examples/netns.sh"));
        script.arg(what).env("NF_SUFFIX", &self.suffix);
        script.output().unwrap()
    }

    /// A command that runs on host `host` (client, gateway, server).
    pub fn on(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        let space = format!("nf-{host}{}", self.suffix);
        command.args(["netns", "exec", &space, program]);
        command
    }

    /// `work` on host `host`, on a thread of its own.
    pub fn run<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let space = format!("/var/run/netns/nf-{host}{}", self.suffix);
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let space = File::open(space).unwrap();
                use std::os::fd::AsFd;
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(space.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// One more host, `far` (10.99.8.2), behind the client, which sends on to it over a link that takes
    /// `mtu` bytes.
    pub fn far_host(&self, mtu: u32) {
        let far = format!("nf-far{}", self.suffix);
        let client = format!("nf-client{}", self.suffix);
        for command in [
            format!("netns add {far}"),
            format!("-n {client} link add narrow type veth peer name eth0 netns {far}"),
            format!("-n {client} link set narrow mtu {mtu} up"),
            format!("-n {client} addr add 10.99.8.1/24 dev narrow"),
            format!("-n {far} link set eth0 up"),
            format!("-n {far} addr add 10.99.8.2/24 dev eth0"),
            format!("-n {far} route add default via 10.99.8.1"),
            format!("netns exec {client} sysctl -qw net.ipv4.ip_forward=1"),
        ] {
            let done = Command::new("ip").args(command.split(' ')).output().unwrap();
            let why = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "ip {command}: {why}");
        }
    }

    /// Starts `nicforge live` with an example and settings; waits until the server answers at
    /// `address`.
    pub fn gateway(&self, example: &str, settings: &[&str], address: &str) -> Gateway {
        let mut gateway = self.start(&example_file(example), settings);
        self.wait_for(&mut gateway, address);
        gateway
    }

    /// Waits until the server answers at `address` through `gateway`.
    pub fn wait_for(&self, gateway: &mut Gateway, address: &str) {
        let patience = Instant::now() + Duration::from_secs(30);
        while !self.answers(address) {
            if let Some(status) = gateway.child.try_wait().unwrap() {
                panic!("{status}: {}", gateway.said());
            }
            assert!(Instant::now() < patience, "nobody answers at {address}");
        }
    }

    /// Whether one echo request from the client to `address` is answered within a second. It is sent again and
    /// again meanwhile: whoever comes up in between is noticed at once.
    pub fn answers(&self, address: &str) -> bool {
        let mut ping = self.on("client", "ping");
        ping.args(["-q", "-i", "0.02", "-w", "1", "-c", "1", address]);
        ping.output().unwrap().status.success()
    }

    /// Starts `nicforge live` with a file and settings.
    pub fn start(&self, file: &Path, settings: &[&str]) -> Gateway {
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        self.start_with(file, &set.collect::<Vec<_>>())
    }

    /// Starts `nicforge live` with a file and arguments.
    pub fn start_with(&self, file: &Path, arguments: &[&str]) -> Gateway {
        let out = tempfile::tempdir().unwrap();
        let mut command = self.on("gateway", env!("CARGO_BIN_EXE_nicforge"));
        command.arg("live").arg(file).args(arguments);
        command.args(["--json", "--out"]).arg(out.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Gateway { child, out }
    }

    /// Whether all of `count` echo requests from the client to `address` are answered, however late
    /// within some seconds.
    pub fn pings(&self, address: &str, count: u32) -> bool {
        self.pings_with(address, count, 56)
    }

    /// The same with `bytes` in each, which are fragments if a frame does not hold them.
    pub fn pings_with(&self, address: &str, count: u32, bytes: u32) -> bool {
        // Without a deadline ping waits for the last answer only twice as long as the slowest one
        // took, or until the next one would be sent, and calls it lost. With one it goes on asking
        // until as many are answered, so it matters which are.
        let mut ping = self.on("client", "ping");
        ping.args(["-i", "0.02", "-c", &count.to_string(), "-s"]);
        ping.args([&bytes.to_string(), "-w", "10", address]);
        let answered = ping.output().unwrap();
        let said = String::from_utf8_lossy(&answered.stdout);
        let is_answered = |number| said.contains(&format!("icmp_seq={number} ttl="));
        let all = (1..=count).all(is_answered);
        if !all {
            println!("{said}");
        }
        all
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let mut far = Command::new("ip");
        far.args(["netns", "del", &format!("nf-far{}", self.suffix)]);
        // Most tests have none.
        let _ = far.stderr(Stdio::null()).status();
        self.script("down");
    }
}

impl Gateway {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn said(&mut self) -> String {
        use std::io::Read;
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut said).unwrap();
        }
        said
    }

    /// Sends it a signal; `ip netns exec` has become the program itself.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Asks it to stop; its report. It checks by itself that no frame and no buffer is lost.
    pub fn stop(mut self) -> serde_json::Value {
        self.signal(rustix::process::Signal::TERM);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
        let report = std::fs::read(self.out.path().join("report.json")).unwrap();
        serde_json::from_slice(&report).unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `bind` makes. A program that another test is about to start has a copy of every socket until it runs, so
/// an address may be in use for a moment after its socket was closed.
pub fn bound<S>(bind: impl Fn() -> std::io::Result<S>) -> S {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match bind() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            socket => return socket.unwrap(),
        }
    }
}
