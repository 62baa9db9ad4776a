//! TCP on the card, live: unmodified programs over it, the kernel's programs at the other end, and programs that crash.
//! Needs root and NICFORGE_PROGRAMS=1; skipped with a line elsewhere.
#![cfg(target_os = "linux")]

mod netns;
mod program;
mod traffic;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use netns::{Gateway, Hosts, example_file, has, skip};
use program::Program;
use traffic::pattern;

const CARD: &str = "10.99.1.1";
const CLIENT: &str = "10.99.1.2";
const PATIENCE: Duration = Duration::from_secs(30);

/// A live run of examples/tasnic-netns.toml, and its service.
struct Card {
    gateway: Option<Gateway>,
    hosts: Hosts,
    folder: tempfile::TempDir,
}

impl Card {
    fn up(name: &str) -> Option<Card> {
        if std::env::var_os("NICFORGE_PROGRAMS").is_none() || !has("python3") {
            skip::skipped("programs over the card run with NICFORGE_PROGRAMS=1");
            return None;
        }
        let hosts = Hosts::up(name)?;
        build_library();
        let folder = tempfile::tempdir().unwrap();
        let example = std::fs::read_to_string(example_file("tasnic-netns.toml")).unwrap();
        let file = folder.path().join("card.toml");
        let service = folder.path().join("service");
        std::fs::write(&file, example.replace("[tcp]", &format!("[tcp]\nservice = {:?}", service.display()))).unwrap();
        let mut gateway = hosts.start(&file, &[]);
        hosts.wait_for(&mut gateway, CARD);
        Some(Card { gateway: Some(gateway), hosts, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn words(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A program over the card.
    fn over(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        command.args(["sockets", "--service", &self.words("service"), "--"]).args(words);
        command.current_dir(self.folder.path());
        command
    }

    /// A server over the card, once it listens.
    fn serve(&self, port: u16, words: &[&str]) -> Served {
        let server = Served(Some(Program::start_silent(&mut self.over(words))));
        let until = Instant::now() + PATIENCE;
        while !self.listens(port) {
            assert!(Instant::now() < until, "{words:?} does not listen at {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn seen(&self) -> String {
        let mut list = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        text(list.args(["ss", "--service", &self.words("service")]))
    }

    fn listens(&self, port: u16) -> bool {
        let ending = format!(":{port} ");
        self.seen().lines().any(|line| line.contains("LISTEN") && format!("{line} ").contains(&ending))
    }

    /// A connection of the kernel's to a port of the card.
    fn connect(&self, port: u16) -> TcpStream {
        let stream = self.hosts.run("client", || {
            let until = Instant::now() + PATIENCE;
            loop {
                match TcpStream::connect((CARD, port)) {
                    Ok(stream) => return stream,
                    Err(error) => assert!(Instant::now() < until, "{error}"),
                }
            }
        });
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A command of the kernel's at the client.
    fn kernels(&self, program: &str, words: &[&str]) -> Command {
        let mut command = self.hosts.on("client", "timeout");
        command.args(["60", program]).args(words);
        command
    }

    fn down(mut self) {
        let report = self.gateway.take().unwrap().stop();
        assert!(report["points"][0]["metrics"]["throughput_gbps"].as_f64().unwrap() > 0.0);
        assert!(!self.path("service").exists(), "the service's socket goes with it");
    }
}

/// A program over the card, which is asked to stop: the command passes that on to it.
struct Served(Option<Program>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|mut program| {
            if program.is_running() {
                program.stop();
            }
        });
    }
}

/// Builds the library that is preloaded, which Cargo does not build for tests.
fn build_library() {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "nicforge-preload"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
}

/// Standard output of a command that must succeed.
fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn redis_serves_and_asks_over_the_card() {
    if !has("redis-server") || !has("redis-benchmark") {
        return skip::skipped("needs redis");
    }
    let Some(card) = Card::up("cardr") else { return };
    let words = ["redis-server", "--port", "6379", "--protected-mode", "no", "--save", ""];
    let server = card.serve(6379, &words);
    let cli = |words: &[&str]| text(card.kernels("redis-cli", &["-h", CARD]).args(words)).trim().to_owned();
    assert_eq!(cli(&["set", "key", "value"]), "OK");
    assert_eq!(cli(&["get", "key"]), "value");
    let load = ["-h", CARD, "-c", "20", "-n", "5000", "-P", "4", "-t", "set,get,lpush", "-q"];
    let load = text(&mut card.kernels("redis-benchmark", &load));
    assert_eq!(load.matches("requests per second").count(), 3, "{load}");
    assert_eq!(cli(&["get", "key"]), "value");
    // The other way round: the kernel serves, and the client's connections open on the card.
    let mut kernels = card.kernels("redis-server", &["--port", "6380", "--protected-mode", "no", "--save", ""]);
    let kernels = Program::start_silent(&mut kernels);
    let until = Instant::now() + PATIENCE;
    let ask = |words: &[&str]| {
        let all = [&["redis-cli", "-h", CLIENT, "-p", "6380"], words].concat();
        let output = card.over(&all).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    while ask(&["ping"]) != "PONG" {
        assert!(Instant::now() < until, "the kernel's redis does not answer");
    }
    let large = "x".repeat(100_000);
    assert_eq!(ask(&["set", "large", &large]), "OK");
    assert_eq!(ask(&["get", "large"]), large);
    drop((kernels, server));
    card.down();
}

#[test]
fn nginx_serves_files_over_the_card() {
    if !has("nginx") || !has("curl") {
        return skip::skipped("needs nginx and curl");
    }
    let Some(card) = Card::up("cardn") else { return };
    let folder = card.words("");
    let page = pattern(3);
    std::fs::write(card.path("page"), &page).unwrap();
    std::fs::write(card.path("small"), &page[..1000]).unwrap();
    let config = format!(
        "worker_processes 2; daemon off; user root; pid {folder}/pid; error_log /dev/null crit;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         server {{ listen 8080; root {folder}; }} }}"
    );
    std::fs::write(card.path("nginx.conf"), config).unwrap();
    let conf = card.words("nginx.conf");
    let server = card.serve(8080, &["nginx", "-p", &folder, "-c", &conf]);
    let url = |name: &str| format!("http://{CARD}:8080/{name}");
    let curls: Vec<Program> = (0..4)
        .map(|number| {
            let (to, from) = (card.words(&format!("fetched{number}")), url("page"));
            let mut curl = card.kernels("curl", &["-sS", "--fail", "-o", &to, &from]);
            Program::start_silent(&mut curl)
        })
        .collect();
    for (number, curl) in curls.into_iter().enumerate() {
        assert!(curl.ends().success(), "curl {number}");
        assert!(std::fs::read(card.path(&format!("fetched{number}"))).unwrap() == page, "curl {number}");
    }
    if has("wrk") {
        let load = text(&mut card.kernels("wrk", &["-t1", "-c16", "-d2s", &url("small")]));
        assert!(!load.contains("Socket errors") && !load.contains("Non-2xx"), "{load}");
    }
    drop(server);
    card.down();
}

#[test]
fn iperf3_streams_both_ways_over_the_card() {
    if !has("iperf3") {
        return skip::skipped("needs iperf3");
    }
    let Some(card) = Card::up("cardi") else { return };
    let server = card.serve(5201, &["iperf3", "-s", "-p", "5201"]);
    for direction in [&[][..], &["-R"], &["-P", "3"], &["--bidir"]] {
        let words = [&["-c", CARD, "-p", "5201", "-n", "20M", "-J"], direction].concat();
        let report = text(&mut card.kernels("iperf3", &words));
        assert!(report.contains("\"sum_received\"") && !report.contains("\"error\""), "{direction:?}: {report}");
    }
    drop(server);
    card.down();
}

/// Echoes in a thread for each connection, until the end of the stream. On request the program kills itself in the
/// middle of a stream with bytes in all its rings, as an application does that crashes.
const ECHO: &str = "
import os, signal, socket, sys, threading
l = socket.create_server(('0.0.0.0', int(sys.argv[1])))
dies = len(sys.argv) > 2
def serve(c):
    came = 0
    while d := c.recv(50_000):
        came += len(d)
        if dies and came > 300_000: os.kill(os.getpid(), signal.SIGKILL)
        c.sendall(d)
    c.close()
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
";

/// Sends the pattern of a stream and reads it back; whether all of it came.
fn echoed(mut stream: TcpStream, number: u8) -> bool {
    let sent = pattern(number);
    let mut out = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| out.write_all(&sent).and_then(|()| out.shutdown(Shutdown::Write)));
        let mut came = Vec::new();
        let read = stream.read_to_end(&mut came);
        let sent_all = sending.join().unwrap().is_ok();
        assert!(came == sent[..came.len()], "stream {number}: wrong bytes");
        read.is_ok() && sent_all && came.len() == sent.len()
    })
}

#[test]
fn the_kernel_and_the_card_exchange_streams_both_ways() {
    let Some(card) = Card::up("cardk") else { return };
    let server = card.serve(7000, &["python3", "-c", ECHO, "7000"]);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let stream = card.connect(7000);
            scope.spawn(move || assert!(echoed(stream, number), "stream {number}"));
        }
    });
    drop(server);
    // Connections that the card opens, to a server of the kernel's.
    let kernels = Program::start_silent(&mut card.kernels("python3", &["-c", ECHO, "7002"]));
    let client = "
import socket, threading, time
def one():
    for attempt in range(300):
        try: c = socket.create_connection(('10.99.1.2', 7002), timeout=20); break
        except OSError: time.sleep(0.1)
    data = bytes(range(256)) * 4000
    def send(): c.sendall(data); c.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send); t.start()
    got = b''
    while d := c.recv(30_000): got += d
    t.join()
    assert got == data, len(got)
    whole.append(1)
