//! A guest under QEMU, its virtio-net plugged into a vhost_user port: Debian's kernel pings and loads a file
//! through a NAT. It takes minutes without hardware help, so it runs only where NICFORGE_GUEST names a folder that
//! `examples/guest.sh prepare` made.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::skip;
use crate::support::netns::{Hosts, example_file, has};

/// Bytes of the file.
const FILE_BYTES: usize = 1 << 20;

/// Serves `file` once by HTTP, whatever is asked for.
fn serve_once(listener: &TcpListener, file: &[u8]) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut asked = Vec::new();
    let mut bytes = [0; 1024];
    while !asked.ends_with(b"\r\n\r\n") {
        let len = stream.read(&mut bytes).unwrap();
        assert!(len > 0, "the guest asks");
        asked.extend_from_slice(&bytes[..len]);
    }
    write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", file.len()).unwrap();
    stream.write_all(file).unwrap();
}

/// Runs `command` in the guest of `folder`; what it said.
fn guest(folder: &Path, socket: &Path, command: &str) -> String {
    let mut script = Command::new(example_file("guest.sh"));
    script.arg("run").args([folder, socket]).arg(command);
    let child = script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_guest_pings_and_loads_a_file_through_a_nat() {
    let Some(folder) = std::env::var_os("NICFORGE_GUEST") else {
        skip::skipped("a guest needs NICFORGE_GUEST, a folder that `examples/guest.sh prepare` made");
        return;
    };
    if !has("qemu-system-x86_64") {
        skip::skipped("a guest needs qemu-system-x86_64");
        return;
    }
    let Some(hosts) = Hosts::up("guest") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    for segments in ["cut", "whole"] {
        let socket = place.path().join(format!("{segments}.sock"));
        let file = place.path().join("guest.toml");
        let text = format!(
            "[live]\nname = \"guest\"\nsegments = \"{segments}\"\n[settings]\ninterface = \"priv_ring\"\napp = \"nat\"\n\
             rx_entries = 64\ntx_entries = 64\n[app]\nexternal_address = \"10.99.2.1\"\n[[port]]\nvhost_user = \"{}\"\n\
             address = \"10.99.4.1\"\nnext_hop = \"02:00:00:00:04:02\"\n[[port]]\ninterface = \"nf-outside\"\n\
             address = \"10.99.2.1\"\nnext_hop = \"10.99.2.2\"\n",
            socket.display()
        );
        std::fs::write(&file, text).unwrap();
        let gateway = hosts.start(&file, &[]);
        let begin = Instant::now();
        while !socket.exists() {
            assert!(begin.elapsed() < Duration::from_secs(30), "the port waits at its socket");
            std::thread::sleep(Duration::from_millis(20));
        }
        let listener = hosts.run("server", || TcpListener::bind("10.99.2.2:8000").unwrap());
        let bytes: Vec<u8> = (0..FILE_BYTES).map(|at| (at * 31 + at / 256) as u8).collect();
        let said = std::thread::scope(|scope| {
            let server = scope.spawn(|| serve_once(&listener, &bytes));
            let command = "ping -c 3 -W 20 10.99.2.2; wget -q -O /file http://10.99.2.2:8000/; \
                           wc -c < /file; md5sum < /file; ip -s link";
            let said = guest(Path::new(&folder), &socket, command);
            if !server.is_finished() {
                // Nobody asked: end the wait.
                let _ = hosts.run("server", || std::net::TcpStream::connect("10.99.2.2:8000"));
            }
            said
        });
        assert!(said.contains("3 packets received"), "{segments}: {said}");
        assert!(said.contains(&FILE_BYTES.to_string()), "{segments}: {said}");
        let mut sum = Command::new("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        sum.stdin.take().unwrap().write_all(&bytes).unwrap();
        let sum = String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap();
        assert!(said.contains(&sum[..32]), "{segments}: {said}");
        let report = gateway.stop();
        assert!(report["points"][0]["metrics"]["throughput_gbps"].as_f64() > Some(0.0), "{segments}: {report}");
    }
}
