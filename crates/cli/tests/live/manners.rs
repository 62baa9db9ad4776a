//! How a live run behaves beside its packets: it makes the folders that it writes to, sleeps when
//! there is nothing to do, and tells what it counted. Needs no privilege.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::support::program::Program;

/// A run that waits for workers, and so has nothing to do.
struct Idle {
    program: Program,
    folder: tempfile::TempDir,
}

impl Idle {
    fn new(more: &[&str]) -> Idle {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("idle.toml");
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
        let text = format!(
            "[live]\nname = \"idle\"\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n\
             [[port]]\nread = {sample:?}\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        live.arg("live").arg(&file).arg("--quiet");
        live.arg("--out").arg(folder.path().join("out"));
        live.arg("--attach").arg(folder.path().join("socket"));
        let program = Program::start(live.args(more).stdout(Stdio::null()));
        Idle { program, folder }
    }

    /// Where workers attach, once the run listens there.
    fn socket(&self) -> PathBuf {
        let socket = self.folder.path().join("socket");
        let patience = Instant::now() + Duration::from_secs(60);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < patience, "nobody listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        socket
    }

    /// Clock ticks (1/100 s) that the process used so far (proc(5): fields 14 and 15).
    fn ticks(&mut self) -> u64 {
        let id = self.program.id();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

#[test]
fn a_run_with_nothing_to_do_sleeps() {
    let mut idle = Idle::new(&[]);
    std::thread::sleep(Duration::from_millis(700));
    let before = idle.ticks();
    std::thread::sleep(Duration::from_millis(2_000));
    let used = idle.ticks() - before;
    // Polling would take all 200 of a core.
    assert!(used < 40, "{used} ticks of 200");
}

/// A run whose page is at the address, which answers.
fn with_page() -> (Idle, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let idle = Idle::new(&["--metrics", &address.to_string()]);
    let patience = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < patience, "nobody listens");
        std::thread::sleep(Duration::from_millis(20));
    }
    (idle, address)
}

fn asked(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn prometheus_gets_its_page() {
    let (_idle, address) = with_page();
    // Before anything was counted, too.
    let page = asked(address, GET);
    let header = "# TYPE nicforge_received_frames_total counter";
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.lines().any(|found| found == header), "{page}");
    let lines = [
        "nicforge_received_frames_total{port=\"0\"} 0",
        "nicforge_worker_packets_total{worker=\"0\"} 0",
        "nicforge_worker_present{worker=\"0\"} 0",
        "nicforge_worker_receive_entries_waiting_total{worker=\"0\"} 0",
        "nicforge_worker_transmit_entries_used_total{worker=\"0\"} 0",
    ];
    let has_all = |page: &str| {
        let has = |line: &&str| page.lines().any(|found| found == *line);
        lines.iter().all(has)
    };
    let mut page = page;
    let patience = Instant::now() + Duration::from_secs(60);
    while !has_all(&page) {
        assert!(Instant::now() < patience, "{page}");
        std::thread::sleep(Duration::from_millis(20));
        page = asked(address, GET);
    }
}

/// Who asks for OpenMetrics gets it; both formats name the program.
#[test]
fn pages_are_open_metrics_for_those_that_accept_it() {
    let (_idle, address) = with_page();
    let open = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n\r\n";
    let build = format!("nicforge_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    for (request, kind, end) in [
        (open, "Content-Type: application/openmetrics-text; version=1.0.0;", "\n# EOF\n"),
        (GET, "Content-Type: text/plain; version=0.0.4;", "\n"),
    ] {
        let page = asked(address, request);
        assert!(page.contains(kind) && page.contains(&build) && page.ends_with(end), "{page}");
    }
}

#[test]
fn prometheus_is_answered_whatever_others_ask() {
    let (_idle, address) = with_page();
    // They say nothing, and are still there when the page is served.
    let silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    for (request, status) in [
        (GET, "200 OK"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET /other HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
    ] {
        let page = asked(address, request);
        assert!(page.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{page}");
    }
    let head = asked(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    for mut client in silent {
        client.set_nonblocking(true).unwrap();
        // Not closed yet: it was never its turn that the others waited for.
        let heard = client.read(&mut [0]);
        assert!(heard.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
}

/// More of them than are served at once: the one that came first goes.
#[test]
fn slow_clients_keep_nobody_from_the_page() {
    let (_idle, address) = with_page();
    let silent: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(address).unwrap()).collect();
    let page = asked(address, GET);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    drop(silent);
}

#[test]
fn group_and_mode_of_the_socket_are_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("socket.toml");
    let run = |keys: &str| {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
        let text = format!(
            "[live]\nname = \"socket\"\nattach = {:?}\n{keys}[settings]\napp = \"l2fwd\"\n[[port]]\nread = {sample:?}\n",
            folder.path().join("socket")
        );
        std::fs::write(&file, text).unwrap();
        let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        live.arg("live").arg(&file).arg("--quiet").arg("--out").arg(folder.path().join("out"));
        live.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = Program::start(&mut live);
        let until = Instant::now() + Duration::from_secs(60);
        while program.is_running() && UnixStream::connect(folder.path().join("socket")).is_err() {
            assert!(Instant::now() < until, "nobody listens");
            std::thread::sleep(Duration::from_millis(20));
        }
        program
    };
    let own = std::fs::metadata(folder.path()).unwrap().gid();
    for (keys, mode) in [
        (String::new(), 0o600),
        (format!("attach_group = \"{own}\"\n"), 0o660),
        ("attach_mode = \"0666\"\n".to_owned(), 0o666),
    ] {
        let program = run(&keys);
        let socket = std::fs::metadata(folder.path().join("socket")).unwrap();
        assert_eq!((socket.mode() & 0o777, socket.gid()), (mode, own), "{keys}");
        assert!(program.stop().status.success());
    }
    let ended = run("attach_group = \"no such group\"\n").ends_with_output();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("socket.toml:4:") && said.contains("no group is called `no such group`"), "{said}");
}

#[test]
fn metrics_stay_on_this_machine() {
    let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/capture.toml");
    live.args(["live", sample, "--metrics", "0.0.0.0:9477"]);
    let refused = live.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
}

/// As after `git clone`: nothing was written yet.
#[test]
fn every_example_of_captures_runs_on_a_fresh_clone() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut ran = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let file = entry.unwrap().path();
        let is_run = file.extension().is_some_and(|kind| kind == "toml");
        let text = if is_run { std::fs::read_to_string(&file).unwrap() } else { String::new() };
        let needs_an_interface = ["\ninterface = \"nf-", "\nxdp = ", "\ntap = "];
        if !is_run || needs_an_interface.iter().any(|key| text.contains(key)) {
            continue;
        }
        let folder = crate::common::folder();
        let ended = crate::common::nicforge(&folder, &["live", file.to_str().unwrap()]);
        let said = crate::common::stderr(&ended);
        assert!(ended.status.success(), "{}: {said}", file.display());
        for name in text.lines().filter_map(|line| line.strip_prefix("write = ")) {
            let written = folder.path().join(name.trim_matches('"'));
            assert!(written.is_file(), "{}", written.display());
        }
        ran += 1;
    }
    assert!(ran >= 2, "{ran} examples");
}

/// A worker's process that has a place in `idle`.
fn attached(idle: &Idle) -> Program {
    let mut attach = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    attach.arg("attach").arg(idle.socket()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut worker = Program::start(&mut attach);
    let mut said = String::new();
    BufReader::new(worker.stdout()).read_line(&mut said).unwrap();
    assert!(said.starts_with("worker"), "{said}");
    worker
}

#[test]
fn a_worker_says_that_its_device_is_gone() {
    let idle = Idle::new(&[]);
    let worker = attached(&idle);
    idle.program.killed();
    let ended = worker.ends_with_output();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("device"), "{ended:?}");
}

#[test]
fn a_run_leaves_the_socket_of_another_alone() {
    let first = Idle::new(&[]);
    let socket = first.socket();
    std::fs::remove_file(&socket).unwrap();
    let _second = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(first.program.stop().status.success());
    assert!(UnixStream::connect(&socket).is_ok(), "the second one still listens");
}

/// A worker that is stopped holds up the end for seconds.
#[test]
fn a_second_interrupt_ends_a_run_at_once() {
    let mut idle = Idle::new(&["--set", "cores=2"]);
    let mut worker = attached(&idle);
    kill_process(worker.id(), Signal::STOP).unwrap();
    let run = idle.program.id();
    kill_process(run, Signal::INT).unwrap();
    let status = format!("/proc/{run}/status");
    // Two that wait together are one.
    while std::fs::read_to_string(&status).unwrap().lines().any(|line| line == "ShdPnd:\t0000000000000002") {
        std::thread::yield_now();
    }
    kill_process(run, Signal::INT).unwrap();
    let ended = idle.program.ends();
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(!idle.folder.path().join("out/report.json").exists(), "it wrote a report");
}
