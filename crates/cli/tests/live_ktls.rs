//! A NIC under the kernel's own TCP: nginx, unmodified, sends records whose tags the NIC fills in, and stock curl reads them.

#![cfg(target_os = "linux")]

mod netns;
mod over;
mod program;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netns::{Hosts, has, skip};
use over::{build_library, text};
use rustix::process::{Pid, Signal, kill_process};

const NICFORGE: &str = env!("CARGO_BIN_EXE_nicforge");
const FILE_BYTES: usize = 8 << 20;

/// The NIC in the gateway's place, whose kernel has 10.99.1.1 behind it.
struct Nic {
    child: Child,
}

impl Nic {
    fn start(hosts: &Hosts, socket: &Path, loss: &str) -> Nic {
        text(hosts.on("gateway", "ip").args("link set nf-inside arp off".split(' ')));
        let mut command = hosts.on("gateway", NICFORGE);
        command.args(["ktls", "serve", "--tap", "nfk0", "--interface", "nf-inside", "--loss", loss, "--service"]);
        let mut child = command.arg(socket).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("nfk0"), "{line}");
        for words in ["addr add 10.99.1.1/24 dev nfk0", "link set nfk0 up"] {
            text(hosts.on("gateway", "ip").args(words.split(' ')));
        }
        Nic { child }
    }

    /// Ends it; what it counted.
    fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program on the gateway over its kernel's TCP and the NIC; it is killed with the value.
struct Over(Child);

