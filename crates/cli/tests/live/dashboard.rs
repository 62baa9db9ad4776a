//! The live view: its stream of events tells when a worker dies, slow readers hold up nobody, and in a browser the page
//! shows traffic. The last part needs root and Chromium; it is skipped with a line where one is missing.

#[path = "../../../report/src/chromium.rs"]
mod chromium;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::crew::Crew;
use crate::support::netns::{Hosts, example_file};
use crate::support::program::Program;
use chromium::{Browser, Look};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// What is wrong with a page's layout, in words.
const MEASURE: &str = include_str!("../../../report/src/browser.js");

/// A run of two workers, of which one never comes, so that it goes on; and its crew.
struct Run {
    _program: Program,
    crew: Crew,
    dashboard: SocketAddr,
    metrics: SocketAddr,
    _folder: tempfile::TempDir,
}

/// Addresses that nobody listens at.
fn free() -> [SocketAddr; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}

impl Run {
    fn start() -> Run {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.toml");
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
        let text = format!(
            "[live]\nname = \"view\"\ntitle = \"A <b>view</b>\"\n[settings]\napp = \"l2fwd\"\ncores = 2\n[[port]]\nread = {sample:?}\n"
        );
        std::fs::write(&file, text).unwrap();
        let crew = Crew::new(&folder.path().join("socket"), 2);
        let [dashboard, metrics] = free();
        let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        live.arg("live").arg(&file).arg("--quiet").arg("--out").arg(folder.path().join("out"));
        live.arg("--attach").arg(&crew.socket);
        live.args(["--dashboard", &dashboard.to_string(), "--metrics", &metrics.to_string()]);
        let program = Program::start_silent(&mut live);
        crew.wait_for_socket();
        Run { _program: program, crew, dashboard, metrics, _folder: folder }
    }

    /// The answer to `request`, whole.
    fn asked(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    /// Messages of the stream, as they come.
    fn events(&self) -> impl Iterator<Item = Value> + use<> {
        let mut stream = TcpStream::connect(self.dashboard).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
    }
}

#[test]
fn the_stream_tells_when_a_worker_dies() {
    let mut run = Run::start();
    let mut events = run.events();
    let is_absent = |message: &Value| message["workers"][0]["absent"].as_bool();
    let first = events.find(|message| is_absent(message).is_some()).unwrap();
    assert_eq!((is_absent(&first), first["workers"].as_array().unwrap().len()), (Some(true), 2));
    run.crew.attach(0);
    events.find(|message| is_absent(message) == Some(false)).unwrap();
    run.crew.kill(0);
    let killed = Instant::now();
    let seen = events.find(|message| is_absent(message) == Some(true)).unwrap();
    println!("seen {} ms after it was killed", killed.elapsed().as_millis());
    // In words as well, in this message or a later one.
    let tells = |message: &Value| message["events"].to_string().contains("worker 0");
    assert!(tells(&seen) || events.any(|message| tells(&message)));
}

/// Metrics and dashboard count an absent worker as idle.
#[test]
fn a_worker_that_never_comes_is_idle() {
    let run = Run::start();
    let idle = |message: Value| message["workers"][1]["idle_seconds"].as_f64();
    // A thousand of them come within minutes.
    assert!(run.events().take(1000).any(|message| idle(message) >= Some(1.0)));
    let page = Run::asked(run.metrics, "GET /metrics HTTP/1.1\r\n\r\n");
    let line = page.lines().find_map(|line| line.strip_prefix("nicforge_worker_idle_seconds_total{worker=\"1\"} "));
    assert!(line.unwrap().parse::<f64>().unwrap() >= 1.0, "{page}");
}

#[test]
fn slow_readers_hold_up_neither_the_run_nor_its_pages() {
    let run = Run::start();
    // More than are served at once; none of them reads.
    let silent: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(run.dashboard).unwrap();
            stream.write_all(b"GET /events HTTP/1.1\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert!(Run::asked(run.metrics, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    let seconds: Vec<f64> = run.events().filter_map(|message| message["seconds"].as_f64()).take(4).collect();
    assert!(seconds.windows(2).all(|pair| pair[0] <= pair[1]), "{seconds:?}");
    drop(silent);
}

#[test]
fn the_page_only_reads_and_stays_on_this_machine() {
    let run = Run::start();
    let page = Run::asked(run.dashboard, "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("Content-Security-Policy"), "{page}");
    assert!(page.contains("A &lt;b&gt;view&lt;/b&gt;") && page.contains("l2fwd on "));
    for (request, status) in [
        ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("GET /other HTTP/1.1\r\n\r\n", "404"),
        ("GET / HTTP/1.1\r\nHost: example.org:8080\r\n\r\n", "403"),
    ] {
        let answer = Run::asked(run.dashboard, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    let mut live = Command::new(env!("CARGO_BIN_EXE_nicforge"));
    live.arg("live").arg(example_file("capture.toml")).args(["--dashboard", "0.0.0.0:8080"]);
    let refused = live.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("loopback") && said.contains("--dashboard-open"), "{said}");
}

/// In the gateway's own namespace, where nobody else listens.
const VIEW: &str = "127.0.0.1:8080";

#[test]
fn a_browser_shows_traffic_and_a_worker_that_dies() {
    let Some(hosts) = Hosts::up("view") else { return };
    let Some(mut browser) = hosts.run("gateway", Browser::start) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut crew = Crew::new(&folder.path().join("socket"), 2);
    let socket = crew.socket.display().to_string();
    let options = ["--attach", &socket, "--set", "cores=2", "--dashboard", VIEW];
    let mut gateway = hosts.start_with(&example_file("nat-netns.toml"), &options);
    crew.wait_for_socket();
    (0..2).for_each(|worker| crew.attach(worker));
    hosts.wait_for(&mut gateway, "10.99.2.2");
    let mut pings = hosts.on("client", "ping");
    pings.args(["-q", "-i", "0.002", "10.99.2.2"]).stdout(Stdio::null());
    let _pings = Program::start(&mut pings);
    browser.look(Look { width: 1280, dark: false, paper: false });
    browser.open(&format!("http://{VIEW}/"));
    let until = |browser: &mut Browser, what: &str, holds: &str| {
        let patience = Instant::now() + PATIENCE;
        while browser.value(holds) != true {
            assert!(Instant::now() < patience, "{what}: {}", browser.value("document.body.innerText"));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let text = |part: &str| format!("document.getElementById('answer').textContent.includes('{part}')");
    until(&mut browser, "some seconds are seen", "Number(document.body.dataset.seen ?? 0) > 12");
    until(
        &mut browser,
        "traffic is seen",
        "[...document.querySelectorAll('#ports td')].some(it => /^[1-9].*frames/.test(it.textContent))",
    );
    for (width, dark) in [(1280, false), (1280, true), (390, false)] {
        browser.look(Look { width, dark, paper: false });
        let wrong = browser.value(MEASURE);
        assert_eq!(wrong, serde_json::json!([]), "at width {width}");
        if let Some(folder) = std::env::var_os("NICFORGE_PICTURES") {
            let name = format!("live-{width}{}.png", if dark { "-dark" } else { "" });
            browser.picture(&std::path::Path::new(&folder).join(name));
        }
    }
    assert!(browser.value(&text("Worker 1 is absent")) == false);
    crew.kill(1);
    until(&mut browser, "its end is seen", &text("Worker 1 is absent"));
    until(&mut browser, "and told", "document.querySelector('#events ol').textContent.includes('worker 1')");
    assert_eq!(browser.errors(), Vec::<String>::new());
    gateway.stop();
    crew.all_ended();
}
