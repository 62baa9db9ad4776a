//! A worker that is gone for good, or hangs: what the others carry goes on, also when hosts have to ask
//! again where the gateway is. Needs root; skipped with a line where that is not allowed.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::support::crew::Crew;
use crate::support::netns;
use crate::support::netns::{Gateway, Hosts, example_file};
use crate::support::traffic::{CLIENT, SERVER, StopAtEnd, echo, worker_of};
use rustix::process::{Signal, kill_process};

const WORKERS: u16 = 2;
const UDP_PORT: u16 = 7_000;
/// In the gateway's own namespace, where nobody else listens.
const METRICS: &str = "127.0.0.1:9477";
const ROUNDS: u32 = 3;
const QUESTIONS: u32 = 50;
/// Frames each way for the worker that is away: more than may wait for software in all.
const UNHEARD: usize = 600;

fn gateway(hosts: &Hosts, interface: &str, crew: &mut Crew) -> Gateway {
    let socket = crew.socket.display().to_string();
    let interface = format!("interface={interface}");
    let set = ["--attach", &socket, "--set", &interface, "--set", "cores=2"];
    let set = [&set[..], &["--metrics", METRICS]].concat();
    let mut gateway = hosts.start_with(&example_file("nat-netns.toml"), &set);
    crew.wait_for_socket();
    (0..usize::from(WORKERS)).for_each(|worker| crew.attach(worker));
    hosts.wait_for(&mut gateway, "10.99.2.2");
    gateway
}

