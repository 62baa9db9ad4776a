//! Traffic between the hosts whose every byte is checked.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use nicforge_platform::live::ports::{PacketPort, Port};
use nicforge_units::Time;
use nicforge_wire::rss::{IndirectionTable, Toeplitz};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use crate::support::netns::Hosts;

const PATIENCE: Duration = Duration::from_secs(60);
/// The hosts of examples/netns.sh.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 2);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 2, 2);
/// Bytes of each stream.
pub const STREAM: usize = 4 << 20;

/// The address that the name server below knows for every name.
const NAMED: [u8; 4] = [192, 0, 2, 7];

/// The one of `workers` of a NAT that flows from this port of the client come to, wherever they go.
pub fn worker_of(from: u16, workers: u16) -> u16 {
    let hash = Toeplitz::default().hash_ipv4_ports(CLIENT, Ipv4Addr::UNSPECIFIED, from, 0);
    IndirectionTable::spread_over(workers).queue(hash)
}

/// Bytes that tell their place, so that none can be lost, doubled or exchanged unseen.
pub fn pattern(stream: u8) -> Vec<u8> {
    let mixed = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 ^ stream;
    (0..STREAM).map(mixed).collect()
}

/// `streams` TCP connections at once from the client to `address`, each with bytes both ways.
pub fn tcp_both_ways(hosts: &Hosts, address: &str, bind: &str, streams: u8) {
    let listener = hosts.run("server", || crate::support::netns::bound(|| TcpListener::bind(bind)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..streams {
                let (connection, _) = listener.accept().unwrap();
                scope.spawn(|| exchange(connection, None));
            }
        });
        for stream in 0..streams {
            let connection = hosts.run("client", || TcpStream::connect(address).unwrap());
            scope.spawn(move || exchange(connection, Some(stream)));
        }
    });
}

/// One end: sends its pattern and expects the other's. The client names the stream first.
pub fn exchange(mut connection: TcpStream, stream: Option<u8>) {
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    connection.set_write_timeout(Some(PATIENCE)).unwrap();
    let (mine, theirs) = match stream {
        Some(stream) => {
            connection.write_all(&[stream]).unwrap();
            (pattern(stream), pattern(stream | 0x80))
        }
        None => {
            let mut named = [0];
            connection.read_exact(&mut named).unwrap();
            (pattern(named[0] | 0x80), pattern(named[0]))
        }
    };
    let mut out = connection.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            out.write_all(&mine).unwrap();
            out.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = Vec::new();
        connection.read_to_end(&mut came).unwrap();
        assert!(came == theirs, "{} bytes came, not the same", came.len());
    });
}

/// Questions and answers by UDP, of every size that fits a frame.
pub fn udp_questions(hosts: &Hosts, address: &str, bind: &str, longest: usize) {
    let server = hosts.run("server", || crate::support::netns::bound(|| UdpSocket::bind(bind)));
    let client = hosts.run("client", || {
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.connect(address).unwrap();
        client
    });
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut buffer = vec![0; 65_536];
    for len in (1..=longest).step_by(longest / 15).chain([longest]) {
        client.send(&pattern(1)[..len]).unwrap();
        let (came, asker) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..came], pattern(1)[..len]);
        server.send_to(&pattern(2)[..len], asker).unwrap();
        let came = client.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..came], pattern(2)[..len]);
    }
}

/// The next frame that comes in at `port` and ends with `end`, if it comes soon.
pub fn frame_that_ends_with(port: &mut dyn Port, end: &[u8]) -> Option<Vec<u8>> {
    let (mut came, patience) = (None, Instant::now() + Duration::from_secs(20));
    while came.is_none() && Instant::now() < patience {
        let mut look = |frame: &[u8]| {
            if frame.ends_with(end) {
                came = Some(frame.to_vec());
            }
        };
        port.receive(32, &mut look).unwrap();
    }
    came
}

/// What comes to the server of a datagram that the client sends in a VLAN, tag 5.
pub fn tagged_datagram(hosts: &Hosts) -> Vec<u8> {
    let mut client = hosts.run("client", || PacketPort::open("eth0").unwrap());
    let mut server = hosts.run("server", || PacketPort::open("eth0").unwrap());
    let builder = PacketBuilder::ethernet2([2, 0, 10, 99, 1, 2], inside_mac(hosts))
        .single_vlan(5.try_into().unwrap())
        .ipv4([10, 99, 1, 2], [10, 99, 2, 2], 64)
        .udp(1234, 53);
    let mut question = Vec::new();
    builder.write(&mut question, b"tagged").unwrap();
    client.send(&question, Time::ZERO).unwrap();
    client.flush().unwrap();
    frame_that_ends_with(&mut server, b"tagged").expect("the frame arrives")
}

