//! Linux's own TCP as a peer over a TAP device in a network namespace: both directions, IPv4 and IPv6, clean and with
//! seeded loss, reordering and duplication. Needs root and `ip`; says that it skips otherwise.

mod common;
mod tap;

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use common::byte;
use nicforge_tcp::Config;
use tap::{Faulty, Harness, Role};

const LINUX_V4: [u8; 4] = [10, 9, 0, 2];
const OURS_V4: [u8; 4] = [10, 9, 0, 1];

fn v6(last: u16) -> IpAddr {
    std::net::Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, last).into()
}

/// Writes `total` bytes and reads the same number back, each checked.
fn linux_end(mut stream: TcpStream, total: u64) {
    let mut reader = stream.try_clone().unwrap();
    let writer = thread::spawn(move || {
        let bytes: Vec<u8> = (0..total).map(|at| byte(0, at)).collect();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    });
    let mut have = Vec::new();
    reader.read_to_end(&mut have).unwrap();
    writer.join().unwrap();
    assert_eq!(have.len() as u64, total);
    assert!(have.iter().enumerate().all(|(at, have)| *have == byte(0, at as u64)), "the echo differs");
}

fn run(we_connect: bool, over_v6: bool, faults: Faulty, total: u64, config: Config) {
    let (ours, linux) = if over_v6 { (v6(1), v6(2)) } else { (OURS_V4.into(), LINUX_V4.into()) };
    let Some(mut harness) = Harness::new(config, faults) else {
        println!("skipped: no TAP device or namespace here (needs root and ip)");
        return;
    };
    if we_connect {
        // Linux listens and starts the stream; we connect and echo.
        let listener = TcpListener::bind(SocketAddr::new(linux, 7000)).unwrap();
        let peer = thread::spawn(move || linux_end(listener.accept().unwrap().0, total));
        harness.run(Role::Connect(linux, 7000), || peer.is_finished());
        peer.join().unwrap();
    } else {
        let peer = thread::spawn(move || linux_end(TcpStream::connect(SocketAddr::new(ours, 7000)).unwrap(), total));
        harness.run(Role::Listen(7000), || peer.is_finished());
        peer.join().unwrap();
    }
}

#[test]
fn linux_exchanges_streams_with_us() {
    for over_v6 in [false, true] {
        for we_connect in [false, true] {
            run(we_connect, over_v6, Faulty::default(), 4_000_000, Config::default());
        }
    }
}

#[test]
fn linux_exchanges_streams_with_us_over_a_bad_link() {
    for over_v6 in [false, true] {
        for we_connect in [false, true] {
            let faults = Faulty { loss: 20, swap: 50, twice: 20, seed: 7 };
            run(we_connect, over_v6, faults, 300_000, Config::default());
        }
    }
}

#[test]
fn linux_exchanges_streams_with_the_papers_simplifications() {
    for we_connect in [false, true] {
        run(we_connect, false, Faulty { loss: 10, ..Faulty::default() }, 200_000, Config::paper());
    }
}
