//! Workers that are processes, killed at random moments while hosts talk through them, on every
//! interface. Needs root; skipped with a line where that is not allowed.

use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::crew::{Crew, shares_rings};
use crate::support::interfaces::interfaces;
use crate::support::netns;
use crate::support::netns::{Gateway, Hosts, example_file};
use crate::support::traffic::{CLIENT, SERVER, StopAtEnd, echo, exchange, worker_of};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;
use rustix::net;

const WORKERS: u16 = 2;
/// The one that dies.
const VICTIM: u16 = 0;
/// UDP flows of each worker, and datagrams of each that are under way at once: far fewer than any
/// ring has room for.
const FLOWS: usize = 4;
const AT_ONCE: u32 = 4;
/// The number in datagrams that the counts leave out.
const UNCOUNTED: u64 = u64::MAX;
const KILLS: u32 = 6;
const UDP_PORT: u16 = 7_000;
const TCP_PORT: u16 = 7_001;
/// After this a datagram of the victim's flows is lost, or one of the others'.
const SOON: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(10);

/// One flow of datagrams that come back.
struct Flow {
    socket: UdpSocket,
    sent: AtomicU64,
    answered: AtomicU64,
}

impl Flow {
    /// Sends some datagrams and waits until all came back, or for `patience` after the last;
    /// so on until `stop`.
    fn run(&self, patience: Duration, stop: &AtomicBool) {
        self.socket.set_read_timeout(Some(patience)).unwrap();
        while !stop.load(Ordering::Relaxed) {
            self.round();
        }
    }

    /// Waits until an answer comes: its worker is there then.
    fn wait(&self) {
        self.socket.set_read_timeout(Some(SOON)).unwrap();
        let until = Instant::now() + PATIENCE;
        let mut answer = [0; 64];
        loop {
            assert!(Instant::now() < until, "no worker serves the flow");
            self.socket.send(&UNCOUNTED.to_be_bytes()).unwrap();
            if self.socket.recv(&mut answer).is_ok() {
                return;
            }
        }
    }

    fn round(&self) {
        let first = self.sent.load(Ordering::Relaxed);
        for number in first..first + u64::from(AT_ONCE) {
            self.socket.send(&number.to_be_bytes()).unwrap();
        }
        self.sent.fetch_add(AT_ONCE.into(), Ordering::Relaxed);
        let mut came = 0;
        let mut buffer = [0; 64];
        while came < AT_ONCE {
            let Ok(len) = self.socket.recv(&mut buffer) else {
                return;
            };
            let number = u64::from_be_bytes(buffer[..len].try_into().unwrap());
            if number == UNCOUNTED {
                continue;
            }
            // Late ones of a round that was given up count too: they are not lost.
            came += u32::from(number >= first);
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Flows of `worker`, from ports of the client that lead there.
fn flows(hosts: &Hosts, worker: u16) -> Vec<Flow> {
    let ports = (20_000..).filter(|&port| worker_of(port, WORKERS) == worker);
    let open = |port| {
        let socket = netns::bound(|| UdpSocket::bind((CLIENT, port)));
        socket.connect((SERVER, UDP_PORT)).unwrap();
        Flow { socket, sent: AtomicU64::new(0), answered: AtomicU64::new(0) }
    };
    hosts.run("client", || ports.take(FLOWS).map(open).collect())
}

/// A connection to the server from the client's port `from`.
fn connect(from: u16) -> TcpStream {
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).unwrap();
    net::bind(&socket, &SocketAddrV4::new(CLIENT, from)).unwrap();
    net::connect(&socket, &SocketAddrV4::new(SERVER, TCP_PORT)).unwrap();
    TcpStream::from(socket)
}

/// TCP connections through the other worker, one after another from ports from `first` on, all bytes
/// checked, until `stop`.
fn streams(hosts: &Hosts, first: u16, stop: &AtomicBool) -> u32 {
    let listener = hosts.run("server", || netns::bound(|| TcpListener::bind((SERVER, TCP_PORT))));
    let mut ports = (first..).filter(|&port| worker_of(port, WORKERS) != VICTIM);
    let mut done = 0;
    while !stop.load(Ordering::Relaxed)
        && let Some(port) = ports.next()
    {
        let connection = hosts.run("client", || connect(port));
        let (accepted, _) = listener.accept().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| exchange(accepted, None));
            exchange(connection, Some(done as u8 & 0x7f));
        });
        done += 1;
    }
    done
}