/// The hardware address of the gateway's private port.
fn inside_mac(hosts: &Hosts) -> [u8; 6] {
    let shown = hosts.on("gateway", "ip").args(["-o", "link", "show", "nf-inside"]).output().unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    let text = shown.split_once("link/ether ").unwrap().1;
    let bytes = text[..17].split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    bytes.collect::<Vec<u8>>().try_into().unwrap()
}

/// `count` numbered questions by UDP, each sent again until it is answered; how many datagrams, or
/// their answers, were lost.
pub fn questions(hosts: &Hosts, address: &str, bind: &str, count: u32) -> u64 {
    const SOON: Duration = Duration::from_millis(300);
    let server = hosts.run("server", || crate::support::netns::bound(|| UdpSocket::bind(bind)));
    let client = hosts.run("client", || {
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.connect(address).unwrap();
        client
    });
    client.set_read_timeout(Some(SOON)).unwrap();
    server.set_read_timeout(Some(SOON)).unwrap();
    let stop = AtomicBool::new(false);
    let (mut sent, mut answered) = (0, 0);
    std::thread::scope(|scope| {
        let _stops = StopAtEnd(&stop);
        scope.spawn(|| echo(&server, &stop));
        let mut buffer = [0; 2048];
        for number in 0..count {
            let question = number.to_be_bytes();
            let until = Instant::now() + PATIENCE;
            let mut came = false;
            while !came {
                assert!(Instant::now() < until, "question {number} is never answered");
                client.send(&question).unwrap();
                sent += 1;
                // Answers that came late belong to questions that were asked again.
                while let Ok(len) = client.recv(&mut buffer) {
                    answered += 1;
                    came = buffer[..len] == question;
                    if came {
                        break;
                    }
                }
            }
        }
        while sent > answered && client.recv(&mut buffer).is_ok() {
            answered += 1;
        }
    });
    sent - answered
}

/// `count` numbered questions by UDP, `per_second` of them, none of them asked again; which were never
/// answered.
pub fn unanswered(hosts: &Hosts, address: &str, bind: &str, count: u32, per_second: u32) -> Vec<u32> {
    const ROOM: usize = 8 << 20;
    const LATEST: Duration = Duration::from_secs(10);
    let server = hosts.run("server", || crate::support::netns::bound(|| UdpSocket::bind(bind)));
    let client = hosts.run("client", || {
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.connect(address).unwrap();
        client
    });
    let some = Some(Duration::from_millis(100));
    for socket in [&server, &client] {
        // What is lost in a host's own socket is not the gateway's fault.
        set_socket_recv_buffer_size_force(socket, ROOM).unwrap();
        socket.set_read_timeout(some).unwrap();
    }
    let stop = AtomicBool::new(false);
    let mut answered = vec![false; count as usize];
    std::thread::scope(|scope| {
        let _stops = StopAtEnd(&stop);
        scope.spawn(|| echo(&server, &stop));
        scope.spawn(|| {
            let began = Instant::now();
            for number in 0..count {
                let due = began + Duration::from_secs(1) * number / per_second;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                client.send(&number.to_be_bytes()).unwrap();
            }
        });
        // As long as they take, and what a busy machine may need besides.
        let until = Instant::now() + Duration::from_secs(1) * count / per_second + LATEST;
        let mut buffer = [0; 2048];
        while answered.iter().any(|came| !came) && Instant::now() < until {
            if let Ok(4) = client.recv(&mut buffer)
                && let Some(came) = buffer.first_chunk().map(|four| u32::from_be_bytes(*four))
            {
                answered[came as usize] = true;
            }
        }
    });
    let never = (0..count).filter(|&number| !answered[number as usize]);
    never.collect()
}

/// Ends what runs beside a test, however the test ends.
pub struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends everything back that comes, until `stop`.
pub fn echo(socket: &UdpSocket, stop: &AtomicBool) {
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, asker)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..len], asker).unwrap();
        }
    }
}

/// Answers every question with [`NAMED`] (RFC 1035, section 4.1), until `stop`.
pub fn name_server(socket: &UdpSocket, stop: &AtomicBool) {
    let some = Some(Duration::from_millis(50));
    socket.set_read_timeout(some).unwrap();
    let mut question = [0; 512];
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, asker)) = socket.recv_from(&mut question) else {
            continue;
        };
        // The question ends behind the root label, type and class.
        let labels = question[12..len].iter().position(|&byte| byte == 0);
        let end = 12 + labels.unwrap() + 5;
        let mut answer = question[..end].to_vec();
        // A response, recursion available; one question, one answer, nothing else.
        answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(NAMED);
        socket.send_to(&answer, asker).unwrap();
    }
}
