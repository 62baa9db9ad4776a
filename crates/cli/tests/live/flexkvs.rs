//! FlexKVS live: a client in a network namespace asks it and Debian's memcached the same. Needs root and memcached; skipped
//! with a line elsewhere.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::skip;
use crate::support::netns::{Hosts, has};
use nicforge_wire::headers::{MAGIC_REQUEST, memcached_opcode as opcode};

/// How long a reply may take before the request goes again.
const PATIENCE: Duration = Duration::from_millis(200);

/// A request of memcached's binary protocol in its frame of UDP.
fn request(number: u16, opcode: u8, key: &str, extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 1, 0, 0, MAGIC_REQUEST, opcode]);
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0, 0, 0]);
    bytes.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    bytes.extend([0; 12]);
    bytes.extend([extras, key.as_bytes(), value].concat());
    bytes
}

/// The reply; requests go again until one comes, as datagrams may be lost while the server starts.
fn ask(socket: &UdpSocket, request: &[u8]) -> Vec<u8> {
    let mut reply = [0; 2048];
    for _ in 0..50 {
        let mut received = socket.send(request).and_then(|_| socket.recv(&mut reply));
        while let Ok(len) = received {
            // Another id is that of an earlier request that was sent twice.
            if reply[..2] == request[..2] {
                return reply[..len].to_vec();
            }
            received = socket.recv(&mut reply);
        }
        // The system reports a closed port at once, so the time limit does not pass.
        if received.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            sleep(PATIENCE);
        }
    }
    panic!("no reply");
}

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn flexkvs_answers_as_memcached_does() {
    if !has("memcached") {
        return skip::skipped("the comparison needs memcached");
    }
    let Some(hosts) = Hosts::up("flexkvs") else { return };
    let mut memcached = hosts.on("client", "memcached");
    memcached.args(["-C", "-u", "root", "-l", "10.99.1.2", "-p", "0", "-U", "11211", "-m", "64", "-t", "1"]);
    let mut memcached = memcached.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let program = root().join("examples/p4/flexkvs-dma.p4");
    for interface in ["rx_bisect", "nm_nfv", "split", "flexnic"] {
        let mut sets = vec![format!("interface={interface}")];
        if interface == "flexnic" {
            // The NIC takes headers off and writes the log.
            sets.extend(["flexkvs_nic_log=true".to_owned(), format!("flexnic_program={}", program.display())]);
        }
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let gateway = hosts.gateway("flexkvs-netns.toml", &sets, "10.99.1.1");
        let (ours, theirs) = hosts.run("client", || {
            let to = |server: &str| {
                let socket = UdpSocket::bind("10.99.1.2:0").unwrap();
                socket.connect((server, 11_211)).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut replies = Vec::new();
                // A key of this turn, as memcached outlives it; of 32 bytes, which the NIC's program understands.
                let key = |n: u16| format!("{interface:-<30}{:02}", n % 7);
                for n in 0..300u16 {
                    let value = vec![n as u8; usize::from(n) * 4];
                    let set = request(3 * n, opcode::SET, &key(n), &[1, 2, 3, n as u8, 0, 0, 0, 0], &value);
                    replies.push(ask(&socket, &set));
                    let get = if n % 2 == 0 { opcode::GET } else { opcode::GET_KEY };
                    replies.push(ask(&socket, &request(3 * n + 1, get, &key(n + 3), &[], &[])));
                    if n % 5 == 0 {
                        replies.push(ask(&socket, &request(3 * n + 2, opcode::DELETE, &key(n + 4), &[], &[])));
                    }
                }
                replies
            };
            (to("10.99.1.1"), to("10.99.1.2"))
        });
        assert_eq!(ours.len(), theirs.len());
        for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "reply {number} over {interface}");
        }
        drop(gateway);
    }
    let _ = memcached.kill();
    let _ = memcached.wait();
}