/// A socket of the client, whose flow to the server is that of `worker`.
fn flow(hosts: &Hosts, from: u16, worker: u16) -> UdpSocket {
    let is_its = |port: &u16| worker_of(*port, WORKERS) == worker;
    let port = (from..).find(is_its).unwrap();
    let socket = hosts.run("client", || netns::bound(|| UdpSocket::bind((CLIENT, port))));
    socket.connect((SERVER, UDP_PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// A flow of the worker that goes away: the client's end, and where the server sends its answers.
struct Unheard {
    client: UdpSocket,
    server: UdpSocket,
    answers_to: std::net::SocketAddr,
}

impl Unheard {
    /// It is known to the gateway.
    fn begin(hosts: &Hosts, from: u16) -> Unheard {
        let client = flow(hosts, from, 0);
        let server = hosts.run("server", || netns::bound(|| UdpSocket::bind((SERVER, UDP_PORT))));
        server.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        // The gateway carries other flows already, but this worker may still be on its way.
        let mut began = (0..50).filter_map(|_| {
            client.send(b"begins").unwrap();
            server.recv_from(&mut [0; 8]).ok()
        });
        let (_, answers_to) = began.next().expect("the worker forwards");
        Unheard { client, server, answers_to }
    }

    /// Both sides go on to send.
    fn goes_on(self) {
        for _ in 0..UNHEARD {
            // A queue may be full; nobody hears it anyway.
            let _ = self.client.send(b"unheard");
            let _ = self.server.send_to(b"unheard", self.answers_to);
        }
        // Until it is clear that the worker does not only pause, others wait for it, and ports may overflow.
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Both hosts forget where the gateway is, and ask questions through the last worker, one at a time; none
/// may be lost.
fn asks(hosts: &Hosts, socket: &UdpSocket, what: &str) {
    let server = hosts.run("server", || netns::bound(|| UdpSocket::bind((SERVER, UDP_PORT))));
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stops = StopAtEnd(&stop);
        scope.spawn(|| echo(&server, &stop));
        for round in 0..ROUNDS {
            for host in ["client", "server"] {
                let mut flush = hosts.on(host, "ip");
                flush.args(["neigh", "flush", "all"]);
                assert!(flush.status().unwrap().success(), "{what}: {host} forgets");
            }
            for question in 0..QUESTIONS {
                let (question, mut answer) = ([round, question].map(|word| word as u8), [0; 8]);
                socket.send(&question).unwrap();
                let came = socket.recv(&mut answer);
                let came = came.unwrap_or_else(|error| panic!("{what}: {question:?}: {error}"));
                assert_eq!(answer[..came], question, "{what}");
            }
        }
    });
}

/// For how many seconds a worker has been silent, as the gateway's page has it.
fn silence(hosts: &Hosts, worker: usize) -> f64 {
    of_worker(hosts, "silent_seconds", worker)
}

fn says_absent(hosts: &Hosts, worker: usize) -> bool {
    of_worker(hosts, "present", worker) == 0.0
}

/// A metric of a worker on the gateway's page.
fn of_worker(hosts: &Hosts, name: &str, worker: usize) -> f64 {
    metric(hosts, &format!("nicforge_worker_{name}{{worker=\"{worker}\"}} "))
}

/// Flows that the NAT of a worker opened, as that page has it.
fn flows_of(hosts: &Hosts, worker: usize) -> f64 {
    metric(hosts, &format!("nicforge_app_count_total{{worker=\"{worker}\",name=\"flows_opened\"}} "))
}

/// What stands behind `name` on the gateway's page.
fn metric(hosts: &Hosts, name: &str) -> f64 {
    let mut page = String::new();
    let mut stream = hosts.run("gateway", || TcpStream::connect(METRICS).unwrap());
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("{name}: {page}")).parse().unwrap()
}

fn report_is_of(gateway: Gateway, what: &str) {
    let report = gateway.stop();
    let drops = &report["points"][0]["metrics"]["drops"];
    println!("{what}: drops {drops}");
}

#[test]
fn others_go_on_without_a_worker_that_was_killed() {
    let Some(hosts) = Hosts::up("gone") else {
        return;
    };
    for (from, interface) in (20_000..).step_by(100).zip(["priv_ring", "rx_bisect", "sh_ring"]) {
        let folder = tempfile::tempdir().unwrap();
        let mut crew = Crew::new(&folder.path().join("socket"), WORKERS.into());
        let gateway = gateway(&hosts, interface, &mut crew);
        let unheard = Unheard::begin(&hosts, from);
        let flow = flow(&hosts, from, WORKERS - 1);
        crew.kill(0);
        unheard.goes_on();
        asks(&hosts, &flow, interface);
        report_is_of(gateway, interface);
        crew.all_ended();
    }
}

/// Where workers share a ring, one that hangs holds what lies in it.
#[test]
fn others_go_on_beside_a_worker_that_hangs() {
    let Some(hosts) = Hosts::up("hangs") else {
        return;
    };
    for (from, interface) in (21_000..).step_by(100).zip(["priv_ring", "rx_bisect"]) {
        let folder = tempfile::tempdir().unwrap();
        let mut crew = Crew::new(&folder.path().join("socket"), WORKERS.into());
        let gateway = gateway(&hosts, interface, &mut crew);
        let unheard = Unheard::begin(&hosts, from);
        let flow = flow(&hosts, from, WORKERS - 1);
        let worker = crew.members[0].as_mut().unwrap().id();
        kill_process(worker, Signal::STOP).unwrap();
        unheard.goes_on();
        asks(&hosts, &flow, interface);
        let until = Instant::now() + Duration::from_secs(30);
        while silence(&hosts, 0) < 2.0 {
            assert!(Instant::now() < until, "{interface}: nobody says that it hangs");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(silence(&hosts, 1) < 2.0, "{interface}: the other one speaks");
        assert!(flows_of(&hosts, 1) >= 1.0, "{interface}: its flows are counted");
        kill_process(worker, Signal::CONT).unwrap();
        report_is_of(gateway, interface);
        crew.all_ended();
    }
}

/// One that shares a ring loses its place meanwhile, one that does not when the run ends; either way the report is there.
#[test]
fn a_run_that_ends_beside_a_stopped_worker_writes_its_report() {
    let Some(hosts) = Hosts::up("ends") else {
        return;
    };
    for (from, interface) in (22_000..).step_by(100).zip(["priv_ring", "sh_ring"]) {
        let folder = tempfile::tempdir().unwrap();
        let mut crew = Crew::new(&folder.path().join("socket"), WORKERS.into());
        let gateway = gateway(&hosts, interface, &mut crew);
        let unheard = Unheard::begin(&hosts, from);
        let flow = flow(&hosts, from, WORKERS - 1);
        kill_process(crew.members[0].as_mut().unwrap().id(), Signal::STOP).unwrap();
        unheard.goes_on();
        if interface == "sh_ring" {
            // Nobody answers until the worker that is stopped has lost its place; afterwards nothing is lost.
            let until = Instant::now() + Duration::from_secs(30);
            while silence(&hosts, 0) > 0.0 || !says_absent(&hosts, 0) {
                assert!(Instant::now() < until, "the stopped worker keeps its place");
                std::thread::sleep(Duration::from_millis(50));
            }
            asks(&hosts, &flow, interface);
        }
        report_is_of(gateway, interface);
        crew.kill(0);
        crew.all_ended();
    }
}
