//! Programs that hosts run against each other.
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::netns::{Hosts, has};
use crate::support::program::Program;
use crate::support::traffic::name_server;

/// What a command writes, errors too.
pub fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}

/// Runs a command that shall succeed.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {why}");
}

/// Names asked for, of the server as it is called at `address`.
pub fn asks_for_names(hosts: &Hosts, address: &str, interface: &str) {
    if !has("dig") {
        crate::skip::skipped("names, needs dig");
        return;
    }
    let socket = hosts.run("server", || crate::support::netns::bound(|| UdpSocket::bind("10.99.2.2:53")));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| name_server(&socket, &stop));
        for number in 0..8 {
            let mut dig = hosts.on("client", "dig");
            dig.args(["+short", "+time=5", &format!("@{address}")]);
            let answer = said(dig.arg(format!("host{number}.example.net")));
            assert_eq!(answer.trim(), "192.0.2.7", "{interface}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// All ports from 1 to 1000 of the server, as it is called at `address`: two are open.
pub fn scans_ports(hosts: &Hosts, address: &str, interface: &str) {
    if !has("nmap") {
        crate::skip::skipped("the port scan, needs nmap");
        return;
    }
    let open: Vec<TcpListener> = hosts.run("server", || {
        let bind = |port| crate::support::netns::bound(|| TcpListener::bind(("10.99.2.2", port)));
        vec![bind(111), bind(999)]
    });
    let mut nmap = hosts.on("client", "nmap");
    let scan = said(nmap.args(["-n", "-Pn", "-sT", "-T5", "-p", "1-1000", address]));
    for listener in &open {
        let port = listener.local_addr().unwrap().port();
        assert!(scan.contains(&format!("{port}/tcp")), "{interface}: {scan}");
    }
    assert!(scan.contains("998 closed"), "{interface}: {scan}");
}

/// Parallel streams to the server, and others back at the same time, of which none is stuck.
pub fn streams_both_ways(hosts: &Hosts, address: &str, interface: &str) {
    if !has("iperf3") {
        crate::skip::skipped("parallel streams, needs iperf3");
        return;
    }
    // Not one run with `--bidir`: the server of iperf 3.12 takes connections for one way or the other in the order in
    // which it accepts them, and flows that come by different workers may overtake each other.
    std::thread::scope(|scope| {
        scope.spawn(|| streams(hosts, address, interface, &["-p", "5201"]));
        streams(hosts, address, interface, &["-p", "5202", "-R"]);
    });
}

/// Four streams for a second; `way` names the server's port and, with `-R`, the way back.
fn streams(hosts: &Hosts, address: &str, interface: &str, way: &[&str]) {
    let mut server = hosts.on("server", "iperf3");
    let server = server.args(["-s", "-1"]).args(&way[..2]);
    let server = Program::start_silent(server);
    let mut measured = serde_json::Value::Null;
    // The server needs a moment before it listens.
    for _ in 0..50 {
        let mut client = hosts.on("client", "iperf3");
        client.args(["-c", address, "-J", "-t", "1", "-P", "4"]);
        let answer = client.args(way).output().unwrap().stdout;
        measured = serde_json::from_slice(&answer).unwrap_or_default();
        if measured["end"]["sum_received"].is_object() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(server);
    let streams = measured["end"]["streams"].as_array();
    let streams = streams.unwrap_or_else(|| panic!("{interface} {way:?}: {measured}"));
    let bytes = streams.iter().map(|one| one["receiver"]["bytes"].as_u64());
    let bytes: Vec<u64> = bytes.map(Option::unwrap_or_default).collect();
    let all = bytes.len() == 4 && bytes.iter().all(|&bytes| bytes > 100_000);
    assert!(all, "{interface} {way:?}: {bytes:?}");
}

/// A web server with the files in `folder`; it goes with the value.
pub struct Web {
    _server: Program,
}

impl Web {
    /// On the server, port 8000. `None`, with a line, where it or `curl` is not to be had.
    pub fn start(hosts: &Hosts, folder: &Path) -> Option<Web> {
        if !has("curl") || !has("python3") {
            crate::skip::skipped("needs curl, and python3 for its web server");
            return None;
        }
        let mut server = hosts.on("server", "python3");
        server.args(["-m", "http.server", "8000", "--bind", "10.99.2.2", "-d"]);
        let _server = Program::start_silent(server.arg(folder));
        Some(Web { _server })
    }
}

/// `file` of the web server, which `host` calls at `address`.
pub fn fetch(hosts: &Hosts, host: &str, address: &str, file: &str) -> Vec<u8> {
    let mut curl = hosts.on(host, "curl");
    curl.args(["-sS", "--fail", "--retry", "20", "--retry-connrefused"]);
    // Nothing for a minute is a connection that is stuck.
    curl.args(["--retry-delay", "1", "--speed-time", "60", "--speed-limit", "1"]);
    let fetched = curl.arg(format!("http://{address}:8000/{file}")).output().unwrap();
    let errors = String::from_utf8_lossy(&fetched.stderr);
    assert!(fetched.status.success(), "curl: {errors}");
    fetched.stdout
}