fn gateway(hosts: &Hosts, interface: &str, crew: &mut Crew) -> Gateway {
    let socket = crew.socket.display().to_string();
    let set = ["--attach", &socket, "--set", &format!("interface={interface}"), "--set", &format!("cores={WORKERS}")];
    let mut gateway = hosts.start_with(&example_file("nat-netns.toml"), &set);
    crew.wait_for_socket();
    (0..usize::from(WORKERS)).for_each(|worker| crew.attach(worker));
    hosts.wait_for(&mut gateway, "10.99.2.2");
    gateway
}

/// Kills the victim again and again; each time a new one takes its place, and its flows go on.
fn kill(crew: &mut Crew, interface: &str, seed: u64, victims: &[Flow]) {
    let mut random = Pcg64::seed_from_u64(seed);
    for number in 0..KILLS {
        std::thread::sleep(Duration::from_micros(u64::from(random.next_u32() % 150_000)));
        crew.kill(usize::from(VICTIM));
        // Sometimes nobody is there for a while.
        std::thread::sleep(Duration::from_millis(u64::from(random.next_u32() % 2) * 100));
        crew.attach(usize::from(VICTIM));
        let answered = |flow: &Flow| flow.answered.load(Ordering::Relaxed);
        let before: Vec<u64> = victims.iter().map(answered).collect();
        let until = Instant::now() + PATIENCE;
        let works = |(flow, before): (&Flow, &u64)| answered(flow) > *before;
        while !victims.iter().zip(&before).all(works) {
            assert!(Instant::now() < until, "{interface}: after kill {number} a flow of the new worker stands still");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Datagrams that were sent, and those of them that were lost.
fn lost(flows: &[Flow]) -> (u64, u64) {
    let sum = |of: fn(&Flow) -> &AtomicU64| -> u64 { flows.iter().map(|flow| of(flow).load(Ordering::Relaxed)).sum() };
    let (sent, answered) = (sum(|flow| &flow.sent), sum(|flow| &flow.answered));
    (sent, sent - answered)
}

/// The run itself checks at its end that every frame and every buffer is accounted for.
#[test]
fn a_worker_killed_under_traffic_costs_only_its_own_packets() {
    let Some(hosts) = Hosts::up("kill") else {
        return;
    };
    for (seed, interface) in (1..).zip(interfaces()) {
        // Not those of the interface before, which the system keeps for a while.
        let first = 25_000 + 2_000 * seed as u16;
        let folder = tempfile::tempdir().unwrap();
        let mut crew = Crew::new(&folder.path().join("socket"), WORKERS.into());
        let gateway = gateway(&hosts, interface, &mut crew);
        let server = hosts.run("server", || netns::bound(|| UdpSocket::bind((SERVER, UDP_PORT))));
        server.set_read_timeout(Some(SOON)).unwrap();
        let (own, others) = (flows(&hosts, VICTIM), flows(&hosts, VICTIM + 1));
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let connections = std::thread::scope(|scope| {
            let (_stops, _is_over) = (StopAtEnd(&stop), StopAtEnd(&over));
            scope.spawn(|| echo(&server, &over));
            own.iter().chain(&others).for_each(Flow::wait);
            let own_flows = own.iter().map(|flow| (flow, SOON));
            // Where none of the others' can be lost, one that is late is waited for.
            let patience = if shares_rings(interface) { SOON } else { PATIENCE };
            let all = own_flows.chain(others.iter().map(|flow| (flow, patience)));
            let (hosts, stop) = (&hosts, &stop);
            let all = all.map(|(flow, patience)| scope.spawn(move || flow.run(patience, stop)));
            let all: Vec<_> = all.collect();
            let connections = scope.spawn(move || streams(hosts, first, stop));
            kill(&mut crew, interface, seed, &own);
            stop.store(true, Ordering::Relaxed);
            all.into_iter().for_each(|flow| flow.join().unwrap());
            connections.join().unwrap()
        });
        let report = gateway.stop();
        crew.all_ended();
        let drops = &report["points"][0]["metrics"]["drops"];
        let ((sent, missing), (of_victim, missing_of_victim)) = (lost(&others), lost(&own));
        println!(
            "{interface}: {KILLS} kills; others lost {missing} of {sent} datagrams and carried \
             {connections} TCP connection(s), the victim's flows lost {missing_of_victim} of \
             {of_victim}; drops {drops}"
        );
        assert!(connections > 0 && sent > 100, "{interface}: no traffic");
        if shares_rings(interface) {
            // What lay in the ring when it began anew, at most all that was under way: once when a
            // worker was gone, once when another came.
            let under_way = 2 * u64::from(KILLS) * u64::from(AT_ONCE) * FLOWS as u64;
            assert!(missing <= under_way, "{interface}: {missing} lost");
        } else {
            assert_eq!(missing, 0, "{interface}: another worker's packet is lost: {drops}");
        }
    }
}