impl Over {
    fn start(hosts: &Hosts, socket: &Path, folder: &Path, words: &[&str]) -> Over {
        let mut command = hosts.on("gateway", NICFORGE);
        command.args(["ktls", "run", "--service"]).arg(socket).arg("--").args(words).current_dir(folder);
        Over(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

fn count(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_else(|| panic!("no {name}: {text}"))
}

fn hosts(name: &str, programs: &[&str]) -> Option<Hosts> {
    if std::env::var_os("NICFORGE_PROGRAMS").is_none() || !programs.iter().all(|program| has(program)) {
        skip::skipped("programs over the kernel's TCP run with NICFORGE_PROGRAMS=1");
        return None;
    }
    build_library();
    Hosts::up(name)
}

fn certificate(folder: &Path) {
    let words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=nicforge";
    let made = Command::new("openssl").args(words.split(' ')).current_dir(folder).output().unwrap();
    assert!(made.status.success());
}

/// Waits until something on the client can connect.
fn wait_for_port(hosts: &Hosts) {
    let until = Instant::now() + Duration::from_secs(20);
    let connects = || {
        let probe = "import socket; socket.create_connection(('10.99.1.1', 8443), timeout=2)";
        hosts.on("client", "python3").args(["-c", probe]).output().is_ok_and(|output| output.status.success())
    };
    while !connects() {
        assert!(Instant::now() < until, "nobody listens");
    }
}

#[test]
fn records_of_nginx_over_the_kernels_tcp_are_encrypted_by_the_nic() {
    let Some(hosts) = hosts("ktls", &["nginx", "curl", "openssl", "python3"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    certificate(folder);
    let content: Vec<u8> =
        (0..FILE_BYTES as u32 / 4).flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    std::fs::write(folder.join("file"), &content).unwrap();
    let here = folder.display();
    let conf = format!(
        "daemon off; user root; pid {here}/pid; error_log {here}/log; events {{}}\n\
         http {{ access_log off; sendfile on; ssl_certificate {here}/cert.pem; ssl_certificate_key {here}/key.pem;\n\
         ssl_protocols TLSv1.2 TLSv1.3; ssl_conf_command Options KTLS;\n\
         server {{ listen 10.99.1.1:8443 ssl; root {here}; }} }}\n"
    );
    std::fs::write(folder.join("conf"), conf).unwrap();
    let (socket, conf, got) = (folder.join("nic"), folder.join("conf"), folder.join("got"));
    for loss in ["0", "0.02", "0.05"] {
        let nic = Nic::start(&hosts, &socket, loss);
        let server = Over::start(&hosts, &socket, folder, &["nginx", "-c", conf.to_str().unwrap()]);
        wait_for_port(&hosts);
        for version in ["1.2", "1.3"] {
            let mut curl = hosts.on("client", "curl");
            curl.args(["-sSk", "--max-time", "100", "--tls-max", version, "-o"]).arg(&got);
            text(curl.arg("https://10.99.1.1:8443/file"));
            assert!(std::fs::read(&got).unwrap() == content, "{loss} {version}");
        }
        drop(server);
        let said = nic.stop();
        assert_eq!(count(&said, "connections_offloaded"), 2, "{said}");
        assert!(count(&said, "tx_tls_encrypted_bytes") > 2 * FILE_BYTES as u64, "{said}");
        assert_eq!((count(&said, "tx_tls_refused"), count(&said, "unreadable_messages")), (0, 0), "{said}");
        if loss == "0" {
            assert_eq!(count(&said, "tx_tls_drop_no_sync_data"), 0, "{said}");
        } else {
            assert!(count(&said, "tx_tls_ooo") > 0 && count(&said, "tx_tls_dump_bytes") > 0, "{said}");
        }
    }
}

/// A server whose socket does not wait, and that writes to a reader who is slow: records fit in part only. Then a connection
/// over another device, which must not be offloaded.
const SLOW: &str = "
import select, socket, ssl, sys
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.options |= 8
c.load_cert_chain('cert.pem', 'key.pem')
def serve(l):
    s = c.wrap_socket(l.accept()[0], server_side=True)
    s.setblocking(False)
    data, at = bytes(range(256)) * 16_000, 0
    while at < len(data):
        try: at += s.send(data[at:at + 40_001])
        except ssl.SSLWantWriteError: select.select([], [s], [])
    s.setblocking(True)
    s.unwrap(); s.close()
l = socket.create_server(('0.0.0.0', 8443))
while True:
    try: serve(l)
    except OSError as e: print(e, file=sys.stderr)
";

const READER: &str = "
import socket, ssl, sys, time
c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
c.check_hostname = False
c.verify_mode = ssl.CERT_NONE
r = socket.socket(); r.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
r.settimeout(30); r.connect((sys.argv[1], 8443))
s = c.wrap_socket(r)
got = b''
while d := s.recv(30_000):
    got += d
    if len(got) % 5 == 0: time.sleep(0.005)
assert got == bytes(range(256)) * 16_000, len(got)
print('whole')
";

#[test]
fn a_socket_that_is_full_loses_nothing_and_another_device_gets_no_offload() {
    let Some(hosts) = hosts("ktlsslow", &["openssl", "python3"]) else { return };
    let place = tempfile::tempdir().unwrap();
    certificate(place.path());
    let socket = place.path().join("nic");
    let nic = Nic::start(&hosts, &socket, "0");
    let server = Over::start(&hosts, &socket, place.path(), &["python3", "-c", SLOW]);
    wait_for_port(&hosts);
    assert_eq!(text(hosts.on("client", "python3").args(["-c", READER, "10.99.1.1"])), "whole\n");
    assert_eq!(text(hosts.on("gateway", "python3").args(["-c", READER, "127.0.0.1"])), "whole\n");
    drop(server);
    let said = nic.stop();
    assert_eq!((count(&said, "connections_offloaded"), count(&said, "connections_refused")), (1, 1), "{said}");
}

#[test]
fn what_cannot_be_is_refused() {
    let output =
        Command::new(NICFORGE).args(["ktls", "run", "--service", "/nowhere/nic", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ktls serve"));
    let Some(hosts) = Hosts::up("ktlsarp") else { return };
    let mut command = hosts.on("gateway", NICFORGE);
    let output = command.args("ktls serve --tap nfk0 --interface nf-inside --service /tmp/nf-none".split(' ')).output();
    let said = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    assert!(said.contains("arp off"), "{said}");
}
