//! P4 programs in front of live NICs, between network namespaces: controllers fill tables and put other programs in
//! place while traffic runs. Needs root; skipped with a line where that is not allowed.
mod controller;

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::netns::{Gateway, Hosts, bound, example_file};
use controller::{Controller, Key};
use nicforge_p4runtime::proto::p4::v1::stream_message_response::Update as Heard;
use nicforge_p4runtime::proto::p4::v1::update::Type;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

const METRICS: &str = "127.0.0.1:9477";
const CLIENT_MAC: [u8; 6] = [2, 0, 0x0a, 0x63, 1, 2];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 1, 0, 0];

fn here(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/p4").join(name).display().to_string()
}

/// A client that asks the server until so many answers have come.
fn asking(hosts: &Hosts, answers: u32) -> Child {
    let mut ping = hosts.on("client", "ping");
    ping.args(["-i", "0.02", "-w", "30", "-c", &answers.to_string(), "10.99.2.2"]);
    ping.stdout(Stdio::piped()).spawn().unwrap()
}

fn said(ping: Child) -> String {
    String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap()
}

/// The metrics page of the gateway.
fn metrics(hosts: &Hosts) -> String {
    hosts.run("gateway", || {
        let mut stream = TcpStream::connect(METRICS).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    })
}

/// What a stage counted, on the metrics page.
fn metric(page: &str, port: u8, name: &str) -> f64 {
    value(page, &format!("nicforge_stage_count_total{{port=\"{port}\",name=\"{name}\"}} "))
}

/// What a stage holds now, on the metrics page.
fn gauge(page: &str, port: u8, name: &str) -> f64 {
    value(page, &format!("nicforge_stage_gauge{{port=\"{port}\",name=\"{name}\"}} "))
}

fn value(page: &str, row: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(row));
    line.unwrap_or_else(|| panic!("{row}: {page}")).parse().unwrap()
}

