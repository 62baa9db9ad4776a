//! TCP on the card, live: unmodified programs over it, the kernel's programs at the other end, and programs that crash.
//! Needs root and NICFORGE_PROGRAMS=1; skipped with a line elsewhere.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::skip;
use crate::support::netns::{Gateway, Hosts, example_file, has};
use crate::support::over::{Over, PATIENCE, text};
use crate::support::program::Program;
use crate::support::traffic::pattern;

const CARD: &str = "10.99.1.1";
const CLIENT: &str = "10.99.1.2";
/// Programs of the tests of the library, too.
const ECHO: &str = include_str!("../../../preload/tests/common/echo.py");
const EXCHANGE: &str = include_str!("../../../preload/tests/common/exchange.py");

/// A live run of examples/tasnic-netns.toml, and its service.
struct Card {
    gateway: Option<Gateway>,
    hosts: Hosts,
    folder: tempfile::TempDir,
    programs: Over,
}

impl Card {
    fn up(name: &str) -> Option<Card> {
        let folder = tempfile::tempdir().unwrap();
        let programs = Over::at(folder.path())?;
        let hosts = Hosts::up(name)?;
        let example = std::fs::read_to_string(example_file("tasnic-netns.toml")).unwrap();
        let file = folder.path().join("card.toml");
        let tcp = format!("[tcp]\nservice = {:?}", programs.service().display());
        std::fs::write(&file, example.replace("[tcp]", &tcp)).unwrap();
        let mut gateway = hosts.start(&file, &[]);
        hosts.wait_for(&mut gateway, CARD);
        Some(Card { gateway: Some(gateway), hosts, folder, programs })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn words(&self, name: &str) -> String {
        self.path(name).display().to_string()
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
        assert!(!self.programs.service().exists(), "the service's socket goes with it");
    }
}

#[test]
fn redis_serves_and_asks_over_the_card() {
    if !has("redis-server") || !has("redis-benchmark") {
        return skip::skipped("needs redis");
    }
    let Some(card) = Card::up("cardr") else { return };
    let words = ["redis-server", "--port", "6379", "--protected-mode", "no", "--save", ""];
    let server = card.programs.serve(6379, &words);
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
        let output = card.programs.command(&all).output().unwrap();
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
    let server = card.programs.serve(8080, &["nginx", "-p", &folder, "-c", &conf]);
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
    let server = card.programs.serve(5201, &["iperf3", "-s", "-p", "5201"]);
    for direction in [&[][..], &["-R"], &["-P", "3"], &["--bidir"]] {
        let words = [&["-c", CARD, "-p", "5201", "-n", "20M", "-J"], direction].concat();
        let report = text(&mut card.kernels("iperf3", &words));
        assert!(report.contains("\"sum_received\"") && !report.contains("\"error\""), "{direction:?}: {report}");
    }
    drop(server);
    card.down();
}

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
    let server = card.programs.serve(7000, &["python3", "-c", ECHO, "7000"]);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let stream = card.connect(7000);
            scope.spawn(move || assert!(echoed(stream, number), "stream {number}"));
        }
    });
    drop(server);
    // Connections that the card opens, to a server of the kernel's.
    let kernels = Program::start_silent(&mut card.kernels("python3", &["-c", ECHO, "7002"]));
    let words = ["python3", "-c", EXCHANGE, CLIENT, "7002", "4"];
    assert_eq!(text(&mut card.programs.command(&words)), "4 whole\n");
    drop(kernels);
    card.down();
}

#[test]
fn an_application_that_crashes_leaves_all_other_streams_intact() {
    let Some(card) = Card::up("cardx") else { return };
    let sound = card.programs.serve(7000, &["python3", "-c", ECHO, "7000"]);
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
            let crashes = card.programs.serve(7001, &["python3", "-c", ECHO, "7001", "dies"]);
            // The first stream with enough bytes ends the server, so all of them connect before one sends.
            let streams = [10, 11, 12, 13].map(|number| (number, card.connect(7001)));
            std::thread::scope(|inner| {
                for (number, stream) in streams {
                    inner.spawn(move || assert!(!echoed(stream, number), "round {round}: nobody crashed"));
                }
            });
            drop(crashes);
            let until = Instant::now() + PATIENCE;
            while card.programs.seen().contains(":7001 ") {
                assert!(Instant::now() < until, "sockets of the dead stay: {}", card.programs.seen());
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    assert!(echoed(card.connect(7000), 20));
    drop(sound);
    card.down();
}