whole = []
ts = [threading.Thread(target=one) for _ in range(4)]
for t in ts: t.start()
for t in ts: t.join()
try: socket.create_connection(('10.99.1.2', 9), timeout=20); assert False
except ConnectionRefusedError: print(len(whole), 'whole')
";
    assert_eq!(text(&mut card.over(&["python3", "-c", client])), "4 whole\n");
    drop(kernels);
    card.down();
}

#[test]
fn an_application_that_crashes_leaves_all_other_streams_intact() {
    let Some(card) = Card::up("cardx") else { return };
    let sound = card.serve(7000, &["python3", "-c", ECHO, "7000"]);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let card = &card;
            scope.spawn(move || {
                for round in 0..4 {
                    assert!(echoed(card.connect(7000), number), "stream {number}, round {round}");
                }
            });
        }
        for round in 0..3 {
            let crashes = card.serve(7001, &["python3", "-c", ECHO, "7001", "dies"]);
            // The first stream with enough bytes ends the server, so all of them connect before one sends.
            let streams = [10, 11, 12, 13].map(|number| (number, card.connect(7001)));
            std::thread::scope(|inner| {
                for (number, stream) in streams {
                    inner.spawn(move || assert!(!echoed(stream, number), "round {round}: nobody crashed"));
                }
            });
            drop(crashes);
            let until = Instant::now() + PATIENCE;
            while card.seen().contains(":7001 ") {
                assert!(Instant::now() < until, "sockets of the dead stay: {}", card.seen());
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    assert!(echoed(card.connect(7000), 20));
    drop(sound);
    card.down();
}