/// Echo requests found their way only after the routes were there, and what the tables counted is on the metrics page
/// and in the report.
fn routes_worked(hosts: &Hosts, gateway: Gateway, ping: Child) {
    let said = said(ping);
    // It may get more than it waits for at once.
    let received = said.split(" received").next().and_then(|before| before.rsplit(' ').next());
    assert!(received.is_some_and(|count| count.parse::<u32>().is_ok_and(|count| count >= 20)), "{said}");
    assert!(!said.contains("icmp_seq=1 "), "nobody had said where the first one was to go: {said}");
    // The page is made anew now and then.
    let until = Instant::now() + Duration::from_secs(10);
    let page = loop {
        let page = metrics(hosts);
        let both = [0, 1].iter().all(|port| metric(&page, *port, "p4_router_next_hops_hits") >= 20.0);
        if both || Instant::now() > until {
            break page;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    for port in [0, 1] {
        assert!(metric(&page, port, "p4_router_routes_hits") >= 20.0, "{page}");
        assert!(metric(&page, port, "p4_router_next_hops_hits") >= 20.0, "{page}");
        assert_eq!(gauge(&page, port, "p4_router_routes_entries"), 1.0, "{page}");
        assert_eq!(metric(&page, port, "p4_parser_badversion"), 0.0, "{page}");
    }
    let report = gateway.stop();
    let metrics = &report["points"][0]["metrics"];
    assert!(metrics["stages"]["p4_router_routes_hits"].as_u64().unwrap() >= 40, "{}", metrics["stages"]);
    assert_eq!(metrics["stage_gauges"]["p4_router_routes_entries"], 1, "{}", metrics["stage_gauges"]);
}

fn router(hosts: &Hosts, listen: &str) -> Gateway {
    let listen = format!("p4_listen=\"{listen}\"");
    hosts.start_with(&example_file("p4-netns.toml"), &["--set", &listen, "--metrics", METRICS])
}

/// Gives the two NICs their routes.
fn add_routes(controllers: [Controller; 2]) {
    let routes = [([10, 99, 2, 0], 1, SERVER_MAC), ([10, 99, 1, 0], 0, CLIENT_MAC)];
    for (mut nic, (prefix, port, mac)) in controllers.into_iter().zip(routes) {
        let send: [&[u8]; 3] = [&[2, 0, 0, 0, 0, 1], &mac, &[port]];
        let hop = nic.entry("next_hops", Key::Exact(&[1]), "send", &send);
        let route = nic.entry("routes", Key::Prefix(&prefix, 24), "set_next_hop", &[&[1]]);
        nic.write(Type::Insert, vec![hop, route]).unwrap();
    }
}

#[test]
fn a_controller_on_a_unix_socket_adds_routes_while_ping_runs() {
    let Some(hosts) = Hosts::up("p4unix") else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nic.sock");
    let gateway = router(&hosts, &format!("unix:{}", socket.display()));
    let second = folder.path().join("nic.sock.1");
    let controllers = [Controller::of_socket(&socket, 1), Controller::of_socket(&second, 2)];
    let ping = asking(&hosts, 20);
    std::thread::sleep(Duration::from_millis(500));
    add_routes(controllers);
    routes_worked(&hosts, gateway, ping);
    assert!(!socket.exists() && !second.exists(), "the run takes its sockets away");
}

#[test]
fn finsy_adds_routes_while_ping_runs() {
    let Some(python) = std::env::var_os("NICFORGE_FINSY_PYTHON") else {
        return crate::skip::skipped("NICFORGE_FINSY_PYTHON names no Python with finsy");
    };
    let Some(hosts) = Hosts::up("p4finsy") else { return };
    let gateway = router(&hosts, "127.0.0.1:9559");
    // It listens from here on.
    drop(hosts.run("gateway", || Controller::connect("http://127.0.0.1:9560", 2)));
    let ping = asking(&hosts, 20);
    let mut finsy = hosts.on("gateway", python.to_str().unwrap());
    finsy.arg(example_file("p4/finsy_routes.py")).args(["127.0.0.1:9559", "127.0.0.1:9560"]);
    let output = finsy.env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python").output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("finsy is content"), "{text}");
    routes_worked(&hosts, gateway, ping);
}

/// A datagram as the program's tables and the program itself have filled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    number: u32,
    one: u16,
    two: u16,
    ingress: u8,
    egress: u8,
}

impl Said {
    fn of(bytes: &[u8]) -> Said {
        let &[n0, n1, n2, n3, a0, a1, b0, b1, ingress, egress, ..] = bytes else { panic!("{bytes:?}") };
        Said {
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            one: u16::from_be_bytes([a0, a1]),
            two: u16::from_be_bytes([b0, b1]),
            ingress,
            egress,
        }
    }
}

/// Sends numbered datagrams to the server until `ends`; returns how many.
fn number_on(client: &UdpSocket, ends: &AtomicBool) -> u32 {
    let mut number = 0u32;
    while !ends.load(Ordering::Acquire) {
        let bytes = [&number.to_be_bytes()[..], &[0; 60]].concat();
        assert_eq!(client.send_to(&bytes, "10.99.2.2:7000").unwrap(), bytes.len());
        number += 1;
        if number.is_multiple_of(4) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    number
}

/// Changes the entries of two tables together, again and again, and the program now and then.
fn change_on(nic: &mut Controller, program: &str, programs: u8, batches: u16) {
    let mut value = 0u16;
    for version in 1..=programs {
        nic.set_program(&program.replace("#define VERSION 0", &format!("#define VERSION {version}"))).unwrap();
        for batch in 0..batches {
            value += 1;
            let data: [&[u8]; 1] = [&value.to_be_bytes()];
            let one = nic.entry("one", Key::Prefix(&[10, 99, 2, 0], 24), "set_one", &data);
            let two = nic.entry("two", Key::Exact(&[0x1b, 0x58]), "set_two", &data);
            let kind = if batch == 0 { Type::Insert } else { Type::Modify };
            nic.write(kind, vec![one, two]).unwrap();
        }
        // A program that is refused changes nothing.
        let refused = nic.set_program("control Broken(").unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    }
}

#[test]
fn no_packet_sees_half_of_a_change_and_none_is_lost() {
    const PROGRAMS: u8 = 8;
    const BATCHES: u16 = 500;
    let Some(hosts) = Hosts::up("p4swap") else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nic.sock");
    let listen = format!("p4_listen=\"unix:{}\"", socket.display());
    let path = here("versions.p4");
    let program = format!("p4_program=\"{path}\"");
    let gateway = hosts.start(&example_file("p4-netns.toml"), &[&listen, &program]);
    let mut nic = Controller::of_socket(&socket, 1);
    let text = std::fs::read_to_string(&path).unwrap();

    let server = hosts.run("server", || bound(|| UdpSocket::bind("10.99.2.2:7000")));
    set_socket_recv_buffer_size_force(&server, 16 << 20).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let client = hosts.run("client", || bound(|| UdpSocket::bind("10.99.1.2:7000")));
    let ends = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| number_on(&client, &ends));
        let receiver = scope.spawn(|| {
            let (mut received, mut bytes) = (Vec::new(), [0u8; 2048]);
            // Until nothing has come for a while.
            while let Ok(length) = server.recv(&mut bytes) {
                received.push(Said::of(&bytes[..length]));
            }
            received
        });
        change_on(&mut nic, &text, PROGRAMS, BATCHES);
        ends.store(true, Ordering::Release);
        (sender.join().unwrap(), receiver.join().unwrap())
    });
    let numbers: Vec<u32> = received.iter().map(|said| said.number).collect();
    assert_eq!(numbers, (0..sent).collect::<Vec<_>>(), "each arrives once, in order");
    for said in &received {
        assert_eq!((said.one, said.ingress), (said.two, said.egress), "half of a change: {said:?}");
    }
    let mut versions: Vec<u8> = received.iter().map(|said| said.ingress).collect();
    assert!(versions.is_sorted(), "programs follow one another");
    versions.dedup();
    let mut values: Vec<u16> = received.iter().map(|said| said.one).collect();
    values.sort_unstable();
    values.dedup();
    println!("{sent} datagrams saw {} programs and {} entries", versions.len(), values.len());
    assert!(versions.len() > usize::from(PROGRAMS / 2), "{versions:?}");
    assert!(values.len() > 100, "{} values", values.len());

    packets_of_the_controller(&mut nic, &client, &server);
    let drops = gateway.stop()["points"][0]["metrics"]["drops"].clone();
    let harmful = drops.as_object().unwrap().keys().any(|cause| cause.starts_with("p4_"));
    assert!(!harmful, "{drops}");
}

/// Packets go from the client to the controller, and from the controller to the server.
fn packets_of_the_controller(nic: &mut Controller, client: &UdpSocket, server: &UdpSocket) {
    client.send_to(b"to the controller", "10.99.2.2:7001").unwrap();
    let packet = loop {
        if let Heard::Packet(packet) = nic.hears() {
            break packet;
        }
    };
    assert!(packet.payload.ends_with(b"to the controller"), "{packet:?}");
    assert_eq!(packet.metadata[0].value, [0], "it came in by port 0");
    // The same packet, to the server's port 7000.
    let mut frame = packet.payload;
    frame[..6].copy_from_slice(&SERVER_MAC);
    frame[36..38].copy_from_slice(&7000u16.to_be_bytes());
    frame[40..42].copy_from_slice(&[0, 0]);
    nic.sends(frame, vec![1]);
    let mut bytes = [0u8; 2048];
    let length = server.recv(&mut bytes).expect("the controller's packet arrives");
    assert_eq!(&bytes[..length], b"to the controller");
}
